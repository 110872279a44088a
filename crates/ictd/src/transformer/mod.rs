//! Transformers whose forward pass is temporal-difference learning.
//!
//! [`Transformer::tokens`] returns every layer's full token matrix, [`Transformer::values`] only the
//! value estimates, much faster. Both are the same map; a test says so.

mod adjoint;
mod block;
mod params;

pub use adjoint::{Adjoint, AdjointError, ParamsGradient};
pub use block::{Block, BlockError, attend, temporal_shift};
pub use params::{AttentionParams, Parameters, ParamsError, TransformerConfig, TransformerError};

use std::borrow::Cow;

use crate::context::{Context, ContextStatistics, Role};
use crate::kernel::{AttentionError, GroupWeights, Scores};
use crate::matrix::Matrix;

/// A Transformer that can be run.
#[derive(Clone, Debug)]
pub struct Transformer {
    config: TransformerConfig,
}

/// Why a forward pass has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum ForwardError {
    /// Parameters and context must have the same feature dimension.
    #[error("params: made for {expected} features, but the context has {found}")]
    FeatureDim { expected: usize, found: usize },
    /// Weights could not be computed.
    #[error(transparent)]
    Attention(#[from] AttentionError),
    /// Values must stay finite; `layer` is the first where one does not.
    #[error("values overflow in layer {layer}: the iteration diverges; lower the step size or the depth")]
    Diverged { layer: usize },
}

impl Transformer {
    /// What it is made of.
    pub fn config(&self) -> &TransformerConfig {
        &self.config
    }

    /// Depth L.
    pub fn num_layers(&self) -> usize {
        self.config.num_layers
    }

    fn step_size(&self, layer: usize) -> f64 {
        let sizes = &self.config.step_sizes;
        sizes[if sizes.len() == 1 { 0 } else { layer }]
    }

    /// The parameters of a layer for d features.
    pub fn params(&self, layer: usize, feature_dim: usize) -> Cow<'_, AttentionParams> {
        match &self.config.parameters {
            Parameters::ThetaStar => Cow::Owned(AttentionParams::theta_star(feature_dim)),
            Parameters::Tied(params) => Cow::Borrowed(params),
            Parameters::PerLayer(params) => Cow::Borrowed(&params[layer]),
        }
    }

    fn is_tied(&self) -> bool {
        !matches!(&self.config.parameters, Parameters::PerLayer(_))
    }

    /// The parameters that were given, first layer first; none for theta_*.
    fn given_params(&self) -> &[AttentionParams] {
        match &self.config.parameters {
            Parameters::ThetaStar => &[],
            Parameters::Tied(params) => std::slice::from_ref(params),
            Parameters::PerLayer(params) => params,
        }
    }

    /// Whether some layer reads or writes more of the tokens than the recursion on groups keeps.
    fn needs_tokens(&self) -> bool {
        self.given_params().iter().any(|params| params.needs_tokens(self.config.block))
    }

    fn check_dim(&self, found: usize) -> Result<(), ForwardError> {
        match self.given_params().iter().map(AttentionParams::feature_dim).find(|&d| d != found) {
            Some(expected) => Err(ForwardError::FeatureDim { expected, found }),
            None => Ok(()),
        }
    }

    /// The value estimates of all layers by the fastest exact path.
    pub fn values(&self, context: &Context) -> Result<LayerValues, ForwardError> {
        Evaluator::default().evaluate(self, context)
    }
}

/// Which of the exact paths a forward pass takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Full token matrices: parameters overwrite inputs or attend to rewards or memory.
    Tokens,
    /// One group per column: scores depend on features only.
    Columns,
    /// One group per distinct state, O(states²) per layer: no diagonal mixing, states repeat.
    States,
}

/// Value estimates and targets of every column after every layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerValues {
    path: Path,
    /// Row l: the values of the groups after l layers.
    by_group: Matrix,
    group_of: Vec<u32>,
    num_queries: usize,
    targets: Targets,
}

#[derive(Clone, Debug, PartialEq)]
enum Targets {
    /// γ times the value of the next column, for sources.
    Successor { gamma: f64, roles: Vec<Role> },
    /// Row l: the target memory after l layers.
    Stored(Matrix),
}

impl LayerValues {
    /// The path taken.
    pub fn path(&self) -> Path {
        self.path
    }

    /// Depth L.
    pub fn num_layers(&self) -> usize {
        self.by_group.num_rows() - 1
    }

    /// Number of columns.
    pub fn num_columns(&self) -> usize {
        self.group_of.len()
    }

    /// The value estimate v_l of a column; 0 for terminal states.
    pub fn value(&self, layer: usize, column: usize) -> f64 {
        self.by_group.row(layer).get(self.group_of[column] as usize).copied().unwrap_or(0.0)
    }

    /// The target memory of a column: γ·v_l(successor) for sources, 0 otherwise.
    pub fn target(&self, layer: usize, column: usize) -> f64 {
        match &self.targets {
            Targets::Successor { gamma, roles } if roles[column] == Role::Source => {
                gamma * self.value(layer, column + 1)
            }
            Targets::Successor { .. } => 0.0,
            Targets::Stored(matrix) => matrix[(layer, column)],
        }
    }

    /// The value estimates of all columns after `layer` layers.
    pub fn values(&self, layer: usize) -> Vec<f64> {
        (0..self.num_columns()).map(|j| self.value(layer, j)).collect()
    }

    /// The target memory of all columns after `layer` layers.
    pub fn targets(&self, layer: usize) -> Vec<f64> {
        (0..self.num_columns()).map(|j| self.target(layer, j)).collect()
    }

    /// The value estimate of query column k after the last layer; `None` when there are fewer queries. A context's queries
    /// follow its episodes, in the order they were added.
    pub fn query(&self, k: usize) -> Option<f64> {
        let column = self.num_columns() - self.num_queries + k;
        (k < self.num_queries).then(|| self.value(self.num_layers(), column))
    }

    /// The last column's value after the last layer: the output of the Transformer (paper, eq:outputv).
    pub fn output(&self) -> f64 {
        self.value(self.num_layers(), self.num_columns() - 1)
    }
}

/// Shorter contexts are not searched for repeated states: the search costs more than it saves.
const MIN_MERGE: usize = 16;

/// Buffers for forward passes; reuse one for many contexts to avoid allocating.
#[derive(Clone, Debug, Default)]
pub struct Evaluator {
    statistics: ContextStatistics,
    pass: GroupPass,
}

impl Evaluator {
    /// The value estimates of all layers by the fastest exact path.
    pub fn evaluate(
        &mut self,
        transformer: &Transformer,
        context: &Context,
    ) -> Result<LayerValues, ForwardError> {
        self.evaluate_watched(transformer, context, &mut || {})
    }

    /// As [`evaluate`](Self::evaluate); `after_layer` is called after every layer, for work that takes long.
    pub fn evaluate_watched(
        &mut self,
        transformer: &Transformer,
        context: &Context,
        after_layer: &mut dyn FnMut(),
    ) -> Result<LayerValues, ForwardError> {
        let path = self.prepare(transformer, context)?;
        self.collect(transformer, context, path, after_layer)
    }

    /// As [`evaluate`](Self::evaluate) along a given path, for comparing paths.
    ///
    /// # Panics
    /// When the path is not exact for this Transformer.
    pub fn evaluate_along(
        &mut self,
        path: Path,
        transformer: &Transformer,
        context: &Context,
    ) -> Result<LayerValues, ForwardError> {
        transformer.check_dim(context.feature_dim())?;
        let exact = exact_paths(transformer);
        assert!(exact.contains(&path), "{path:?} is not exact here");
        match path {
            Path::Tokens => {}
            Path::Columns => self.statistics.fill_per_column(context),
            Path::States => self.statistics.fill_per_state(context),
        }
        self.collect(transformer, context, path, &mut || {})
    }

    /// The output of the Transformer alone, without allocating once the buffers have grown.
    pub fn output(&mut self, transformer: &Transformer, context: &Context) -> Result<f64, ForwardError> {
        match self.prepare(transformer, context)? {
            Path::Tokens => Ok(self.collect(transformer, context, Path::Tokens, &mut || {})?.output()),
            _ => {
                self.pass.run(transformer, &self.statistics, |_, _| {})?;
                let group = self.statistics.groups()[context.num_columns() - 1];
                Ok(self.pass.values.get(group as usize).copied().unwrap_or(0.0))
            }
        }
    }

    /// Chooses the path and groups the columns.
    fn prepare(&mut self, transformer: &Transformer, context: &Context) -> Result<Path, ForwardError> {
        transformer.check_dim(context.feature_dim())?;
        let exact = exact_paths(transformer);
        if exact.contains(&Path::States) && context.num_transitions() >= MIN_MERGE {
            self.statistics.fill_per_state(context);
            Ok(Path::States)
        } else if exact.contains(&Path::Columns) {
            self.statistics.fill_per_column(context);
            Ok(Path::Columns)
        } else {
            Ok(Path::Tokens)
        }
    }

    fn collect(
        &mut self,
        transformer: &Transformer,
        context: &Context,
        path: Path,
        after_layer: &mut dyn FnMut(),
    ) -> Result<LayerValues, ForwardError> {
        let num_rows = transformer.num_layers() + 1;
        if path == Path::Tokens {
            let tokens = transformer.tokens(context)?;
            let columns = context.num_columns();
            return Ok(LayerValues {
                path,
                by_group: Matrix::from_fn(num_rows, columns, |l, j| tokens[l].values()[j]),
                group_of: (0..columns as u32).collect(),
                num_queries: context.num_queries(),
                targets: Targets::Stored(Matrix::from_fn(num_rows, columns, |l, j| tokens[l].targets()[j])),
            });
        }
        let num_groups = self.statistics.num_groups();
        let mut layers = Vec::with_capacity(num_rows * num_groups);
        self.pass.run(transformer, &self.statistics, |messages, values| {
            layers.extend_from_slice(values);
            // The values before the first layer come without messages.
            messages.first().iter().for_each(|_| after_layer());
        })?;
        Ok(LayerValues {
            path,
            by_group: Matrix::from_fn(num_rows, num_groups, |l, u| layers[l * num_groups + u]),
            group_of: self.statistics.groups().to_vec(),
            num_queries: context.num_queries(),
            targets: Targets::Successor {
                gamma: transformer.config().gamma,
                roles: context.roles().to_vec(),
            },
        })
    }
}

/// The paths that are exact, by what parameters and mixing allow.
fn exact_paths(transformer: &Transformer) -> &'static [Path] {
    match (transformer.needs_tokens(), transformer.config().attention.diagonal_mix() == 0.0) {
        (true, _) => &[Path::Tokens],
        (false, false) => &[Path::Tokens, Path::Columns],
        (false, true) => &[Path::Tokens, Path::Columns, Path::States],
    }
}

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
fn bootstrap(statistics: &ContextStatistics, values: &[f64], s: usize) -> f64 {
    statistics.successors(s).map(|(next, count)| count * values[next]).sum()
}

/// Buffers of a forward pass on groups.
#[derive(Clone, Debug, Default)]
struct GroupPass {
    weights: GroupWeights,
    messages: Vec<f64>,
    /// The values after the last layer that was run.
    pub values: Vec<f64>,
}

impl GroupPass {
    /// Runs the layers from v = 0: v(u) += α Σ_s W(s, u)·g(s), with g the messages. `after_layer` gets messages, padded
    /// with zeros, and values of every layer; before the first, values alone.
    pub fn run(
        &mut self,
        transformer: &Transformer,
        statistics: &ContextStatistics,
        mut after_layer: impl FnMut(&[f64], &[f64]),
    ) -> Result<(), ForwardError> {
        let Self { weights, messages, values } = self;
        let (config, d) = (transformer.config(), statistics.feature_dim());
        values.clear();
        values.resize(statistics.num_groups(), 0.0);
        messages.clear();
        messages.resize(statistics.stride(), 0.0);
        after_layer(&[], values);
        if config.num_layers == 0 {
            return Ok(());
        }
        let mut params = transformer.params(0, d);
        let mut block = params.score_block();
        for layer in 0..config.num_layers {
            if layer == 0 || !transformer.is_tied() {
                params = transformer.params(layer, d);
                block = params.score_block();
                weights.fill(Scores { attention: &config.attention, block: &block, statistics })?;
            }
            let row = ValueRow::new(params.value_row());
            for s in 0..statistics.num_source_groups() {
                messages[s] = row.message(statistics, config.gamma, values, s);
            }
            let step_size = transformer.step_size(layer);
            let scores = Scores { attention: &config.attention, block: &block, statistics };
            weights.add_product(scores, step_size, messages, values)?;
            if values.iter().any(|v| !v.is_finite()) {
                return Err(ForwardError::Diverged { layer: layer + 1 });
            }
            after_layer(messages, values);
        }
        Ok(())
    }
}
