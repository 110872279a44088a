//! The layers on groups of equal columns.

use serde::Serialize;

use super::growth::Growth;
use super::{ForwardError, Transformer};
use crate::context::ContextStatistics;
use crate::kernel::{Effort, GroupWeights, Scores};
use crate::statistics::largest;
use crate::watch::Watch;

/// V's last row (a, p_r, p_t, p_v), by what each entry reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueRow<'a> {
    /// a, on features; nothing stands for zeros.
    pub features: &'a [f64],
    /// p_r, on the reward.
    pub reward: f64,
    /// p_t, on the target memory.
    pub target: f64,
    /// p_v, on the current memory.
    pub value: f64,
}

impl<'a> ValueRow<'a> {
    /// That of theta_*: messages are summed TD errors (paper, eq:para-now and eq:tderror).
    pub const TD: ValueRow<'static> = ValueRow { features: &[], reward: 1.0, target: 1.0, value: -1.0 };

    /// From the row's d + 3 numbers.
    pub fn new(row: &'a [f64]) -> Self {
        let (features, memory) = row.split_at(row.len() - 3);
        Self { features, reward: memory[0], target: memory[1], value: memory[2] }
    }

    /// What source group s sends: g(s) = p_r·R(s) + p_t·γ Σ N(s, s')·v(s') + c(s)·(p_v·v(s) + ⟨a, x_s⟩), where c, R
    /// and N are visits, reward sums and transition counts.
    pub fn message(&self, statistics: &ContextStatistics, gamma: f64, values: &[f64], s: usize) -> f64 {
        let bootstrap = bootstrap(statistics, values, s);
        let from_features: f64 = self.features.iter().zip(statistics.features(s)).map(|(a, x)| a * x).sum();
        self.reward * statistics.reward_sums()[s]
            + self.target * (gamma * bootstrap)
            + statistics.visits()[s] * (self.value * values[s] + from_features)
    }
}

/// Σ N(s, s')·v(s'): the values that followed source group s, summed.
pub(super) fn bootstrap(statistics: &ContextStatistics, values: &[f64], s: usize) -> f64 {
    statistics.successors(s).map(|(next, count)| count * values[next]).sum()
}

/// What is known about values that were not computed exactly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Approximation {
    /// Number of pivots; `None` where exponentials are of single precision.
    pub rank: Option<usize>,
    /// No column of weights is off by more: Σ_s |error|, where weights sum to 1, of the worst column and layer.
    pub column_error_bound: f64,
    /// No value is off by more, in any layer.
    pub value_error_bound: f64,
}

/// Buffers of a forward pass on groups.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupPass {
    pub weights: GroupWeights,
    messages: Vec<f64>,
    /// The values after the last layer that was run.
    pub values: Vec<f64>,
    /// What is known about them where they are not exact.
    pub approximation: Option<Approximation>,
}

impl GroupPass {
    /// Runs the layers from v = 0: v(u) += α Σ_s W(s, u)·g(s), with g the messages. `after_layer` gets messages, padded
    /// with zeros, and values of every layer; before the first, values alone.
    pub fn run(
        &mut self,
        transformer: &Transformer,
        statistics: &ContextStatistics,
        effort: &Effort,
        watch: &dyn Watch,
        mut after_layer: impl FnMut(&[f64], &[f64]),
    ) -> Result<(), ForwardError> {
        let Self { weights, messages, values, approximation } = self;
        let config = transformer.config();
        values.clear();
        values.resize(statistics.num_groups(), 0.0);
        messages.clear();
        messages.resize(statistics.stride(), 0.0);
        *approximation = None;
        after_layer(&[], values);
        if config.num_layers == 0 {
            return Ok(());
        }
        let mut block = transformer.score_block(0);
        let mut growth = Growth::default();
        for layer in 0..config.num_layers {
            if layer == 0 || !transformer.is_tied() {
                block = transformer.score_block(layer);
                let layers = if transformer.is_tied() { config.num_layers } else { 1 };
                let scores = Scores { attention: &config.attention, block: block.as_ref(), statistics };
                weights.fill(scores, effort, layers, watch)?;
                watch.begin("layers", weights.unit(), weights.units() * layers as u64)?;
            }
            let row = transformer.value_row(layer);
            for s in 0..statistics.num_source_groups() {
                messages[s] = row.message(statistics, config.gamma, values, s);
            }
            let step_size = transformer.step_size(layer);
            let scores = Scores { attention: &config.attention, block: block.as_ref(), statistics };
            weights.add_product(scores, step_size, messages, values, watch)?;
            if values.iter().any(|v| !v.is_finite()) {
                return Err(ForwardError::Diverged { layer: layer + 1 });
            }
            if let Some(certainty) = weights.certainty() {
                let sizes = messages.iter().zip(statistics.visits()).map(|(g, c)| (g / c).abs());
                growth.advance(certainty, row, config.gamma, step_size, largest(sizes));
                let before = approximation.map_or(0.0, |known| known.column_error_bound);
                *approximation = Some(Approximation {
                    rank: weights.rank(),
                    column_error_bound: before.max(certainty.column_error),
                    value_error_bound: growth.value_error(),
                });
            }
            after_layer(messages, values);
        }
        Ok(())
    }
}
