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
        let sum: f64 = initial.iter().sum();
        let bad = initial.iter().position(|p| !(0.0..=1.0).contains(p));
        // The same slack as for rows of P.
        if bad.is_some() || (sum - 1.0).abs() > 1e-9 {
            let state = bad.unwrap_or(0);
            return Err(MrpError::Initial { state, value: initial[state], sum });
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn two_states() -> Matrix {
        Matrix::from_rows(&[vec![0.5, 0.5], vec![0.25, 0.75]]).unwrap()
    }

    #[test]
    fn values_solve_the_bellman_equation() {
        let mrp = Mrp::new(two_states(), vec![1.0, -2.0], 0.9, vec![1.0, 0.0]).unwrap();
        let v = mrp.values().unwrap();
        for (left, right) in v.iter().zip(mrp.bellman(&v)) {
            // Values of order 10, condition number (1 + γ)/(1 - γ) = 19.
            assert!((left - right).abs() < 1e-13);
        }
        // γ = 0: the value is the reward.
        let myopic = Mrp::new(two_states(), vec![1.0, -2.0], 0.0, vec![1.0, 0.0]).unwrap();
        assert_eq!(myopic.values().unwrap(), [1.0, -2.0]);
    }

    #[test]
    fn each_broken_part_is_named() {
        let p0 = vec![0.5, 0.5];
        let new = |r: Vec<f64>, gamma, p0: Vec<f64>| Mrp::new(two_states(), r, gamma, p0).unwrap_err();
        assert_eq!(
            new(vec![1.0], 0.9, p0.clone()),
            MrpError::Length { what: "rewards", expected: 2, found: 1 }
        );
        assert!(matches!(new(vec![1.0, f64::NAN], 0.9, p0.clone()), MrpError::Reward { state: 1, .. }));
        for gamma in [1.0, -0.1] {
            assert_eq!(new(vec![0.0; 2], gamma, p0.clone()), MrpError::Gamma(gamma));
        }
        assert!(matches!(new(vec![0.0; 2], f64::NAN, p0), MrpError::Gamma(_)));
        assert!(matches!(new(vec![0.0; 2], 0.9, vec![0.5, 0.6]), MrpError::Initial { .. }));
        assert!(matches!(new(vec![0.0; 2], 0.9, vec![1.5, -0.5]), MrpError::Initial { state: 0, .. }));
    }

    #[test]
    fn trajectories_follow_edges() {
        let mrp = Mrp::new(two_states(), vec![1.0, -2.0], 0.9, vec![0.0, 1.0]).unwrap();
        let mut stream = Stream::new(1, crate::random::Purpose::Trajectory, 0);
        let states = mrp.sample_states(10_000, &mut stream);
        assert_eq!((states.len(), states[0]), (10_001, 1));
        // Stationary law (1/3, 2/3); five standard errors with the chain's correlation time 5/3.
        let share = states.iter().filter(|&&s| s == 0).count() as f64 / 10_001.0;
        assert!((share - 1.0 / 3.0).abs() < 5.0 * (2.0f64 / 9.0 * (5.0 / 3.0) / 1e4).sqrt());
    }
}
