//! A layer as an affine operator on values: v ↦ J v + b.

mod state;

pub use state::{OperatorError, StateOperator};
