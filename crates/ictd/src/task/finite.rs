//! A finite task: a Markov reward process with features and what is known exactly about it.

use super::mrp::{Mrp, MrpError};
use crate::context::Context;
use crate::linalg::LinalgError;
use crate::matrix::Matrix;
use crate::random::Stream;

/// A policy-evaluation task with finitely many states: the process, the features x(s), and the
/// exact value function and stationary law.
#[derive(Clone, Debug, PartialEq)]
pub struct FiniteTask {
    mrp: Mrp,
    features: Matrix,
    values: Vec<f64>,
    stationary: Vec<f64>,
}

/// Why a task could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TaskError {
    /// A size is outside the generator's range.
    #[error("{field} is {found}, expected {expected}")]
    Size {
        /// Which size.
        field: &'static str,
        /// The allowed range, in words.
        expected: &'static str,
        /// The value given.
        found: String,
    },
    /// The process is not valid.
    #[error(transparent)]
    Mrp(#[from] MrpError),
    /// There must be one feature vector per state.
    #[error(
        "features are {rows}×{cols}, expected one row for each of the {states} states and at least one column"
    )]
    Features {
        /// Rows given.
        rows: usize,
        /// Columns given.
        cols: usize,
        /// States of the process.
        states: usize,
    },
    /// Features must be finite.
    #[error("features: entry {entry} of state {state} is {value}, expected a finite number")]
    FeatureValue {
        /// The state.
        state: usize,
        /// The entry.
        entry: usize,
        /// Its value.
        value: f64,
    },
    /// The Bellman equation has no usable solution.
    #[error("value function: {0}")]
    Values(#[from] LinalgError),
    /// Every draw of the graph was periodic.
    #[error("no ergodic graph found in {attempts} draws with {num_states} states and threshold {threshold}")]
    NoErgodicDraw {
        /// Draws made.
        attempts: usize,
        /// Number of states.
        num_states: usize,
        /// The edge threshold.
        threshold: f64,
    },
}

impl FiniteTask {
    /// Puts a process and one feature row per state together; solves for the values.
    pub fn new(mrp: Mrp, features: Matrix) -> Result<Self, TaskError> {
        let values = mrp.values()?;
        Self::with_values(mrp, features, values)
    }

    /// As [`new`](Self::new), for a generator that built the rewards from known values.
    pub(super) fn with_values(mrp: Mrp, features: Matrix, values: Vec<f64>) -> Result<Self, TaskError> {
        let (rows, cols, states) = (features.num_rows(), features.num_cols(), mrp.num_states());
        if rows != states || cols == 0 {
            return Err(TaskError::Features { rows, cols, states });
        }
        if let Some(at) = features.as_slice().iter().position(|x| !x.is_finite()) {
            let (state, entry) = (at / cols, at % cols);
            return Err(TaskError::FeatureValue { state, entry, value: features[(state, entry)] });
        }
        let stationary = mrp.transitions().stationary_distribution();
        Ok(Self { mrp, features, values, stationary })
    }

    /// The process.
    pub fn mrp(&self) -> &Mrp {
        &self.mrp
    }

    /// The features: row s is x(s).
    pub fn features(&self) -> &Matrix {
        &self.features
    }

    /// The exact value function v_π.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The stationary distribution μ_π.
    pub fn stationary_distribution(&self) -> &[f64] {
        &self.stationary
    }

    /// A context of one trajectory of `context_len` transitions with s₀ ~ p₀, and its states.
    pub fn sample_context(&self, context_len: usize, stream: &mut Stream) -> (Context, Vec<usize>) {
        let states = self.mrp.sample_states(context_len, stream);
        (self.context_of(&states, &[]), states)
    }

    /// The context of the trajectory through `states`, followed by query columns.
    ///
    /// # Panics
    /// When `states` is empty or names a state that does not exist.
    pub fn context_of(&self, states: &[usize], queries: &[usize]) -> Context {
        assert!(states.len() >= 2, "a context needs one transition at least");
        Context::from_table(&self.features, states, queries, |s| self.mrp.rewards()[s])
    }
}

/// Largest number of states of a generated task: its transition matrix has 200 MB there.
pub(crate) const MAX_STATES: usize = 5000;
/// Largest feature dimension of a generated task.
pub(crate) const MAX_FEATURES: usize = 10_000;

/// Refuses a size outside `range`, which `expected` describes.
pub(super) fn check_size(
    field: &'static str,
    found: usize,
    range: std::ops::RangeInclusive<usize>,
    expected: &'static str,
) -> Result<(), TaskError> {
    if range.contains(&found) {
        Ok(())
    } else {
        Err(TaskError::Size { field, expected, found: found.to_string() })
    }
}
