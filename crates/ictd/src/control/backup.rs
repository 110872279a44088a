//! What a TD error takes for the value of what follows.

use super::boltzmann::boltzmann_value;
use super::config::ControlError;
use crate::matrix::Matrix;
use crate::task::check_policy;

/// How the value B of what follows is made of the values of pairs.
///
/// - [`Sarsa`](Self::Sarsa): B = Q(s', a'), the action that was taken;
/// - [`ExpectedSarsa`](Self::ExpectedSarsa): B = Σ_b π(b|s')·Q(s', b); a deterministic π that takes a' is SARSA;
/// - [`Boltzmann`](Self::Boltzmann): B = Σ_b p_b·Q(s', b), p ∝ exp(β·Q(s', ·)); β = 0 is Expected SARSA under the uniform policy,
///   β → ∞ Q-learning: 0 ≤ max Q - B ≤ log|A|/β.
///
/// With one action all three are policy evaluation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Backup {
    /// The value of the pair that followed.
    Sarsa,
    /// The mean over the actions of a policy with π(a | s) in entry (s, a).
    ExpectedSarsa(Matrix),
    /// The mean over actions weighted by the softmax of β times their values.
    Boltzmann(f64),
}

impl Backup {
    /// The name in tables and files.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Sarsa => "sarsa",
            Self::ExpectedSarsa(_) => "expected sarsa",
            Self::Boltzmann(_) => "boltzmann",
        }
    }

    /// Refuses a β that is none.
    pub(super) fn check(&self) -> Result<(), ControlError> {
        match self {
            Self::Boltzmann(beta) if !(*beta >= 0.0 && beta.is_finite()) => Err(ControlError::Beta(*beta)),
            _ => Ok(()),
        }
    }

    /// Refuses a policy of other states or actions.
    pub(super) fn check_sizes(&self, num_states: usize, num_actions: usize) -> Result<(), ControlError> {
        match self {
            Self::ExpectedSarsa(policy) => Ok(check_policy(policy, num_states, num_actions)?),
            _ => Ok(()),
        }
    }

    /// B of a state whose pairs have the values `q`; `None` for SARSA, which looks at one action alone.
    pub(super) fn of_state(&self, state: usize, q: &[f64]) -> Option<f64> {
        match self {
            Self::Sarsa => None,
            Self::ExpectedSarsa(policy) => Some(policy.row(state).iter().zip(q).map(|(p, q)| p * q).sum()),
            Self::Boltzmann(beta) => Some(boltzmann_value(*beta, q)),
        }
    }

    /// The laws over actions that successors are counted with where the backup is linear: π, and the uniform law for Boltzmann, whose
    /// own law changes with the values; only which pairs are reached is then used.
    pub(super) fn prior(&self, state: usize, action: usize, num_actions: usize) -> f64 {
        match self {
            Self::ExpectedSarsa(policy) => policy[(state, action)],
            _ => 1.0 / num_actions as f64,
        }
    }
}
