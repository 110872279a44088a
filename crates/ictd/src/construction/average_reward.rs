//! Average-reward TD by two heads of linear attention.

use super::form::{Factors, Form, Step, feature_names};
use super::linear::{Head, LinearLayer, prompt, reader, score_matrix, sources_only};
use crate::context::Context;
use crate::matrix::Matrix;

/// Average-reward TD (arXiv 2405.13861): values are differences to the average reward, γ is 1.
///
/// Z has 2d + 2 rows. Columns are (φ_i, φ'_i, r_i, 0) for i < n and (φ_q, 0, 0, 0) for the query. Two heads write to the last row,
/// Z ← Z + (α/n)·(P₁ Z R M Zᵀ Q Z + P₂ Z M Zᵀ Q Z): P₁ reads the rewards, which R = triu(1)·diag(1/k) − I, k = 1, …, n + 1, turns into
/// r̄_i − r_i with the running means r̄_i; P₂ reads the last row. M and Q are those of TD(0). The last row holds
/// (φ_i − φ'_i)ᵀw, and the value of the query.
///
/// It follows w ← w + (α/n)·C Σ_i (r_i − r̄_i + φ'_iᵀw − φ_iᵀw) φ_i.
#[derive(Clone, Debug)]
pub(super) struct AverageReward;

impl AverageReward {
    /// P₁, P₂, R, M and Q for a token matrix of so many rows and columns.
    pub fn matrices(rows: usize, columns: usize, c: &Matrix) -> LinearLayer {
        let centring = Matrix::from_fn(columns, columns, |i, k| {
            let mean = if i <= k { 1.0 / (k + 1) as f64 } else { 0.0 };
            mean - if i == k { 1.0 } else { 0.0 }
        });
        LinearLayer {
            heads: vec![
                Head { value_matrix: reader(rows, rows - 2), mixing: Some(centring) },
                Head { value_matrix: reader(rows, rows - 1), mixing: None },
            ],
            mask: sources_only(columns),
            score_matrix: score_matrix(rows, c, [[-1.0, 1.0], [0.0, 0.0]]),
        }
    }
}

impl Form for AverageReward {
    fn row_names(&self, d: usize) -> Vec<String> {
        feature_names(d).into_iter().chain(["reward".into(), "value difference".into()]).collect()
    }

    fn prompt(&self, context: &Context) -> Matrix {
        prompt(context, 1.0, 2 * context.feature_dim() + 2)
    }

    fn layer(&self, z: &Matrix, step: Step<'_>) -> Matrix {
        Self::matrices(z.num_rows(), z.num_cols(), step.preconditioner).apply(z, step.share())
    }

    fn value(&self, z: &Matrix, _: &[f64]) -> f64 {
        z[(z.num_rows() - 1, z.num_cols() - 1)]
    }

    fn factors(&self, context: &Context) -> Factors {
        let mut factors = Factors::td(context, 1.0);
        let mut sum = 0.0;
        for (k, reward) in factors.rewards.iter_mut().enumerate() {
            sum += *reward;
            *reward -= sum / (k + 1) as f64;
        }
        factors
    }
}
