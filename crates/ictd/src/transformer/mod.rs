//! Transformers whose forward pass is temporal-difference learning.
//!
//! [`Transformer::tokens`] returns every layer's full token matrix, [`Transformer::values`] only the
//! value estimates, much faster. Both are the same map; a test says so.

mod adjoint;
mod block;
mod params;
mod values;

pub use adjoint::{Adjoint, AdjointError, ParamsGradient};
pub use block::{Block, BlockError, attend, temporal_shift};
pub use params::{AttentionParams, ParamsError};
use values::Targets;
pub use values::{LayerValues, Path};

use std::borrow::Cow;

use crate::context::{Context, ContextStatistics};
use crate::kernel::{Attention, AttentionError, GroupWeights, Scores};
use crate::matrix::Matrix;
use crate::task::is_discount;

/// The parameters of all layers.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    /// theta_* in every layer, for whatever feature dimension the context has.
    ThetaStar,
    /// The same (V, A) in every layer.
    Tied(AttentionParams),
    /// One (V, A) per layer.
    PerLayer(Vec<AttentionParams>),
}

/// What a Transformer is made of, unchecked; [`check`](Self::check) makes it run.
///
/// | field | default | purpose | range |
/// |---|---|---|---|
/// | `block` | temporal shift | how memory rows are written | |
/// | `attention` | — | kernel and diagonal mixing | |
/// | `parameters` | theta_* | (V, A) of the layers | finite |
/// | `num_layers` | — | depth L | ≥ 0 |
/// | `gamma` | — | discount γ | [0, 1) |
/// | `step_sizes` | 1 | α, one for all layers or one each | finite |
#[derive(Clone, Debug)]
pub struct TransformerConfig {
    /// How memory rows are written.
    pub block: Block,
    /// Kernel and diagonal mixing.
    pub attention: Attention,
    /// (V, A) of the layers.
    pub parameters: Parameters,
    /// Depth L.
    pub num_layers: usize,
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes α: one for all layers, or one per layer.
    pub step_sizes: Vec<f64>,
}

/// A Transformer that can be run.
#[derive(Clone, Debug)]
pub struct Transformer {
    config: TransformerConfig,
}

/// Why a configuration is not a Transformer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum TransformerError {
    /// γ must be in [0, 1).
    #[error("gamma is {0:?}, expected 0 <= gamma < 1")]
    Gamma(f64),
    /// Step sizes must be finite.
    #[error("step size {layer} is {value}, expected a finite number")]
    StepSize { layer: usize, value: f64 },
    /// There must be one step size, or one per layer; likewise parameters. `what` is "step sizes" or "params".
    #[error("{what}: {found} given, expected 1 or one for each of the {layers} layers")]
    Count { what: &'static str, found: usize, layers: usize },
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

impl TransformerConfig {
    /// A Transformer at theta_* with the temporal shift module and step size 1.
    pub fn theta_star(attention: Attention, num_layers: usize, gamma: f64) -> Self {
        Self {
            block: Block::TemporalShift,
            attention,
            parameters: Parameters::ThetaStar,
            num_layers,
            gamma,
            step_sizes: vec![1.0],
        }
    }

    /// Checks every field.
    pub fn check(self) -> Result<Transformer, TransformerError> {
        let layers = self.num_layers;
        if !is_discount(self.gamma) {
            return Err(TransformerError::Gamma(self.gamma));
        }
        if let Some(layer) = self.step_sizes.iter().position(|a| !a.is_finite()) {
            return Err(TransformerError::StepSize { layer, value: self.step_sizes[layer] });
        }
        let num_params = match &self.parameters {
            Parameters::PerLayer(params) => params.len(),
            _ => 1,
        };
        for (what, found) in [("step sizes", self.step_sizes.len()), ("params", num_params)] {
            if found != 1 && found != layers {
                return Err(TransformerError::Count { what, found, layers });
            }
        }
        Ok(Transformer { config: self })
    }
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
            Parameters::PerLayer(params) => Cow::Borrowed(&params[if params.len() == 1 { 0 } else { layer }]),
        }
    }

    fn is_tied(&self) -> bool {
        !matches!(&self.config.parameters, Parameters::PerLayer(params) if params.len() != 1)
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
        let path = self.prepare(transformer, context)?;
        self.collect(transformer, context, path)
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
        self.collect(transformer, context, path)
    }

    /// The output of the Transformer alone, without allocating once the buffers have grown.
    pub fn output(&mut self, transformer: &Transformer, context: &Context) -> Result<f64, ForwardError> {
        match self.prepare(transformer, context)? {
            Path::Tokens => Ok(self.collect(transformer, context, Path::Tokens)?.output()),
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
    ) -> Result<LayerValues, ForwardError> {
        let num_rows = transformer.num_layers() + 1;
        if path == Path::Tokens {
            let tokens = transformer.tokens(context)?;
            let row = |l: usize| &tokens[l];
            let columns = context.num_columns();
            return Ok(LayerValues {
                path,
                by_group: Matrix::from_fn(num_rows, columns, |l, j| row(l).values()[j]),
                group_of: (0..columns as u32).collect(),
                num_queries: context.num_queries(),
                targets: Targets::Stored(Matrix::from_fn(num_rows, columns, |l, j| row(l).targets()[j])),
            });
        }
        let num_groups = self.statistics.num_groups();
        let mut layers = Vec::with_capacity(num_rows * num_groups);
        self.pass.run(transformer, &self.statistics, |_, values| layers.extend_from_slice(values))?;
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
