//! Finite Markov decision processes, and what a policy makes of them.

use super::mrp::{Mrp, MrpError};
use crate::matrix::Matrix;

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
}

impl Mdp {
    /// The reward process under a policy with π(a | s) in entry (s, a) (paper, Section 2.2):
    /// p(s'|s) = Σ_a π(a|s) p(s'|s,a) and r(s) = Σ_a π(a|s) r(s,a).
    pub fn under_policy(&self, policy: &Matrix) -> Result<Mrp, MdpError> {
        let (m, actions) = (self.initial_distribution.len(), self.transitions.len());
        let check = |what: String, matrix: &Matrix, rows, cols| {
            let (found_rows, found_cols) = (matrix.num_rows(), matrix.num_cols());
            if (found_rows, found_cols) == (rows, cols) {
                Ok(())
            } else {
                Err(MdpError::Shape { what, rows, cols, found_rows, found_cols })
            }
        };
        check("policy".into(), policy, m, actions)?;
        check("rewards".into(), &self.rewards, m, actions)?;
        for (action, matrix) in self.transitions.iter().enumerate() {
            check(format!("transitions of action {action}"), matrix, m, m)?;
            for (state, row) in matrix.rows().enumerate() {
                let (sum, smallest) = sum_and_smallest(row);
                if !is_distribution(sum, smallest) {
                    return Err(MdpError::ActionRow { action, state, sum, smallest });
                }
            }
        }
        for (state, row) in policy.rows().enumerate() {
            let (sum, smallest) = sum_and_smallest(row);
            if !is_distribution(sum, smallest) {
                return Err(MdpError::Policy { state, sum, smallest });
            }
        }
        let average = |s: usize, per_action: &dyn Fn(usize) -> f64| -> f64 {
            (0..actions).map(|a| policy[(s, a)] * per_action(a)).sum()
        };
        let transitions = Matrix::from_fn(m, m, |s, next| average(s, &|a| self.transitions[a][(s, next)]));
        let rewards = (0..m).map(|s| average(s, &|a| self.rewards[(s, a)])).collect();
        Ok(Mrp::new(transitions, rewards, self.gamma, self.initial_distribution.clone())?)
    }
}

fn sum_and_smallest(row: &[f64]) -> (f64, f64) {
    (row.iter().sum(), row.iter().copied().fold(f64::INFINITY, f64::min))
}

/// The same slack as for a reward process; false for NaN.
fn is_distribution(sum: f64, smallest: f64) -> bool {
    (sum - 1.0).abs() <= 1e-9 && smallest >= 0.0
}
