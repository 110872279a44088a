//! The sizes of a predecessor Transformer and the layout of its parameters.

use serde::{Deserialize, Serialize};

use super::config::Activation;

/// Which entries of P and Q are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PredecessorMask {
    /// P's last row, and Q but for its last row and column, as the paper writes its parameterisation: features and
    /// successors stay as they were shown, and only the last row of Z changes.
    Sparse,
    /// All, as the authors' code has it (commit 8114554).
    Full,
}

/// The sizes of a Transformer. Parameters are, pair by pair, P row by row and then Q row by row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredecessorShape {
    /// Feature dimension d.
    pub feature_dim: usize,
    /// Context length n.
    pub context_len: usize,
    /// Depth L.
    pub num_layers: usize,
    /// One pair (P, Q) for all layers.
    pub tied: bool,
    /// What scores go through.
    pub activation: Activation,
    /// Trained entries.
    pub mask: PredecessorMask,
}

impl PredecessorShape {
    /// Rows of Z: 2d + 1.
    pub fn num_rows(&self) -> usize {
        2 * self.feature_dim + 1
    }

    /// Pairs (P, Q): one, or one per layer.
    pub fn num_pairs(&self) -> usize {
        if self.tied { 1 } else { self.num_layers }
    }

    /// Entries of all pairs.
    pub fn num_params(&self) -> usize {
        self.num_pairs() * self.pair_len()
    }

    /// The pair of a layer.
    pub(super) fn pair_of(&self, layer: usize) -> usize {
        if self.tied { 0 } else { layer }
    }

    /// Entries of a pair.
    pub(super) fn pair_len(&self) -> usize {
        2 * self.num_rows().pow(2)
    }

    /// P and Q of a pair.
    pub fn pair<'a, T>(&self, params: &'a [T], pair: usize) -> (&'a [T], &'a [T]) {
        let len = self.pair_len();
        params[pair * len..(pair + 1) * len].split_at(len / 2)
    }

    /// P and Q of a pair, to be written.
    pub(super) fn pair_mut<'a, T>(&self, params: &'a mut [T], pair: usize) -> (&'a mut [T], &'a mut [T]) {
        let len = self.pair_len();
        params[pair * len..(pair + 1) * len].split_at_mut(len / 2)
    }

    /// Which parameters are trained.
    pub fn trained(&self) -> Vec<bool> {
        let k = self.num_rows();
        let full = self.mask == PredecessorMask::Full;
        let p = (0..k * k).map(|at| full || at / k == k - 1);
        let q = (0..k * k).map(|at| full || (at / k < k - 1 && at % k < k - 1));
        let pair: Vec<bool> = p.chain(q).collect();
        pair.repeat(self.num_pairs())
    }
}
