//! Attention weights as the matrix of the paper: the reference.

use super::{Attention, AttentionError, Similarity};
use crate::context::Role;
use crate::matrix::Matrix;
use crate::prompt::TokenMatrix;

/// The attention matrix K~: entry (i, j) is the weight of source i for column j (paper, eq:kermatrix).
///
/// Rows of columns that are not sources are 0, and so are columns of terminal states, which attend to
/// nothing and thereby keep the value 0.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelWeights {
    matrix: Matrix,
}

impl KernelWeights {
    /// The weights for tokens Z and a score matrix A, both of d + 3 rows.
    pub fn new(
        attention: &Attention,
        score_matrix: &Matrix,
        tokens: &TokenMatrix,
        roles: &[Role],
    ) -> Result<Self, AttentionError> {
        let z = tokens.matrix().transpose();
        let sources: Vec<usize> = (0..roles.len()).filter(|&j| roles[j] == Role::Source).collect();
        let visits = vec![1.0; sources.len()];
        let mut matrix = Matrix::zeros(roles.len(), roles.len());
        for j in (0..roles.len()).filter(|&j| roles[j] != Role::Terminal) {
            let mut column: Vec<f64> =
                sources.iter().map(|&i| similarity(attention, score_matrix, z.row(i), z.row(j))).collect();
            if column.iter().any(|g| !g.is_finite()) {
                return Err(AttentionError::ScoreOverflow { column: j });
            }
            let own = sources.iter().position(|&i| i == j);
            attention.kernel().weigh(&mut column);
            attention.normalize_column(&mut column, &visits, sources.len(), own);
            for (&i, weight) in sources.iter().zip(column) {
                matrix[(i, j)] = weight;
            }
        }
        Ok(Self { matrix })
    }

    /// The matrix K~.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }
}

/// The similarity of two tokens, written out as defined.
fn similarity(attention: &Attention, a: &Matrix, z_i: &[f64], z_j: &[f64]) -> f64 {
    let bilinear =
        |left: &[f64], right: &[f64]| -> f64 { left.iter().zip(a.mul_vec(right)).map(|(l, r)| l * r).sum() };
    match attention.kernel().similarity() {
        Similarity::InnerProduct => bilinear(z_i, z_j),
        Similarity::SquaredDistance => {
            let difference: Vec<f64> = z_i.iter().zip(z_j).map(|(p, q)| p - q).collect();
            bilinear(&difference, &difference)
        }
        Similarity::SameState => {
            let d = z_i.len() - 3;
            f64::from(u8::from(z_i[..d] == z_j[..d]))
        }
    }
}
