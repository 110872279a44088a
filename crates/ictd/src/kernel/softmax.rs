//! The softmax kernel.

use super::{Kernel, KernelError, Normalization, Sensitivity, Similarity, checked_temperature};
use crate::vector;

/// Softmax attention, exp(G/τ) normalised by column (paper, eq:softmax-weight-sync with
/// g = ⟨·, ·⟩/τ).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// Temperature τ > 0.
    temperature: f64,
}

impl Softmax {
    /// The kernel at a temperature; refuses one that is not positive and finite, or whose reciprocal is not.
    pub fn new(temperature: f64) -> Result<Self, KernelError> {
        Ok(Self { temperature: checked_temperature(temperature)? })
    }
}

impl Kernel for Softmax {
    fn similarity(&self) -> Similarity {
        Similarity::InnerProduct
    }
    fn normalization(&self) -> Normalization {
        Normalization::ByColumn
    }
    fn weigh(&self, column: &mut [f64]) {
        vector::exp_minus_max(1.0 / self.temperature, column);
    }
    fn log_weight(&self, similarity: f64) -> Option<f64> {
        Some(similarity / self.temperature)
    }
    fn slope(&self, _: f64, weight: f64) -> Option<f64> {
        Some(weight / self.temperature)
    }
    fn sensitivity(&self) -> Option<Sensitivity> {
        Some(Sensitivity::Logarithm(1.0 / self.temperature))
    }
}
