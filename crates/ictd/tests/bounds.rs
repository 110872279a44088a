//! Constants of the theorems, spectra, self-weights and the norm of the expected update, by hand or by repetition.
#![allow(missing_docs)]

use ictd::context::ContextStatistics;
use ictd::kernel::{Attention, KernelName};
use ictd::linalg::Eigenvalue;
use ictd::matrix::Matrix;
use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::task::{Family, FiniteTask, Mrp, TaskError, TaskSource as _};
use ictd::theory::lemmas::{kernel_derivative, softmax_lipschitz, softmax_lipschitz_sharp};
use ictd::theory::{Constants, Neu, NeuError, NeuSampler, Spectrum, Stability, Theorem3, self_weights};
use ictd::transformer::{Adjoint, AttentionParams, Parameters, TransformerConfig};

fn coin_constants() -> Constants {
    let p = Matrix::from_fn(2, 2, |_, _| 0.5);
    let mrp = Mrp::new(p, vec![1.0, -0.5], 0.1, vec![0.5, 0.5]).unwrap();
    let root = 1.5f64.ln().sqrt();
    let task = FiniteTask::new(mrp, Matrix::diag(&[root, root])).unwrap();
    let attention = Attention::new(KernelName::Softmax.at(1.0).unwrap(), 0.0).unwrap();
    let stability = Stability::of(&StateOperator::population(&task, &attention).unwrap()).unwrap();
    Constants::of(&task, &stability).unwrap()
}

/// Without a future there is no bias, however large the constants beside it are: 0·∞ is no bound.
#[test]
fn overflowing_constants_do_not_make_a_bound_of_nothing() {
    let sharp = Constants { gamma: 0.0, feature_bound: 1e3, ..coin_constants() };
    assert_eq!(sharp.bias(1000.0, 0.1), 0.0);
    assert_eq!(Constants { gamma: 0.5, ..sharp }.bias(1000.0, 0.1), f64::INFINITY);
}

/// By hand: M(s, s) = 1.5/2.5 = 0.6, so C = 0.05; independent draws have λ_r = 0; pairs of them have
/// λ_r = 1/2 (the functions f(first) + f(second)).
#[test]
fn constants_of_a_coin_by_hand() {
    let c = coin_constants();
    // A dozen operations and eigenvalues of a 4×4 matrix.
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
    // 2·0.1/(0.1² + 1²): four roundings of 0.2.
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
    // 1e-15 of the largest is below what an eigenvalue solver can tell from 0.
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
    // The ratio is tanh(ε)/ε = 1 - ε²/3 at ε = 1e-4.
    assert!(near.value() > 1.0 - 1e-8);
}

/// The derivative against central differences: step 1e-5 on numbers of order 1, truncation 1e-10, rounding 1e-11.
#[test]
fn kernel_derivative_matches_differences() {
    let mut stream = Stream::new(2, Purpose::Prompt, 0);
    let sources = Matrix::from_fn(6, 3, |_, _| stream.uniform_in(-1.0, 1.0));
    let columns = Matrix::from_fn(2, 3, |_, _| stream.uniform_in(-1.0, 1.0));
    let weights = |block: &Matrix, j: usize| -> Vec<f64> {
        let scores = sources.mul_vec(&block.mul_vec(columns.row(j)));
        let total: f64 = scores.iter().map(|s| s.exp()).sum();
        scores.iter().map(|s| s.exp() / total).collect()
    };
    let mut largest: f64 = 0.0;
    for (a, b, j) in (0..18).map(|k| (k / 6, k / 2 % 3, k % 2)) {
        let at = |h: f64| {
            let mut block = Matrix::identity(3);
            block[(a, b)] += h;
            weights(&block, j)
        };
        let slope = at(1e-5).iter().zip(at(-1e-5)).map(|(p, m)| ((p - m) / 2e-5).abs()).sum::<f64>();
        largest = largest.max(slope);
    }
    assert!((largest - kernel_derivative(&sources, &columns)).abs() < 1e-9);
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

/// The expected update with every prompt written out as a context of its own, and a network of every depth: means of
/// δ_L ∇v_L by entry, with v_L(S_{n+1}) from the shifted prompt and from the same one.
#[test]
fn updates_are_those_of_contexts_written_out() {
    let (n, depths, samples, seed, d) = (12, [2, 4], 6, 5, 4);
    let task = |index| Family::paper().draw(&mut Stream::new(7, Purpose::Task, index));
    let attention = Attention::new(KernelName::Softmax.at(0.8).unwrap(), 0.0).unwrap();
    let block = Matrix::from_fn(d, d, |i, j| if i == j { 1.1 } else { 0.1 * i as f64 - 0.2 * j as f64 });
    let params = AttentionParams::looped([0.9, 1.2, -0.8], &block);
    let sampler = NeuSampler {
        task,
        attention: attention.clone(),
        context_len: n,
        depths: depths.to_vec(),
        samples,
        seed,
    };
    for (found, depth) in sampler.estimate(&params).unwrap().into_iter().zip(depths) {
        let (mut mean, mut same_prompt) = (vec![0.0; 3 + d * d], vec![0.0; 3 + d * d]);
        for index in 0..samples {
            let task = task(index).unwrap();
            let (mrp, gamma) = (task.mrp(), task.mrp().gamma());
            let network = TransformerConfig {
                parameters: Parameters::Tied(params.clone()),
                ..TransformerConfig::theta_star(attention.clone(), depth, gamma)
            };
            let network = network.check().unwrap();
            let mut stream = Stream::new(seed, Purpose::Trajectory, index);
            let law: Vec<f64> = (1..=64).map(|s| task.stationary_distribution()[..s].iter().sum()).collect();
            let mut states = vec![stream.categorical(&law)];
            (0..n).for_each(|k| states.push(mrp.transitions().sample(states[k], &mut stream)));
            let query = states[n];
            let context = task.context_of(&states, &[]);
            let statistics = ContextStatistics::per_column(&context);
            let mut pass = Adjoint::default();
            pass.forward(&network, &statistics).unwrap();
            let mut direction = vec![0.0; statistics.num_groups()];
            direction[statistics.group_of(n).unwrap()] = 1.0;
            let gradient = pass.backward(&network, &statistics, depth, &direction).unwrap();
            let gradient = [&gradient.value_rows.row(0)[d..], gradient.score_blocks[0].as_slice()].concat();
            let rest = mrp.rewards()[query] - network.values(&context).unwrap().output();
            let (mut shifted, mut same) = (rest, rest);
            for (next, p) in mrp.transitions().matrix().row(query).iter().enumerate() {
                let output = |states: &[usize], queries: &[usize]| {
                    network.values(&task.context_of(states, queries)).unwrap().output()
                };
                shifted += gamma * p * output(&[&states[1..], &[next]].concat(), &[]);
                same += gamma * p * output(&states, &[next]);
            }
            for (k, g) in gradient.iter().enumerate() {
                mean[k] += shifted * g / samples as f64;
                same_prompt[k] += same * g / samples as f64;
            }
        }
        let norm = |x: &[f64]| x.iter().map(|m| m.abs()).sum::<f64>();
        assert!(norm(&mean) > 0.1);
        for (a, b) in found.mean.iter().zip(&mean) {
            // Four layers on a dozen columns of order 1, six samples: some hundred roundings.
            assert!((a - b).abs() < 1e-12 * norm(&mean), "{depth}: {a} {b}");
        }
        assert!((found.norm_same_prompt - norm(&same_prompt)).abs() < 1e-12 * norm(&same_prompt));
    }
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
