//! Sizes, masks and the layout of parameters during training.

use serde::{Deserialize, Serialize};

use crate::matrix::Matrix;
use crate::transformer::Block;

/// Which entries of V and A are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mask {
    /// V's last two rows, A's d×d feature block (paper, "Minimal sparse parameterization").
    ///
    /// V's row d+1 writes the target memory, which the temporal shift overwrites: its gradient is
    /// exactly 0, in both blocks.
    Full,
    /// As full, and A's d×3 and 3×d blocks (paper, "Mask relaxation").
    Relaxed,
    /// Every entry.
    None,
    /// Θ^Looped: only u, the last three entries of V's last row, and B, A's d×d block (paper, Section 6).
    Looped,
}

impl Mask {
    /// All masks.
    pub const ALL: [Mask; 4] = [Mask::Full, Mask::Relaxed, Mask::None, Mask::Looped];

    /// Whether entry (i, j) of V is trained, for d features.
    pub fn trains_value(self, d: usize, i: usize, j: usize) -> bool {
        match self {
            Self::Full | Self::Relaxed => i > d,
            Self::None => true,
            Self::Looped => i == d + 2 && j >= d,
        }
    }

    /// Whether entry (i, j) of A is trained, for d features.
    pub fn trains_score(self, d: usize, i: usize, j: usize) -> bool {
        match self {
            Self::Full | Self::Looped => i < d && j < d,
            Self::Relaxed => i < d || j < d,
            Self::None => true,
        }
    }
}

/// What a trained Transformer looks like: sizes, sharing, construction, mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Feature dimension d.
    pub feature_dim: usize,
    /// Context length n.
    pub context_len: usize,
    /// Depth L.
    pub num_layers: usize,
    /// One (V, A) for all layers.
    pub tied: bool,
    /// Whether the query has a column of its own after the trajectory's last state; otherwise the last
    /// state is the query, as in the paper.
    pub separate_query: bool,
    /// Construction of the layer.
    pub block: Block,
    /// Trained entries.
    pub mask: Mask,
}

impl Shape {
    /// Rows of a token matrix, D = d + 3.
    pub fn num_rows(&self) -> usize {
        self.feature_dim + 3
    }

    /// Columns of a token matrix: n sources, the last state, and the query if it is another.
    pub fn num_columns(&self) -> usize {
        self.context_len + 1 + usize::from(self.separate_query)
    }

    /// How many pairs (V, A) there are.
    pub fn num_pairs(&self) -> usize {
        if self.tied { 1 } else { self.num_layers }
    }

    /// Number of parameters, masked ones included: per pair V row by row, then A row by row.
    pub fn num_params(&self) -> usize {
        2 * self.num_pairs() * self.num_rows() * self.num_rows()
    }

    /// Where the value matrix of a layer starts; the score matrix follows it.
    pub(crate) fn offset(&self, layer: usize) -> usize {
        if self.tied { 0 } else { 2 * layer * self.num_rows() * self.num_rows() }
    }

    /// Whether each parameter is trained.
    pub fn trained(&self) -> Vec<bool> {
        let (d, rows) = (self.feature_dim, self.num_rows());
        let entries = |f: &dyn Fn(usize, usize) -> bool| -> Vec<bool> {
            (0..rows * rows).map(|k| f(k / rows, k % rows)).collect()
        };
        let mut pair = entries(&|i, j| self.mask.trains_value(d, i, j));
        pair.extend(entries(&|i, j| self.mask.trains_score(d, i, j)));
        pair.repeat(self.num_pairs())
    }

    /// The value and score matrices of a pair.
    pub fn matrices(&self, params: &[f64], pair: usize) -> (Matrix, Matrix) {
        let rows = self.num_rows();
        let start = 2 * pair * rows * rows;
        let matrix = |start: usize| Matrix::from_fn(rows, rows, |i, j| params[start + i * rows + j]);
        (matrix(start), matrix(start + rows * rows))
    }

    /// Rows of V whose product with Z is ever used. The temporal shift overwrites row d+1; two heads
    /// use row d+2 alone.
    #[inline(always)]
    pub(crate) fn value_rows(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let d = self.feature_dim;
        (if self.writes_every_row() { 0 } else { d + 2 }..d + 3).filter(move |&i| i != d + 1)
    }

    fn writes_every_row(&self) -> bool {
        self.block == Block::TemporalShift && self.mask == Mask::None
    }

    /// Rows and columns of A that may be non-zero.
    pub(crate) fn score_rows(&self) -> usize {
        match self.mask {
            Mask::Full | Mask::Looped => self.feature_dim,
            Mask::Relaxed | Mask::None => self.num_rows(),
        }
    }

    /// First row of Z that layers change.
    pub(crate) fn first_live_row(&self) -> usize {
        if self.writes_every_row() { 0 } else { self.feature_dim + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(mask: Mask) -> usize {
        let shape = Shape {
            feature_dim: 4,
            context_len: 10,
            num_layers: 3,
            tied: true,
            separate_query: false,
            block: Block::TemporalShift,
            mask,
        };
        shape.trained().iter().filter(|&&t| t).count()
    }

    /// d = 4: full 2·7 + 16, relaxed adds 2·12, none 2·49, looped 3 + 16.
    #[test]
    fn masks_train_the_entries_of_the_paper() {
        assert_eq!(Mask::ALL.map(count), [30, 54, 98, 19]);
    }
}
