//! Layers of linear attention: Z ← Z + (α/n) Σ_h P_h Z R_h M Zᵀ Q Z.

use crate::context::Context;
use crate::matrix::Matrix;

/// A head of linear attention.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// P: what is read from a column, and where it is written to.
    pub value_matrix: Matrix,
    /// R, by which columns are mixed before they are read; `None` is the identity.
    pub mixing: Option<Matrix>,
}

/// A layer of linear attention on full token matrices.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearLayer {
    /// Heads, whose updates are added.
    pub heads: Vec<Head>,
    /// M: which columns are read from, and by which TD errors; 0 in the query's row and column.
    pub mask: Matrix,
    /// Q: how columns are compared.
    pub score_matrix: Matrix,
}

impl LinearLayer {
    /// Z + (α/n) Σ_h P_h Z R_h M Zᵀ Q Z, where `share` is α/n, as it is written: attention is a matrix of (n + 1) × (n + 1).
    ///
    /// # Panics
    /// When Z has other rows or columns than the layer was made for.
    pub fn apply(&self, z: &Matrix, share: f64) -> Matrix {
        let attention = z.transpose().matmul(&self.score_matrix).matmul(z);
        let mut next = z.clone();
        for head in &self.heads {
            let read = head.value_matrix.matmul(z);
            let mixed = head.mixing.as_ref().map(|mixing| read.matmul(mixing));
            // From the left: P has one row.
            let update = mixed.as_ref().unwrap_or(&read).matmul(&self.mask).matmul(&attention);
            for (z, change) in next.as_mut_slice().iter_mut().zip(update.as_slice()) {
                *z += share * change;
            }
        }
        next
    }
}

/// P: zero but for a 1 in the last row, in the column of the row that is read.
pub(super) fn reader(rows: usize, read: usize) -> Matrix {
    Matrix::from_fn(rows, rows, |i, j| if i == rows - 1 && j == read { 1.0 } else { 0.0 })
}

/// M of TD(0): the identity, 0 on the query.
pub(super) fn sources_only(columns: usize) -> Matrix {
    Matrix::from_fn(columns, columns, |i, j| if i == j && i + 1 < columns { 1.0 } else { 0.0 })
}

/// Q: zero outside its upper-left 2d × 2d block, which has the blocks ±Cᵀ; `signs` has their signs, row after row.
pub(super) fn score_matrix(rows: usize, c: &Matrix, signs: [[f64; 2]; 2]) -> Matrix {
    let d = c.num_rows();
    Matrix::from_fn(
        rows,
        rows,
        |i, j| {
            if i.max(j) < 2 * d { signs[i / d][j / d] * c[(j % d, i % d)] } else { 0.0 }
        },
    )
}

/// Columns (φ_i, γφ'_i, r_i, 0, …) and the query's (φ_q, 0, 0, …), as many rows as are asked for.
pub(super) fn prompt(context: &Context, gamma: f64, rows: usize) -> Matrix {
    let (n, d) = (context.num_transitions(), context.feature_dim());
    Matrix::from_fn(rows, n + 1, |i, j| match i {
        i if i < d => context.features_of(j)[i],
        _ if j == n => 0.0,
        i if i < 2 * d => gamma * context.features_of(j + 1)[i - d],
        i if i == 2 * d => context.rewards()[j],
        _ => 0.0,
    })
}
