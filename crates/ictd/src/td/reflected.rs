//! Weighted softmax TD on reflected transitions in direct form: what the mirror block computes.

use super::{Estimator, iterate, sources, weighted_step};
use crate::context::Context;
use crate::transformer::ForwardError;

/// Softmax TD whose every transition (x, R, x') is replaced by its reflection (−x, −R, −x'), and whose estimate
/// is odd: a reflected state −x is worth −v(x).
///
/// v_{t+1}(S_j) = v_t(S_j) + α_t Σ_k K(−x_k, x_j)·(−R_k + γ·v_t(−x'_k) − v_t(−x_k)), v_t(−x) = −v_t(x),
/// with K the softmax kernel ∝ exp(⟨·, ·⟩/τ), normalised over transitions. Where values are linear in the
/// features a reflected transition is a transition of the same process, so its TD error is unbiased too.
#[derive(Clone, Debug)]
pub struct ReflectedTd {
    /// Softmax temperature τ.
    pub temperature: f64,
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes: one per iteration.
    pub step_sizes: Vec<f64>,
}

impl Estimator for ReflectedTd {
    fn name(&self) -> &str {
        "TD on reflected transitions"
    }

    fn run(&self, context: &Context) -> Result<Vec<Vec<f64>>, ForwardError> {
        let sources = sources(context);
        // The reflected data, written out: sources −x and rewards −R.
        let reflected: Vec<Vec<f64>> =
            sources.iter().map(|&k| context.features_of(k).iter().map(|x| -x).collect()).collect();
        let weights: Vec<Vec<f64>> =
            (0..context.num_columns()).map(|j| self.weights(&reflected, context.features_of(j))).collect();
        iterate(context, &self.step_sizes, |step_size, v| {
            // The value of a reflected state is minus that of the state itself.
            let of_reflected = |column: usize| -v[column];
            let error =
                |&k: &usize| -context.rewards()[k] + self.gamma * of_reflected(k + 1) - of_reflected(k);
            let errors: Vec<f64> = sources.iter().map(error).collect();
            weighted_step(step_size, v, &errors, &weights)
        })
    }
}

impl ReflectedTd {
    /// K(−x_k, y) for every reflected source.
    fn weights(&self, reflected: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
        let score = |x: &Vec<f64>| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>() / self.temperature;
        let scores: Vec<f64> = reflected.iter().map(score).collect();
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / total).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::End;
    use crate::kernel::{Attention, KernelName};
    use crate::random::{Purpose, Stream};
    use crate::transformer::{AttentionParams, Block, Parameters, TransformerConfig};

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
}
