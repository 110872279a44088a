//! The ReLU kernel.

use super::{Kernel, Normalization, Similarity};

/// max(G/τ, 0) normalised by column; a column without a positive score gets all zeros.
///
/// τ cancels in the normalisation and is kept for uniformity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relu {
    /// Temperature τ > 0.
    pub temperature: f64,
}

impl Kernel for Relu {
    fn similarity(&self) -> Similarity {
        Similarity::InnerProduct
    }
    fn normalization(&self) -> Normalization {
        Normalization::ByColumn
    }
    fn weigh(&self, column: &mut [f64]) {
        let scale = 1.0 / self.temperature;
        column.iter_mut().for_each(|g| *g = (*g * scale).max(0.0));
    }
}
