//! Randomised Boyan chains.

use super::family::{ANY_FEATURES, Generator, MAX_STATES};
use super::finite::{FiniteTask, TaskError};
use super::mrp::{MrpError, is_discount};
use super::source::{Chain, StateTable};
use super::{Family, assemble};
use crate::matrix::Matrix;
use crate::random::{Stream, running_sums};

pub(super) const FAMILY: Generator = Generator {
    name: "boyan",
    title: "Boyan",
    usual: (64, 4),
    states: (3..=MAX_STATES, "3 to 5000"),
    features: ANY_FEATURES,
    draw: generate,
};

fn generate(family: &Family, stream: &mut Stream) -> Result<FiniteTask, TaskError> {
    let draw = BoyanDraw::new(family, stream);
    let m = family.num_states;
    let mut p = Matrix::zeros(m, m);
    for (i, &ahead) in draw.ahead.iter().enumerate() {
        p[(i, i + 1)] = ahead;
        p[(i, i + 2)] = 1.0 - ahead;
    }
    p[(m - 2, m - 1)] = 1.0;
    p.row_mut(m - 1).copy_from_slice(&draw.restart);
    assemble(p, draw.features, draw.initial, draw.weight, family.gamma, stream)
}

/// The chain of the representable task that [`generate`] draws, the same to the last bit.
pub(super) fn chain(family: &Family, stream: &mut Stream) -> Result<BoyanChain, TaskError> {
    let draw = BoyanDraw::new(family, stream);
    if !is_discount(family.gamma) {
        return Err(MrpError::Gamma(family.gamma).into());
    }
    let m = family.num_states;
    let v = draw.features.mul_vec(draw.weight.as_deref().unwrap_or_default());
    let reward = |s: usize| {
        let expected = match s {
            s if s + 2 < m => draw.ahead[s] * v[s + 1] + (1.0 - draw.ahead[s]) * v[s + 2],
            s if s + 2 == m => v[m - 1],
            _ => draw.restart.iter().zip(&v).map(|(p, v)| p * v).sum(),
        };
        v[s] - family.gamma * expected
    };
    let rewards = (0..m).map(reward).collect();
    Ok(BoyanChain { restart_sums: running_sums(&draw.restart), rewards, values: v, draw })
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

impl BoyanDraw {
    /// In the order of the version history.
    fn new(family: &Family, stream: &mut Stream) -> Self {
        let m = family.num_states;
        let (weight, features) = family.weight_and_features(stream);
        Self {
            weight,
            features,
            initial: normalised(stream.uniform_vec(m, 0.0, 1.0)),
            ahead: stream.uniform_vec(m - 2, 0.0, 1.0),
            restart: normalised(stream.uniform_vec(m, 0.0, 1.0)),
        }
    }
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
