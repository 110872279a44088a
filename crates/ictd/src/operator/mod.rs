//! A layer as an affine operator on values: v ↦ J v + b.

mod coordinates;
mod span;
mod state;
mod weight_errors;

pub(crate) use coordinates::Coordinates;
pub use state::{OperatorError, StateOperator};
