//! Finite Markov reward processes.

use super::transition::{TransitionError, TransitionKernel};
use crate::linalg::{self, LinalgError};
use crate::matrix::Matrix;
use crate::random::{Stream, running_sums};

/// A finite ergodic Markov reward process (P, r, γ, p₀); r(s) is paid on leaving s.
#[derive(Clone, Debug, PartialEq)]
pub struct Mrp {
    transitions: TransitionKernel,
    rewards: Vec<f64>,
    gamma: f64,
    initial: Vec<f64>,
    initial_cumulative: Vec<f64>,
}

/// Why the parts are not a Markov reward process.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum MrpError {
    /// P must be the transition matrix of an ergodic chain.
    #[error(transparent)]
    Transition(#[from] TransitionError),
    /// There must be one reward and one initial probability per state: `what` has `found`.
    #[error("{what} has {found} entries, expected one for each of the {expected} states")]
    Length { what: &'static str, expected: usize, found: usize },
    /// Rewards must be finite; that of `state` is `value`.
    #[error("reward of state {state} is {value}, expected a finite number")]
    Reward { state: usize, value: f64 },
    /// γ must be in [0, 1).
    #[error("gamma is {0:?}, expected 0 <= gamma < 1")]
    Gamma(f64),
    /// p₀ must be a probability distribution; `state` is the first entry that is no probability, or 0 when only `sum` is off.
    #[error(
        "initial distribution: entry {state} is {value} and the sum is {sum}, expected probabilities that sum to 1"
    )]
    Initial { state: usize, value: f64, sum: f64 },
}

/// Refuses a discount outside [0, 1); NaN included.
pub(crate) fn is_discount(gamma: f64) -> bool {
    (0.0..1.0).contains(&gamma)
}

/// Refuses an initial law that is none.
pub(super) fn check_initial(initial: &[f64]) -> Result<(), MrpError> {
    let sum: f64 = initial.iter().sum();
    let bad = initial.iter().position(|p| !(0.0..=1.0).contains(p));
    // The same slack as for rows of P.
    if bad.is_some() || (sum - 1.0).abs() > 1e-9 {
        let state = bad.unwrap_or(0);
        return Err(MrpError::Initial { state, value: initial[state], sum });
    }
    Ok(())
}

impl Mrp {
    /// Checks the parts and puts them together.
    pub fn new(
        transitions: Matrix,
        rewards: Vec<f64>,
        gamma: f64,
        initial: Vec<f64>,
    ) -> Result<Self, MrpError> {
        let transitions = TransitionKernel::new(transitions)?;
        let expected = transitions.num_states();
        for (what, found) in [("rewards", rewards.len()), ("initial distribution", initial.len())] {
            if found != expected {
                return Err(MrpError::Length { what, expected, found });
            }
        }
        if let Some(state) = rewards.iter().position(|r| !r.is_finite()) {
            return Err(MrpError::Reward { state, value: rewards[state] });
        }
        if !is_discount(gamma) {
            return Err(MrpError::Gamma(gamma));
        }
        check_initial(&initial)?;
        let initial_cumulative = running_sums(&initial);
        Ok(Self { transitions, rewards, gamma, initial, initial_cumulative })
    }

    /// Number of states m.
    pub fn num_states(&self) -> usize {
        self.rewards.len()
    }

    /// The transition matrix P.
    pub fn transitions(&self) -> &TransitionKernel {
        &self.transitions
    }

    /// The reward r(s) of every state.
    pub fn rewards(&self) -> &[f64] {
        &self.rewards
    }

    /// The discount γ.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// The initial law p₀.
    pub fn initial_distribution(&self) -> &[f64] {
        &self.initial
    }

    /// The value function: v = (I - γP)⁻¹ r.
    pub fn values(&self) -> Result<Vec<f64>, LinalgError> {
        let p = self.transitions.matrix();
        let m = self.num_states();
        let bellman = Matrix::from_fn(m, m, |i, j| f64::from(u8::from(i == j)) - self.gamma * p[(i, j)]);
        linalg::solve(&bellman, &self.rewards)
    }

    /// The Bellman operator applied to `v`: (T v)(s) = r(s) + γ Σ p(s'|s) v(s').
    pub fn bellman(&self, v: &[f64]) -> Vec<f64> {
        let expected = self.transitions.matrix().mul_vec(v);
        self.rewards.iter().zip(expected).map(|(r, next)| r + self.gamma * next).collect()
    }

    /// A trajectory s₀, …, s_n with s₀ drawn from p₀.
    pub fn sample_states(&self, num_transitions: usize, stream: &mut Stream) -> Vec<usize> {
        let mut states = Vec::with_capacity(num_transitions + 1);
        let mut state = stream.categorical(&self.initial_cumulative);
        states.push(state);
        for _ in 0..num_transitions {
            state = self.transitions.sample(state, stream);
            states.push(state);
        }
        states
    }
}
