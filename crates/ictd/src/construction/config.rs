//! What a construction is made of.

use super::{Algorithm, Construction, ForwardError, LinalgError};
use crate::matrix::Matrix;
use crate::task::is_discount;
use crate::transformer::{TransformerError, check_step_sizes};

/// What a construction is made of, unchecked; [`check`](Self::check) makes it run.
///
/// | field | default | purpose | range |
/// |---|---|---|---|
/// | `algorithm` | — | what a layer is a step of | |
/// | `lambda` | 0 | decay λ of traces | [0, 1]; 0 but for TD(λ) |
/// | `num_layers` | — | depth L | ≥ 0 |
/// | `gamma` | 0.9 (1 for average reward) | discount γ | [0, 1); 1 for average reward |
/// | `step_sizes` | 1 | α, one for all layers or one each | finite |
/// | `preconditioners` | none: the identity | C, one for all layers or one each | d × d, finite |
#[derive(Clone, Debug)]
pub struct ConstructionConfig {
    /// What a layer is a step of.
    pub algorithm: Algorithm,
    /// Decay λ of traces.
    pub lambda: f64,
    /// Depth L.
    pub num_layers: usize,
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes α: one for all layers, or one per layer.
    pub step_sizes: Vec<f64>,
    /// Preconditioners C: none, one for all layers, or one per layer.
    pub preconditioners: Vec<Matrix>,
}

/// Why a configuration is no construction, or has no values on a context.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum ConstructionError {
    /// λ must be in [0, 1].
    #[error("lambda is {0:?}, expected 0 <= lambda <= 1")]
    Lambda(f64),
    /// Only TD(λ) has traces.
    #[error("lambda is {found:?}, expected none: {algorithm} has no traces, td-lambda has")]
    NoTraces { algorithm: Algorithm, found: f64 },
    /// Rewards that are averaged are not discounted.
    #[error("gamma is {0:?}, expected 1: average-reward does not discount")]
    Discounted(f64),
    /// γ and step sizes must be in their ranges.
    #[error(transparent)]
    Step(#[from] TransformerError),
    /// There must be no preconditioner, one, or one per layer.
    #[error("preconditioners: {found} given, expected none, 1 or one for each of the {layers} layers")]
    Preconditioners { found: usize, layers: usize },
    /// Preconditioners must be square, all of the same size, and finite; `layer` is the first that is not.
    #[error(
        "preconditioner {layer} is {rows} × {cols}, expected a square matrix of finite numbers as large as the first"
    )]
    Preconditioner { layer: usize, rows: usize, cols: usize },
    /// Preconditioners and context must have the same feature dimension.
    #[error("preconditioner: made for {found} features, but the context has {expected}")]
    FeatureDim { expected: usize, found: usize },
    /// There must be one episode.
    #[error("episodes: the context has {0}, expected one trajectory: its rows follow each other")]
    Episodes(usize),
    /// The last state is the query, and there is no other.
    #[error("queries: the context has {0}, expected none: the last row of the trajectory is the query")]
    Queries(usize),
    /// The last state must have a value.
    #[error("terminated: the last row is the query and cannot be a terminal state, expected false")]
    Terminated,
    /// The equations of a fixed point must not contradict each other where the query is concerned. Layers with step size 1 then add `per_layer`
    /// to its value for ever.
    #[error(
        "no weights are a fixed point: rewards contradict transitions, and in the long run a layer with step size 1 adds {per_layer:.1e} to the value"
    )]
    Drift { per_layer: f64 },
    /// What the query asks for must be clear of rounding: `share` is how much features stick out of those before them.
    #[error(
        "features are nearly collinear: some stick out of the span of others by {share:.0e} of their length, which is too little to tell from rounding"
    )]
    Unresolved { share: f64 },
    /// Layers have no result.
    #[error(transparent)]
    Forward(#[from] ForwardError),
    /// Eigenvalues have no trustworthy answer.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
}

impl ConstructionConfig {
    /// With step size 1, no preconditioner, λ = 0 and the usual discount.
    pub fn new(algorithm: Algorithm, num_layers: usize) -> Self {
        Self {
            algorithm,
            lambda: 0.0,
            num_layers,
            gamma: algorithm.default_gamma(),
            step_sizes: vec![1.0],
            preconditioners: Vec::new(),
        }
    }

    /// Checks every field.
    pub fn check(self) -> Result<Construction, ConstructionError> {
        let Self { algorithm, lambda, gamma, num_layers: layers, .. } = self;
        if !(0.0..=1.0).contains(&lambda) {
            return Err(ConstructionError::Lambda(lambda));
        }
        if lambda != 0.0 && algorithm != Algorithm::TdLambda {
            return Err(ConstructionError::NoTraces { algorithm, found: lambda });
        }
        match algorithm {
            Algorithm::AverageReward if gamma != 1.0 => return Err(ConstructionError::Discounted(gamma)),
            Algorithm::AverageReward => {}
            _ if !is_discount(gamma) => return Err(TransformerError::Gamma(gamma).into()),
            _ => {}
        }
        check_step_sizes(&self.step_sizes, layers)?;
        let found = self.preconditioners.len();
        if found > 1 && found != layers {
            return Err(ConstructionError::Preconditioners { found, layers });
        }
        let size = self.preconditioners.first().map_or(0, Matrix::num_rows);
        let is_bad = |c: &Matrix| {
            (c.num_rows(), c.num_cols()) != (size, size) || c.as_slice().iter().any(|x| !x.is_finite())
        };
        if let Some(layer) = self.preconditioners.iter().position(is_bad) {
            let c = &self.preconditioners[layer];
            return Err(ConstructionError::Preconditioner { layer, rows: c.num_rows(), cols: c.num_cols() });
        }
        Ok(Construction { config: self })
    }
}
