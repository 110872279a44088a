//! Randomised cart-pole dynamics under a random policy.

use super::finite::{TaskError, check_size};
use super::mrp::{MrpError, is_discount};
use crate::context::{Context, ContextError, End};
use crate::matrix::Matrix;
use crate::random::Stream;

/// Cart position at which the run fails, metres.
const POSITION_LIMIT: f64 = 2.4;
/// Pole angle at which the run fails: 12 degrees, in radians.
const ANGLE_LIMIT: f64 = 12.0 * std::f64::consts::PI / 180.0;
/// Largest number of bins per dimension: a million in all.
const MAX_BINS: usize = 32;
/// Largest feature dimension of the table over bins.
const MAX_TABLE_FEATURES: usize = 100;
/// Half-widths of the discretised box: the failure limits with a quarter to spare, and ±2.5 for the
/// unbounded velocities, as in the predecessor.
const BOX: [f64; 4] = [1.25 * POSITION_LIMIT, 2.5, 1.25 * ANGLE_LIMIT, 2.5];

/// Cart-pole with randomised physics and a policy that pushes right with a fixed random probability.
///
/// # Description
/// A cart balances a pole; the task is to evaluate a given (bad) policy, not to find a good one.
/// # States
/// Continuous (x, ẋ, θ, θ̇). Discretised: each coordinate in `bins_per_dim` equal bins, bins_per_dim⁴
/// in all.
/// # Transitions
/// Euler steps of the frictionless cart-pole equations. On failure (|x| > 2.4 m or |θ| > 12°) the
/// run restarts, so that the chain goes on for ever, as in the predecessor.
/// # Rewards
/// A table over bins, U(-1, 1) each, paid on leaving a state. (The predecessor pays the bin that is
/// entered; here rewards are paid on leaving everywhere.)
/// # Features
/// Either the four coordinates divided by the half-widths of their box, or a row of a random table
/// over bins, U(-1, 1)^d.
/// # Start
/// U(-0.05, 0.05)⁴.
/// # Stationary law
/// Unknown; values are Monte-Carlo estimates with standard errors.
/// # Arguments
/// Bins per dimension ≥ 1, feature dimension d ≥ 1 of the table, discount γ.
/// # References
/// Barto, Sutton and Anderson (1983) for the task; ranges of the parameters after arXiv 2405.13861.
/// # Version history
/// 1: draws in the order gravity, cart mass, pole mass, half length, force, time step, probability of
/// right, rewards, feature table.
#[derive(Clone, Debug, PartialEq)]
pub struct CartPole {
    /// Gravity, U(7, 12) m/s².
    pub gravity: f64,
    /// Mass of the cart, U(0.5, 1.5) kg.
    pub cart_mass: f64,
    /// Mass of the pole, U(0.05, 0.15) kg.
    pub pole_mass: f64,
    /// Half the length of the pole, U(0.5, 1.5) m.
    pub half_length: f64,
    /// Size of the push, U(5, 15) N.
    pub force: f64,
    /// Time step, U(0.01, 0.05) s.
    pub time_step: f64,
    /// Probability of pushing right, U(0, 1).
    pub right_probability: f64,
    /// Discount γ.
    pub gamma: f64,
    bins_per_dim: usize,
    rewards: Vec<f64>,
    table: Matrix,
}

/// A state (x, ẋ, θ, θ̇).
pub type CartPoleState = [f64; 4];

/// A run of [`CartPole`].
#[derive(Clone, Debug, PartialEq)]
pub struct CartPoleRollout {
    /// States s_0, …, s_n.
    pub states: Vec<CartPoleState>,
    /// Rewards R_1, …, R_n.
    pub rewards: Vec<f64>,
}

/// A Monte-Carlo estimate of a state's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MonteCarloValue {
    /// Mean of the truncated returns.
    pub mean: f64,
    /// Standard error of the mean.
    pub standard_error: f64,
    /// Largest possible effect of truncating the returns.
    pub truncation_bound: f64,
}

impl CartPole {
    /// Draws a task.
    pub fn generate(
        bins_per_dim: usize,
        feature_dim: usize,
        gamma: f64,
        stream: &mut Stream,
    ) -> Result<Self, TaskError> {
        check_size("bins", bins_per_dim, 1..=MAX_BINS, "1 to 32 per dimension")?;
        check_size("features", feature_dim, 1..=MAX_TABLE_FEATURES, "1 to 100")?;
        if !is_discount(gamma) {
            return Err(MrpError::Gamma(gamma).into());
        }
        let num_bins = bins_per_dim.pow(4);
        Ok(Self {
            gravity: stream.uniform_in(7.0, 12.0),
            cart_mass: stream.uniform_in(0.5, 1.5),
            pole_mass: stream.uniform_in(0.05, 0.15),
            half_length: stream.uniform_in(0.5, 1.5),
            force: stream.uniform_in(5.0, 15.0),
            time_step: stream.uniform_in(0.01, 0.05),
            right_probability: stream.uniform(),
            gamma,
            bins_per_dim,
            rewards: stream.uniform_vec(num_bins, -1.0, 1.0),
            table: Matrix::from_fn(num_bins, feature_dim, |_, _| stream.uniform_in(-1.0, 1.0)),
        })
    }

    /// A fresh start, U(-0.05, 0.05)⁴.
    pub fn start(&self, stream: &mut Stream) -> CartPoleState {
        std::array::from_fn(|_| stream.uniform_in(-0.05, 0.05))
    }

    /// One Euler step under a push, before any restart.
    fn push(&self, [x, x_dot, theta, theta_dot]: CartPoleState, force: f64) -> CartPoleState {
        // The software sine and cosine, so that trajectories are the same on all platforms.
        let (sin, cos) = libm::sincos(theta);
        let total_mass = self.cart_mass + self.pole_mass;
        let pole_moment = self.pole_mass * self.half_length;
        let common = (force + pole_moment * theta_dot * theta_dot * sin) / total_mass;
        let inertia = self.half_length * (4.0 / 3.0 - self.pole_mass * cos * cos / total_mass);
        let theta_acceleration = (self.gravity * sin - cos * common) / inertia;
        let x_acceleration = common - pole_moment * theta_acceleration * cos / total_mass;
        let h = self.time_step;
        [x + h * x_dot, x_dot + h * x_acceleration, theta + h * theta_dot, theta_dot + h * theta_acceleration]
    }

    /// A successor of `state`; a failed run restarts.
    pub fn step(&self, state: CartPoleState, stream: &mut Stream) -> CartPoleState {
        let force = if stream.uniform() < self.right_probability { self.force } else { -self.force };
        let next = self.push(state, force);
        let alive = next[0].abs() <= POSITION_LIMIT && next[2].abs() <= ANGLE_LIMIT;
        if alive { next } else { self.start(stream) }
    }

    /// The bin of a state, in 0..bins_per_dim⁴; coordinates outside the box count to the last bin.
    pub fn bin(&self, state: CartPoleState) -> usize {
        let last = self.bins_per_dim - 1;
        state.iter().zip(BOX).fold(0, |index, (x, half_width)| {
            let position = (x / half_width + 1.0) * 0.5 * self.bins_per_dim as f64;
            // A float-to-integer cast saturates, so far-off coordinates stay in range.
            index * self.bins_per_dim + (position as usize).min(last)
        })
    }

    /// The reward of every bin.
    pub fn rewards(&self) -> &[f64] {
        &self.rewards
    }

    /// The reward paid on leaving a state.
    pub fn reward(&self, state: CartPoleState) -> f64 {
        self.rewards[self.bin(state)]
    }

    /// The coordinates divided by the half-widths of their box.
    pub fn continuous_features(&self, state: CartPoleState) -> [f64; 4] {
        std::array::from_fn(|i| state[i] / BOX[i])
    }

    /// The random features of the state's bin.
    pub fn binned_features(&self, state: CartPoleState) -> &[f64] {
        self.table.row(self.bin(state))
    }

    /// The features of the state's bin, or its coordinates.
    pub fn features(&self, state: CartPoleState, binned: bool) -> Vec<f64> {
        if binned { self.binned_features(state).to_vec() } else { self.continuous_features(state).to_vec() }
    }

    /// A run of `num_transitions` steps.
    pub fn rollout(&self, num_transitions: usize, stream: &mut Stream) -> CartPoleRollout {
        let mut states = vec![self.start(stream)];
        let mut rewards = Vec::with_capacity(num_transitions);
        for k in 0..num_transitions {
            rewards.push(self.reward(states[k]));
            states.push(self.step(states[k], stream));
        }
        CartPoleRollout { states, rewards }
    }

    /// The context of a run, with continuous features (`binned` false) or those of the bins.
    pub fn context_of(&self, rollout: &CartPoleRollout, binned: bool) -> Result<Context, ContextError> {
        let features: Vec<Vec<f64>> =
            rollout
                .states
                .iter()
                .map(|&s| {
                    if binned {
                        self.binned_features(s).to_vec()
                    } else {
                        self.continuous_features(s).to_vec()
                    }
                })
                .collect();
        Context::builder().episode(&features, &rollout.rewards, End::Truncated).build()
    }

    /// The value of `state` from `num_runs` independent runs, each cut when the rest is worth less
    /// than `tolerance`.
    pub fn monte_carlo_value(
        &self,
        state: CartPoleState,
        num_runs: usize,
        tolerance: f64,
        stream: &mut Stream,
    ) -> MonteCarloValue {
        let largest = self.rewards.iter().fold(0f64, |a, r| a.max(r.abs()));
        let (mut sum, mut sum_of_squares, mut truncation_bound) = (0.0, 0.0, 0f64);
        for _ in 0..num_runs {
            let (mut s, mut discount, mut value) = (state, 1.0, 0.0);
            while discount * largest / (1.0 - self.gamma) > tolerance {
                value += discount * self.reward(s);
                s = self.step(s, stream);
                discount *= self.gamma;
            }
            truncation_bound = discount * largest / (1.0 - self.gamma);
            sum += value;
            sum_of_squares += value * value;
        }
        let n = num_runs as f64;
        let mean = sum / n;
        let variance = (sum_of_squares / n - mean * mean).max(0.0) * n / (n - 1.0);
        MonteCarloValue { mean, standard_error: (variance / n).sqrt(), truncation_bound }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn task() -> CartPole {
        CartPole::generate(2, 5, 0.9, &mut Stream::new(1, Purpose::Task, 0)).unwrap()
    }

    #[test]
    fn states_stay_within_the_limits_and_restarts_happen() {
        let task = task();
        let run = task.rollout(5000, &mut Stream::new(1, Purpose::Trajectory, 0));
        assert!(run.states.iter().all(|s| s[0].abs() <= POSITION_LIMIT && s[2].abs() <= ANGLE_LIMIT));
        assert!(run.states.iter().skip(1).any(|s| s.iter().all(|x| x.abs() <= 0.05)), "no restart");
    }

    #[test]
    fn bins_cover_the_box() {
        let task = task();
        assert_eq!(task.bin([-9.0, -9.0, -9.0, -9.0]), 0);
        assert_eq!(task.bin([9.0, 9.0, 9.0, 9.0]), 15);
        assert_eq!(task.bin([0.1, -0.1, 0.1, -0.1]), 0b1010);
    }

    /// Without a push, gravity alone tips the pole the way it leans.
    #[test]
    fn the_pole_falls_the_way_it_leans() {
        let next = task().push([0.0, 0.0, 0.1, 0.0], 0.0);
        assert!(next[3] > 0.0 && next[1] < 0.0);
    }

    /// γ = 0: the value is the reward, without error.
    #[test]
    fn myopic_value_is_the_reward() {
        let task = CartPole { gamma: 0.0, ..task() };
        let s = [0.0; 4];
        let estimate = task.monte_carlo_value(s, 10, 1e-6, &mut Stream::new(1, Purpose::MonteCarlo, 0));
        assert_eq!((estimate.mean, estimate.standard_error), (task.reward(s), 0.0));
    }

    #[test]
    fn contexts_carry_either_kind_of_feature() {
        let task = task();
        let run = task.rollout(30, &mut Stream::new(1, Purpose::Trajectory, 0));
        assert_eq!(task.context_of(&run, false).unwrap().feature_dim(), 4);
        assert_eq!(task.context_of(&run, true).unwrap().feature_dim(), 5);
    }
}
