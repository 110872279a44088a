//! Prompts of pairs: which columns there are, and what their rows hold.

use std::ops::Range;

use super::Backup;
use super::config::{ControlError, SoftmaxControl};
use super::context::PairContext;
use crate::matrix::Matrix;

/// The prompt Z_0 of a context of pairs, of shape (d + 5) × columns, and who may read from whom.
///
/// Columns: one per transition (its pair, a *source*), then for every transition one per action b of its next state (the pair (s', b), a
/// *successor*; (s', a') alone for SARSA, none after an end, none for an action of probability 0), then one query per pair.
///
/// Rows: 0..d the features x; d the logarithm of π(b|s') on successors of Expected SARSA, else 0; d + 1 the number 1; d + 2 the reward
/// of sources; d + 3 the target memory γ·B; d + 4 the current memory Q. The last three are the paper's (eq:z_initial).
#[derive(Clone, Debug, PartialEq)]
pub struct PairPrompt {
    feature_dim: usize,
    /// The pair of every column.
    pairs: Vec<usize>,
    num_sources: usize,
    /// The columns of every source's successors.
    blocks: Vec<Range<usize>>,
    tokens: Matrix,
}

impl PairPrompt {
    /// The prompt of a context, values starting from `initial`; the target memory is 0.
    pub(super) fn new(
        control: &SoftmaxControl,
        context: &PairContext,
        initial: &[f64],
    ) -> Result<Self, ControlError> {
        let (n, d) = (context.transitions().len(), context.features().num_cols());
        let mut pairs: Vec<usize> = (0..n).map(|k| context.source(k)).collect();
        let mut log_priors = vec![0.0; n];
        let mut blocks = Vec::with_capacity(n);
        for k in 0..n {
            let first = pairs.len();
            for (pair, log_prior) in successors(control, context, k)? {
                pairs.push(pair);
                log_priors.push(log_prior);
            }
            blocks.push(first..pairs.len());
        }
        pairs.extend(0..context.num_pairs());
        log_priors.resize(pairs.len(), 0.0);
        let entry = |i: usize, j: usize| match i.checked_sub(d) {
            None => context.features()[(pairs[j], i)],
            Some(0) => log_priors[j],
            Some(1) => 1.0,
            Some(2) => context.transitions().get(j).map_or(0.0, |t| t.reward),
            Some(3) => 0.0,
            Some(_) => initial[pairs[j]],
        };
        let tokens = Matrix::from_fn(d + 5, pairs.len(), entry);
        Ok(Self { feature_dim: d, pairs, num_sources: n, blocks, tokens })
    }

    /// Z_0.
    pub fn tokens(&self) -> &Matrix {
        &self.tokens
    }

    /// Number of columns.
    pub fn num_columns(&self) -> usize {
        self.pairs.len()
    }

    /// Number of sources n, the first columns.
    pub fn num_sources(&self) -> usize {
        self.num_sources
    }

    /// The pair of a column.
    pub fn pair_of(&self, column: usize) -> usize {
        self.pairs[column]
    }

    /// The columns of the successors of source k.
    pub fn successors(&self, source: usize) -> Range<usize> {
        self.blocks[source].clone()
    }

    /// The columns of the queries, one per pair in order.
    pub fn queries(&self) -> Range<usize> {
        self.blocks.last().map_or(0, |block| block.end)..self.num_columns()
    }

    /// The rows of log prior, the number 1, reward, target memory and current memory.
    pub(super) fn rows(&self) -> [usize; 5] {
        [0, 1, 2, 3, 4].map(|k| self.feature_dim + k)
    }

    /// The row of the target memory γ·B.
    pub fn target_row(&self) -> usize {
        self.rows()[3]
    }

    /// The row of the current memory Q.
    pub fn value_row(&self) -> usize {
        self.rows()[4]
    }

    /// The mask of the TD head: 0 where row i is a source, -∞ elsewhere (paper, eq:mask).
    pub(super) fn source_mask(&self) -> Matrix {
        let size = self.num_columns();
        Matrix::from_fn(size, size, |i, _| if i < self.num_sources { 0.0 } else { f64::NEG_INFINITY })
    }

    /// The mask of the backup head: 0 where column i is a successor of source j, -∞ elsewhere.
    pub(super) fn block_mask(&self) -> Matrix {
        let size = self.num_columns();
        Matrix::from_fn(size, size, |i, j| {
            let open = self.blocks.get(j).is_some_and(|block| block.contains(&i));
            if open { 0.0 } else { f64::NEG_INFINITY }
        })
    }
}

/// The successors of transition k, with the logarithms of their probabilities before values are looked at.
fn successors(
    control: &SoftmaxControl,
    context: &PairContext,
    k: usize,
) -> Result<Vec<(usize, f64)>, ControlError> {
    let Some(next) = context.transitions()[k].next else { return Ok(Vec::new()) };
    let pairs = context.pairs_of(next);
    Ok(match &control.config().backup {
        Backup::Sarsa => context.successor(k)?.map(|pair| (pair, 0.0)).into_iter().collect(),
        Backup::ExpectedSarsa(policy) => {
            let law = policy.row(next).iter();
            pairs.zip(law).filter(|(_, p)| **p > 0.0).map(|(pair, p)| (pair, p.ln())).collect()
        }
        Backup::Boltzmann(_) => pairs.map(|pair| (pair, 0.0)).collect(),
    })
}
