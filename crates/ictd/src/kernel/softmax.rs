//! The softmax kernel.

use super::{Kernel, Sensitivity, Similarity, Temperature};
use crate::vector;

/// Softmax attention, exp(G/τ) normalised by column (paper, eq:softmax-weight-sync with
/// g = ⟨·, ·⟩/τ).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax(pub Temperature);

impl Kernel for Softmax {
    fn similarity(&self) -> Similarity {
        Similarity::InnerProduct
    }
    fn weigh(&self, column: &mut [f64]) {
        vector::exp_minus_max(1.0 / self.0.get(), column);
    }
    fn exponent(&self) -> Option<f64> {
        Some(1.0 / self.0.get())
    }
    fn log_weight(&self, similarity: f64) -> Option<f64> {
        Some(similarity / self.0.get())
    }
    fn slope(&self, _: f64, weight: f64) -> Option<f64> {
        Some(weight / self.0.get())
    }
    fn sensitivity(&self) -> Option<Sensitivity> {
        Some(Sensitivity::Logarithm(1.0 / self.0.get()))
    }
}
