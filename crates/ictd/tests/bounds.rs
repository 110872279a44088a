//! Constants of the theorems, spectra, self-weights and the norm of the expected update, by hand or by repetition.
#![allow(missing_docs)]

use ictd::kernel::{Attention, KernelName};
use ictd::linalg::Eigenvalue;
use ictd::matrix::Matrix;
use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::task::{Family, FiniteTask, Mrp, TaskError, TaskSource as _};
use ictd::theory::lemmas::{softmax_lipschitz, softmax_lipschitz_sharp};
use ictd::theory::{Constants, Neu, NeuError, NeuSampler, Spectrum, Stability, Theorem3, self_weights};
use ictd::transformer::AttentionParams;

fn coin_constants() -> Constants {
    let p = Matrix::from_fn(2, 2, |_, _| 0.5);
    let mrp = Mrp::new(p, vec![1.0, -0.5], 0.1, vec![0.5, 0.5]).unwrap();
    let root = 1.5f64.ln().sqrt();
    let task = FiniteTask::new(mrp, Matrix::diag(&[root, root])).unwrap();
    let attention = Attention::new(KernelName::Softmax.at(1.0).unwrap(), 0.0).unwrap();
    let stability = Stability::of(&StateOperator::population(&task, &attention).unwrap()).unwrap();
    Constants::of(&task, &stability).unwrap()
}

/// By hand: M(s, s) = 1.5/2.5 = 0.6, so C = 0.05; independent draws have λ_r = 0; pairs of them have
/// λ_r = 1/2 (the functions f(first) + f(second)).
#[test]
fn constants_of_a_coin_by_hand() {
    let c = coin_constants();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{a} {b}");
    close(c.margin, 0.05);
    close(c.lambda_r, 0.0);
    close(c.pair_lambda_r, 0.5);
    close(c.pair_mu_min, 0.25);
    close(c.feature_bound * c.feature_bound, 1.5f64.ln());
    // C₁ = 2·√½·2·1.5⁴, C₂ = 8.
    let c1 = 2.0 * 0.5f64.sqrt() * 2.0 * 1.5f64.powi(4);
    close(c.concentration(100.0, 0.1), c1 * (80f64.ln() / 100.0).sqrt());
    close(c.contraction_threshold(0.1).unwrap() / ((2.0 * c1 / 0.05).powi(2) * 160f64.ln()), 1.0);
    // C₁ of the bias lemma: 2γ‖v‖·√(2·3)·2·1.5², C₂ = 32.
    let factor = 0.2 * c.value_bound * 6f64.sqrt() * 2.0 * 2.25;
    close(c.bias(100.0, 0.1), factor * (320f64.ln() / 100.0).sqrt());
    close(c.floor(100.0, 0.1), c.bias(100.0, 0.1) / 0.05);
}

#[test]
fn theorem_3_needs_the_assumption() {
    let c = coin_constants();
    assert!(Theorem3::of(&Constants { margin: -0.1, ..c }).is_none());
    let theorem = Theorem3::of(&c).unwrap();
    let n = theorem.threshold();
    assert!(n.is_finite() && n > 1e5);
    // Depth first, then context: each term falls in its own direction.
    assert!(theorem.terms(100.0, n)[0] < theorem.terms(10.0, n)[0]);
    assert!(theorem.terms(10.0, 2.0 * n)[1] < theorem.terms(10.0, n)[1]);
    assert!(theorem.terms(10.0, 2.0 * n)[2] < theorem.terms(10.0, n)[2]);
}

/// At B = I they are the operator's, which has no score block; for another B they are the paper's formula.
#[test]
fn weights_are_the_formula() {
    let task = Family::paper().draw(&mut Stream::new(3, Purpose::Task, 0)).unwrap();
    let attention = Attention::new(KernelName::Softmax.at(1.2).unwrap(), 0.0).unwrap();
    let expected = StateOperator::population(&task, &attention).unwrap().self_weights();
    assert_eq!(self_weights(&task, &attention, &Matrix::identity(4)).unwrap(), expected);

    let block = Matrix::from_fn(4, 4, |i, j| 0.3 * i as f64 - 0.5 * j as f64);
    let found = self_weights(&task, &attention, &block).unwrap();
    let (x, mu) = (task.features(), task.stationary_distribution());
    let weight = |u: usize, s: usize| {
        let keys = block.mul_vec(x.row(s));
        mu[u] * (x.row(u).iter().zip(keys).map(|(a, b)| a * b).sum::<f64>() / 1.2).exp()
    };
    for s in 0..64 {
        let formula = weight(s, s) / (0..64).map(|u| weight(u, s)).sum::<f64>();
        // A sum of 64 positive terms.
        assert!((found[s] - formula).abs() <= 1e-13 * formula, "{s}");
    }
}

fn real(values: &[f64]) -> Spectrum {
    Spectrum::new(values.iter().map(|&re| Eigenvalue { re, im: 0.0 }).collect())
}

/// Textbook: for real λ in [a, b] the best step is 2/(a + b) with rate (b - a)/(b + a), the limit 2/b.
#[test]
fn real_spectra_have_the_richardson_step() {
    let spectrum = real(&[0.25, 0.5, 1.0]);
    assert_eq!(spectrum.largest_stable_step(), Some(2.0));
    let best = spectrum.best_step().unwrap();
    // A minimum at a kink is found to the width of the last interval.
    assert!((best.step_size - 1.6).abs() < 1e-12 && (best.spectral_radius - 0.6).abs() < 1e-12);
    assert_eq!(spectrum.spectral_radius(1.0), 0.75);
}

#[test]
fn complex_pairs_limit_the_step() {
    let spectrum = Spectrum::new(vec![Eigenvalue { re: 0.1, im: 1.0 }, Eigenvalue { re: 0.1, im: -1.0 }]);
    let limit = spectrum.largest_stable_step().unwrap();
    assert!((limit - 0.2 / 1.01).abs() < 1e-15);
    assert!(spectrum.spectral_radius(0.99 * limit) < 1.0 && spectrum.spectral_radius(1.01 * limit) > 1.0);
    assert!(spectrum.spectral_radius(1.0) > 1.0);
}

#[test]
fn negative_real_parts_have_no_step() {
    let spectrum = real(&[-0.1, 1.0]);
    assert!(spectrum.is_unstable() && !spectrum.is_stable());
    assert_eq!((spectrum.largest_stable_step(), spectrum.best_step()), (None, None));
    // Rounding around 0 is neither.
    let marginal = real(&[1e-15, 1.0]);
    assert!(!marginal.is_unstable() && !marginal.is_stable());
}

/// 2000 random pairs, near and far, narrow and wide: the lemma and the sharp constant hold.
#[test]
fn softmax_bounds_hold() {
    let mut stream = Stream::new(1, Purpose::Prompt, 0);
    for k in 0..2000 {
        let n = 1 + stream.below(20) as usize;
        let (width, step) = ([0.1, 1.0, 10.0, 100.0][k % 4], [1e-3, 0.1, 1.0, 10.0][(k / 4) % 4]);
        let g = stream.uniform_vec(n, -width, width);
        let h: Vec<f64> = g.iter().map(|x| x + stream.uniform_in(-step, step)).collect();
        // Differences of 1e-3 carry 1e-13 of rounding relative to them.
        assert!(softmax_lipschitz(&g, &h).value() <= 0.5 + 1e-12);
        assert!(softmax_lipschitz_sharp(&g, &h).value() <= 1.0 + 1e-12);
    }
    // The sharp constant is reached in the limit.
    let near = softmax_lipschitz_sharp(&[0.0, 0.0], &[1e-4, -1e-4]);
    assert!(near.value() > 1.0 - 1e-8);
}

fn sampler(
    context_len: usize,
    depths: &[usize],
    samples: u64,
) -> NeuSampler<impl Fn(u64) -> Result<FiniteTask, TaskError> + Sync> {
    let task = |_| {
        let p = Matrix::from_rows(&[vec![0.3, 0.7], vec![0.6, 0.4]]).expect("square");
        let mrp = Mrp::new(p, vec![1.0, -0.5], 0.5, vec![0.5, 0.5])?;
        FiniteTask::new(mrp, Matrix::diag(&[2.0, 2.0]))
    };
    let attention = Attention::new(KernelName::Softmax.at(1.0).unwrap(), 0.0).unwrap();
    NeuSampler { task, attention, context_len, depths: depths.to_vec(), samples, seed: 1 }
}

/// With exact values there is nothing to update: at large n and L the estimate is far below that of a
/// shallow network. What is left are the 1/n of sampling and noise.
#[test]
fn vanishes_in_the_double_limit() {
    let star = AttentionParams::theta_star(2);
    let found = sampler(400, &[1, 40], 2000).estimate(&star).unwrap();
    let (shallow, deep) = (&found[0], &found[1]);
    assert!(deep.norm < 0.1 * shallow.norm, "{} {}", deep.norm, shallow.norm);
    assert!(shallow.norm > 10.0 * shallow.noise);
}

/// Ten independent estimates scatter by about their standard error: a factor of two is 3.5 standard deviations
/// of a scatter from ten.
#[test]
fn standard_errors_are_those_of_repetitions() {
    let star = AttentionParams::theta_star(2);
    let estimates: Vec<Neu> = (0..10)
        .map(|seed| NeuSampler { seed, ..sampler(20, &[2], 500) }.estimate(&star).unwrap().remove(0))
        .collect();
    let mean = estimates.iter().map(|e| e.norm).sum::<f64>() / 10.0;
    let scatter = (estimates.iter().map(|e| (e.norm - mean).powi(2)).sum::<f64>() / 9.0).sqrt();
    let claimed = estimates.iter().map(|e| e.norm_sem).sum::<f64>() / 10.0;
    assert!((0.5..2.0).contains(&(scatter / claimed)), "{scatter} {claimed}");
}

#[test]
fn divergence_is_an_error() {
    let wild = AttentionParams::looped([1.0, 1.0, 500.0], &Matrix::identity(2));
    let error = sampler(10, &[200], 10).estimate(&wild).unwrap_err();
    assert_eq!(error, NeuError::Diverged { num_layers: 200 });
}
