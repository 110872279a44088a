//! The Gaussian kernel.

use super::{Kernel, Sensitivity, Similarity, Temperature};
use crate::vector;

/// exp(-‖x_i - x_j‖² / (2τ)) normalised by column.
///
/// This is softmax with g = log κ for the Gaussian κ, so it is normalised non-parametric TD
/// (paper, the remark after eq:wktd-update). The temperature τ is the squared bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rbf(pub Temperature);

impl Kernel for Rbf {
    fn similarity(&self) -> Similarity {
        Similarity::SquaredDistance
    }
    fn weigh(&self, column: &mut [f64]) {
        vector::exp_minus_max(-0.5 / self.0.get(), column);
    }
    fn exponent(&self) -> Option<f64> {
        Some(-0.5 / self.0.get())
    }
    fn log_weight(&self, similarity: f64) -> Option<f64> {
        Some(-0.5 * similarity / self.0.get())
    }
    fn slope(&self, _: f64, weight: f64) -> Option<f64> {
        Some(-0.5 * weight / self.0.get())
    }
    fn sensitivity(&self) -> Option<Sensitivity> {
        Some(Sensitivity::Logarithm(0.5 / self.0.get()))
    }
}
