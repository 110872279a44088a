//! A finite task: a Markov reward process with features and what is known exactly about it.

use super::Kind;
use super::mrp::{Mrp, MrpError};
use super::source::{Chain, StateTable, TaskSource};
use crate::context::Context;
use crate::linalg::LinalgError;
use crate::matrix::Matrix;
use crate::random::{Stream, running_sums};
use crate::vector::length;

/// A policy-evaluation task with finitely many states: the process, the features x(s), and the
/// exact value function and stationary law.
#[derive(Clone, Debug, PartialEq)]
pub struct FiniteTask {
    mrp: Mrp,
    features: Matrix,
    values: Vec<f64>,
    stationary: Vec<f64>,
}

/// Values beyond this are no rewards of anybody, and sums of their squares would overflow.
pub(super) const MAX_VALUE: f64 = 1e150;

/// Why a task could not be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum TaskError {
    /// A size is outside the generator's range, which `expected` says in words.
    #[error("{field} is {found}, expected {expected}")]
    Size { field: &'static str, expected: &'static str, found: String },
    /// The process is not valid.
    #[error(transparent)]
    Mrp(#[from] MrpError),
    /// There must be one feature vector per state.
    #[error(
        "features are {rows}×{cols}, expected one row for each of the {states} states and at least one column"
    )]
    Features { rows: usize, cols: usize, states: usize },
    /// Features must be finite.
    #[error("features: entry {entry} of state {state} is {value}, expected a finite number")]
    FeatureValue { state: usize, entry: usize, value: f64 },
    /// Values that are given must be those of the process: `expected` is what reward and successors make of it.
    #[error("values: that of state {state} is {found}, expected {expected} by the Bellman equation")]
    GivenValue { state: usize, found: f64, expected: f64 },
    /// Values must be so small that their squares, of which errors are made, are far from overflow.
    #[error("rewards: {0}, expected values of at most 1e150 in size")]
    Large(String),
    /// No family has this name.
    #[error("task is '{0}', expected one of {names}", names = Kind::names())]
    Name(String),
    /// What is asked for is not known of these tasks.
    #[error("{0}: not known, expected tasks with finitely many states")]
    Unknown(&'static str),
    /// Tasks of a program's own were refused, by this library or by whoever draws them, who says why.
    #[error("{0}")]
    Own(String),
    /// The Bellman equation has no usable solution.
    #[error("value function: {0}")]
    Values(#[from] LinalgError),
    /// Every draw of the graph was periodic.
    #[error("no ergodic graph found in {attempts} draws with {num_states} states and threshold {threshold}")]
    NoErgodicDraw { attempts: usize, num_states: usize, threshold: f64 },
}

impl FiniteTask {
    /// Puts a process and one feature row per state together; solves for the values.
    pub fn new(mrp: Mrp, features: Matrix) -> Result<Self, TaskError> {
        let values = match mrp.values() {
            Err(LinalgError::Overflow { .. }) => return Err(TaskError::Large("the values overflow".into())),
            values => values?,
        };
        Self::assemble(mrp, features, values)
    }

    /// The same process, its feature vectors multiplied by √`score_scale`, and divided by their length if asked
    /// (a vector 0 stays 0).
    pub fn rescaled(&self, unit_norm: bool, score_scale: f64) -> Result<Self, TaskError> {
        let mut features = self.features.clone();
        rescale(&mut features, unit_norm, score_scale);
        Self::new(self.mrp.clone(), features)
    }

    /// As [`new`](Self::new), where the values are known already, for instance because rewards were built from
    /// them. They must solve the Bellman equation to nine digits of the largest.
    pub fn with_values(mrp: Mrp, features: Matrix, values: Vec<f64>) -> Result<Self, TaskError> {
        if values.len() != mrp.num_states() {
            let (expected, found) = (mrp.num_states(), values.len());
            return Err(MrpError::Length { what: "values", expected, found }.into());
        }
        let slack = 1e-9 * values.iter().chain(mrp.rewards()).fold(0f64, |m, v| m.max(v.abs()));
        for (state, (&found, expected)) in values.iter().zip(mrp.bellman(&values)).enumerate() {
            if !((found - expected).abs() <= slack) {
                return Err(TaskError::GivenValue { state, found, expected });
            }
        }
        Self::assemble(mrp, features, values)
    }

    fn assemble(mrp: Mrp, features: Matrix, values: Vec<f64>) -> Result<Self, TaskError> {
        check_features(&features, mrp.num_states())?;
        // Negated, so that NaN is refused.
        if let Some(state) = values.iter().position(|v| !(v.abs() <= MAX_VALUE)) {
            return Err(TaskError::Large(format!("the value of state {state} is {:e}", values[state])));
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

impl TaskSource for FiniteTask {
    fn describe(&self) -> String {
        let (m, d) = (self.mrp.num_states(), self.features.num_cols());
        format!("one task, {m} states, {d} features, γ = {}", self.mrp.gamma())
    }

    fn num_states(&self) -> usize {
        self.mrp.num_states()
    }

    fn feature_dim(&self) -> usize {
        self.features.num_cols()
    }

    fn gamma(&self) -> f64 {
        self.mrp.gamma()
    }

    /// Itself, whatever the stream.
    fn draw(&self, _: &mut Stream) -> Result<FiniteTask, TaskError> {
        Ok(self.clone())
    }
}

impl Chain for FiniteTask {
    fn table(&self) -> StateTable<'_> {
        let (features, rewards) = (self.features.as_slice(), self.mrp.rewards());
        StateTable { features, rewards, values: Some(&self.values) }
    }

    fn start(&mut self, stream: &mut Stream) -> usize {
        stream.categorical(&running_sums(self.mrp.initial_distribution()))
    }

    fn next(&mut self, state: usize, stream: &mut Stream) -> usize {
        self.mrp.transitions().sample(state, stream)
    }

    fn stationary(&self) -> Option<Vec<f64>> {
        Some(self.stationary.clone())
    }
}

/// Multiplies every row by √`score_scale`, and divides it by its length if asked; rows of length 0 stay.
pub(super) fn rescale(features: &mut Matrix, unit_norm: bool, score_scale: f64) {
    for s in 0..features.num_rows() {
        let row = features.row_mut(s);
        let norm = length(row);
        let length = if unit_norm && norm > 0.0 { norm } else { 1.0 };
        let factor = score_scale.sqrt() / length;
        row.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Refuses features that are not one finite row per state.
pub(super) fn check_features(features: &Matrix, states: usize) -> Result<(), TaskError> {
    let (rows, cols) = (features.num_rows(), features.num_cols());
    if rows != states || cols == 0 {
        return Err(TaskError::Features { rows, cols, states });
    }
    match features.as_slice().iter().position(|x| !x.is_finite()) {
        Some(at) => {
            let (state, entry) = (at / cols, at % cols);
            Err(TaskError::FeatureValue { state, entry, value: features[(state, entry)] })
        }
        None => Ok(()),
    }
}

/// Refuses a size outside the range, which comes with its words.
pub(super) fn check_size(
    field: &'static str,
    found: usize,
    &(ref range, expected): &(std::ops::RangeInclusive<usize>, &'static str),
) -> Result<(), TaskError> {
    if range.contains(&found) {
        Ok(())
    } else {
        Err(TaskError::Size { field, expected, found: found.to_string() })
    }
}
