//! The reverse pass: gradients of value estimates by the parameters, on a context's statistics.

use super::{ForwardError, GroupPass, Transformer, bootstrap};
use crate::context::ContextStatistics;
use crate::kernel::Effort;
use crate::kernel::{Scores, add_block_gradient};
use crate::matrix::Matrix;
use crate::vector;

/// A gradient by V's last row and by A's feature block, which are all that value estimates depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamsGradient {
    /// By V's last row, d + 3 numbers: one row for all layers when they share parameters, else one per layer.
    pub value_rows: Matrix,
    /// By the score block B, d×d: one for all layers, or one per layer.
    pub score_blocks: Vec<Matrix>,
}

/// Why there is no gradient.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AdjointError {
    /// The forward pass has no result.
    #[error(transparent)]
    Forward(#[from] ForwardError),
    /// Layers must see features, rewards and values only.
    #[error(
        "params: scores depend on rewards or memory, or inputs are overwritten; expected scores of features and a V that writes memory rows"
    )]
    NeedsTokens,
    /// The kernel must say how its weights change ([`Kernel::slope`](crate::kernel::Kernel::slope)).
    #[error("kernel: its weights have no derivative, expected one with a slope")]
    NoSlope,
}

/// A forward pass on groups that can be differentiated, with buffers that are reused.
///
/// Any kernel with a [`slope`](crate::kernel::Kernel::slope), tied or per-layer parameters, any depth up to that of
/// the pass. Layers are v_{l+1} = v_l + α Wᵀ g_l (paper, eq:general_forward_map with the columns of a state as one), and
/// the gradient is that of the appendix (eq:grad_rec_constJ), taken backwards: O(L·groups²). With diagonal mixing
/// statistics must have one group per column.
#[derive(Clone, Debug, Default)]
pub struct Adjoint {
    pass: GroupPass,
    /// Layer by layer: values of all groups, and messages of the source groups, padded.
    values: Vec<f64>,
    messages: Vec<f64>,
    /// Weights and their derivatives, one table for all layers or one per layer; filled when first needed.
    columns: Vec<WeightTable>,
    value_bar: Vec<f64>,
    message_bar: Vec<f64>,
    weight_bar: Vec<f64>,
}

/// W(s, u) and its derivative by the similarity of s and u, the divisor held fixed: a padded row of sources for every u.
#[derive(Clone, Debug, Default)]
struct WeightTable {
    weights: Vec<f64>,
    slopes: Vec<f64>,
}

impl Adjoint {
    /// Runs all layers and keeps what the reverse pass needs.
    pub fn forward(
        &mut self,
        transformer: &Transformer,
        statistics: &ContextStatistics,
    ) -> Result<(), AdjointError> {
        transformer.check_dim(statistics.feature_dim())?;
        if transformer.needs_tokens() {
            return Err(AdjointError::NeedsTokens);
        }
        let Self { pass, values, messages, columns, .. } = self;
        values.clear();
        messages.clear();
        columns.clear();
        Ok(pass.run(transformer, statistics, &Effort::default(), &(), |sent, after| {
            messages.extend_from_slice(sent);
            values.extend_from_slice(after);
        })?)
    }

    /// The values of all groups after `layer` layers of the last [`forward`](Self::forward).
    pub fn values(&self, layer: usize) -> &[f64] {
        let groups = self.pass.values.len();
        &self.values[layer * groups..(layer + 1) * groups]
    }

    /// The gradient of Σ_u `direction`(u)·v_l(u) after l = `num_layers` layers, for the Transformer and the statistics of
    /// the last [`forward`](Self::forward).
    ///
    /// # Panics
    /// When the last forward pass was of other sizes or of fewer layers, or failed.
    pub fn backward(
        &mut self,
        transformer: &Transformer,
        statistics: &ContextStatistics,
        num_layers: usize,
        direction: &[f64],
    ) -> Result<ParamsGradient, AdjointError> {
        let (d, stride) = (statistics.feature_dim(), statistics.stride());
        let pairs = if transformer.is_tied() { 1 } else { transformer.num_layers() };
        self.fill_columns(transformer, statistics, pairs)?;
        let mut gradient = ParamsGradient {
            value_rows: Matrix::zeros(pairs, d + 3),
            score_blocks: vec![Matrix::zeros(d, d); pairs],
        };
        self.value_bar.clear();
        self.value_bar.extend_from_slice(direction);
        self.weight_bar.clear();
        self.weight_bar.resize(statistics.num_groups() * stride, 0.0);
        for layer in (0..num_layers).rev() {
            let pair = if pairs == 1 { 0 } else { layer };
            self.through_aggregation(pair, transformer.step_size(layer), layer, stride);
            let row = gradient.value_rows.row_mut(pair);
            self.through_messages(transformer, statistics, layer, row);
            if pairs > 1 || layer == 0 {
                self.through_weights(transformer, statistics, pair, &mut gradient.score_blocks[pair]);
                self.weight_bar.fill(0.0);
            }
        }
        Ok(gradient)
    }

    fn fill_columns(
        &mut self,
        transformer: &Transformer,
        statistics: &ContextStatistics,
        pairs: usize,
    ) -> Result<(), AdjointError> {
        let attention = &transformer.config().attention;
        let (stride, groups) = (statistics.stride(), statistics.num_groups());
        for pair in self.columns.len()..pairs {
            let block = transformer.score_block(pair);
            let mut table =
                WeightTable { weights: vec![0.0; groups * stride], slopes: vec![0.0; groups * stride] };
            let rows = table.weights.chunks_exact_mut(stride).zip(table.slopes.chunks_exact_mut(stride));
            for (u, (weights, slopes)) in rows.enumerate() {
                let scores = Scores { attention, block: block.as_ref(), statistics };
                if !scores.column_and_slopes(u, weights, slopes).map_err(ForwardError::from)? {
                    self.columns.clear();
                    return Err(AdjointError::NoSlope);
                }
            }
            self.columns.push(table);
        }
        Ok(())
    }

    /// Back through v' = v + α Wᵀ g: the gradients by messages, and by weights, which add up over layers.
    fn through_aggregation(&mut self, pair: usize, step_size: f64, layer: usize, stride: usize) {
        let messages = &self.messages[layer * stride..(layer + 1) * stride];
        self.message_bar.clear();
        self.message_bar.resize(stride, 0.0);
        let rows =
            self.columns[pair].weights.chunks_exact(stride).zip(self.weight_bar.chunks_exact_mut(stride));
        for (bar, (weights, weight_bar)) in self.value_bar.iter().zip(rows).filter(|(bar, _)| **bar != 0.0) {
            vector::axpy(step_size * bar, weights, &mut self.message_bar);
            vector::axpy(step_size * bar, messages, weight_bar);
        }
    }

    /// Back through [`ValueRow::message`](super::ValueRow::message): the gradients by V's last row, and by the values before the layer.
    fn through_messages(
        &mut self,
        transformer: &Transformer,
        statistics: &ContextStatistics,
        layer: usize,
        gradient: &mut [f64],
    ) {
        let (d, gamma) = (statistics.feature_dim(), transformer.config().gamma);
        let row = transformer.value_row(layer);
        let groups = self.pass.values.len();
        let values = &self.values[layer * groups..(layer + 1) * groups];
        let (by_features, by_memory) = gradient.split_at_mut(d);
        for (s, &visits) in statistics.visits().iter().enumerate() {
            let bar = self.message_bar[s];
            by_features.iter_mut().zip(statistics.features(s)).for_each(|(g, x)| *g += bar * visits * x);
            by_memory[0] += bar * statistics.reward_sums()[s];
            by_memory[1] += bar * gamma * bootstrap(statistics, values, s);
            by_memory[2] += bar * visits * values[s];
            self.value_bar[s] += row.value * visits * bar;
            for (next, count) in statistics.successors(s) {
                self.value_bar[next] += row.target * gamma * count * bar;
            }
        }
    }

    /// Back through normalisation, kernel and similarities, from the gradient by weights to that by B.
    fn through_weights(
        &self,
        transformer: &Transformer,
        statistics: &ContextStatistics,
        pair: usize,
        gradient: &mut Matrix,
    ) {
        let attention = &transformer.config().attention;
        let stride = statistics.stride();
        let table = &self.columns[pair];
        let rows = table.weights.chunks_exact(stride).zip(table.slopes.chunks_exact(stride));
        let mut by_similarity = vec![0.0; statistics.num_source_groups()];
        for (u, ((weights, slopes), bars)) in rows.zip(self.weight_bar.chunks_exact(stride)).enumerate() {
            let shift = attention.divisor_gradient(weights, bars, statistics.own(u));
            for (s, bar) in by_similarity.iter_mut().enumerate() {
                *bar = slopes[s] * (bars[s] - statistics.visits()[s] * shift);
            }
            let similarity = attention.kernel().similarity();
            add_block_gradient(similarity, statistics, u, &by_similarity, gradient);
        }
    }
}
