//! The data of a task: a table of its states, trajectories, and sampled returns.

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

    /// The stationary law over the table, or the share of time spent in each state where it is not known. The trajectory
    /// is lost in the second case.
    pub fn occupancy(&mut self, seed: u64, index: u64) -> Vec<f64> {
        if let Some(law) = self.chain.as_ref().and_then(|chain| chain.stationary()) {
            return law;
        }
        self.sample(OCCUPANCY_STEPS, &mut Stream::new(seed, Purpose::Evaluation, index));
        let mut law = vec![0.0; self.num_states()];
        self.states.iter().for_each(|&s| law[s] += 1.0 / (OCCUPANCY_STEPS + 1) as f64);
        law
    }
}
