//! A layer as an affine operator on values: v ↦ J v + b.

mod applied;
mod applied_limit;
mod chain;
mod coordinates;
mod masses;
mod span;
mod state;
mod trained;
mod weight_errors;

pub use applied::AppliedOperator;
pub use applied_limit::AppliedLimit;
pub(crate) use coordinates::Coordinates;
pub use state::{OperatorError, StateOperator};
pub use trained::TrainedLayer;
