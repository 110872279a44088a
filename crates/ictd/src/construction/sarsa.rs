//! Batch SARSA by attention to the weights.

use super::form::{Factors, Form, Step, feature_names};
use crate::context::Context;
use crate::matrix::Matrix;

/// Batch SARSA (arXiv 2605.05755; the matrices are derived anew).
///
/// H has 3d + 2 rows and n + 1 columns: (x_i, 0) with x_i = (φ_i, γφ⁺_i, r_i) for i < n, where φ_i are the features of a pair of state and action
/// and φ⁺_i those of the next pair, and last (0, w̃) with w̃ = (1, w). A layer is H ← H + (1/n)(V H)(Hᵀ P H): P is zero but for
/// P₁₂ = [[0, −I], [0, I], [1, 0]], so that x_iᵀP₁₂w̃ = δ_i, and V but for V₂₁ = α·[[0, 0, 0], [C, 0, 0]], which writes αCφ_i to the rows of w.
/// The value of the query is φ_qᵀw: minus the score of the column (φ_q, 0, 0) with w̃.
///
/// It follows w ← w + (α/n)·C Σ_i δ_i φ_i, δ_i = r_i + γφ⁺_iᵀw − φ_iᵀw.
#[derive(Clone, Debug)]
pub(super) struct Sarsa {
    /// Discount γ.
    pub gamma: f64,
}

/// V, (3d + 2) × (3d + 2).
fn value_matrix(step_size: f64, c: &Matrix) -> Matrix {
    let d = c.num_rows();
    Matrix::from_fn(3 * d + 2, 3 * d + 2, |i, j| match i.checked_sub(2 * d + 2) {
        Some(a) if j < d => step_size * c[(a, j)],
        _ => 0.0,
    })
}

/// P, (3d + 2) × (3d + 2).
fn score_matrix(d: usize) -> Matrix {
    Matrix::from_fn(3 * d + 2, 3 * d + 2, |i, j| match j.checked_sub(2 * d + 1) {
        Some(0) if i == 2 * d => 1.0,
        Some(a) if a > 0 && i == a - 1 => -1.0,
        Some(a) if a > 0 && i == d + a - 1 => 1.0,
        _ => 0.0,
    })
}

impl Sarsa {
    /// (1/n)(V H)(Hᵀ P G): what is added to the columns of G, which are some of H.
    pub fn update(h: &Matrix, g: &Matrix, step: Step<'_>) -> Matrix {
        let d = step.preconditioner.num_rows();
        let scores = h.transpose().matmul(&score_matrix(d)).matmul(g);
        let values = value_matrix(step.size, step.preconditioner).matmul(h);
        let n = step.num_transitions as f64;
        values.matmul(&scores).map(|change| change / n)
    }
}

impl Form for Sarsa {
    fn row_names(&self, d: usize) -> Vec<String> {
        let weights = (0..d).map(|a| format!("w{a}"));
        feature_names(d).into_iter().chain(["reward".into(), "one".into()]).chain(weights).collect()
    }

    fn prompt(&self, context: &Context) -> Matrix {
        let (n, d) = (context.num_transitions(), context.feature_dim());
        Matrix::from_fn(3 * d + 2, n + 1, |i, j| match i {
            _ if j == n => f64::from(u8::from(i == 2 * d + 1)),
            i if i < d => context.features_of(j)[i],
            i if i < 2 * d => self.gamma * context.features_of(j + 1)[i - d],
            i if i == 2 * d => context.rewards()[j],
            _ => 0.0,
        })
    }

    fn layer(&self, h: &Matrix, step: Step<'_>) -> Matrix {
        let mut next = h.clone();
        let update = Self::update(h, h, step);
        for (h, change) in next.as_mut_slice().iter_mut().zip(update.as_slice()) {
            *h += change;
        }
        next
    }

    fn value(&self, h: &Matrix, query: &[f64]) -> f64 {
        let (d, last) = (query.len(), h.num_cols() - 1);
        query.iter().enumerate().map(|(a, x)| x * h[(2 * d + 2 + a, last)]).sum()
    }

    fn factors(&self, context: &Context) -> Factors {
        Factors::td(context, self.gamma)
    }
}
