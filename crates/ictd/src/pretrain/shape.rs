//! Sizes, columns, masks and the order of parameters during training.

use serde::{Deserialize, Serialize};

use crate::transformer::Block;

/// Which entries of V and A are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
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

/// The columns of a prompt besides its sources. The query is always the last column.
///
/// | | state after the sources | query apart | the query is |
/// |---|---|---|---|
/// | the paper's prompt (its Eq. for Z_0) | yes | no | that state, not a source |
/// | a query drawn elsewhere | yes | yes | a column that no other refers to |
/// | attention in R^{n×n} | no | no | the last source |
/// | a further state asked of that prompt | no | yes | a column that no other refers to |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Whether the state after the last source has a column. Without it the last source has no successor in
    /// the prompt: the temporal shift pads its target memory with 0.
    pub last_state: bool,
    /// Whether the query has a column of its own, after all others.
    pub separate_query: bool,
    /// Whether the last source's reward reads 0 instead of what was paid.
    pub last_reward_hidden: bool,
}

impl Columns {
    /// The paper's prompt: n sources and the state after them, which is the query.
    pub const PAPER: Columns = Columns { last_state: true, separate_query: false, last_reward_hidden: false };

    /// Columns that follow one another on the trajectory, for n sources: they and the last state if it has one.
    #[inline(always)]
    pub(crate) fn trajectory(self, n: usize) -> usize {
        n + usize::from(self.last_state)
    }

    /// All columns: those of the trajectory, and the query if it is another.
    #[inline(always)]
    pub(crate) fn count(self, n: usize) -> usize {
        self.trajectory(n) + usize::from(self.separate_query)
    }

    /// Sources whose successor has a column: the first this many.
    #[inline(always)]
    pub(crate) fn linked(self, n: usize) -> usize {
        self.trajectory(n) - 1
    }

    /// Sources that show their reward: the first this many.
    #[inline(always)]
    pub(crate) fn rewarded(self, n: usize) -> usize {
        n - usize::from(self.last_reward_hidden)
    }
}

/// What a trained Transformer looks like: sizes, sharing, construction, mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Feature dimension d.
    pub feature_dim: usize,
    /// Number of sources, the paper's n.
    pub context_len: usize,
    /// Depth L.
    pub num_layers: usize,
    /// One (V, A) for all layers.
    pub tied: bool,
    /// Which columns there are besides the sources, and what the query may see.
    pub columns: Columns,
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

    /// Columns of a token matrix.
    pub fn num_columns(&self) -> usize {
        self.columns.count(self.context_len)
    }

    /// How many pairs (V, A) there are.
    pub fn num_pairs(&self) -> usize {
        if self.tied { 1 } else { self.num_layers }
    }

    /// Number of parameters, masked ones included: per pair V row by row, then A row by row.
    pub fn num_params(&self) -> usize {
        2 * self.num_pairs() * self.num_rows() * self.num_rows()
    }

    /// Where entry (i, j) of a layer's V stands among the parameters.
    #[inline(always)]
    pub fn value_index(&self, layer: usize, i: usize, j: usize) -> usize {
        let (pair, rows) = (if self.tied { 0 } else { layer }, self.num_rows());
        (2 * pair * rows + i) * rows + j
    }

    /// Where entry (i, j) of a layer's A stands among the parameters.
    #[inline(always)]
    pub fn score_index(&self, layer: usize, i: usize, j: usize) -> usize {
        self.value_index(layer, self.num_rows() + i, j)
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
