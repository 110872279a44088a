//! Logs: what is kept of logged episodes, in a size that does not depend on how many there are.

use super::builder::LogBuilder;
use super::cell::{ReturnCell, RewardCell};
use super::grid::Grid;
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
/// Every episode is its own block up to 512 episodes; of more, those whose keys agree modulo 256 make a block. Blocks are what
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
}
