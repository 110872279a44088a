//! Randomised Boyan chains.

use super::finite::{FiniteTask, TaskError};
use super::mrp::{MrpError, is_discount};
use super::source::{Chain, StateTable};
use super::{Kind, Representation, assemble};
use crate::matrix::Matrix;
use crate::random::{Stream, running_sums};

/// Randomised Boyan chain (paper, Algorithm 2, and its commented-out variant).
///
/// # Description
/// A chain that moves one or two states ahead and restarts at random from its end.
/// # States
/// 0, …, m - 1.
/// # Transitions
/// From i ≤ m - 3: to i + 1 with probability ε_i, to i + 2 with 1 - ε_i, ε_i ~ U(0, 1). From m - 2 to
/// m - 1. From m - 1 to every state with probabilities z / Σz, z ~ U(0, 1)^m.
/// # Rewards
/// Representable: v(s) = ⟨w, x(s)⟩ with w ~ U(-1, 1)^d and r = (I - γP) v. Otherwise r ~ U(-1, 1)^m.
/// # Features
/// x(s) ~ U(-1, 1)^d.
/// # Start
/// p₀ ∝ U(0, 1)^m.
/// # Stationary law
/// Positive everywhere; aperiodic because m - 1 has a self-loop.
/// # Arguments
/// Number of states m ≥ 3, feature dimension d ≥ 1, discount γ, representation.
/// # References
/// J. Boyan, "Least-squares temporal difference learning", 1999; the paper's Algorithm 2, adapted
/// there from arXiv 2405.13861.
/// # Version history
/// 1: draws in the order weight, features, p₀, ε, z (then r when not representable).
#[derive(Clone, Debug, PartialEq)]
pub struct Boyan {
    /// Number of states m, at least 3.
    pub num_states: usize,
    /// Feature dimension d, at least 1.
    pub feature_dim: usize,
    /// Discount γ.
    pub gamma: f64,
    /// Whether values are linear in the features.
    pub representation: Representation,
}

impl Boyan {
    /// The paper's setting (Table 1): 64 states, 4 features, γ = 0.9, representable.
    pub fn paper() -> Self {
        Self { num_states: 64, feature_dim: 4, gamma: 0.9, representation: Representation::Linear }
    }

    /// Draws a task.
    pub fn generate(&self, stream: &mut Stream) -> Result<FiniteTask, TaskError> {
        let draw = self.draw(stream)?;
        let m = self.num_states;
        let mut p = Matrix::zeros(m, m);
        for (i, &ahead) in draw.ahead.iter().enumerate() {
            p[(i, i + 1)] = ahead;
            p[(i, i + 2)] = 1.0 - ahead;
        }
        p[(m - 2, m - 1)] = 1.0;
        p.row_mut(m - 1).copy_from_slice(&draw.restart);
        assemble(p, draw.features, draw.initial, draw.weight, self.gamma, stream)
    }

    /// The chain of the representable task that [`generate`](Self::generate) draws, the same to the last bit.
    pub(super) fn chain(&self, stream: &mut Stream) -> Result<BoyanChain, TaskError> {
        let draw = Self { representation: Representation::Linear, ..self.clone() }.draw(stream)?;
        if !is_discount(self.gamma) {
            return Err(MrpError::Gamma(self.gamma).into());
        }
        let m = self.num_states;
        let v = draw.features.mul_vec(draw.weight.as_deref().unwrap_or_default());
        let reward = |s: usize| {
            let expected = match s {
                s if s + 2 < m => draw.ahead[s] * v[s + 1] + (1.0 - draw.ahead[s]) * v[s + 2],
                s if s + 2 == m => v[m - 1],
                _ => draw.restart.iter().zip(&v).map(|(p, v)| p * v).sum(),
            };
            v[s] - self.gamma * expected
        };
        let rewards = (0..m).map(reward).collect();
        Ok(BoyanChain { restart_sums: running_sums(&draw.restart), rewards, values: v, draw })
    }

    /// Draws the numbers that make a task, in the order of the version history.
    fn draw(&self, stream: &mut Stream) -> Result<BoyanDraw, TaskError> {
        let (m, d) = (self.num_states, self.feature_dim);
        Kind::Boyan.check_sizes(m, d)?;
        let weight = match self.representation {
            Representation::Linear => Some(stream.uniform_vec(d, -1.0, 1.0)),
            Representation::Free => None,
        };
        Ok(BoyanDraw {
            weight,
            features: Matrix::from_fn(m, d, |_, _| stream.uniform_in(-1.0, 1.0)),
            initial: normalised(stream.uniform_vec(m, 0.0, 1.0)),
            ahead: stream.uniform_vec(m - 2, 0.0, 1.0),
            restart: normalised(stream.uniform_vec(m, 0.0, 1.0)),
        })
    }
}

/// The random numbers behind a Boyan chain.
#[derive(Debug)]
struct BoyanDraw {
    /// w, when values are linear in the features.
    weight: Option<Vec<f64>>,
    /// Row s: x(s).
    features: Matrix,
    /// p₀.
    initial: Vec<f64>,
    /// ε_i for i ≤ m - 3.
    ahead: Vec<f64>,
    /// Where the last state leads.
    restart: Vec<f64>,
}

/// A representable chain without its m×m matrix, for sampling: training draws one per task.
#[derive(Debug)]
pub(super) struct BoyanChain {
    draw: BoyanDraw,
    restart_sums: Vec<f64>,
    rewards: Vec<f64>,
    values: Vec<f64>,
}

impl Chain for BoyanChain {
    fn table(&self) -> StateTable<'_> {
        let features = self.draw.features.as_slice();
        StateTable { features, rewards: &self.rewards, values: Some(&self.values) }
    }

    fn start(&mut self, stream: &mut Stream) -> usize {
        stream.categorical(&running_sums(&self.draw.initial))
    }

    /// The same step as sampling the chain's row of P by its running sums.
    #[inline]
    fn next(&mut self, state: usize, stream: &mut Stream) -> usize {
        let last = self.restart_sums.len() - 1;
        if state == last {
            return stream.categorical(&self.restart_sums);
        }
        if state + 1 == last {
            stream.uniform();
            return last;
        }
        let ahead = self.draw.ahead[state];
        let u = stream.uniform() * (ahead + (1.0 - ahead));
        state + 1 + usize::from(ahead <= u)
    }

    /// By following the mass that leaves the last state.
    fn stationary(&self) -> Option<Vec<f64>> {
        let (m, ahead) = (self.rewards.len(), &self.draw.ahead);
        let mut mass = self.draw.restart.clone();
        for s in 0..m - 1 {
            let share = mass[s];
            if s + 2 < m {
                mass[s + 1] += ahead[s] * share;
                mass[s + 2] += (1.0 - ahead[s]) * share;
            } else {
                mass[s + 1] += share;
            }
        }
        // All that arrives in the last state is what left it: 1.
        Some(normalised(mass))
    }
}

/// The entries divided by their sum.
pub(super) fn normalised(mut weights: Vec<f64>) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= total);
    weights
}

/// The classical edges of the chain as (from, to), for drawing its topology (Figure 4).
pub fn chain_edges(num_states: usize) -> Vec<(usize, usize)> {
    let forward = (0..num_states - 1).flat_map(|i| [(i, i + 1), (i, i + 2)]);
    forward.filter(|&(_, to)| to < num_states).chain((0..num_states).map(|to| (num_states - 1, to))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn support_is_the_chain_of_figure_4() {
        let task = Boyan::paper().generate(&mut Stream::new(1, Purpose::Task, 0)).unwrap();
        let p = task.mrp().transitions().matrix();
        let edges = chain_edges(64);
        for s in 0..64 {
            for next in 0..64 {
                assert_eq!(p[(s, next)] > 0.0, edges.contains(&(s, next)), "({s}, {next})");
            }
        }
    }

    #[test]
    fn representable_values_are_linear_in_the_features() {
        let task = Boyan::paper().generate(&mut Stream::new(2, Purpose::Task, 0)).unwrap();
        // The exact values come from ⟨w, x⟩; solving the Bellman equation is the other road.
        for (linear, solved) in task.values().iter().zip(task.mrp().values().unwrap()) {
            // Values of order 1, condition number at most (1 + γ)/(1 - γ) = 19.
            assert!((linear - solved).abs() < 1e-13);
        }
    }

    #[test]
    fn free_rewards_lie_in_the_unit_interval_and_values_solve_bellman() {
        let boyan = Boyan { representation: Representation::Free, ..Boyan::paper() };
        let task = boyan.generate(&mut Stream::new(2, Purpose::Task, 0)).unwrap();
        assert!(task.mrp().rewards().iter().all(|r| r.abs() < 1.0));
        for (v, tv) in task.values().iter().zip(task.mrp().bellman(task.values())) {
            assert!((v - tv).abs() < 1e-13);
        }
    }

    /// The chain without its matrix is the task of the generator, to the last bit.
    #[test]
    fn fast_chains_are_the_generator_s_tasks() {
        for index in 0..20 {
            let mut fast = Boyan::paper().chain(&mut Stream::new(3, Purpose::Task, index)).unwrap();
            let task = Boyan::paper().generate(&mut Stream::new(3, Purpose::Task, index)).unwrap();
            assert_eq!(fast.table(), task.table());
            let mut states = Vec::new();
            fast.sample_states(331, &mut Stream::new(3, Purpose::Trajectory, index), &mut states);
            assert_eq!(
                states,
                task.mrp().sample_states(331, &mut Stream::new(3, Purpose::Trajectory, index))
            );
            for (a, b) in fast.stationary().unwrap().iter().zip(task.stationary_distribution()) {
                // Both without subtractions, sums of at most 64 terms.
                assert!((a - b).abs() <= 1e-14 * b, "{a} {b}");
            }
        }
    }

    #[test]
    fn too_small_chains_are_refused() {
        let mut stream = Stream::new(0, Purpose::Task, 0);
        let small = Boyan { num_states: 2, ..Boyan::paper() };
        assert!(matches!(small.generate(&mut stream), Err(TaskError::Size { field: "states", .. })));
        let flat = Boyan { feature_dim: 0, ..Boyan::paper() };
        assert!(matches!(flat.generate(&mut stream), Err(TaskError::Size { field: "features", .. })));
    }
}
