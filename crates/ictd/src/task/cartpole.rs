//! Randomised cart-pole dynamics under a random policy.

use serde::{Deserialize, Serialize};

use super::family::Generator;
use super::finite::{FiniteTask, MAX_VALUE, TaskError, rescale};
use super::mrp::{MrpError, is_discount};
use super::source::{Chain, StateTable, TaskSource};
use super::{Family, FeatureMap, Kind};
use crate::matrix::Matrix;
use crate::random::Stream;

/// Cart position at which the run fails, metres.
const POSITION_LIMIT: f64 = 2.4;
/// Pole angle at which the run fails: 12 degrees, in radians.
const ANGLE_LIMIT: f64 = 12.0 * std::f64::consts::PI / 180.0;
/// Half-widths of the discretised box: the failure limits with a quarter to spare, and ±2.5 for the
/// unbounded velocities, as in the predecessor.
const BOX: [f64; 4] = [1.25 * POSITION_LIMIT, 2.5, 1.25 * ANGLE_LIMIT, 2.5];

/// The numbers of a cart-pole and its policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Physics {
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
}

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
/// Bins per dimension ≥ 1, feature dimension d ≥ 1 of the table, discount γ, what is done to the features.
/// # References
/// Barto, Sutton and Anderson (1983) for the task; ranges of the parameters after arXiv 2405.13861.
/// # Version history
/// 1: draws in the order gravity, cart mass, pole mass, half length, force, time step, probability of
/// right, rewards, feature table.
#[derive(Clone, Debug, PartialEq)]
pub struct CartPole {
    physics: Physics,
    gamma: f64,
    bins_per_dim: usize,
    rewards: Vec<f64>,
    /// Row by bin; without a table features are coordinates.
    table: Option<Matrix>,
}

/// A state (x, ẋ, θ, θ̇).
pub type CartPoleState = [f64; 4];

/// A Monte-Carlo estimate of a state's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MonteCarloValue {
    /// Mean of the truncated returns.
    pub mean: f64,
    /// Standard error of the mean.
    pub sem: f64,
    /// Largest possible effect of truncating the returns.
    pub truncation_bound: f64,
}

pub(super) const FAMILY: Generator = Generator {
    name: "cartpole",
    title: "cart-pole",
    usual: (2, 4),
    // A million bins in all.
    states: (1..=32, "1 to 32 bins per dimension"),
    features: (1..=100, "1 to 100"),
    draw: |_, _| Err(TaskError::Unknown("values and stationary law of cartpole")),
};

impl CartPole {
    /// Draws a task of a family's sizes, discount and features.
    pub fn generate(family: &Family, stream: &mut Stream) -> Result<Self, TaskError> {
        Kind::Cartpole.check_sizes(family.num_states, family.feature_dim)?;
        let physics = Physics {
            gravity: stream.uniform_in(7.0, 12.0),
            cart_mass: stream.uniform_in(0.5, 1.5),
            pole_mass: stream.uniform_in(0.05, 0.15),
            half_length: stream.uniform_in(0.5, 1.5),
            force: stream.uniform_in(5.0, 15.0),
            time_step: stream.uniform_in(0.01, 0.05),
            right_probability: stream.uniform(),
        };
        let num_bins = family.num_states.pow(4);
        let rewards = stream.uniform_vec(num_bins, -1.0, 1.0);
        let mut table = Matrix::from_fn(num_bins, family.feature_dim, |_, _| stream.uniform_in(-1.0, 1.0));
        rescale(&mut table, family.feature_map == FeatureMap::UnitNorm, family.score_scale);
        let table = (family.feature_map != FeatureMap::Coordinates).then_some(table);
        Self::new(physics, family.gamma, rewards, table)
    }

    /// A cart-pole with a reward and, unless features are the coordinates, a row of features for each of its
    /// bins, of which there are k⁴ for k per dimension.
    pub fn new(
        physics: Physics,
        gamma: f64,
        rewards: Vec<f64>,
        table: Option<Matrix>,
    ) -> Result<Self, TaskError> {
        let size = |field, found: String, expected| Err(TaskError::Size { field, found, expected });
        let Some(bins_per_dim) = (1..=32usize).find(|k| k.pow(4) == rewards.len()) else {
            return size(
                "rewards",
                format!("{} numbers", rewards.len()),
                "one for each of k⁴ bins, k at most 32",
            );
        };
        let p = &physics;
        for (field, value) in [
            ("gravity", p.gravity),
            ("cart_mass", p.cart_mass),
            ("pole_mass", p.pole_mass),
            ("half_length", p.half_length),
            ("force", p.force),
            ("time_step", p.time_step),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return size(field, value.to_string(), "a finite number > 0");
            }
        }
        if !(0.0..=1.0).contains(&p.right_probability) {
            return size("right_probability", p.right_probability.to_string(), "a probability");
        }
        if !is_discount(gamma) {
            return Err(MrpError::Gamma(gamma).into());
        }
        if let Some(state) = rewards.iter().position(|r| !r.is_finite()) {
            return Err(MrpError::Reward { state, value: rewards[state] }.into());
        }
        // No value is larger than that of a state that always pays the largest.
        let largest = rewards.iter().fold(0f64, |m, r| m.max(r.abs())) / (1.0 - gamma);
        if !(largest <= MAX_VALUE) {
            return Err(TaskError::Large(format!("values may be as large as {largest:e}")));
        }
        if let Some(table) = &table {
            super::finite::check_features(table, rewards.len())?;
        }
        Ok(Self { physics, gamma, bins_per_dim, rewards, table })
    }

    /// The numbers of the cart, the pole and the policy.
    pub fn physics(&self) -> &Physics {
        &self.physics
    }

    /// The discount γ.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// Row by bin the random features; `None` where features are coordinates.
    pub fn feature_table(&self) -> Option<&Matrix> {
        self.table.as_ref()
    }

    /// The task for sampling.
    pub(super) fn chain(self) -> CartPoleChain {
        CartPoleChain { task: self, states: Vec::new(), features: Vec::new(), rewards: Vec::new() }
    }

    /// A fresh start, U(-0.05, 0.05)⁴.
    pub fn start(&self, stream: &mut Stream) -> CartPoleState {
        std::array::from_fn(|_| stream.uniform_in(-0.05, 0.05))
    }

    /// One Euler step under a push, before any restart.
    fn push(&self, [x, x_dot, theta, theta_dot]: CartPoleState, force: f64) -> CartPoleState {
        let Physics { gravity, cart_mass, pole_mass, half_length, time_step: h, .. } = self.physics;
        // The software sine and cosine, so that trajectories are the same on all platforms.
        let (sin, cos) = libm::sincos(theta);
        let total_mass = cart_mass + pole_mass;
        let pole_moment = pole_mass * half_length;
        let common = (force + pole_moment * theta_dot * theta_dot * sin) / total_mass;
        let inertia = half_length * (4.0 / 3.0 - pole_mass * cos * cos / total_mass);
        let theta_acceleration = (gravity * sin - cos * common) / inertia;
        let x_acceleration = common - pole_moment * theta_acceleration * cos / total_mass;
        [x + h * x_dot, x_dot + h * x_acceleration, theta + h * theta_dot, theta_dot + h * theta_acceleration]
    }

    /// A successor of `state`; a failed run restarts.
    pub fn step(&self, state: CartPoleState, stream: &mut Stream) -> CartPoleState {
        let Physics { force, right_probability, .. } = self.physics;
        let force = if stream.uniform() < right_probability { force } else { -force };
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

    /// The features of a state: those of its bin, or its coordinates divided by the half-widths of their box.
    pub fn features(&self, state: CartPoleState) -> Vec<f64> {
        match &self.table {
            Some(table) => table.row(self.bin(state)).to_vec(),
            None => state.iter().zip(BOX).map(|(x, half_width)| x / half_width).collect(),
        }
    }

    /// The states of a run of `num_transitions` steps.
    pub fn rollout(&self, num_transitions: usize, stream: &mut Stream) -> Vec<CartPoleState> {
        let mut states = vec![self.start(stream)];
        for k in 0..num_transitions {
            states.push(self.step(states[k], stream));
        }
        states
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
        MonteCarloValue { mean, sem: (variance / n).sqrt(), truncation_bound }
    }
}

/// A cart-pole draws itself.
impl TaskSource for CartPole {
    fn describe(&self) -> String {
        let (bins, d) = (self.bins_per_dim, self.feature_dim());
        format!("one cart-pole, {bins} bins per dimension, {d} features, γ = {}", self.gamma)
    }

    fn num_states(&self) -> usize {
        self.bins_per_dim
    }

    fn feature_dim(&self) -> usize {
        self.table.as_ref().map_or(BOX.len(), Matrix::num_cols)
    }

    fn gamma(&self) -> f64 {
        self.gamma
    }

    fn draw(&self, _: &mut Stream) -> Result<FiniteTask, TaskError> {
        Err(TaskError::Unknown("values and stationary law of cartpole"))
    }

    fn draw_chain(&self, _: &mut Stream) -> Result<Box<dyn Chain>, TaskError> {
        Ok(Box::new(self.clone().chain()))
    }

    fn is_exact(&self) -> bool {
        false
    }
}

/// A [`CartPole`] that numbers the states it meets.
#[derive(Clone, Debug)]
pub(super) struct CartPoleChain {
    task: CartPole,
    states: Vec<CartPoleState>,
    features: Vec<f64>,
    rewards: Vec<f64>,
}

impl CartPoleChain {
    fn meet(&mut self, state: CartPoleState) -> usize {
        self.features.extend(self.task.features(state));
        self.rewards.push(self.task.reward(state));
        self.states.push(state);
        self.states.len() - 1
    }
}

impl Chain for CartPoleChain {
    fn table(&self) -> StateTable<'_> {
        StateTable { features: &self.features, rewards: &self.rewards, values: None }
    }

    fn start(&mut self, stream: &mut Stream) -> usize {
        let state = self.task.start(stream);
        self.meet(state)
    }

    fn next(&mut self, state: usize, stream: &mut Stream) -> usize {
        let next = self.task.step(self.states[state], stream);
        self.meet(next)
    }

    fn stationary(&self) -> Option<Vec<f64>> {
        None
    }

    /// Without numbering the states on the way.
    fn sample_return(&mut self, state: usize, gamma: f64, tolerance: f64, stream: &mut Stream) -> f64 {
        let (mut state, mut discount, mut total) = (self.states[state], 1.0, 0.0);
        while discount > tolerance {
            total += discount * self.task.reward(state);
            state = self.task.step(state, stream);
            discount *= gamma;
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn task() -> CartPole {
        let family = Family { feature_dim: 5, ..Family::of(Kind::Cartpole) };
        CartPole::generate(&family, &mut Stream::new(1, Purpose::Task, 0)).unwrap()
    }

    /// Without a push, gravity alone tips the pole the way it leans.
    #[test]
    fn the_pole_falls_the_way_it_leans() {
        let next = task().push([0.0, 0.0, 0.1, 0.0], 0.0);
        assert!(next[3] > 0.0 && next[1] < 0.0);
    }
}
