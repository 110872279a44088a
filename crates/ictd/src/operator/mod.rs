//! A layer as an affine operator on values: v ↦ J v + b.

mod empirical;

pub use empirical::{EmpiricalOperator, OperatorError};
