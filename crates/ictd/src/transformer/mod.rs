//! Transformers whose forward pass is temporal-difference learning.
//!
//! [`Transformer::tokens`] returns every layer's full token matrix, [`Transformer::values`] only the
//! value estimates, much faster. Both are the same map; a test says so.

mod adjoint;
mod block;
mod groups;
mod params;
mod values;

pub use adjoint::{Adjoint, AdjointError, ParamsGradient};
pub use block::{Block, BlockError, attend, temporal_shift};
pub(crate) use groups::ValueRow;
pub use params::{AttentionParams, ParamsError};
pub use values::{Evaluator, LayerValues, Path};

use std::borrow::Cow;

use crate::context::Context;
use crate::kernel::{Attention, AttentionError, KernelWeights};
use crate::prompt::TokenMatrix;
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

    /// The token matrices Z_0, …, Z_L: the reference path, exactly as the paper writes it (eq:tfupdate,
    /// eq:tfupdate-prev; eq:tsm-forward with the temporal shift).
    ///
    /// Attention is computed once when it does not depend on the layer.
    pub fn tokens(&self, context: &Context) -> Result<Vec<TokenMatrix>, ForwardError> {
        Ok(self.trace(context)?.0)
    }

    /// The token matrices Z_0, …, Z_L and the attention matrices of the layers; a single one stands
    /// for all layers when attention does not depend on the layer.
    pub fn trace(&self, context: &Context) -> Result<(Vec<TokenMatrix>, Vec<KernelWeights>), ForwardError> {
        self.check_dim(context.feature_dim())?;
        let (roles, d, config) = (context.roles(), context.feature_dim(), &self.config);
        let mut tokens = vec![TokenMatrix::prompt(context)];
        let mut attention: Vec<KernelWeights> = Vec::new();
        for layer in 0..config.num_layers {
            let params = self.params(layer, d);
            // Dual heads write memory rows only, whatever V says.
            let inputs_change = config.block == Block::TemporalShift && params.overwrites_inputs();
            let reusable = self.is_tied() && !inputs_change && !params.scores_memory();
            let z = &tokens[layer];
            if layer == 0 || !reusable {
                attention.push(KernelWeights::new(&config.attention, params.score_matrix(), z, roles)?);
            }
            let weights = &attention[attention.len() - 1];
            let next = config.block.layer(&params, weights, self.step_size(layer), config.gamma, z, roles);
            if next.matrix().as_slice().iter().any(|x| !x.is_finite()) {
                return Err(ForwardError::Diverged { layer: layer + 1 });
            }
            tokens.push(next);
        }
        Ok((tokens, attention))
    }

    /// The value estimates of all layers by the fastest exact path.
    pub fn values(&self, context: &Context) -> Result<LayerValues, ForwardError> {
        Evaluator::default().evaluate(self, context)
    }
}
