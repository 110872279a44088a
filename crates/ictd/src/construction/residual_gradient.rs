//! The residual gradient by linear attention.

use super::form::{Factors, Form, Step};
use super::linear::{Head, LinearLayer, reader, score_matrix, sources_only};
use super::td::Td;
use crate::context::Context;
use crate::matrix::Matrix;

/// The residual gradient (arXiv 2405.13861).
///
/// Tokens are those of TD(0), and so is a layer but for Q, whose blocks are [[−Cᵀ, Cᵀ], [Cᵀ, −Cᵀ]]: a column is compared
/// through φ − γφ' on both sides.
///
/// It follows w ← w + (α/n)·C Σ_i δ_i (φ_i − γφ'_i), with C = I the gradient of −½ Σ δ_i²/n.
#[derive(Clone, Debug)]
pub(super) struct ResidualGradient {
    /// Discount γ.
    pub gamma: f64,
}

impl ResidualGradient {
    fn tokens(&self) -> Td {
        Td { gamma: self.gamma, lambda: 0.0 }
    }

    /// P, M and Q for a token matrix of so many rows and columns.
    pub fn matrices(rows: usize, columns: usize, c: &Matrix) -> LinearLayer {
        LinearLayer {
            heads: vec![Head { value_matrix: reader(rows, rows - 1), mixing: None }],
            mask: sources_only(columns),
            score_matrix: score_matrix(rows, c, [[-1.0, 1.0], [1.0, -1.0]]),
        }
    }
}

impl Form for ResidualGradient {
    fn row_names(&self, d: usize) -> Vec<String> {
        self.tokens().row_names(d)
    }

    fn prompt(&self, context: &Context) -> Matrix {
        self.tokens().prompt(context)
    }

    fn layer(&self, z: &Matrix, step: Step<'_>) -> Matrix {
        Self::matrices(z.num_rows(), z.num_cols(), step.preconditioner).apply(z, step.share())
    }

    fn value(&self, z: &Matrix, query: &[f64]) -> f64 {
        self.tokens().value(z, query)
    }

    fn factors(&self, context: &Context) -> Factors {
        let factors = Factors::td(context, self.gamma);
        Factors { eligibility: factors.difference.map(|x| -x), ..factors }
    }
}
