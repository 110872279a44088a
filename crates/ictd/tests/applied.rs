//! Layers on many states, by products alone, against the matrices of the same layers.

use std::sync::atomic::{AtomicU64, Ordering};

use ictd::kernel::{Effort, Route};
use ictd::operator::{AppliedOperator, OperatorError};
use ictd::theory::{Certificate, CertificateConfig, Regime, Status};
use ictd::watch::{Stopped, Watch};
use ictd::{Attention, Context, ContextStatistics, End, KernelName, Purpose, StateOperator, Stream};

fn attention(kernel: KernelName, temperature: f64) -> Attention {
    Attention::new(kernel.at(temperature).unwrap(), 0.0).unwrap()
}

/// Episodes of random features in (-1, 1)^d, each of so many transitions, ending as said.
fn context(stream: &mut Stream, d: usize, episodes: &[(usize, End)], queries: usize) -> Context {
    let builder = episodes.iter().fold(Context::builder(), |builder, &(length, end)| {
        let rows: Vec<Vec<f64>> = (0..=length).map(|_| stream.uniform_vec(d, -1.0, 1.0)).collect();
        builder.episode(&rows, &stream.uniform_vec(length, -1.0, 1.0), end)
    });
    (0..queries).fold(builder, |builder, _| builder.query(&stream.uniform_vec(d, -1.0, 1.0))).build().unwrap()
}

fn applied<'a>(
    context: &Context,
    attention: &Attention,
    gamma: f64,
    watch: &'a dyn Watch,
) -> AppliedOperator<'a> {
    let statistics = ContextStatistics::per_state(context);
    AppliedOperator::new(statistics, attention, gamma, &Effort::default(), watch).unwrap()
}

fn gap(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len());
    x.iter().zip(y).map(|(a, b)| (a - b).abs()).fold(0.0, |m: f64, x| if x.is_nan() { x } else { m.max(x) })
}

#[test]
fn products_are_those_of_the_matrix() {
    let mut stream = Stream::new(1, Purpose::Prompt, 0);
    let ends = [(60, End::Truncated), (40, End::Terminated)];
    let long = [(1500, End::Truncated), (650, End::Terminated)];
    for (kernel, temperature, episodes, route) in [
        (KernelName::Softmax, 1.0, &ends, Route::Kept),
        (KernelName::Rbf, 0.1, &ends, Route::Kept),
        (KernelName::Elu1, 1.0, &ends, Route::Kept),
        (KernelName::Relu, 1.0, &ends, Route::Kept),
        (KernelName::Tabular, 1.0, &ends, Route::Kept),
        (KernelName::Softmax, 0.3, &long, Route::Blocks),
        (KernelName::Rbf, 0.1, &long, Route::Blocks),
    ] {
        let context = context(&mut stream, 4, episodes, 3);
        let attention = attention(kernel, temperature);
        let dense = StateOperator::empirical(&context, &attention, 0.9).unwrap();
        let mut operator = applied(&context, &attention, 0.9, &());
        assert_eq!(operator.route(), route, "{}", operator.reason());
        let v = stream.uniform_vec(dense.statistics().num_groups(), -1.0, 1.0);
        // Values below 2 and weights that sum to 1: thousands of roundings of 1e-16, and exponents up to 20.
        let tolerance = 1e-12;
        assert!(gap(&operator.apply(0.7, &v).unwrap(), &dense.apply(0.7, &v)) < tolerance);
        assert!(gap(operator.self_weights(), &dense.self_weights()) < tolerance);
        assert_eq!(operator.never_left(), dense.never_left());
        assert!(operator.weight_error() < 1e-10, "{:e}", operator.weight_error());
        let row: Vec<f64> = dense.predecessor_weights(5).collect();
        assert_eq!(operator.predecessor_weights(5).unwrap(), row);
    }
}

/// The proved rate of TD errors says how many layers are enough, for queries and states that were never left too.
#[test]
fn layers_by_the_rate_of_td_errors_are_enough() {
    let mut stream = Stream::new(17, Purpose::Prompt, 0);
    let context = context(&mut stream, 3, &[(50, End::Truncated), (30, End::Terminated)], 4);
    for (temperature, step_size) in [(1e-6, 1.0), (1e-4, 0.5), (1e-6, 1.04)] {
        let attention = attention(KernelName::Rbf, temperature);
        let mut operator = applied(&context, &attention, 0.9, &());
        let config = CertificateConfig { step_size, ..CertificateConfig::default() };
        let found = config.certify_applied(&mut operator).unwrap();
        let rate = found.contraction.td_error_rate.unwrap();
        assert!(rate < 1.0 && found.status == Status::Estimated, "{rate} {found:?}");
        let limit = StateOperator::empirical(&context, &attention, 0.9).unwrap().infinite_depth().unwrap();
        let rewards = operator.statistics().largest_reward();
        for error in [1.0, 0.1, 1e-6] {
            let layers = found.contraction.layers_by_td_errors(step_size, rewards, error).unwrap();
            let mut v = vec![0.0; limit.len()];
            for _ in 0..layers {
                v = operator.apply(step_size, &v).unwrap();
            }
            assert!(
                gap(&v, &limit) <= error,
                "{temperature} {step_size}: {} after {layers}",
                gap(&v, &limit)
            );
        }
    }
}

/// What a certificate of products claims, against that of the matrix.
fn compare(found: &Certificate, dense: &Certificate, is_sharp: bool, growth: impl Fn() -> f64, name: &str) {
    let (a, b) = (&found.contraction, &dense.contraction);
    assert!((a.min_diag - b.min_diag).abs() < 1e-12 && a.violating_states == b.violating_states, "{name}");
    assert_eq!(a.offenders.first().map(|o| o.state), b.offenders.first().map(|o| o.state), "{name}");
    // A norm is a bound on the norm, up to what rounding adds to both.
    let (bound, norm) = (a.norm_inf.unwrap(), b.norm_inf.unwrap());
    assert!(bound > norm - 1e-11, "{name}: {bound} {norm}");
    // The form condition is not overstated.
    if let (Some(proved), Some(margin)) = (found.stability.form_margin, dense.stability.form_margin) {
        assert!(proved <= margin + 1e-12, "{name}: {proved} {margin}");
    }
    let radius = b.spectral_radius.unwrap();
    match found.status {
        Status::Certified => assert_eq!(dense.status, Status::Certified, "{name}"),
        // Rounding may hide from the eigenvalues what is proved.
        Status::Estimated => assert!(radius < 1.0 + 1e-9, "{name}: {radius} {:?}", found.reasons),
        // Chains of sharp kernels may grow a thousandfold before they converge.
        Status::Refused => assert!(radius > 1.0 || growth() > 1e3, "{name}: {:?}", found.reasons),
        Status::Undecided => {}
    }
    // Sharp kernels on chains are nearly defective: there roundings move eigenvalues by their roots, those of matrices too.
    if let Some(found) = a.spectral_radius.filter(|_| !is_sharp) {
        assert!((found - radius).abs() < 0.05 * (1.0 - radius).abs(), "{name}: {found} {radius}");
    }
    if found.stability.regime == Regime::Unstable {
        assert!(dense.stability.smallest_real_part.unwrap() < 0.0, "{name}");
    }
}

/// The largest ‖Jᵏ‖∞ of up to 200 layers.
fn growth(operator: &StateOperator, step_size: f64) -> f64 {
    let jacobian = operator.jacobian(step_size);
    let mut power = jacobian.clone();
    let norms = (0..200).map(|_| {
        power = power.matmul(&jacobian);
        power.norm_inf()
    });
    norms.fold(0.0, f64::max)
}

/// Many small contexts, flat to sharp, closed and not: no claim contradicts the eigenvalues.
#[test]
fn certificates_never_contradict_the_eigenvalues() {
    let mut stream = Stream::new(2, Purpose::Prompt, 0);
    let mut statuses = [0; 4];
    let mut seen_limits = 0;
    for case in 0..240 {
        let kernel = [KernelName::Softmax, KernelName::Rbf, KernelName::Elu1, KernelName::Tabular][case % 4];
        let temperature = 10f64.powf(stream.uniform_in(-4.0, 1.0));
        let gamma = [0.0, 0.5, 0.9, 0.99][stream.below(4) as usize];
        let ends = [End::Terminated, [End::Terminated, End::Truncated][stream.below(2) as usize]];
        let episodes = ends.map(|end| (5 + stream.below(20) as usize, end));
        let context = context(&mut stream, 1 + case % 3, &episodes, case % 2);
        let attention = attention(kernel, temperature);
        let step_size = [0.5, 1.0, 1.5][stream.below(3) as usize];
        let config = CertificateConfig { step_size, ..CertificateConfig::default() };
        let dense = StateOperator::empirical(&context, &attention, gamma).unwrap();
        let mut operator = applied(&context, &attention, gamma, &());
        let found = config.certify_applied(&mut operator).unwrap();
        let expected = config.certify(&dense).unwrap();
        let name = format!("case {case}: {kernel} at {temperature:.3}, gamma {gamma}, step {step_size}");
        let is_sharp = kernel == KernelName::Tabular || temperature < 0.1;
        compare(&found, &expected, is_sharp, || growth(&dense, step_size), &name);
        statuses[found.status as usize] += 1;
        let limit = operator.infinite_depth().unwrap();
        if let (true, Ok(values)) = (limit.is_complete(), dense.infinite_depth()) {
            seen_limits += 1;
            // Residuals of 1e-6 in systems whose condition is up to 1e12 tell little; those that are that exact tell all.
            let scale = values.iter().fold(1e-9, |m: f64, x| m.max(x.abs()));
            if limit.residual < 1e-12
                && dense.statistics().num_groups() == dense.statistics().num_source_groups()
            {
                assert!(
                    gap(&limit.values, &values) < 1e-3 * scale,
                    "{name}: {:e}",
                    gap(&limit.values, &values)
                );
            }
        }
        if let (Some(a), Some(b)) = (&found.fixed_point, &expected.fixed_point)
            && expected.contraction.spectral_radius.is_some_and(|radius| radius < 0.99)
        {
            assert!((a.error - b.error).abs() <= 1e-4 * b.largest_value + 1e-9, "{name}: {a:?} {b:?}");
        }
    }
    assert!(statuses.iter().all(|&count| count > 5) && seen_limits > 60, "{statuses:?} {seen_limits}");
}

/// With a margin m of the form condition every step size below 2/(2 - m) converges (`docs/proofs.md`).
#[test]
fn the_form_condition_says_which_step_sizes_converge() {
    let mut stream = Stream::new(3, Purpose::Prompt, 0);
    let mut held = 0;
    for case in 0..200 {
        let kernel = [KernelName::Softmax, KernelName::Rbf][case % 2];
        let attention = attention(kernel, 10f64.powf(stream.uniform_in(-2.0, 1.0)));
        let gamma = stream.uniform_in(0.0, 0.99);
        let context = context(&mut stream, 2, &[(8, End::Terminated), (6, End::Terminated)], 0);
        let operator = StateOperator::empirical(&context, &attention, gamma).unwrap();
        let certificate = Certificate::verdict(&operator, 1.0).unwrap();
        let Some(margin) = certificate.stability.form_margin.filter(|m| *m > 1e-6) else { continue };
        held += 1;
        for share in [0.01, 0.5, 0.999] {
            let radius = operator.spectral_radius(share * 2.0 / (2.0 - margin)).unwrap();
            // Eigenvalues of 0 up to rounding give a factor of 1 up to rounding.
            assert!(radius < 1.0 + 1e-12, "case {case}: margin {margin}, share {share}, radius {radius}");
        }
    }
    assert!(held > 50, "{held}");
}

/// Contexts of many states: sharp and closed contract by proof, and the limit is that of the counted chain.
#[test]
fn many_sharp_states_are_certified() {
    let mut stream = Stream::new(4, Purpose::Prompt, 0);
    let closed = context(&mut stream, 16, &[(2200, End::Terminated)], 0);
    let sharp = attention(KernelName::Rbf, 0.1);
    let config = CertificateConfig { num_layers: 5, ..CertificateConfig::default() };
    let mut operator = applied(&closed, &sharp, 0.9, &());
    assert_eq!(operator.route(), Route::Blocks);
    let found = config.certify_applied(&mut operator).unwrap();
    assert_eq!((found.status, found.stability.regime), (Status::Certified, Regime::Assumption));
    let fixed = found.fixed_point.unwrap();
    // v(t) = r(t) + γ v(t + 1), backwards.
    let mut values = closed.rewards()[..2200].to_vec();
    (0..2199).rev().for_each(|t| values[t] += 0.9 * values[t + 1]);
    let limit = operator.infinite_depth().unwrap();
    assert!(limit.is_complete() && limit.products == 0 && gap(&limit.values, &values) < 1e-12);
    assert!(fixed.equation_residual < 1e-12 && fixed.error > fixed.residual);
    // The same, cut off: the last state was never left, TD errors still contract, and GMRES finds the limit.
    let open = context(&mut stream, 16, &[(2200, End::Truncated)], 2);
    let mut operator = applied(&open, &sharp, 0.9, &());
    let found = config.certify_applied(&mut operator).unwrap();
    assert_eq!((found.status, found.contraction.never_left_states), (Status::Estimated, 1));
    assert!(found.reasons.last().unwrap().contains("TD errors shrink"), "{:?}", found.reasons);
    let limit = operator.infinite_depth().unwrap();
    assert!(limit.is_complete() && limit.residual < 1e-6 && limit.products > 0, "{limit:?}");
    let after = operator.apply(1.0, &limit.values).unwrap();
    assert!(gap(&after, &limit.values) < 1e-5);
}

/// A flat kernel: converges by the form condition, and nothing is made up about how fast.
#[test]
fn many_flat_states_are_not_overstated() {
    let mut stream = Stream::new(5, Purpose::Prompt, 0);
    let config = CertificateConfig::default();
    let flat = attention(KernelName::Softmax, 1.0);
    let closed = context(&mut stream, 4, &[(2200, End::Terminated)], 0);
    let found = config.certify_applied(&mut applied(&closed, &flat, 0.9, &())).unwrap();
    assert_eq!((found.status, found.stability.regime), (Status::Undecided, Regime::Provable));
    // Few states in one dimension are as flat, and have their eigenvalues computed.
    let few = context(&mut Stream::new(6, Purpose::Prompt, 0), 1, &[(300, End::Terminated)], 0);
    let dense = StateOperator::empirical(&few, &flat, 0.9).unwrap();
    assert_eq!(Certificate::verdict(&dense, 1.0).unwrap().status, Status::Refused);
    // So flat that layers visibly stand still: both say so.
    let flatter = attention(KernelName::Softmax, 1e20);
    let still = config.certify_applied(&mut applied(&closed, &flatter, 0.9, &())).unwrap();
    assert_eq!(still.status, Status::Refused, "{:?}", still.reasons);
    assert!(found.contraction.spectral_radius.is_none() && found.stability.smallest_real_part.is_none());
    let krylov = found.krylov.unwrap();
    assert!(krylov.products >= 20 && krylov.residual > 0.0 && krylov.ritz.modulus() < 1.0 + 1e-6);
    let fixed = found.fixed_point.unwrap();
    assert!(
        fixed.error > 0.1 * fixed.largest_value && fixed.error_bound.is_none() && !fixed.notes.is_empty()
    );
    // Cut off nothing is proved: nothing is said, and no limit is given.
    let open = context(&mut stream, 4, &[(2200, End::Truncated)], 0);
    let mut operator = applied(&open, &flat, 0.9, &());
    let found = config.certify_applied(&mut operator).unwrap();
    assert_eq!((found.status, found.fixed_point), (Status::Undecided, None));
    let limit = operator.infinite_depth().unwrap();
    assert!(limit.num_found == 0 && limit.residual > 1e-6);
}

#[test]
fn bytes_do_not_depend_on_the_number_of_threads() {
    let mut stream = Stream::new(6, Purpose::Prompt, 0);
    let context = context(&mut stream, 3, &[(2100, End::Truncated)], 1);
    let attention = attention(KernelName::Rbf, 0.02);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut operator = applied(&context, &attention, 0.9, &());
            let certificate = CertificateConfig::default().certify_applied(&mut operator).unwrap();
            let limit = operator.infinite_depth().unwrap();
            (serde_json::to_string(&certificate).unwrap(), serde_json::to_string(&limit).unwrap())
        })
    };
    assert_eq!(with(1), with(3));
}

/// Stops after so many words.
struct Impatient(AtomicU64);

impl Watch for Impatient {
    fn begin(&self, _: &str, _: &'static str, _: u64) -> Result<(), Stopped> {
        self.advance(1)
    }
    fn advance(&self, _: u64) -> Result<(), Stopped> {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(|_| ()).map_err(|_| Stopped)
    }
}

#[test]
fn work_ends_when_it_is_told_to() {
    let mut stream = Stream::new(7, Purpose::Prompt, 0);
    let context = context(&mut stream, 4, &[(2100, End::Terminated)], 1);
    let attention = attention(KernelName::Softmax, 1.0);
    for patience in [0, 3, 40, 300, 600] {
        let watch = Impatient(AtomicU64::new(patience));
        let statistics = ContextStatistics::per_state(&context);
        let found = AppliedOperator::new(statistics, &attention, 0.9, &Effort::default(), &watch)
            .and_then(|mut operator| CertificateConfig::default().certify_applied(&mut operator));
        assert_eq!(found.err(), Some(OperatorError::Stopped(Stopped)), "after {patience}");
    }
}

/// Features of all sizes, duplicates, one state, rewards at the ends of the range: answers or errors, no panics.
#[test]
fn extreme_contexts_are_answered() {
    let config = CertificateConfig::default();
    for size in [0.0, 1e-300, 1e-8, 1e8, 1e150, 1e200] {
        for reward in [0.0, 1e-300, 1e300] {
            for kernel in KernelName::ALL {
                for rows in [vec![vec![size]; 4], (0..5).map(|k| vec![f64::from(k) * size]).collect()] {
                    let rewards = vec![reward; rows.len() - 1];
                    let context =
                        Context::builder().episode(&rows, &rewards, End::Truncated).build().unwrap();
                    let statistics = ContextStatistics::per_state(&context);
                    let attention = attention(kernel, 1.0);
                    let operator = AppliedOperator::new(statistics, &attention, 0.9, &Effort::default(), &());
                    let Ok(mut operator) = operator else { continue };
                    let found = config.certify_applied(&mut operator);
                    let limit = operator.infinite_depth();
                    if let (Ok(found), Ok(limit)) = (found, limit) {
                        assert!(!limit.is_complete() || limit.values.iter().all(|v| v.is_finite()));
                        assert!(found.fixed_point.is_none_or(|fixed| fixed.error.is_finite()));
                    }
                }
            }
        }
    }
}
