//! Finite Markov decision processes, and what a policy makes of them.

use super::mrp::{Mrp, MrpError, check_initial, is_discount};
use crate::linalg::LinalgError;
use crate::matrix::Matrix;
use crate::random::Stream;

/// A finite Markov decision process: one transition matrix and one reward per action and state.
#[derive(Clone, Debug, PartialEq)]
pub struct Mdp {
    /// For every action a, the matrix with entry (s, s') = p(s' | s, a).
    pub transitions: Vec<Matrix>,
    /// Entry (s, a) = r(s, a).
    pub rewards: Matrix,
    /// The discount γ.
    pub gamma: f64,
    /// The initial law p₀.
    pub initial_distribution: Vec<f64>,
}

/// Why a policy does not turn a decision process into a reward process.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum MdpError {
    /// There must be one reward column, one policy column and one m×m matrix per action; `what` is "policy", "rewards" or
    /// "transitions of action a".
    #[error("{what} is {found_rows}×{found_cols}, expected {rows}×{cols}")]
    Shape { what: String, rows: usize, cols: usize, found_rows: usize, found_cols: usize },
    /// Each action's rows must be distributions on their own; that of `state` has this sum and smallest entry.
    #[error(
        "policy: row {state} sums to {sum} with smallest entry {smallest}, expected probabilities that sum to 1"
    )]
    Policy { state: usize, sum: f64, smallest: f64 },
    /// Each action's rows must be distributions on their own.
    #[error(
        "transitions of action {action}: row {state} sums to {sum} with smallest entry {smallest}, expected probabilities that sum to 1"
    )]
    ActionRow { action: usize, state: usize, sum: f64, smallest: f64 },
    /// The chain under the policy must be an ergodic reward process.
    #[error(transparent)]
    Mrp(#[from] MrpError),
    /// There must be a state and an action.
    #[error("decision process of {states} states and {actions} actions, expected at least one of each")]
    Empty { states: usize, actions: usize },
    /// Optimal values must settle; after so many sweeps they still moved.
    #[error("optimal values still move by {moved:.1e} after {sweeps} sweeps, expected a smaller gamma")]
    NotSettled { sweeps: usize, moved: f64 },
    /// The Bellman equation has no usable solution.
    #[error("value function: {0}")]
    Values(#[from] LinalgError),
}

impl Mdp {
    /// A random decision process: every law p(· | s, a) is drawn from Dirichlet(1, …, 1), every reward from U(-1, 1), the start is
    /// uniform.
    pub fn dirichlet(
        num_states: usize,
        num_actions: usize,
        gamma: f64,
        stream: &mut Stream,
    ) -> Result<Self, MdpError> {
        let transitions = (0..num_actions).map(|_| {
            let rows = (0..num_states).flat_map(|_| stream.dirichlet(num_states)).collect();
            Matrix::from_vec(num_states, num_states, rows)
        });
        let transitions = transitions.collect();
        let rewards = Matrix::from_fn(num_states, num_actions, |_, _| stream.uniform_in(-1.0, 1.0));
        let initial_distribution = vec![1.0 / num_states as f64; num_states];
        let mdp = Self { transitions, rewards, gamma, initial_distribution };
        mdp.check()?;
        Ok(mdp)
    }

    /// Number of states m.
    pub fn num_states(&self) -> usize {
        self.initial_distribution.len()
    }

    /// Number of actions.
    pub fn num_actions(&self) -> usize {
        self.transitions.len()
    }

    /// Refuses parts that do not fit together, rows that are no laws, and numbers that are no rewards or no discount.
    pub(crate) fn check(&self) -> Result<(), MdpError> {
        let (m, actions) = (self.num_states(), self.num_actions());
        if m == 0 || actions == 0 {
            return Err(MdpError::Empty { states: m, actions });
        }
        check_shape("rewards".into(), &self.rewards, m, actions)?;
        for (action, matrix) in self.transitions.iter().enumerate() {
            check_shape(format!("transitions of action {action}"), matrix, m, m)?;
            for (state, row) in matrix.rows().enumerate() {
                let (sum, smallest) = sum_and_smallest(row);
                if !is_distribution(sum, smallest) {
                    return Err(MdpError::ActionRow { action, state, sum, smallest });
                }
            }
        }
        if let Some(at) = self.rewards.as_slice().iter().position(|r| !r.is_finite()) {
            let (state, value) = (at / actions, self.rewards.as_slice()[at]);
            return Err(MrpError::Reward { state, value }.into());
        }
        if !is_discount(self.gamma) {
            return Err(MrpError::Gamma(self.gamma).into());
        }
        Ok(check_initial(&self.initial_distribution)?)
    }

    /// Transition matrix and rewards under a policy with π(a | s) in entry (s, a).
    pub(super) fn averaged(&self, policy: &Matrix) -> Result<(Matrix, Vec<f64>), MdpError> {
        self.check()?;
        let (m, actions) = (self.num_states(), self.num_actions());
        check_policy(policy, m, actions)?;
        let average = |s: usize, per_action: &dyn Fn(usize) -> f64| -> f64 {
            (0..actions).map(|a| policy[(s, a)] * per_action(a)).sum()
        };
        let transitions = Matrix::from_fn(m, m, |s, next| average(s, &|a| self.transitions[a][(s, next)]));
        Ok((transitions, (0..m).map(|s| average(s, &|a| self.rewards[(s, a)])).collect()))
    }

    /// The reward process under a policy with π(a | s) in entry (s, a) (paper, Section 2.2):
    /// p(s'|s) = Σ_a π(a|s) p(s'|s,a) and r(s) = Σ_a π(a|s) r(s,a).
    pub fn under_policy(&self, policy: &Matrix) -> Result<Mrp, MdpError> {
        let (transitions, rewards) = self.averaged(policy)?;
        Ok(Mrp::new(transitions, rewards, self.gamma, self.initial_distribution.clone())?)
    }
}

fn check_shape(what: String, matrix: &Matrix, rows: usize, cols: usize) -> Result<(), MdpError> {
    let (found_rows, found_cols) = (matrix.num_rows(), matrix.num_cols());
    if (found_rows, found_cols) == (rows, cols) {
        Ok(())
    } else {
        Err(MdpError::Shape { what, rows, cols, found_rows, found_cols })
    }
}

/// Refuses a policy that is not one law over the actions for every state.
pub(crate) fn check_policy(policy: &Matrix, num_states: usize, num_actions: usize) -> Result<(), MdpError> {
    check_shape("policy".into(), policy, num_states, num_actions)?;
    for (state, row) in policy.rows().enumerate() {
        let (sum, smallest) = sum_and_smallest(row);
        if !is_distribution(sum, smallest) {
            return Err(MdpError::Policy { state, sum, smallest });
        }
    }
    Ok(())
}

fn sum_and_smallest(row: &[f64]) -> (f64, f64) {
    (row.iter().sum(), row.iter().copied().fold(f64::INFINITY, f64::min))
}

/// The same slack as for a reward process; false for NaN.
fn is_distribution(sum: f64, smallest: f64) -> bool {
    (sum - 1.0).abs() <= 1e-9 && smallest >= 0.0
}
