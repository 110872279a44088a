//! Attention weights: as the matrix of the paper, the reference, and between groups of equal columns, the fast path.

use super::{Attention, AttentionError, Normalization, Similarity};
use crate::context::{ContextStatistics, Role};
use crate::matrix::Matrix;
use crate::prompt::TokenMatrix;
use crate::vector;

/// The attention matrix K~: entry (i, j) is the weight of source i for column j (paper, eq:kermatrix).
///
/// Rows of columns that are not sources are 0, and so are columns of terminal states, which attend to
/// nothing and thereby keep the value 0.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelWeights {
    matrix: Matrix,
}

impl KernelWeights {
    /// The similarities that [`new`](Self::new) makes weights of, before the temperature: entry (i, j) is that of source i
    /// and column j, 0 where nothing is attended to.
    pub fn similarities(
        attention: &Attention,
        score_matrix: &Matrix,
        tokens: &TokenMatrix,
        roles: &[Role],
    ) -> Matrix {
        let z = tokens.matrix().transpose();
        Matrix::from_fn(roles.len(), roles.len(), |i, j| match (roles[i], roles[j]) {
            (_, Role::Terminal) => 0.0,
            (Role::Source, _) => similarity(attention, score_matrix, z.row(i), z.row(j)),
            _ => 0.0,
        })
    }

    /// The weights for tokens Z and a score matrix A, both of d + 3 rows.
    pub fn new(
        attention: &Attention,
        score_matrix: &Matrix,
        tokens: &TokenMatrix,
        roles: &[Role],
    ) -> Result<Self, AttentionError> {
        let sources: Vec<usize> = (0..roles.len()).filter(|&j| roles[j] == Role::Source).collect();
        let mut matrix = Self::similarities(attention, score_matrix, tokens, roles);
        for j in (0..roles.len()).filter(|&j| roles[j] != Role::Terminal) {
            let mut column: Vec<f64> = sources.iter().map(|&i| matrix[(i, j)]).collect();
            if column.iter().any(|g| !g.is_finite()) {
                return Err(AttentionError::ScoreOverflow { column: j });
            }
            let own = sources.iter().position(|&i| i == j);
            attention.weigh_column(&mut column, own);
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

/// What weights between groups are made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scores<'a> {
    pub attention: &'a Attention,
    /// The d×d score block B; none for the identity, theta_*'s, which is not written out: features may be many.
    pub block: Option<&'a Matrix>,
    pub statistics: &'a ContextStatistics,
}

impl Scores<'_> {
    /// The weights of column `u`, as a fresh vector over source groups.
    pub fn column(self, u: usize) -> Result<Vec<f64>, AttentionError> {
        let mut row = vec![0.0; self.statistics.stride()];
        self.fill_column(u, &mut row)?;
        row.truncate(self.statistics.num_source_groups());
        Ok(row)
    }

    /// Fills `row`, which is zero and padded, with the weights of all source groups for group `u`.
    pub fn fill_column(self, u: usize, row: &mut [f64]) -> Result<(), AttentionError> {
        self.unnormalized(u, row)?;
        self.normalize(u, row);
        Ok(())
    }

    /// Fills `row`, which is zero and padded, with the weights of all source groups for group `u` before they are divided by
    /// their sum; the padding is arbitrary.
    pub fn unnormalized(self, u: usize, row: &mut [f64]) -> Result<(), AttentionError> {
        self.similarities(u, row)?;
        self.attention.kernel().weigh(&mut row[..self.statistics.num_source_groups()]);
        Ok(())
    }

    /// Turns the unnormalised weights for group `u` into its weights and clears the padding; returns what each was
    /// multiplied by before mixing.
    fn normalize(self, u: usize, row: &mut [f64]) -> f64 {
        let Self { attention, statistics, .. } = self;
        let (weights, padding) = row.split_at_mut(statistics.num_source_groups());
        padding.fill(0.0);
        let n = statistics.num_transitions();
        attention.normalize_column(weights, statistics.visits(), n, statistics.own(u))
    }

    /// Fills zero, padded rows with the weights of all source groups for group `u` and with their derivatives by
    /// the groups' own similarities, the divisor held fixed. `false` when the kernel has no derivative.
    pub fn column_and_slopes(
        self,
        u: usize,
        weights: &mut [f64],
        slopes: &mut [f64],
    ) -> Result<bool, AttentionError> {
        let (kernel, sources) = (self.attention.kernel(), self.statistics.num_source_groups());
        self.similarities(u, weights)?;
        slopes.copy_from_slice(weights);
        kernel.weigh(&mut weights[..sources]);
        for (slope, &weight) in slopes[..sources].iter_mut().zip(&*weights) {
            let Some(derivative) = kernel.slope(*slope, weight) else { return Ok(false) };
            *slope = derivative;
        }
        let factor = self.normalize(u, weights);
        slopes.iter_mut().for_each(|slope| *slope *= factor);
        Ok(true)
    }

    /// Fills `row`, which is zero and padded, with the similarities of all source groups to group `u`; the padding is
    /// arbitrary.
    fn similarities(self, u: usize, row: &mut [f64]) -> Result<(), AttentionError> {
        let Self { attention, block, statistics } = self;
        let x = statistics.features(u);
        let sources = statistics.num_source_groups();
        match attention.kernel().similarity() {
            Similarity::InnerProduct => {
                // Exponentials of scores that all sources share are divided out again; without them differences keep their digits.
                let is_free = attention.kernel().exponent().is_some()
                    && attention.kernel().normalization() == Normalization::ByColumn;
                for a in 0..x.len() {
                    let key =
                        block.map_or(x[a], |block| block.row(a).iter().zip(x).map(|(b, x)| b * x).sum());
                    let (features, centre) = (statistics.source_feature(a), statistics.centre(a));
                    if is_free && centre != 0.0 {
                        row.iter_mut().zip(features).for_each(|(score, x)| *score += key * (x - centre));
                    } else {
                        vector::axpy(key, features, row);
                    }
                }
            }
            Similarity::SquaredDistance => {
                for a in 0..x.len() {
                    for b in if block.is_some() { 0..x.len() } else { a..a + 1 } {
                        let weight = block.map_or(1.0, |block| block[(a, b)]);
                        if weight == 0.0 {
                            continue;
                        }
                        let (left, right) = (statistics.source_feature(a), statistics.source_feature(b));
                        if a == b {
                            vector::axpy_squared_difference(weight, left, x[a], row);
                        } else {
                            for (d2, (p, q)) in row.iter_mut().zip(left.iter().zip(right)) {
                                *d2 += weight * (p - x[a]) * (q - x[b]);
                            }
                        }
                    }
                }
            }
            Similarity::SameState => {
                for (s, same) in row[..sources].iter_mut().enumerate() {
                    *same = f64::from(u8::from(statistics.features(s) == x));
                }
            }
        }
        // The padding does not count: there features are 0, and distances to 0 may overflow.
        if !vector::all_finite(&row[..sources]) {
            return Err(AttentionError::ScoreOverflow { column: statistics.first_column(u) });
        }
        Ok(())
    }
}

/// Adds to `gradient`, by the score block, what the gradient by the similarities to group `u` makes of it.
pub(crate) fn add_block_gradient(
    similarity: Similarity,
    statistics: &ContextStatistics,
    u: usize,
    by_similarity: &[f64],
    gradient: &mut Matrix,
) {
    let x = statistics.features(u);
    let mut add = |left: &[f64], right: &[f64], factor: f64| {
        for (a, l) in left.iter().enumerate() {
            let row = gradient.row_mut(a);
            row.iter_mut().zip(right).for_each(|(g, r)| *g += factor * l * r);
        }
    };
    let moved = by_similarity.iter().enumerate().filter(|(_, bar)| **bar != 0.0);
    match similarity {
        Similarity::InnerProduct => {
            // Σ_s (share of s)·x_s, then its outer product with x_u.
            let mut pulled = vec![0.0; x.len()];
            for (s, bar) in moved {
                let y = statistics.features(s);
                pulled.iter_mut().zip(y).for_each(|(sum, y)| *sum += bar * y);
            }
            add(&pulled, x, 1.0);
        }
        Similarity::SquaredDistance => {
            for (s, &bar) in moved {
                let apart: Vec<f64> = statistics.features(s).iter().zip(x).map(|(p, q)| p - q).collect();
                add(&apart, &apart, bar);
            }
        }
        Similarity::SameState => {}
    }
}
