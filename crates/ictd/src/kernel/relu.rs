//! The ReLU kernel.

use super::{Kernel, Sensitivity, Similarity};

/// max(G, 0) normalised by column; a column without a positive score gets all zeros. A temperature
/// would cancel in the normalisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Relu;

impl Kernel for Relu {
    fn similarity(&self) -> Similarity {
        Similarity::InnerProduct
    }
    fn weigh(&self, column: &mut [f64]) {
        column.iter_mut().for_each(|g| *g = g.max(0.0));
    }
    /// 0 at the kink, as autodiff frameworks have it.
    fn slope(&self, similarity: f64, _: f64) -> Option<f64> {
        Some(if similarity > 0.0 { 1.0 } else { 0.0 })
    }
    fn sensitivity(&self) -> Option<Sensitivity> {
        Some(Sensitivity::Weight(1.0))
    }
}
