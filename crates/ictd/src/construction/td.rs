//! TD(0) and TD(λ) by linear attention.

use super::form::{Factors, Form, Step, feature_names};
use super::linear::{Head, LinearLayer, prompt, reader, score_matrix};
use crate::context::Context;
use crate::matrix::Matrix;

/// TD(λ) (arXiv 2405.13861; λ = 0 is TD(0)).
///
/// Z has 2d + 1 rows. Columns are (φ_i, γφ'_i, r_i) for i < n and (φ_q, 0, 0) for the query. A layer is
/// Z ← Z + (α/n)·P Z M Zᵀ Q Z with P zero but for a 1 in its last corner, M_ij = λ^{i−j} for j ≤ i < n and 0 elsewhere, and
/// Q zero but for the blocks [[−Cᵀ, Cᵀ], [0, 0]] in its upper left. The last row then holds TD errors, and minus the value of the query.
///
/// It follows w ← w + (α/n)·C Σ_i δ_i e_i, δ_i = r_i + γφ'_iᵀw − φ_iᵀw, with the trace e_i = λe_{i−1} + φ_i (λ alone, not γλ).
#[derive(Clone, Debug)]
pub(super) struct Td {
    /// Discount γ.
    pub gamma: f64,
    /// Decay λ of traces.
    pub lambda: f64,
}

impl Td {
    /// P, M and Q for a token matrix of so many rows and columns.
    pub fn matrices(&self, rows: usize, columns: usize, c: &Matrix) -> LinearLayer {
        let mask = Matrix::from_fn(columns, columns, |i, j| {
            if j <= i && i + 1 < columns { self.lambda.powi((i - j) as i32) } else { 0.0 }
        });
        LinearLayer {
            heads: vec![Head { value_matrix: reader(rows, rows - 1), mixing: None }],
            mask,
            score_matrix: score_matrix(rows, c, [[-1.0, 1.0], [0.0, 0.0]]),
        }
    }
}

impl Form for Td {
    fn row_names(&self, d: usize) -> Vec<String> {
        feature_names(d).into_iter().chain(["td error".into()]).collect()
    }

    fn prompt(&self, context: &Context) -> Matrix {
        prompt(context, self.gamma, 2 * context.feature_dim() + 1)
    }

    fn layer(&self, z: &Matrix, step: Step<'_>) -> Matrix {
        self.matrices(z.num_rows(), z.num_cols(), step.preconditioner).apply(z, step.share())
    }

    fn value(&self, z: &Matrix, _: &[f64]) -> f64 {
        // 0 less it, so that no value is -0.
        0.0 - z[(z.num_rows() - 1, z.num_cols() - 1)]
    }

    fn factors(&self, context: &Context) -> Factors {
        let mut factors = Factors::td(context, self.gamma);
        let e = &mut factors.eligibility;
        for i in 1..e.num_rows() {
            for a in 0..e.num_cols() {
                e[(i, a)] += self.lambda * e[(i - 1, a)];
            }
        }
        factors
    }
}
