//! Logs: what is kept of logged episodes, in a size that does not depend on how many there are.

use super::builder::LogBuilder;
use super::cell::{ReturnCell, RewardCell};
use super::grid::Grid;
use super::sample::Sample;
use crate::context::{Context, End, Role};
use crate::matrix::Matrix;

/// Why episodes are not a log. Episodes are counted from 0 in the order they were added, steps from 0.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum LogError {
    /// The discount must be in [0, 1].
    #[error("gamma is {0:?}, expected 0 <= gamma <= 1")]
    Gamma(f64),
    /// The decay of traces must be in [0, 1].
    #[error("lambda is {0:?}, expected 0 <= lambda <= 1")]
    Lambda(f64),
    /// There must be at least one episode.
    #[error("the log is empty, expected at least one episode")]
    Empty,
    /// An episode has at least one transition.
    #[error("episode {episode} has no reward, expected at least one transition")]
    NoTransition { episode: usize },
    /// A terminated episode has as many states as rewards, a truncated one has one more.
    #[error("episode {episode} has {found} states, expected {expected}")]
    States { episode: usize, found: usize, expected: usize },
    /// Numbers of states are below 2³² - 1.
    #[error("episode {episode} has the state number 4294967295, expected a smaller one")]
    StateNumber { episode: usize },
    /// Rewards must be finite.
    #[error("episode {episode}: the reward of step {step} is {value}, expected a finite number")]
    Reward { episode: usize, step: usize, value: f64 },
    /// Squares of returns must be within the range of double precision.
    #[error("episode {episode}: the returns overflow, expected |rewards| to sum to less than 1e145")]
    Overflow { episode: usize },
    /// There must be as many times as rewards.
    #[error("episode {episode} has {found} times, expected {expected}")]
    Times { episode: usize, found: usize, expected: usize },
    /// Times must be finite.
    #[error("episode {episode}: the time of step {step} is {value}, expected a finite number")]
    Time { episode: usize, step: usize, value: f64 },
    /// Without discount every episode must terminate.
    #[error("episode {episode} is truncated and gamma is 1, expected gamma < 1 or terminated episodes only")]
    Undiscounted { episode: usize },
    /// There must be a row of features for every state.
    #[error("features: {found} rows, expected at least {expected}, one per state")]
    Features { found: usize, expected: usize },
    /// Features must be finite.
    #[error("features: entry {col} of row {row} is {value}, expected a finite number")]
    Feature { row: usize, col: usize, value: f64 },
}

/// Sufficient statistics of logged episodes for every estimator of [`evaluate`](super): transitions, rewards and returns by
/// pair of states, in blocks of whole episodes.
///
/// Every episode is its own block up to 512 episodes; of more, those whose keys agree modulo 128 make a block. Blocks are what
/// is left out in cross-validation and drawn in a bootstrap, by weights ([`sample`](Self::sample)).
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    pub(super) gamma: f64,
    pub(super) lambda: Option<f64>,
    pub(super) features: Matrix,
    pub(super) number_of: Vec<u32>,
    pub(super) num_transitions: usize,
    pub(super) num_truncated: usize,
    /// Number of episodes of every block.
    pub(super) block_sizes: Vec<f64>,
    /// The smallest and the largest return of every block's episodes that terminated.
    pub(super) ranges: Vec<Option<(f64, f64)>>,
    pub(super) transitions: Grid<RewardCell>,
    pub(super) returns: Grid<ReturnCell>,
    pub(super) initial: Grid<f64>,
    pub(super) traces: Grid<f64>,
    pub(super) trace_rewards: Grid<f64>,
    pub(super) phases: Grid<RewardCell>,
    pub(super) calendar: Grid<RewardCell>,
    pub(super) stretches: Vec<(f64, f64)>,
}

impl Log {
    /// The log of a context: its episodes with the keys 0, 1, …, and its queries as states that were never seen. Columns of the
    /// context take the place of the caller's state numbers ([`number_of`](Self::number_of)); those of terminal states are not
    /// meant.
    pub fn from_context(context: &Context, gamma: f64) -> Result<Self, LogError> {
        let mut builder = LogBuilder::new(gamma, None)?;
        for (key, (columns, end)) in context.episodes().enumerate() {
            let rewards = &context.rewards()[columns.start..columns.end - 1];
            let with_last = columns.start..columns.end - usize::from(end == End::Terminated);
            let states: Vec<u32> = with_last.map(|j| j as u32).collect();
            if !rewards.is_empty() {
                builder.episode(key as u64, &states, rewards, end, None)?;
            }
        }
        // A terminal column borrows the features of a state, so that it makes none of its own.
        let known = (0..context.num_columns()).find(|&j| context.roles()[j] != Role::Terminal).unwrap_or(0);
        let column = |j: usize| if context.roles()[j] == Role::Terminal { known } else { j };
        let features = Matrix::from_fn(context.num_columns(), context.feature_dim(), |j, a| {
            context.features_of(column(j))[a]
        });
        builder.build(features)
    }

    /// Discount γ.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// Decay λ of the traces that were kept, if any.
    pub fn lambda(&self) -> Option<f64> {
        self.lambda
    }

    /// Number of distinct states.
    pub fn num_states(&self) -> usize {
        self.features.num_rows()
    }

    /// Features of the states: row s for state s, rows in lexicographic order.
    pub fn features(&self) -> &Matrix {
        &self.features
    }

    /// The number here of what the builder was told as state `given`.
    ///
    /// # Panics
    /// When the builder was given no features for such a state.
    pub fn number_of(&self, given: u32) -> usize {
        self.number_of[given as usize] as usize
    }

    /// Number of episodes.
    pub fn num_episodes(&self) -> usize {
        self.block_sizes.iter().sum::<f64>() as usize
    }

    /// Number of episodes that were truncated.
    pub fn num_truncated(&self) -> usize {
        self.num_truncated
    }

    /// Number of transitions.
    pub fn num_transitions(&self) -> usize {
        self.num_transitions
    }

    /// Number of blocks of episodes.
    pub fn num_blocks(&self) -> usize {
        self.block_sizes.len()
    }

    /// Number of episodes of every block.
    pub fn block_sizes(&self) -> &[f64] {
        &self.block_sizes
    }

    /// Transitions by state, next state (none where the episode terminated) and block.
    pub fn transitions(&self) -> &Grid<RewardCell> {
        &self.transitions
    }

    /// Returns by state, last state of the episode (none where it terminated) and block.
    pub fn returns(&self) -> &Grid<ReturnCell> {
        &self.returns
    }

    /// Transitions by state, next state and phase: the octave of the number of the step in its episode, 0, 1, 2–3, 4–7, ….
    pub fn phases(&self) -> &Grid<RewardCell> {
        &self.phases
    }

    /// Transitions by state, next state and stretch of time; empty where episodes came without times.
    pub fn calendar(&self) -> &Grid<RewardCell> {
        &self.calendar
    }

    /// Where the stretches of time of [`calendar`](Self::calendar) begin and end; at most 16, in order.
    pub fn stretches(&self) -> &[(f64, f64)] {
        &self.stretches
    }

    /// What episodes count for with these weights of their blocks: all 1 for the log itself, 0 for blocks left out, the
    /// number of times a block was drawn in a bootstrap.
    ///
    /// # Panics
    /// When there is not one weight per block.
    pub fn sample(&self, weights: &[f64]) -> Sample<'_> {
        Sample::new(self, weights)
    }

    /// The whole log as a sample.
    pub fn whole(&self) -> Sample<'_> {
        self.sample(&vec![1.0; self.num_blocks()])
    }

    /// Σ (v(s) - g - d·v(last))² over the visits of every block: how far values are from the returns that followed.
    pub fn return_losses(&self, values: &[f64]) -> Vec<f64> {
        let mut losses = vec![0.0; self.num_blocks()];
        for s in 0..self.num_states() {
            for pair in self.returns.pairs_of(s) {
                let last = self.returns.to(pair).map_or(0.0, |last| values[last]);
                for (block, cell) in self.returns.cells(pair) {
                    losses[block] += cell.squares(values[s], last);
                }
            }
        }
        losses
    }

    /// The same log with other features of its states, row s for state s; states whose features are now equal become one.
    pub fn with_features(&self, features: &Matrix) -> Result<Self, LogError> {
        let (group_of, features) = canonical(features)?;
        Ok(self.gathered(&group_of, features))
    }

    /// The log whose state g stands for all states s with `group_of[s] == g`.
    fn gathered(&self, group_of: &[u32], features: Matrix) -> Self {
        let m = features.num_rows();
        Self {
            number_of: self.number_of.iter().map(|&s| group_of[s as usize]).collect(),
            transitions: self.transitions.regroup(m, group_of),
            returns: self.returns.regroup(m, group_of),
            initial: self.initial.regroup(m, group_of),
            traces: self.traces.regroup(m, group_of),
            trace_rewards: self.trace_rewards.regroup(m, group_of),
            phases: self.phases.regroup(m, group_of),
            calendar: self.calendar.regroup(m, group_of),
            features,
            block_sizes: self.block_sizes.clone(),
            ranges: self.ranges.clone(),
            stretches: self.stretches.clone(),
            ..*self
        }
    }

    /// The log whose states are groups of states: those with the same number in `group_of`, at the row of that number in
    /// `features`. Groups are numbered anew in the order of their features; the second result says how.
    pub(super) fn gather(&self, group_of: &[u32], features: &Matrix) -> Result<(Self, Vec<u32>), LogError> {
        let (number_of, features) = canonical(features)?;
        let group_of: Vec<u32> = group_of.iter().map(|&g| number_of[g as usize]).collect();
        Ok((self.gathered(&group_of, features), group_of))
    }
}

/// The distinct rows in lexicographic order, and the place of every row among them.
pub(super) fn canonical(features: &Matrix) -> Result<(Vec<u32>, Matrix), LogError> {
    let (rows, dim) = (features.num_rows(), features.num_cols());
    if let Some(at) = features.as_slice().iter().position(|x| !x.is_finite()) {
        return Err(LogError::Feature { row: at / dim, col: at % dim, value: features.as_slice()[at] });
    }
    // Adding 0 turns -0 into 0, so that equal features have equal bits.
    let features = features.map(|x| x + 0.0);
    let mut order: Vec<usize> = (0..rows).collect();
    let compare = |&i: &usize, &j: &usize| {
        let pairs = features.row(i).iter().zip(features.row(j));
        pairs.map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    order.sort_by(compare);
    let (mut number_of, mut kept) = (vec![0; rows], Vec::new());
    for row in order {
        if kept.last().is_none_or(|&last: &usize| features.row(last) != features.row(row)) {
            kept.push(row);
        }
        number_of[row] = (kept.len() - 1) as u32;
    }
    Ok((number_of, Matrix::from_fn(kept.len(), dim, |i, j| features[(kept[i], j)])))
}
