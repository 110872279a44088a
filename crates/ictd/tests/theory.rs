//! What certificates and conditions promise, against what layers do.
#![allow(missing_docs)]

use std::sync::Arc;

use ictd::context::{Context, ContextStatistics, End};
use ictd::kernel::{Attention, Kernel, KernelName};
use ictd::matrix::Matrix;
use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::task::{Family, FiniteTask, Kind, Mrp, TaskSource as _};
use ictd::theory::{CertificateConfig, Regime, Spectrum, Stability, Status, SuggestionConfig};

fn softmax(temperature: f64) -> Attention {
    Attention::new(KernelName::Softmax.at(temperature).unwrap(), 0.0).unwrap()
}

fn kernel_at(temperature: f64) -> Option<Arc<dyn Kernel>> {
    KernelName::Softmax.at(temperature).ok()
}

fn boyan(index: u64) -> FiniteTask {
    Family::paper().draw(&mut Stream::new(0, Purpose::Task, index)).unwrap()
}

/// Few states, one feature each.
fn one_hot(index: u64, gamma: f64) -> FiniteTask {
    let family = Family { num_states: 4, gamma, ..Family::of(Kind::Dense) };
    let task = family.draw(&mut Stream::new(0, Purpose::Task, index)).unwrap();
    FiniteTask::new(task.mrp().clone(), Matrix::identity(4)).unwrap()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

/// Errors to the limit over layers.
fn errors(operator: &StateOperator, alpha: f64, layers: usize) -> Vec<f64> {
    let limit = operator.infinite_depth().unwrap();
    let mut v = vec![0.0; limit.len()];
    (0..=layers)
        .map(|_| {
            let error = distance(&v, &limit);
            v = operator.apply(alpha, &v);
            error
        })
        .collect()
}

#[test]
fn certified_tasks_decay_at_the_predicted_rate() {
    for index in 0..20 {
        let operator = StateOperator::population(&one_hot(index, 0.9), &softmax(0.1)).unwrap();
        let certificate = CertificateConfig::default().certify(&operator).unwrap();
        assert_eq!(certificate.status, Status::Certified, "{:?}", certificate.reasons);
        let fixed = certificate.fixed_point.unwrap();
        // Values of order 10 from a well-conditioned system of size 4: rounding is some 1e-14.
        assert!(fixed.equation_residual < 1e-10);
        // The error as it is computed is itself rounded.
        assert!(fixed.error <= fixed.error_bound.unwrap() * (1.0 + 1e-9));
        // The slowest mode is real here (the constant function, at 1 - γ): late ratios are the rate.
        let errors = errors(&operator, 1.0, 120);
        let measured = (errors[120] / errors[60]).powf(1.0 / 60.0);
        let predicted = certificate.contraction.spectral_radius.unwrap();
        // Other modes have not quite died out by layer 60.
        assert!((measured / predicted - 1.0).abs() < 0.01, "{measured} {predicted}");
        // Enough layers by contraction are enough.
        let enough = fixed.layers_sufficient.unwrap() as usize;
        // The tolerance that the certificate was asked about.
        assert!(errors[enough] <= 1e-3);
    }
}

#[test]
fn the_paper_s_tasks_have_the_known_regimes() {
    let mut unstable = 0;
    for index in 0..30 {
        let task = boyan(index);
        let at_one = Stability::of(&StateOperator::population(&task, &softmax(1.0)).unwrap()).unwrap();
        assert_eq!(at_one.regime, Regime::Provable);
        assert!(at_one.margin < 0.0 && at_one.spectrum.unwrap().spectral_radius(1.0) < 1.0);
        let sharp = Stability::of(&StateOperator::population(&task, &softmax(0.05)).unwrap()).unwrap();
        unstable += u32::from(sharp.regime == Regime::Unstable);
    }
    // About 90 % are; fewer than 20 of 30 would have probability 1e-4.
    assert!(unstable >= 20, "{unstable}");
}

/// Flat kernels, docs/proofs.md (a): the flat-kernel condition implies the form condition, and that implies positive real parts.
#[test]
fn flat_kernels_are_provably_stable() {
    let (mut flat, mut by_form) = (0, 0);
    for index in 0..20 {
        for temperature in [0.3, 1.0, 3.0, 10.0] {
            for gamma in [0.2, 0.6, 0.9] {
                let family = Family { gamma, ..Family::paper() };
                let task = family.draw(&mut Stream::new(1, Purpose::Task, index)).unwrap();
                let operator = StateOperator::population(&task, &softmax(temperature)).unwrap();
                let found = Stability::of(&operator).unwrap();
                let form = found.form_margin.unwrap();
                if found.flatness.unwrap() < 1.0 {
                    flat += 1;
                    // The form's margin comes from a symmetric eigenvalue problem of size 64 with entries below 1.
                    // 1 - γ√(max w/min w) is a lower bound of the form's margin.
                    assert!(form >= 1.0 - found.flatness.unwrap() - 1e-12);
                }
                if form > 0.0 {
                    by_form += 1;
                    assert!(!found.spectrum.unwrap().is_unstable());
                }
            }
        }
    }
    assert!(flat > 20 && by_form > flat, "{flat} {by_form}");
}

/// Unnormalised kernels, docs/proofs.md (b): with steps by mass the form's margin is at least 1 - γ, whatever the temperature.
#[test]
fn steps_by_mass_are_always_stable() {
    let mut compared = 0;
    for index in 0..20 {
        for temperature in [0.02, 0.05, 0.2, 1.0] {
            let operator = StateOperator::population(&boyan(index), &softmax(temperature)).unwrap();
            let repaired = operator.with_steps_by_mass().unwrap();
            let found = Stability::of(&repaired).unwrap();
            // 1 - γ, less the rounding of a symmetric eigenvalue problem of size 64.
            assert!(found.form_margin.unwrap() >= 0.1 - 1e-12);
            assert!(!found.spectrum.unwrap().is_unstable());
            assert!(matches!(found.regime, Regime::Provable | Regime::Assumption));
            // The limit is the same, where rounding leaves it: rows of the equation were only scaled.
            if let (Ok(limit), Ok(scaled)) = (operator.infinite_depth(), repaired.infinite_depth()) {
                compared += 1;
                let size = limit.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
                // Systems with a condition number of up to 1e12 are solved to four digits.
                assert!(distance(&limit, &scaled) <= 1e-4 * size, "{index} {temperature}");
            }
        }
    }
    // Systems that are singular to working precision have no limit to compare.
    assert!(compared >= 20, "{compared}");
}

/// Sharp kernels, docs/proofs.md (c): where an eigenvalue has a negative real part no step size helps.
#[test]
fn unstable_tasks_grow_at_every_step_size() {
    let operator = StateOperator::population(&boyan(0), &softmax(0.05)).unwrap();
    let spectrum = Spectrum::of(&operator).unwrap();
    assert!(spectrum.is_unstable());
    for alpha in [1e-3, 1e-2, 0.1, 0.5, 1.0, 2.0] {
        assert!(spectrum.spectral_radius(alpha) > 1.0);
    }
    let errors = errors(&operator, 0.2, 3000);
    assert!(errors[3000] > 1e3 * errors[0]);
}

#[test]
fn suggestions_repair_what_they_promise_to_repair() {
    // A sharp kernel on raw features: no step size helps, unit norm does.
    let operator = StateOperator::population(&boyan(0), &softmax(0.05)).unwrap();
    let refused = CertificateConfig::default().certify(&operator).unwrap();
    assert_eq!(refused.status, Status::Refused);
    let search = SuggestionConfig { num_layers: 15, temperature: 0.05, kernel_at: &kernel_at };
    let found = search.suggest(&operator, &refused).found;
    assert!(!found.is_empty());
    for suggestion in &found {
        let repaired = suggestion.change.apply(&operator, &search).unwrap().unwrap();
        let certificate = CertificateConfig { step_size: suggestion.step_size, ..Default::default() }
            .certify(&repaired)
            .unwrap();
        assert_eq!(certificate.status, suggestion.status);
        assert!(certificate.status.converges() && certificate.contraction.spectral_radius.unwrap() < 1.0);
    }
    let repaired = found[0].change.apply(&operator, &search).unwrap().unwrap();
    let errors_repaired = errors(&repaired, found[0].step_size, 400);
    // What converges has lost two digits of its error by then; what does not has gained.
    assert!(errors_repaired[400] < 1e-2 * errors_repaired[0]);

    // A step that is merely too large: the certificate says which is not.
    let operator = StateOperator::population(&one_hot(0, 0.9), &softmax(0.1)).unwrap();
    let refused = CertificateConfig { step_size: 2.0, ..Default::default() }.certify(&operator).unwrap();
    assert_eq!(refused.status, Status::Refused);
    let limit = refused.steps.largest_stable.unwrap();
    assert!(errors(&operator, 1.02 * limit, 2000)[2000] > 1.0);
    // 2 % off the limit the mode that sets it is multiplied by about 1 ± 0.04 per layer: 2000 layers leave no doubt.
    assert!(errors(&operator, 0.98 * limit, 2000)[2000] < 1e-6);
    let best = refused.steps.best_spectral_radius.unwrap();
    assert!(best < Spectrum::of(&operator).unwrap().spectral_radius(1.0));
}

/// A layer without matrices against the dense one, with states never left and terminal states.
#[test]
fn matrix_free_layers_are_the_dense_ones() {
    let mut stream = Stream::new(3, Purpose::Prompt, 0);
    let rows: Vec<Vec<f64>> = (0..6).map(|_| stream.uniform_vec(2, -1.0, 1.0)).collect();
    let walk: Vec<&Vec<f64>> = [0, 1, 2, 1, 0, 3].map(|s: usize| &rows[s]).to_vec();
    let context = Context::builder()
        .episode(&walk, &[1.0, -1.0, 0.5, 2.0, 0.0], End::Truncated)
        .episode(&[&rows[4], &rows[1], &rows[5]], &[0.3, 0.1], End::Terminated)
        .build()
        .unwrap();
    for kernel in KernelName::ALL {
        let attention = Attention::new(kernel.at(0.7).unwrap(), 0.0).unwrap();
        let operator = StateOperator::empirical(&context, &attention, 0.8).unwrap();
        let v = stream.uniform_vec(operator.statistics().num_groups(), -1.0, 1.0);
        let dense: Vec<f64> = operator
            .jacobian(0.6)
            .mul_vec(&v)
            .iter()
            .zip(operator.apply(1.0, &vec![0.0; v.len()]))
            .map(|(x, r)| x + 0.6 * r)
            .collect();
        // Sums of a dozen terms of order 1.
        assert!(distance(&dense, &operator.apply(0.6, &v)) < 1e-14);
        let (m, p) = (operator.predecessor_matrix(), operator.successor_matrix());
        let x = Matrix::from_fn(v.len(), v.len(), |i, j| m[(i, j)] - 0.8 * p[(i, j)]);
        assert!(distance(x.as_slice(), operator.difference_matrix().as_slice()) < 1e-14);
    }
}

/// Long contexts approach the population, entry by entry, at the rate of sampling.
#[test]
fn the_population_is_the_limit_of_contexts() {
    let task = one_hot(1, 0.7);
    let population = StateOperator::population(&task, &softmax(0.5)).unwrap();
    let (context, states) = task.sample_context(200_000, &mut Stream::new(2, Purpose::Trajectory, 0));
    let empirical = StateOperator::empirical(&context, &softmax(0.5), 0.7).unwrap();
    let (m, n) = (population.predecessor_matrix(), empirical.predecessor_matrix());
    // The context numbers states by first appearance.
    let group =
        |s: usize| empirical.statistics().group_of(states.iter().position(|&t| t == s).unwrap()).unwrap();
    for s in 0..4 {
        for t in 0..4 {
            // Five standard errors of a frequency, 1/√n times a factor of mixing below 2.
            assert!((m[(s, t)] - n[(group(s), group(t))]).abs() < 10.0 / 200_000f64.sqrt());
        }
    }
}

#[test]
fn edge_cases_are_defined() {
    // γ = 0: values are weighted rewards, and a kernel matrix with positive eigenvalues is stable.
    let operator = StateOperator::population(&one_hot(0, 0.0), &softmax(1.0)).unwrap();
    // Exactly 1 without a future; what a way through eigenvalues would round.
    assert!(Stability::of(&operator).unwrap().form_margin.unwrap() > 1.0 - 1e-12);
    assert!(CertificateConfig::default().certify(&operator).unwrap().status < Status::Refused);

    // Two states that look the same: M is singular, nothing can tell them apart.
    let p = Matrix::from_rows(&[vec![0.5, 0.5], vec![0.9, 0.1]]).unwrap();
    let mrp = Mrp::new(p, vec![1.0, 0.0], 0.9, vec![0.5, 0.5]).unwrap();
    let twins = FiniteTask::new(mrp, Matrix::from_fn(2, 1, |_, _| 1.0)).unwrap();
    let operator = StateOperator::population(&twins, &softmax(1.0)).unwrap();
    let certificate = CertificateConfig::default().certify(&operator).unwrap();
    assert_eq!(certificate.status, Status::Refused);
    assert!(operator.infinite_depth().is_err());

    // A state that is reached and never left.
    let context =
        Context::builder().episode(&[[1.0], [0.5], [-1.0]], &[1.0, 0.0], End::Truncated).build().unwrap();
    let operator = StateOperator::empirical(&context, &softmax(1.0), 0.9).unwrap();
    let certificate = CertificateConfig::default().certify(&operator).unwrap();
    assert_eq!(certificate.contraction.never_left_states, 1);
    assert!(certificate.status > Status::Certified && !certificate.reasons.is_empty());

    // States without visits in given counts: weights are defined, nothing rests on them.
    let task = one_hot(0, 0.5);
    let mut counts = Matrix::zeros(4, 4);
    (counts[(0, 1)], counts[(1, 0)]) = (3.0, 3.0);
    let statistics = ContextStatistics::counted(task.features(), task.mrp().rewards(), &counts);
    let operator = StateOperator::of(statistics, &softmax(1.0), 0.5).unwrap();
    assert!(operator.apply(1.0, &[0.0; 4]).iter().all(|v| v.is_finite()));
    assert_eq!(operator.self_weights()[2], 0.0);
    assert_eq!(CertificateConfig::default().certify(&operator).unwrap().status, Status::Refused);
}

/// Normalised features that coincide are one state, as if they had been given that way.
#[test]
fn states_that_coincide_after_normalising_are_one() {
    let lengths = [1.0, 2.0, 1.0, 2.0, 3.0, 1.0, -1.0, 1.0];
    let rewards = [1.0, 2.0, 1.0, 0.0, 3.0, 1.0, -1.0];
    let context = |f: &dyn Fn(f64) -> f64| {
        let rows: Vec<[f64; 1]> = lengths.iter().map(|&x| [f(x)]).collect();
        Context::builder().episode(&rows, &rewards, End::Truncated).build().unwrap()
    };
    let normalised = ContextStatistics::per_state(&context(&|x| x)).with_unit_features().unwrap();
    let given = ContextStatistics::per_state(&context(&f64::signum));
    assert_eq!(normalised.num_groups(), given.num_groups());
    assert_eq!((normalised.visits(), normalised.reward_sums()), (given.visits(), given.reward_sums()));
    let rate = |statistics| {
        let operator = StateOperator::of(statistics, &softmax(1.0), 0.9).unwrap();
        CertificateConfig::default().certify(&operator).unwrap().contraction.spectral_radius.unwrap()
    };
    // Eigenvalues of the same 2×2 matrix, its entries rounded once.
    assert!((rate(normalised) - rate(given)).abs() < 1e-14);
    // Equal features leave the kernel singular: nothing is proved with it.
    let p = Matrix::from_rows(&[vec![0.5, 0.5], vec![0.9, 0.1]]).unwrap();
    let mrp = Mrp::new(p, vec![1.0, 0.0], 0.9, vec![0.5, 0.5]).unwrap();
    let twins = FiniteTask::new(mrp, Matrix::from_fn(2, 1, |_, _| 1.0)).unwrap();
    let stability = Stability::of(&StateOperator::population(&twins, &softmax(1.0)).unwrap()).unwrap();
    assert_eq!((stability.form_margin, stability.regime), (None, Regime::Marginal));
}

/// Weights that do not sum to 1 satisfy no assumption about them, whatever their diagonal.
#[test]
fn the_assumption_is_about_normalised_kernels() {
    let linear = Attention::new(KernelName::Linear.at(1e-3).unwrap(), 0.0).unwrap();
    let stability = Stability::of(&StateOperator::population(&boyan(0), &linear).unwrap()).unwrap();
    assert!(!stability.assumption && stability.regime != Regime::Assumption);
}
