//! The Gaussian kernel.

use super::{Kernel, KernelError, Normalization, Sensitivity, Similarity, checked_temperature};
use crate::vector;

/// exp(-‖x_i - x_j‖² / (2τ)) normalised by column.
///
/// This is softmax with g = log κ for the Gaussian κ, so it is normalised non-parametric TD
/// (paper, the remark after eq:wktd-update).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rbf {
    /// Temperature τ > 0, the squared bandwidth.
    temperature: f64,
}

impl Rbf {
    /// The kernel at a temperature; refuses one that is not positive and finite, or whose reciprocal is not.
    pub fn new(temperature: f64) -> Result<Self, KernelError> {
        Ok(Self { temperature: checked_temperature(temperature)? })
    }
}

impl Kernel for Rbf {
    fn similarity(&self) -> Similarity {
        Similarity::SquaredDistance
    }
    fn normalization(&self) -> Normalization {
        Normalization::ByColumn
    }
    fn weigh(&self, column: &mut [f64]) {
        vector::exp_minus_max(-0.5 / self.temperature, column);
    }
    fn log_weight(&self, similarity: f64) -> Option<f64> {
        Some(-0.5 * similarity / self.temperature)
    }
    fn slope(&self, _: f64, weight: f64) -> Option<f64> {
        Some(-0.5 * weight / self.temperature)
    }
    fn sensitivity(&self) -> Option<Sensitivity> {
        Some(Sensitivity::Logarithm(0.5 / self.temperature))
    }
}
