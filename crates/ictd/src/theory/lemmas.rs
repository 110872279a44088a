//! The Lipschitz, kernel and gradient bounds behind Theorem 3, measured.

use serde::Serialize;

use crate::matrix::Matrix;

/// What a bound says beside what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The quantity on the left of the inequality.
    pub measured: f64,
    /// The right-hand side.
    pub bound: f64,
}

impl Ratio {
    /// measured/bound: at most 1 when the lemma holds; how far below says how loose it is. NaN where both overflow: nothing
    /// can be said then.
    pub fn value(self) -> f64 {
        // Nothing is within every bound, 0 included.
        if self.measured == 0.0 && self.bound >= 0.0 { 0.0 } else { self.measured / self.bound }
    }

    /// The larger of two, by value; a NaN is the largest, so that it is not lost.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let (own, others) = (self.value(), other.value());
        if others > own || (others.is_nan() && !own.is_nan()) { other } else { self }
    }
}

/// Softmax of a column, shifted by its maximum.
pub(crate) fn softmax(column: impl Iterator<Item = f64>) -> Vec<f64> {
    let scores: Vec<f64> = column.collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores.iter().map(|g| (g - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / total).collect()
}

/// The softmax lemma (paper, eq:lip) on one column: ‖softmax(g) - softmax(h)‖₁ ≤ 2·max|g - h|.
pub fn softmax_lipschitz(g: &[f64], h: &[f64]) -> Ratio {
    let (a, b) = (softmax(g.iter().copied()), softmax(h.iter().copied()));
    let measured = a.iter().zip(&b).map(|(x, y)| (x - y).abs()).sum();
    let largest = g.iter().zip(h).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    Ratio { measured, bound: 2.0 * largest }
}

/// The sharp constant for comparison: ‖softmax(g) - softmax(h)‖₁ ≤ max|g - h|.
///
/// The directional derivative is Σ σ_i |h_i - σᵀh|, the mean absolute deviation of h under σ, and that is at most half
/// of the range of h, so at most max|h|: half of what the lemma says, reached by two equal weights and h = (1, -1).
pub fn softmax_lipschitz_sharp(g: &[f64], h: &[f64]) -> Ratio {
    let ratio = softmax_lipschitz(g, h);
    Ratio { bound: 0.5 * ratio.bound, ..ratio }
}

/// The left-hand side of the kernel-bound lemma (paper, lemma:kernel_bound) at A = diag(I, 0): the largest ‖∂K[:, j]/∂B_ab‖₁ over columns j
/// and entries of B, for features of n sources and of the columns, row by row.
pub fn kernel_derivative(sources: &Matrix, columns: &Matrix) -> f64 {
    let d = sources.num_cols();
    let mut largest: f64 = 0.0;
    for x in columns.rows() {
        let scores = sources.rows().map(|y| y.iter().zip(x).map(|(a, b)| a * b).sum::<f64>());
        let weights = softmax(scores);
        for a in 0..d {
            // ∂G_i/∂B_ab = y_i[a]·x[b], so the derivative is K_i (y_i[a] - mean)·x[b].
            let mean: f64 = sources.rows().zip(&weights).map(|(y, w)| w * y[a]).sum();
            let spread: f64 = sources.rows().zip(&weights).map(|(y, w)| w * (y[a] - mean).abs()).sum();
            for b in x {
                largest = largest.max(spread * b.abs());
            }
        }
    }
    largest
}
