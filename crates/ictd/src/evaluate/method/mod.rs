//! Estimators of values from a sample of a log, behind one trait.
//!
//! All are exact functions of the sample's sums, so that the length of the log does not matter. Values are computed about the
//! constant c that fits best ([`Sample::mean_value`]): where an estimator knows nothing of a state its value is c.

mod constant;
mod coordinates;
mod kbrl;
mod linear;
mod lstd;
mod monte_carlo;
mod pivots;
mod smoother;
mod softmax_td;
mod table;

pub use constant::ConstantMean;
pub use kbrl::Kbrl;
pub use linear::LinearTd;
pub use lstd::{Basis, Lstd};
pub use monte_carlo::MonteCarlo;
pub use pivots::Averaging;
pub use smoother::attention;
pub use softmax_td::{SoftmaxTd, SoftmaxTdFits};
pub(super) use table::Table;
pub use table::TabularTd;

use super::sample::Sample;
use crate::kernel::AttentionError;
use crate::linalg::LinalgError;
use crate::matrix::Matrix;
use crate::watch::Stopped;

/// A way to estimate values.
pub trait Method: std::fmt::Debug + Send + Sync {
    /// What to call it in a table.
    fn name(&self) -> &'static str;

    /// Fits the sample.
    fn fit(&self, sample: &Sample<'_>) -> Result<Box<dyn Fit>, FitError>;
}

/// An estimate of values.
pub trait Fit: std::fmt::Debug + Send + Sync {
    /// The values of the states of the sample's log.
    fn values(&self) -> &[f64];

    /// The values at these features, one row per state. At the features of a state of the log they are
    /// [`values`](Self::values), to rounding.
    fn predict(&self, states: &Matrix) -> Result<Vec<f64>, FitError>;
}

/// Why a sample could not be fitted, or values not predicted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum FitError {
    /// The sample must contain at least one transition.
    #[error("the sample is empty, expected at least one transition")]
    Empty,
    /// Dense methods need memory or time that grows with the square or cube of the number of states.
    #[error("{found} states, expected at most {limit}; gather them in cells")]
    TooManyStates { found: usize, limit: usize },
    /// Features must be as many as those of the log.
    #[error("states have {found} features, expected {expected}")]
    FeatureDim { expected: usize, found: usize },
    /// The step size must be finite and not negative.
    #[error("step size is {0:?}, expected a finite number >= 0")]
    StepSize(f64),
    /// The ridge must be finite and not negative.
    #[error("ridge is {0:?}, expected a finite number >= 0")]
    Ridge(f64),
    /// Least squares on kernels need a positive definite one, which knows its logarithm or is linear.
    #[error("the kernel is not positive definite, expected softmax, rbf or linear")]
    NotPositiveDefinite,
    /// Kernel-based reinforcement learning averages with weights that sum to 1.
    #[error("the kernel's weights do not sum to 1, expected a kernel that is normalised by column")]
    NotNormalized,
    /// LSTD(λ) needs a log that kept traces.
    #[error("the log kept no traces, expected one that was built with lambda")]
    NoTraces,
    /// Weights could not be computed.
    #[error(transparent)]
    Attention(#[from] AttentionError),
    /// A linear system could not be solved.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// Values must stay finite.
    #[error(
        "values overflow within {layers} layers: the iteration diverges; lower the step size or the depth"
    )]
    Diverged { layers: usize },
    /// It was told to stop.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The constant that values are computed about; refuses a sample without transitions.
fn centre(sample: &Sample<'_>) -> Result<f64, FitError> {
    // Negated, so that NaN is refused too.
    if !(sample.num_visits() > 0.0) {
        return Err(FitError::Empty);
    }
    Ok(sample.mean_value())
}

fn check_dim(expected: usize, states: &Matrix) -> Result<(), FitError> {
    let found = states.num_cols();
    if found == expected { Ok(()) } else { Err(FitError::FeatureDim { expected, found }) }
}

/// States times sources up to which a prediction is computed by whoever asks for it: threads would take longer to begin, and a process that
/// forked has none.
pub const SMALL: usize = smoother::SMALL;

fn check_step_size(step_size: f64) -> Result<(), FitError> {
    if step_size >= 0.0 && step_size.is_finite() { Ok(()) } else { Err(FitError::StepSize(step_size)) }
}

/// Refuses values that are not finite after so many layers.
fn finite(values: Vec<f64>, layers: usize) -> Result<Vec<f64>, FitError> {
    if values.iter().all(|v| v.is_finite()) { Ok(values) } else { Err(FitError::Diverged { layers }) }
}
