//! The softmax kernel.

use super::{Kernel, Normalization, Similarity};
use crate::vector;

/// Softmax attention, exp(G/τ) normalised by column (paper, Section 2.1 and the weights K of Section 3).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// Temperature τ > 0.
    pub temperature: f64,
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
}
