//! Estimators of logged episodes: what they have in common with each other and with the Transformer.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;

use common::logs::{gap, lstd, random_log, resamples, softmax_td};
use ictd::evaluate::method::{Basis, ConstantMean, Kbrl, LinearTd, Lstd, MonteCarlo, SoftmaxTd, TabularTd};
use ictd::evaluate::{Depths, FitError, Folds, Keys, Log, LogBuilder, Loss, Method};
use ictd::evaluate::{depths, temperatures, tune};
use ictd::{End, Estimator, KernelName, Matrix, Purpose, Stream, TransformerConfig, WeightedSoftmaxTd};

/// Every estimator, with settings that fit small logs.
fn all() -> Vec<Box<dyn Method>> {
    let rbf = || KernelName::Rbf.at(0.5).unwrap();
    vec![
        Box::new(ConstantMean),
        Box::new(MonteCarlo),
        Box::new(TabularTd { num_layers: 9, step_size: 0.7, centred: true }),
        Box::new(LinearTd { num_layers: 9, step_size: 0.3, centred: true }),
        Box::new(softmax_td(KernelName::Rbf, 0.5, 9, true)),
        Box::new(softmax_td(KernelName::Softmax, 0.5, 9, true)),
        Box::new(lstd(Basis::Table, 0.0)),
        Box::new(lstd(Basis::Linear, 0.1)),
        Box::new(lstd(Basis::Kernel(rbf()), 0.1)),
        Box::new(Lstd { basis: Basis::Table, traces: true, ridge: 0.0 }),
        Box::new(Kbrl { kernel: rbf() }),
    ]
}

#[test]
fn softmax_td_is_the_transformer_on_the_same_context() {
    let (gamma, layers) = (0.9, 12);
    for seed in 0..4 {
        let context = common::episodes(seed, 3, 6, &[9, 14, 11]);
        let log = Log::from_context(&context, gamma).unwrap();
        for kernel in KernelName::ALL {
            let attention = common::attention(kernel, 0.8, 0.0);
            let direct =
                WeightedSoftmaxTd { attention: attention.clone(), gamma, step_sizes: vec![0.9; layers] };
            let mut config = TransformerConfig::theta_star(attention, layers, gamma);
            config.step_sizes = vec![0.9];
            let fit = softmax_td(kernel, 0.8, layers, false).fit(&log.whole()).unwrap();
            for history in [direct.run(&context).unwrap(), config.check().unwrap().run(&context).unwrap()] {
                for column in (0..context.num_columns())
                    .filter(|&j| !matches!(context.roles()[j], ictd::context::Role::Terminal))
                {
                    let found = fit.values()[log.number_of(column as u32)];
                    // Twelve layers of sums of 34 terms of order 1.
                    assert!((found - history[layers][column]).abs() < 1e-12, "{kernel} {column}");
                }
            }
        }
    }
}

/// At the smallest temperature the states that a sample lacks are so far from all others that weights underflow and have to be
/// made anew.
#[test]
fn a_batch_of_samples_is_one_fit_after_the_other() {
    let log = random_log(1, 40, 90, 6, 0.9);
    let queries = Matrix::from_fn(7, 2, |i, a| (i as f64) - 3.0 * (a as f64));
    for (kernel, temperature) in [
        (KernelName::Rbf, 0.5),
        (KernelName::Rbf, 1e-7),
        (KernelName::Softmax, 1.0),
        (KernelName::Linear, 2.0),
    ] {
        for count in [3, 40] {
            let samples = resamples(&log, count);
            let method = softmax_td(kernel, temperature, 15, true);
            let fits = method.fit_all(&samples, &[], |_| ControlFlow::Continue(())).unwrap();
            let predicted = fits.predict(&queries).unwrap();
            for (b, sample) in samples.iter().enumerate() {
                let single = method.fit(sample).unwrap();
                let column = |values: &Matrix| values.rows().map(|row| row[b]).collect::<Vec<f64>>();
                // Fifteen layers on values of order 10.
                assert!(gap(&column(fits.values()), single.values()) < 1e-12, "{kernel} {temperature} {b}");
                assert!(gap(&column(&predicted), &single.predict(&queries).unwrap()) < 1e-12);
            }
        }
    }
}

/// With as many landmarks as states nothing changes; with fewer, TD errors are attributed to landmarks and to nothing else.
#[test]
fn landmarks_stand_for_the_states_nearest_to_them() {
    let log = random_log(4, 40, 60, 6, 0.9);
    let plain = softmax_td(KernelName::Rbf, 0.5, 15, true);
    let with = |max_keys| SoftmaxTd { keys: Some(Arc::new(Keys::of(&log, max_keys))), ..plain.clone() };
    let all = with(60).fit(&log.whole()).unwrap();
    assert!(gap(all.values(), plain.fit(&log.whole()).unwrap().values()) < 1e-12);
    let (few, keys) = (with(12), Keys::of(&log, 12));
    assert_eq!(keys.states().len(), 12);
    let (sample, m) = (log.whole(), log.num_states());
    let near = |s: usize, k: usize| -> f64 {
        let pairs = log.features().row(s).iter().zip(keys.features().row(k));
        pairs.map(|(a, b)| (a - b) * (a - b)).sum()
    };
    for s in 0..m {
        let own = near(s, keys.key_of()[s] as usize);
        assert!((0..12).all(|k| near(s, k) >= own));
    }
    let mut values = vec![sample.mean_value(); m];
    for _ in 0..15 {
        let errors = sample.td_errors(&values);
        for (s, value) in values.iter_mut().enumerate() {
            let (mut sum, mut total) = (0.0, 0.0);
            for source in 0..m {
                let weight = (-near(s, keys.key_of()[source] as usize)).exp();
                sum += weight * errors[source];
                total += weight * sample.visits()[source];
            }
            *value += 0.9 * sum / total;
        }
    }
    let fit = few.fit(&sample).unwrap();
    assert!(gap(fit.values(), &values) < 1e-12);
    assert!(gap(&fit.predict(log.features()).unwrap(), &values) < 1e-12);
    // Landmarks that are more than a quarter of the states are iterated state by state; the same landmarks in a log with states
    // that were never seen, in their own coordinates.
    let own = Matrix::from_fn(5, 2, |i, a| log.features()[(i, a)]);
    let crowded = Matrix::from_fn(200, 2, |i, a| if i < 5 { own[(i, a)] } else { i as f64 });
    let mut builder = LogBuilder::new(0.9, None).unwrap();
    builder.episode(0, &[0, 1, 2, 3, 1], &[1.0, -1.0, 0.5, 2.0], End::Truncated, None).unwrap();
    builder.episode(1, &[2, 0, 4], &[1.0, 0.0, 3.0], End::Terminated, None).unwrap();
    let (small, large) = (builder.clone().build(own).unwrap(), builder.build(crowded).unwrap());
    let values = |log: &Log, max_keys| {
        let keys = Some(Arc::new(Keys::of(log, max_keys)));
        let method = SoftmaxTd { keys, ..plain.clone() };
        let fits = method.fit_all(&resamples(log, 20), &[], |_| ControlFlow::Continue(())).unwrap();
        (0..5).flat_map(|s| fits.values().row(log.number_of(s)).to_vec()).collect::<Vec<f64>>()
    };
    assert!(gap(&values(&small, 50), &values(&large, 50)) < 1e-12);
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let log = random_log(2, 60, 200, 9, 0.9);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let fits = softmax_td(KernelName::Rbf, 0.3, 20, true)
                .fit_all(&resamples(&log, 33), &[], |_| ControlFlow::Continue(()))
                .unwrap();
            let candidate =
                Depths { method: softmax_td(KernelName::Rbf, 0.3, 0, true), depths: depths(16), patience: 9 };
            let other =
                Depths { method: softmax_td(KernelName::Rbf, 0.1, 0, true), depths: depths(16), patience: 9 };
            let folds = Folds::new(&log, 5, 2, 0).unwrap();
            let curve = tune(&log, &folds, Loss::Returns, &[&candidate, &other]).unwrap();
            let values: Vec<Vec<f64>> =
                all().iter().map(|m| m.fit(&log.whole()).unwrap().values().to_vec()).collect();
            let keys = Some(Arc::new(Keys::of(&log, 30)));
            let few = SoftmaxTd { keys, ..softmax_td(KernelName::Rbf, 0.3, 20, true) };
            let few = few.fit_all(&resamples(&log, 33), &[], |_| ControlFlow::Continue(())).unwrap();
            format!("{:?} {curve:?} {values:?} {:?}", fits.values(), few.values())
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn infinite_depth_is_least_squares_on_the_table() {
    let log = random_log(3, 30, 6, 12, 0.8);
    let deep = softmax_td(KernelName::Rbf, 0.05, 20_000, true).fit(&log.whole()).unwrap();
    let table = lstd(Basis::Table, 0.0).fit(&log.whole()).unwrap();
    assert!(gap(deep.values(), table.values()) < 1e-8);
    let shallow = softmax_td(KernelName::Rbf, 0.05, 10, true).fit(&log.whole()).unwrap();
    assert!(gap(shallow.values(), table.values()) > 1e-3);
}

#[test]
fn where_no_state_repeats_least_squares_are_the_returns() {
    let mut builder = LogBuilder::new(1.0, Some(0.3)).unwrap();
    let mut stream = Stream::new(9, Purpose::Trajectory, 0);
    for key in 0..5u32 {
        let states: Vec<u32> = (4 * key..4 * key + 4).collect();
        let rewards = stream.uniform_vec(4, -1.0, 1.0);
        builder.episode(u64::from(key), &states, &rewards, End::Terminated, None).unwrap();
    }
    let log = builder.build(Matrix::from_fn(20, 1, |s, _| s as f64)).unwrap();
    let returns = MonteCarlo.fit(&log.whole()).unwrap();
    for traces in [false, true] {
        let table = Lstd { basis: Basis::Table, traces, ridge: 0.0 }.fit(&log.whole()).unwrap();
        assert!(gap(table.values(), returns.values()) < 1e-13);
    }
    assert!(log.whole().return_loss(returns.values()) < 1e-28);
    let deep = softmax_td(KernelName::Rbf, 0.5, 2000, true).fit(&log.whole()).unwrap();
    assert!(gap(deep.values(), returns.values()) < 1e-8);
}

/// Rewards that make every state worth the same: no estimator may find anything else, whatever the size of the constant.
#[test]
fn a_constant_is_fitted_exactly() {
    for (gamma, worth) in [(0.9, 1e6), (1.0, 1e6)] {
        let mut builder = LogBuilder::new(gamma, Some(0.5)).unwrap();
        for key in 0..6u32 {
            let (states, end) = if gamma < 1.0 {
                (vec![key, 5 - key, (key + 2) % 6], End::Truncated)
            } else {
                (vec![key, 5 - key], End::Terminated)
            };
            let rewards = if gamma < 1.0 { [(1.0 - gamma) * worth; 2] } else { [0.0, worth] };
            builder.episode(u64::from(key), &states, &rewards, end, None).unwrap();
        }
        let log = builder.build(Matrix::from_fn(6, 1, |s, _| s as f64 - 2.5)).unwrap();
        for method in all() {
            // Monte Carlo sees only the rewards of a truncated episode.
            if method.name() != "Monte Carlo" || gamma == 1.0 {
                let fit = method.fit(&log.whole()).unwrap();
                let queries = fit.predict(&Matrix::from_vec(2, 1, vec![0.3, 40.0])).unwrap();
                for value in fit.values().iter().chain(&queries) {
                    assert!((value - worth).abs() <= 1e-9 * worth * 1e-4, "{} {value}", method.name());
                }
            }
        }
    }
}

#[test]
fn one_state_and_no_differences_are_no_obstacle() {
    let mut builder = LogBuilder::new(0.5, Some(0.5)).unwrap();
    builder.episode(0, &[0, 1, 0], &[1.0, 3.0], End::Truncated, None).unwrap();
    builder.episode(1, &[1], &[2.0], End::Terminated, None).unwrap();
    // Both have the same features: one state, worth 2 + its half two times out of three.
    let log = builder.build(Matrix::zeros(2, 3)).unwrap();
    assert_eq!((log.num_states(), temperatures(&log.whole())), (1, vec![1.0]));
    for method in all().iter().filter(|m| m.name() != "Monte Carlo") {
        let fit = method.fit(&log.whole()).unwrap();
        assert!((fit.values()[0] - 3.0).abs() < 1e-12 || method.name() == "LSTD(λ)", "{}", method.name());
    }
    let returns = MonteCarlo.fit(&log.whole()).unwrap();
    assert!((returns.values()[0] - (2.5 + 3.0 + 2.0) / 3.0).abs() < 1e-12);
}

#[test]
fn a_linear_kernel_is_the_linear_basis_and_sweeps_are_elimination() {
    let log = random_log(5, 50, 30, 10, 0.9);
    let kernel = KernelName::Linear.at(1.0).unwrap();
    let linear = lstd(Basis::Linear, 0.05).fit(&log.whole()).unwrap();
    let dual = lstd(Basis::Kernel(kernel), 0.05).fit(&log.whole()).unwrap();
    assert!(gap(linear.values(), dual.values()) < 1e-9);
    // 400 states with features of their own: the table is swept, the features are eliminated.
    let log = random_log(6, 300, 400, 12, 0.95);
    let log = log.with_features(&Matrix::identity(400)).unwrap();
    let table = lstd(Basis::Table, 1e-5).fit(&log.whole()).unwrap();
    let features = lstd(Basis::Linear, 1e-5).fit(&log.whole()).unwrap();
    let visited = (0..400).filter(|&s| log.whole().visits()[s] > 0.0);
    assert!(visited.clone().count() > 256);
    for s in visited {
        assert!((table.values()[s] - features.values()[s]).abs() < 1e-9);
    }
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let log = random_log(7, 5, 4, 5, 0.9);
    let whole = log.whole();
    for method in all() {
        let empty = log.sample(&vec![0.0; log.num_blocks()]);
        assert_eq!(method.fit(&empty).unwrap_err(), FitError::Empty, "{}", method.name());
        let fit = method.fit(&whole).unwrap();
        let error = fit.predict(&Matrix::zeros(1, 3)).unwrap_err();
        assert_eq!(error, FitError::FeatureDim { expected: 2, found: 3 }, "{}", method.name());
    }
    let step = SoftmaxTd { step_size: f64::NAN, ..softmax_td(KernelName::Rbf, 1.0, 1, true) };
    assert!(matches!(step.fit(&whole), Err(FitError::StepSize(_))));
    assert!(matches!(lstd(Basis::Table, f64::NAN).fit(&whole), Err(FitError::Ridge(_))));
    let relu = KernelName::Relu.at(1.0).unwrap();
    let error = lstd(Basis::Kernel(relu), 0.1).fit(&whole).unwrap_err();
    assert_eq!(error, FitError::NotPositiveDefinite);
    let linear = KernelName::Linear.at(1.0).unwrap();
    assert_eq!(Kbrl { kernel: linear }.fit(&whole).unwrap_err(), FitError::NotNormalized);
    let context = common::episodes(1, 2, 3, &[4]);
    let no_traces = Log::from_context(&context, 0.9).unwrap();
    let traces = Lstd { basis: Basis::Table, traces: true, ridge: 0.0 };
    assert_eq!(traces.fit(&no_traces.whole()).unwrap_err(), FitError::NoTraces);
    let diverging = SoftmaxTd { step_size: 30.0, ..softmax_td(KernelName::Tabular, 1.0, 2000, true) };
    assert_eq!(diverging.fit(&whole).unwrap_err(), FitError::Diverged { layers: 2000 });
    let stopped =
        SoftmaxTd { stop: Some(Arc::new(true.into())), ..softmax_td(KernelName::Rbf, 1.0, 1, true) };
    assert_eq!(stopped.fit(&whole).unwrap_err(), FitError::Stopped(ictd::watch::Stopped));
    let far = no_traces.with_features(&no_traces.features().map(|x| 1e200 * x)).unwrap();
    assert!(matches!(
        softmax_td(KernelName::Rbf, 1.0, 1, true).fit(&far.whole()),
        Err(FitError::Attention(_))
    ));
    let flat = log.with_features(&Matrix::zeros(log.num_states(), 2)).unwrap();
    assert!(matches!(lstd(Basis::Linear, 0.0).fit(&flat.whole()), Err(FitError::Linalg(_))));
}

#[test]
fn truncated_episodes_may_go_on_as_they_were() {
    let mut builder = LogBuilder::new(0.5, None).unwrap();
    builder.episode(0, &[0, 1], &[4.0, 2.0], End::Terminated, None).unwrap();
    builder.episode(1, &[0, 1], &[-6.0], End::Truncated, None).unwrap();
    let log = builder.build(Matrix::from_vec(2, 1, vec![0.0, 1.0])).unwrap();
    // Three transitions, one of which ends an episode: no reward in all over 1 + 2/2.
    assert_eq!(log.whole().mean_value(), 0.0);
    // The second episode may go on for ever: -6/(1 - 1/2).
    assert_eq!(log.whole().return_range(), Some((-12.0, 5.0)));
    assert_eq!(log.sample(&[1.0, 0.0]).return_range(), Some((2.0, 5.0)));
    assert_eq!(log.sample(&[0.0, 2.0]).return_range(), Some((-12.0, -12.0)));
    assert_eq!(log.sample(&[0.0, 0.0]).return_range(), None);
}
