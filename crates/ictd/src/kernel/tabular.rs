//! The tabular kernel.

use super::{Kernel, Sensitivity, Similarity};

/// 1 for sources in the same state, else 0; normalised by column, which makes the layer expected
/// tabular TD on the empirical model. A column whose state was never left gets all zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tabular;

impl Kernel for Tabular {
    fn similarity(&self) -> Similarity {
        Similarity::SameState
    }
    fn weigh(&self, _: &mut [f64]) {}
    fn log_weight(&self, similarity: f64) -> Option<f64> {
        Some(similarity.ln())
    }
    /// Whether states are the same is exact.
    fn sensitivity(&self) -> Option<Sensitivity> {
        Some(Sensitivity::Logarithm(0.0))
    }
}
