//! The special cases of weighted softmax TD: linear, tabular, one-hot limit, non-parametric TD.
#![allow(missing_docs)]

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};

use common::{attention, episodes, gap};
use ictd::context::{Context, End};
use ictd::kernel::{Attention, KernelName};
use ictd::random::{Purpose, Stream};
use ictd::td::{Estimator, LinearTd, NonParametricTd, ReflectedTd, TabularTd, WeightedSoftmaxTd};
use ictd::transformer::{AttentionParams, Block, ForwardError, Parameters, TransformerConfig};
use ictd::watch::{Stopped, Watch};

const ALPHAS: [f64; 6] = [1.0, 0.5, 1.0, 0.8, 0.3, 1.0];

fn weighted(kernel: KernelName, context: &Context) -> Vec<Vec<f64>> {
    let td =
        WeightedSoftmaxTd { attention: attention(kernel, 1.0, 0.0), gamma: 0.9, step_sizes: ALPHAS.to_vec() };
    td.run(context).unwrap()
}

/// Six iterations on values of order 1: a few dozen roundings.
const ROUNDING: f64 = 1e-13;

#[test]
fn linear_kernel_is_batch_linear_td() {
    for seed in 0..20 {
        let context = episodes(seed, 4, 6, &[9, 4, 7]);
        let linear = LinearTd { gamma: 0.9, step_sizes: ALPHAS.to_vec() };
        assert!(gap(&weighted(KernelName::Linear, &context), &linear.run(&context).unwrap()) < ROUNDING);
    }
}

#[test]
fn tabular_kernel_is_expected_tabular_td() {
    for seed in 0..20 {
        let context = episodes(seed, 2, 5, &[9, 4, 7]);
        let tabular = TabularTd { gamma: 0.9, step_sizes: ALPHAS.to_vec() };
        assert!(gap(&weighted(KernelName::Tabular, &context), &tabular.run(&context).unwrap()) < ROUNDING);
    }
}

fn one_hot(seed: u64, scale: f64) -> Context {
    let (m, n) = (5u32, 40);
    let mut stream = Stream::new(seed, Purpose::Prompt, 0);
    let hot = |s: u32| (0..m).map(|i| if i == s { scale } else { 0.0 }).collect::<Vec<f64>>();
    // Every state is a source: an unvisited query attends uniformly under softmax, never under tabular.
    let states: Vec<u32> = (0..m).chain((m..=n).map(|_| stream.below(m))).collect();
    let features: Vec<Vec<f64>> = states.iter().map(|&s| hot(s)).collect();
    let rewards = stream.uniform_vec(features.len() - 1, -1.0, 1.0);
    Context::builder().episode(&features, &rewards, End::Truncated).build().unwrap()
}

/// Off-state weights are at most n·exp(-c²): the gap falls with c and is gone in double precision
/// once exp(-c²) is below the rounding unit.
#[test]
fn softmax_with_scaled_one_hot_features_tends_to_tabular() {
    for seed in 0..5 {
        let gaps: Vec<f64> = [1.0, 2.0, 3.0, 4.0, 7.0]
            .map(|scale| {
                let context = one_hot(seed, scale);
                gap(&weighted(KernelName::Softmax, &context), &weighted(KernelName::Tabular, &context))
            })
            .to_vec();
        assert!(gaps.windows(2).all(|w| w[1] < w[0]), "{gaps:?}");
        assert!(gaps[0] > 1e-2 && gaps[4] < ROUNDING, "{gaps:?}");
    }
}

/// g = log κ with the Gaussian κ.
#[test]
fn rbf_kernel_is_normalised_non_parametric_td() {
    for seed in 0..20 {
        let context = episodes(seed, 3, 7, &[10, 6]);
        let kappa =
            |x: &[f64], y: &[f64]| (-0.5 * x.iter().zip(y).map(|(a, b)| (a - b).powi(2)).sum::<f64>()).exp();
        let literal = NonParametricTd { kappa, gamma: 0.9, step_sizes: ALPHAS.to_vec() };
        assert!(gap(&weighted(KernelName::Rbf, &context), &literal.run(&context).unwrap()) < ROUNDING);
    }
}

#[test]
fn linear_td_with_small_steps_reaches_least_squares_td() {
    let context = episodes(4, 2, 6, &[30, 20]);
    let td = LinearTd { gamma: 0.9, step_sizes: vec![0.5; 20_000] };
    let (last, limit) = (td.weights(&context).pop().unwrap(), td.fixed_point(&context).unwrap());
    for (a, b) in last.iter().zip(&limit) {
        // The slowest mode is contracted by about 0.99 per step; what remains is the solver's rounding.
        assert!((a - b).abs() < 1e-10, "{last:?} {limit:?}");
    }
}

/// The forward pass with A and V's last row negated is TD on reflected transitions, layer by layer, with
/// either construction, with queries and with terminal states.
#[test]
fn the_mirror_block_is_td_on_reflected_transitions() {
    let mut stream = Stream::new(5, Purpose::Prompt, 0);
    for trial in 0..20 {
        let (d, n) = (1 + trial % 4, 2 + trial % 7);
        let rows: Vec<Vec<f64>> = (0..=n).map(|_| stream.uniform_vec(d, -1.0, 1.0)).collect();
        let rewards = stream.uniform_vec(n, -1.0, 1.0);
        let end = if trial % 2 == 0 { End::Truncated } else { End::Terminated };
        let query = stream.uniform_vec(d, -1.0, 1.0);
        let context = Context::builder().episode(&rows, &rewards, end).query(&query).build().unwrap();
        for block in Block::ALL {
            let transformer = TransformerConfig {
                block,
                attention: Attention::new(KernelName::Softmax.at(0.7).unwrap(), 0.0).unwrap(),
                parameters: Parameters::Tied(AttentionParams::mirror(d)),
                num_layers: 6,
                gamma: 0.9,
                step_sizes: vec![0.8],
            };
            let forward = transformer.check().unwrap().values(&context).unwrap();
            let td = ReflectedTd { temperature: 0.7, gamma: 0.9, step_sizes: vec![0.8; 6] };
            for (layer, expected) in td.run(&context).unwrap().iter().enumerate() {
                let scale = expected.iter().fold(1f64, |m, v| m.max(v.abs()));
                for (a, b) in forward.values(layer).iter().zip(expected) {
                    // Six layers of sums of at most eight terms, relative to the largest value.
                    assert!((a - b).abs() <= 1e-14 * scale, "{block:?} layer {layer}: {a} {b}");
                }
            }
        }
    }
}

/// Two transitions between x = 1 and x = 0 by hand: after one iteration column j has
/// −(w_0·R_0 + w_1·R_1) with w_0 ∝ exp(−x_j).
#[test]
fn one_iteration_by_hand() {
    let context =
        Context::builder().episode(&[[1.0], [0.0], [1.0]], &[2.0, -1.0], End::Truncated).build().unwrap();
    let td = ReflectedTd { temperature: 1.0, gamma: 0.9, step_sizes: vec![1.0] };
    let share = (-1f64).exp() / (1.0 + (-1f64).exp());
    let at_one = -(2.0 * share - (1.0 - share));
    for (found, expected) in td.run(&context).unwrap()[1].iter().zip([at_one, -0.5, at_one]) {
        assert!((found - expected).abs() < 1e-15, "{found} {expected}");
    }
}

/// Stops work at its third look.
#[derive(Default)]
struct Third(AtomicUsize);

impl Watch for Third {
    fn begin(&self, _: &str, _: &'static str, _: u64) -> Result<(), Stopped> {
        Ok(())
    }
    fn advance(&self, _: u64) -> Result<(), Stopped> {
        if self.0.fetch_add(1, Ordering::Relaxed) < 2 { Ok(()) } else { Err(Stopped) }
    }
}

#[test]
fn iterations_end_when_they_are_told_to() {
    let (context, gamma, step_sizes) = (episodes(0, 2, 5, &[9, 4, 7]), 0.9, vec![0.1; 6]);
    let near = |x: &[f64], y: &[f64]| (-gap(&[x.to_vec()], &[y.to_vec()])).exp();
    let estimators: [&dyn Estimator; 4] = [
        &WeightedSoftmaxTd {
            attention: attention(KernelName::Rbf, 1.0, 0.0),
            gamma,
            step_sizes: step_sizes.clone(),
        },
        &NonParametricTd { kappa: near, gamma, step_sizes: step_sizes.clone() },
        &TabularTd { gamma, step_sizes: step_sizes.clone() },
        &LinearTd { gamma, step_sizes },
    ];
    for estimator in estimators {
        let found = estimator.run_watched(&context, &Third::default());
        assert_eq!(found.unwrap_err(), ForwardError::Stopped(Stopped), "{}", estimator.name());
        assert!(estimator.run(&context).is_ok());
    }
}
