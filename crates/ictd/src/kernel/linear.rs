//! The linear kernel.

use super::{Kernel, Normalization, Sensitivity, Similarity, Temperature};

/// G/τ divided by n, not by column: linear attention (paper, eq:linear-attn-compare), which makes the
/// layer batch linear TD. Weights may be negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear(pub Temperature);

impl Kernel for Linear {
    fn similarity(&self) -> Similarity {
        Similarity::InnerProduct
    }
    fn normalization(&self) -> Normalization {
        Normalization::ByCount
    }
    fn weigh(&self, column: &mut [f64]) {
        let scale = 1.0 / self.0.get();
        column.iter_mut().for_each(|g| *g *= scale);
    }
    fn linear_scale(&self) -> Option<f64> {
        Some(1.0 / self.0.get())
    }
    fn slope(&self, _: f64, _: f64) -> Option<f64> {
        Some(1.0 / self.0.get())
    }
    fn sensitivity(&self) -> Option<Sensitivity> {
        Some(Sensitivity::Weight(1.0 / self.0.get()))
    }
}
