//! Contexts of pairs: what is shown of a decision process.

use crate::context::{Context, ContextError, End};
use crate::matrix::Matrix;

/// A transition (s, a, r, s', a').
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairTransition {
    /// The state s that was left.
    pub state: usize,
    /// The action a taken there.
    pub action: usize,
    /// The reward r.
    pub reward: f64,
    /// The state s' that followed; `None` where the episode ended, in a state of value 0.
    pub next: Option<usize>,
    /// The action a' taken there, where it is known: SARSA needs it.
    pub next_action: Option<usize>,
}

/// Transitions between states under actions, with features of the pairs.
///
/// Pair (s, a) has the number s·|A| + a, which is its row of the features and its place in lists of values.
#[derive(Clone, Debug, PartialEq)]
pub struct PairContext {
    features: Matrix,
    num_actions: usize,
    transitions: Vec<PairTransition>,
}

/// Why the parts are not a context of pairs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum PairContextError {
    /// There must be at least one transition.
    #[error("transitions: the context is empty, expected at least one transition")]
    Empty,
    /// Every state has a row of features for each of its actions, and rows have entries.
    #[error(
        "features are {rows}×{cols} with {actions} actions, expected one row for every state and action and at least one column"
    )]
    Features { rows: usize, cols: usize, actions: usize },
    /// Features must be finite.
    #[error("features: entry {entry} of state {state}, action {action} is {value}, expected a finite number")]
    FeatureValue { state: usize, action: usize, entry: usize, value: f64 },
    /// States and actions must exist; `what` is "state", "action", "next state" or "next action".
    #[error("transition {transition}: {what} is {found}, expected 0 to {last}")]
    Unknown { transition: usize, what: &'static str, found: usize, last: usize },
    /// After an end there is no action.
    #[error("transition {transition}: next action is {found}, expected none: the episode ends there")]
    ActionAfterEnd { transition: usize, found: usize },
    /// Rewards must be finite.
    #[error("transition {transition}: reward is {value}, expected a finite number")]
    Reward { transition: usize, value: f64 },
    /// SARSA needs the action that was taken in the next state.
    #[error("transition {transition}: no next action, expected one: SARSA bootstraps from it")]
    NoNextAction { transition: usize },
    /// The chain of pairs is no context.
    #[error(transparent)]
    Chain(#[from] ContextError),
}

impl PairContext {
    /// Checks the parts and puts them together. Row s·|A| + a of `features` is x(s, a).
    pub fn new(
        features: Matrix,
        num_actions: usize,
        transitions: Vec<PairTransition>,
    ) -> Result<Self, PairContextError> {
        let (rows, cols) = (features.num_rows(), features.num_cols());
        if num_actions == 0 || rows == 0 || cols == 0 || rows % num_actions != 0 {
            return Err(PairContextError::Features { rows, cols, actions: num_actions });
        }
        if let Some(at) = features.as_slice().iter().position(|x| !x.is_finite()) {
            let (pair, entry) = (at / cols, at % cols);
            let (state, action) = (pair / num_actions, pair % num_actions);
            return Err(PairContextError::FeatureValue {
                state,
                action,
                entry,
                value: features[(pair, entry)],
            });
        }
        if transitions.is_empty() {
            return Err(PairContextError::Empty);
        }
        let num_states = rows / num_actions;
        for (transition, t) in transitions.iter().enumerate() {
            let named = [
                ("state", Some(t.state), num_states),
                ("action", Some(t.action), num_actions),
                ("next state", t.next, num_states),
                ("next action", t.next_action, num_actions),
            ];
            for (what, found, count) in named {
                if let Some(found) = found.filter(|&found| found >= count) {
                    return Err(PairContextError::Unknown { transition, what, found, last: count - 1 });
                }
            }
            if let (None, Some(found)) = (t.next, t.next_action) {
                return Err(PairContextError::ActionAfterEnd { transition, found });
            }
            if !t.reward.is_finite() {
                return Err(PairContextError::Reward { transition, value: t.reward });
            }
        }
        Ok(Self { features, num_actions, transitions })
    }

    /// Number of states.
    pub fn num_states(&self) -> usize {
        self.num_pairs() / self.num_actions
    }

    /// Number of actions |A|.
    pub fn num_actions(&self) -> usize {
        self.num_actions
    }

    /// Number of pairs.
    pub fn num_pairs(&self) -> usize {
        self.features.num_rows()
    }

    /// The features: row s·|A| + a is x(s, a).
    pub fn features(&self) -> &Matrix {
        &self.features
    }

    /// The transitions.
    pub fn transitions(&self) -> &[PairTransition] {
        &self.transitions
    }

    /// The number of the pair (s, a).
    pub fn pair(&self, state: usize, action: usize) -> usize {
        state * self.num_actions + action
    }

    /// The numbers of the pairs of a state.
    pub(super) fn pairs_of(&self, state: usize) -> std::ops::Range<usize> {
        self.pair(state, 0)..self.pair(state + 1, 0)
    }

    /// The pair that a transition leaves.
    pub(super) fn source(&self, transition: usize) -> usize {
        let t = self.transitions[transition];
        self.pair(t.state, t.action)
    }

    /// The pair (s', a') that follows a transition, for SARSA; `None` after an end.
    pub(super) fn successor(&self, transition: usize) -> Result<Option<usize>, PairContextError> {
        let t = self.transitions[transition];
        let Some(next) = t.next else { return Ok(None) };
        let action = t.next_action.ok_or(PairContextError::NoNextAction { transition })?;
        Ok(Some(self.pair(next, action)))
    }

    /// The chain of pairs as a context of states, on which policy evaluation is SARSA: the paper's prompt with pairs in the place of
    /// states. Transitions that follow one another share an episode; a query for every pair comes last, in order.
    pub fn chain(&self) -> Result<Context, PairContextError> {
        let mut builder = Context::builder();
        let (mut pairs, mut rewards) = (Vec::new(), Vec::new());
        for (k, t) in self.transitions.iter().enumerate() {
            let next = self.successor(k)?;
            pairs.push(self.source(k));
            rewards.push(t.reward);
            let goes_on = k + 1 < self.transitions.len() && next == Some(self.source(k + 1));
            if !goes_on {
                // The features of a terminal state are not looked at.
                pairs.push(next.unwrap_or(0));
                let end = if next.is_some() { End::Truncated } else { End::Terminated };
                let rows: Vec<&[f64]> = pairs.iter().map(|&pair| self.features.row(pair)).collect();
                builder = builder.episode(&rows, &rewards, end);
                pairs.clear();
                rewards.clear();
            }
        }
        let queried = (0..self.num_pairs()).fold(builder, |b, pair| b.query(self.features.row(pair)));
        Ok(queried.build()?)
    }
}
