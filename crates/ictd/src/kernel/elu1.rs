//! The ELU + 1 kernel.

use super::{Kernel, Sensitivity, Similarity, Temperature};
use crate::vector;

/// s + 1 for s = G/τ > 0, else exp(s); normalised by column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elu1(pub Temperature);

impl Kernel for Elu1 {
    fn similarity(&self) -> Similarity {
        Similarity::InnerProduct
    }

    /// # Numerics
    /// When no score is positive every weight is exp(s), which may underflow in the whole column;
    /// the common factor exp(-max s) is then free and keeps the largest weight at 1.
    fn weigh(&self, column: &mut [f64]) {
        let scale = 1.0 / self.0.get();
        let largest = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if largest <= 0.0 {
            return vector::exp_minus_max(scale, column);
        }
        // elu(s) + 1 = exp(min(s, 0)) + max(s, 0), a block at a time to stay off the heap.
        let mut positive = [0.0; 64];
        for block in column.chunks_mut(positive.len()) {
            for (g, p) in block.iter_mut().zip(&mut positive) {
                // Saturates instead of becoming infinite at absurdly small temperatures.
                *p = (*g * scale).clamp(0.0, f64::MAX);
                *g = g.min(0.0);
            }
            vector::exp_nonpositive_scaled(scale, block);
            block.iter_mut().zip(&positive).for_each(|(w, p)| *w += p);
        }
    }
    fn slope(&self, similarity: f64, weight: f64) -> Option<f64> {
        Some(if similarity > 0.0 { 1.0 } else { weight } / self.0.get())
    }
    /// (log(s + 1))' = 1/(s + 1) ≤ 1 for s > 0, and (log exp(s))' = 1 below.
    fn sensitivity(&self) -> Option<Sensitivity> {
        Some(Sensitivity::Logarithm(1.0 / self.0.get()))
    }
}
