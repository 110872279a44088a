//! A kernel with diagonal mixing: everything attention needs besides the parameters.

use std::sync::Arc;

use super::{Kernel, Normalization};

/// A kernel and the paper's diagonal mixing ρ: weights (1-ρ)·K + ρ·[i = j] on context columns (paper, eq:rho).
///
/// A column that is not a source has no diagonal entry and keeps only the (1-ρ) part.
#[derive(Clone, Debug)]
pub struct Attention {
    kernel: Arc<dyn Kernel>,
    diagonal_mix: f64,
}

/// Why attention weights could not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum AttentionError {
    /// ρ must be in [0, 1].
    #[error("diagonal mix is {0:?}, expected 0 <= rho <= 1")]
    DiagonalMix(f64),
    /// Scores must not overflow; `column` is the first whose scores are not finite.
    #[error("features: the scores of column {column} overflow; scale the features (or A) down")]
    ScoreOverflow { column: usize },
}

impl Attention {
    /// Attention with a kernel and ρ.
    pub fn new(kernel: Arc<dyn Kernel>, diagonal_mix: f64) -> Result<Self, AttentionError> {
        // A range test, so that NaN is refused.
        if !(0.0..=1.0).contains(&diagonal_mix) {
            return Err(AttentionError::DiagonalMix(diagonal_mix));
        }
        Ok(Self { kernel, diagonal_mix })
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    /// ρ.
    pub fn diagonal_mix(&self) -> f64 {
        self.diagonal_mix
    }

    /// Turns the unnormalised weights of all sources for one column into its weights, `visits[i]` being how often source
    /// i occurred and `own` the source that is the column itself, if any; returns what each was multiplied by before
    /// mixing.
    pub(crate) fn normalize_column(
        &self,
        column: &mut [f64],
        visits: &[f64],
        num_transitions: usize,
        own: Option<usize>,
    ) -> f64 {
        let mut largest = 1.0;
        let divisor = match self.kernel.normalization() {
            Normalization::ByCount => num_transitions as f64,
            Normalization::ByColumn => {
                let mut sum = crate::vector::dot(column, visits);
                if !(1e-290..f64::INFINITY).contains(&sum) && sum > 0.0 {
                    // A sum that overflows or whose reciprocal would: bring the largest weight to 1 first.
                    largest = column.iter().copied().fold(0.0, f64::max);
                    column.iter_mut().for_each(|w| *w /= largest);
                    sum = crate::vector::dot(column, visits);
                }
                sum
            }
        };
        let factor = if divisor == 0.0 { 0.0 } else { (1.0 - self.diagonal_mix) / divisor };
        column.iter_mut().for_each(|w| *w *= factor);
        if let Some(own) = own {
            column[own] += self.diagonal_mix;
        }
        factor / largest
    }

    /// What moving the divisor takes off the gradient by a weight, per visit: Σ_s b(s)·K(s), with b the gradient by
    /// weights and K the weights before mixing; 0 where the divisor is a count.
    pub(crate) fn divisor_gradient(&self, weights: &[f64], bars: &[f64], own: Option<usize>) -> f64 {
        let rho = self.diagonal_mix;
        if self.kernel.normalization() == Normalization::ByCount || rho == 1.0 {
            return 0.0;
        }
        let mixed = own.map_or(0.0, |own| rho * bars[own]);
        (crate::vector::dot(weights, bars) - mixed) / (1.0 - rho)
    }
}
