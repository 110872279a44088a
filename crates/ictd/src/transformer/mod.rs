//! Transformers whose forward pass is temporal-difference learning.
//!
//! [`Transformer::tokens`] returns every layer's full token matrix, [`Transformer::values`] only the
//! value estimates, much faster. Both are the same map; a test says so.

mod adjoint;
mod block;
mod evaluator;
mod growth;
mod params;
mod pass;

pub use adjoint::{Adjoint, AdjointError, ParamsGradient};
pub use block::{Block, BlockError, attend, temporal_shift};
pub use evaluator::Evaluator;
pub(crate) use params::check_step_sizes;
pub use params::{AttentionParams, Parameters, ParamsError, TransformerConfig, TransformerError};

pub use pass::Approximation;
pub(crate) use pass::ValueRow;
use pass::{GroupPass, bootstrap};

use std::borrow::Cow;

use crate::context::{Context, Role};
use crate::kernel::{AttentionError, ProductError};
use crate::matrix::Matrix;
use crate::watch::Stopped;

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
    /// It was told to stop.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl From<ProductError> for ForwardError {
    fn from(error: ProductError) -> Self {
        match error {
            ProductError::Attention(error) => error.into(),
            ProductError::Stopped(error) => error.into(),
        }
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
        let given = self.given(layer).map(Cow::Borrowed);
        given.unwrap_or_else(|| Cow::Owned(AttentionParams::theta_star(feature_dim)))
    }

    /// The given parameters of a layer; none for theta_*, whose matrices forward passes need not write out.
    fn given(&self, layer: usize) -> Option<&AttentionParams> {
        match &self.config.parameters {
            Parameters::ThetaStar => None,
            Parameters::Tied(params) => Some(params),
            Parameters::PerLayer(params) => Some(&params[layer]),
        }
    }

    /// A's feature block of a layer; none for the identity of theta_*.
    fn score_block(&self, layer: usize) -> Option<Matrix> {
        self.given(layer).map(AttentionParams::score_block)
    }

    /// V's last row of a layer.
    fn value_row(&self, layer: usize) -> ValueRow<'_> {
        self.given(layer).map_or(ValueRow::TD, |params| ValueRow::new(params.value_row()))
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
