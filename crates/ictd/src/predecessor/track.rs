//! The data of a task: a table of its states, trajectories, and sampled returns.

use std::ops::Range;

use super::config::{Pays, PredecessorConfig, PredecessorLoss};
use super::prompts::{Prompts, Transition};
use super::shape::PredecessorShape;
use crate::pretrain::lanes::Element;
use crate::random::{Purpose, Stream};
use crate::task::{Chain, TaskError, TaskSource as _};

/// Steps of a sampled return.
const RETURN_STEPS: i32 = 40;
/// Steps by which the occupancy of states is estimated where no stationary law is known: with 20 steps to a fall, 250 falls.
const OCCUPANCY_STEPS: usize = 5000;

/// Of a return that is summed up along a trajectory so much of its weight may lie beyond the end.
const CUT: f64 = 1e-3;

/// How often states are visited, and what they are worth.
#[derive(Clone, Debug)]
pub struct Truth {
    /// μ, which sums to 1.
    pub law: Vec<f64>,
    /// The values of all states twice: both exact, or means of returns on either half of a trajectory, NaN where there is none. Halves know
    /// nothing of each other, so that the product of the distances to both is, on average, the square of that to the truth.
    pub values: [Vec<f64>; 2],
}

/// A task and one trajectory of it.
#[derive(Debug)]
pub struct Track {
    gamma: f64,
    pays: Pays,
    chain: Option<Box<dyn Chain>>,
    /// State by state: features, reward and, where known, exact value. States with the same features and reward are one.
    features: Vec<f64>,
    rewards: Vec<f64>,
    values: Option<Vec<f64>>,
    /// The state of the table that each state of the chain is; they are the same where a chain knows its values.
    classes: Vec<usize>,
    /// The trajectory, by the numbers of the chain and of the table.
    visited: Vec<usize>,
    states: Vec<usize>,
}

impl Track {
    /// Nothing yet.
    pub fn new(config: &PredecessorConfig) -> Self {
        let (chain, features, rewards, values) = Default::default();
        let (classes, visited, states) = Default::default();
        let (gamma, pays) = (config.task.gamma, config.pays);
        Self { gamma, pays, chain, features, rewards, values, classes, visited, states }
    }

    /// Draws a task.
    pub fn draw(&mut self, config: &PredecessorConfig, stream: &mut Stream) -> Result<(), TaskError> {
        let chain = config.task.draw_chain(stream)?;
        let table = chain.table();
        table.features.clone_into(&mut self.features);
        table.rewards.clone_into(&mut self.rewards);
        self.values = table.values.map(<[f64]>::to_vec);
        self.classes.clear();
        self.chain = Some(chain);
        Ok(())
    }

    /// Follows a trajectory from a fresh start, as many windows as asked for and one more.
    pub fn follow(&mut self, shape: &PredecessorShape, num_windows: usize, stream: &mut Stream) {
        self.sample(num_windows + shape.context_len + 1, stream);
    }

    /// Samples a trajectory.
    fn sample(&mut self, num_transitions: usize, stream: &mut Stream) {
        self.visited.clear();
        let Some(chain) = &mut self.chain else { return };
        chain.sample_states(num_transitions, stream, &mut self.visited);
        self.states.clear();
        if self.values.is_some() {
            self.states.extend_from_slice(&self.visited);
            return;
        }
        let table = chain.table();
        for &state in &self.visited {
            while self.classes.len() <= state {
                let new = self.classes.len();
                let d = table.features.len() / table.rewards.len();
                let row = &table.features[new * d..(new + 1) * d];
                let same = |c: &usize| {
                    self.features[c * d..(c + 1) * d] == *row && self.rewards[*c] == table.rewards[new]
                };
                let class = (0..self.rewards.len()).find(same).unwrap_or_else(|| {
                    self.features.extend_from_slice(row);
                    self.rewards.push(table.rewards[new]);
                    self.rewards.len() - 1
                });
                self.classes.push(class);
            }
            self.states.push(self.classes[state]);
        }
    }

    /// Features of a state of the table.
    pub fn features(&self, state: usize) -> &[f64] {
        let d = self.features.len() / self.rewards.len();
        &self.features[state * d..(state + 1) * d]
    }

    /// States of the table.
    pub fn num_states(&self) -> usize {
        self.rewards.len()
    }

    /// The reward of the transition at a position.
    fn reward(&self, position: usize) -> f64 {
        self.rewards[self.states[position + usize::from(self.pays == Pays::Entering)]]
    }

    /// The transition at a position.
    pub fn transition(&self, position: usize) -> Transition<'_> {
        Transition {
            features: self.features(self.states[position]),
            successor: self.features(self.states[position + 1]),
            reward: self.reward(position),
        }
    }

    fn transitions(&self, num: usize) -> impl ExactSizeIterator<Item = (usize, Transition<'_>)> {
        let number = |p: usize| self.states[p] * self.num_states() + self.states[p + 1];
        (0..num).map(move |p| (number(p), self.transition(p)))
    }

    /// Writes windows one after the other, each asked about the state one past its context.
    pub fn fill_windows<E: Element>(
        &self,
        shape: &PredecessorShape,
        counted: bool,
        num: usize,
        prompts: &mut Prompts<E>,
    ) {
        let n = shape.context_len;
        let windows = (0..num).map(|t| (t, self.features(self.states[t + n + 1])));
        prompts.fill(shape, self.gamma, counted, self.transitions(num - 1 + n), windows);
    }

    /// Writes the first window as often as there are states, each asked about one.
    pub fn fill_states<E: Element>(&self, shape: &PredecessorShape, counted: bool, prompts: &mut Prompts<E>) {
        let windows = (0..self.num_states()).map(|s| (0, self.features(s)));
        prompts.fill(shape, self.gamma, counted, self.transitions(shape.context_len), windows);
    }

    /// The reward paid on the way from the query of window `t` to that of the next.
    pub fn query_reward(&self, shape: &PredecessorShape, t: usize) -> f64 {
        self.reward(t + shape.context_len + 1)
    }

    /// What the first windows' predictions are pulled towards by losses other than that of TD.
    pub fn goals(
        &mut self,
        config: &PredecessorConfig,
        num: usize,
        stream: &mut Stream,
        goals: &mut Vec<f64>,
    ) {
        goals.clear();
        let queries = config.context_len + 1..config.context_len + 1 + num;
        match (config.loss, &self.values, &mut self.chain) {
            (PredecessorLoss::MsveTrue, Some(values), _) => {
                goals.extend(self.states[queries].iter().map(|&s| values[s]));
            }
            (PredecessorLoss::MsveMc, _, Some(chain)) => {
                // Steps are counted by their discount; a millionth keeps rounding from adding one.
                let tolerance = self.gamma.powi(RETURN_STEPS) * (1.0 + 1e-6);
                for position in queries {
                    let sampled = chain.sample_return(self.visited[position], self.gamma, tolerance, stream);
                    goals.push(match self.pays {
                        Pays::Leaving => sampled,
                        // One reward fewer and later.
                        Pays::Entering => (sampled - self.rewards[self.states[position]]) / self.gamma,
                    });
                }
            }
            _ => {}
        }
    }

    /// The stationary law and the values of the table; where they are not known the share of time spent in each state, and the mean returns
    /// from it. The trajectory is lost in the second case.
    pub fn truth(&mut self, seed: u64, index: u64) -> Truth {
        let law = self.chain.as_ref().and_then(|chain| chain.stationary());
        if let (Some(law), Some(values)) = (law, &self.values) {
            return Truth { law, values: [values.clone(), values.clone()] };
        }
        self.sample(OCCUPANCY_STEPS, &mut Stream::new(seed, Purpose::Evaluation, index));
        let mut law = vec![0.0; self.num_states()];
        self.states.iter().for_each(|&s| law[s] += 1.0 / (OCCUPANCY_STEPS + 1) as f64);
        let half = OCCUPANCY_STEPS / 2;
        Truth { law, values: [0..half, half..OCCUPANCY_STEPS].map(|steps| self.mean_returns(steps)) }
    }

    /// The mean of the returns that begin in each state, over some steps of the trajectory; NaN where there is none.
    fn mean_returns(&self, steps: Range<usize>) -> Vec<f64> {
        let (mut sums, mut counts) = (vec![0.0; self.num_states()], vec![0.0; self.num_states()]);
        let (mut sum, mut beyond) = (0.0, 1.0);
        for position in steps.rev() {
            sum = self.reward(position) + self.gamma * sum;
            beyond *= self.gamma;
            if beyond <= CUT {
                sums[self.states[position]] += sum;
                counts[self.states[position]] += 1.0;
            }
        }
        sums.iter().zip(&counts).map(|(sum, count)| sum / count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean returns of a Boyan chain against its exact values. Returns are of order 1 and forget within some ten steps, so that means over
    /// some 5,000 visits have errors of about 0.03; what is cut off is a thousandth of at most 10.
    #[test]
    fn mean_returns_are_near_exact_values() {
        let config = PredecessorConfig::standard();
        let mut track = Track::new(&config);
        track.draw(&config, &mut Stream::new(0, Purpose::Task, 0)).unwrap();
        let steps = 100_000;
        track.sample(steps, &mut Stream::new(0, Purpose::Trajectory, 0));
        let exact = track.values.clone().unwrap();
        let spread = exact.iter().fold(0.0, |top: f64, v| top.max((v - exact[0]).abs()));
        assert!(spread > 1.0, "{exact:?}");
        for half in [0..steps / 2, steps / 2..steps] {
            let found = track.mean_returns(half);
            for (found, exact) in found.iter().zip(&exact) {
                assert!((found - exact).abs() < 0.15, "{found} {exact}");
            }
        }
        let nobody = track.mean_returns(0..10);
        assert!(nobody.iter().all(|v| v.is_nan()), "ten steps end before any return does: {nobody:?}");
    }
}
