//! The linear kernel.

use super::{Kernel, KernelError, Normalization, Sensitivity, Similarity, checked_temperature};

/// G/τ divided by n, not by column: linear attention (paper, eq:linear-attn-compare), which makes the
/// layer batch linear TD. Weights may be negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear {
    /// Temperature τ > 0.
    temperature: f64,
}

impl Linear {
    /// The kernel at a temperature; refuses one that is not positive and finite, or whose reciprocal is not.
    pub fn new(temperature: f64) -> Result<Self, KernelError> {
        Ok(Self { temperature: checked_temperature(temperature)? })
    }
}

impl Kernel for Linear {
    fn similarity(&self) -> Similarity {
        Similarity::InnerProduct
    }
    fn normalization(&self) -> Normalization {
        Normalization::ByCount
    }
    fn weigh(&self, column: &mut [f64]) {
        let scale = 1.0 / self.temperature;
        column.iter_mut().for_each(|g| *g *= scale);
    }
    fn linear_scale(&self) -> Option<f64> {
        Some(1.0 / self.temperature)
    }
    fn slope(&self, _: f64, _: f64) -> Option<f64> {
        Some(1.0 / self.temperature)
    }
    fn sensitivity(&self) -> Option<Sensitivity> {
        Some(Sensitivity::Weight(1.0 / self.temperature))
    }
}
