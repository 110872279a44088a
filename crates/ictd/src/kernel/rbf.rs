//! The Gaussian kernel.

use super::{Kernel, Normalization, Similarity};
use crate::vector;

/// exp(-‖x_i - x_j‖² / (2τ)) normalised by column.
///
/// This is softmax with g = log κ for the Gaussian κ, so it is normalised non-parametric TD
/// (paper, remark after the weighted softmax TD update).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rbf {
    /// Temperature τ > 0, the squared bandwidth.
    pub temperature: f64,
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
}
