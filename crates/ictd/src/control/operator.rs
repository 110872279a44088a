//! Layers on distinct pairs: the fast path, and exact expectations.

use super::Backup;
use super::config::{ControlError, SoftmaxControl, check_initial, finite};
use super::context::PairContext;
use crate::context::ContextStatistics;
use crate::matrix::Matrix;
use crate::operator::StateOperator;
use crate::task::Mdp;

/// A layer of softmax TD on pairs as a map of their values, with one weight per two pairs: memory O(pairs²) however many transitions
/// there are.
///
/// Pairs that were left come first in its statistics, then all others; lists of values are in the order of the pairs' numbers.
#[derive(Clone, Debug)]
pub struct PairOperator {
    control: SoftmaxControl,
    num_actions: usize,
    /// The pair of every group of the statistics.
    pairs: Vec<usize>,
    /// For every source group the states that followed and how often; `None` where successors are pairs and the layer is linear.
    next_states: Option<Vec<Vec<(usize, f64)>>>,
    states: StateOperator,
}

/// What is counted of every pair that was left.
#[derive(Clone, Debug, Default)]
struct Counts {
    visits: f64,
    reward_sum: f64,
    /// (next state, next action where it matters, how often).
    next: Vec<(usize, Option<usize>, f64)>,
}

impl Counts {
    fn add(&mut self, reward: f64, next: Option<(usize, Option<usize>)>) {
        self.visits += 1.0;
        self.reward_sum += reward;
        let Some((state, action)) = next else { return };
        match self.next.iter_mut().find(|(s, a, _)| (*s, *a) == (state, action)) {
            Some((_, _, count)) => *count += 1.0,
            None => self.next.push((state, action, 1.0)),
        }
    }
}

impl PairOperator {
    /// The layers of a context.
    pub fn empirical(control: &SoftmaxControl, context: &PairContext) -> Result<Self, ControlError> {
        control.config().backup.check_sizes(context.num_states(), context.num_actions())?;
        let mut counts = vec![Counts::default(); context.num_pairs()];
        let is_sarsa = control.config().backup == Backup::Sarsa;
        for (k, t) in context.transitions().iter().enumerate() {
            // Refuses a missing next action where it is needed.
            let successor = if is_sarsa { context.successor(k)? } else { None };
            let action = successor.map(|pair| pair % context.num_actions());
            counts[context.source(k)].add(t.reward, t.next.map(|next| (next, action)));
        }
        Self::of(control, context.features(), context.num_actions(), &counts)
    }

    /// The layers with exact expectations: every pair once, with its expected reward and the law of its successor. With exact
    /// expectations SARSA under a policy is Expected SARSA under it, which has to be said: [`Backup::Sarsa`] is refused.
    pub fn expected(control: &SoftmaxControl, mdp: &Mdp, features: &Matrix) -> Result<Self, ControlError> {
        mdp.check()?;
        let (m, actions) = (mdp.num_states(), mdp.num_actions());
        control.config().backup.check_sizes(m, actions)?;
        if control.config().backup == Backup::Sarsa {
            return Err(ControlError::NoActions);
        }
        let (found, expected) = (features.num_rows(), m * actions);
        if found != expected {
            return Err(ControlError::FeatureRows { found, expected });
        }
        let counts = |pair: usize| {
            let (s, a) = (pair / actions, pair % actions);
            let law = mdp.transitions[a].row(s).iter().enumerate();
            let next = law.filter(|(_, p)| **p > 0.0).map(|(next, p)| (next, None, *p)).collect();
            Counts { visits: 1.0, reward_sum: mdp.rewards[(s, a)], next }
        };
        Self::of(control, features, actions, &(0..expected).map(counts).collect::<Vec<_>>())
    }

    fn of(
        control: &SoftmaxControl,
        features: &Matrix,
        num_actions: usize,
        counts: &[Counts],
    ) -> Result<Self, ControlError> {
        let backup = &control.config().backup;
        let is_source = |&pair: &usize| counts[pair].visits > 0.0;
        let (mut pairs, others): (Vec<usize>, Vec<usize>) = (0..counts.len()).partition(is_source);
        let sources = pairs.len();
        pairs.extend(others);
        let mut group = vec![0; pairs.len()];
        pairs.iter().enumerate().for_each(|(g, &pair)| group[pair] = g);
        let of_sources = |of: fn(&Counts) -> f64| pairs[..sources].iter().map(|&p| of(&counts[p])).collect();
        let successors = |&pair: &usize| -> Vec<(usize, f64)> {
            let each = |&(state, action, count): &(usize, Option<usize>, f64)| {
                let actions = action.map_or(0..num_actions, |a| a..a + 1);
                let group = &group;
                let share = move |a| match action {
                    Some(_) => count,
                    None => count * backup.prior(state, a, num_actions),
                };
                actions.map(move |a| (group[state * num_actions + a], share(a)))
            };
            counts[pair].next.iter().flat_map(each).filter(|(_, count)| *count > 0.0).collect()
        };
        let followed: Vec<Vec<(usize, f64)>> = pairs[..sources].iter().map(successors).collect();
        let rows = Matrix::from_fn(pairs.len(), features.num_cols(), |g, a| features[(pairs[g], a)]);
        let statistics = ContextStatistics::weighted(
            &rows,
            of_sources(|c| c.visits),
            of_sources(|c| c.reward_sum),
            &followed,
        );
        let states = StateOperator::of(statistics, control.attention(), control.config().gamma)?;
        let next_states = matches!(backup, Backup::Boltzmann(_)).then(|| {
            let next = |&pair: &usize| counts[pair].next.iter().map(|&(s, _, count)| (s, count)).collect();
            pairs[..sources].iter().map(next).collect()
        });
        Ok(Self { control: control.clone(), num_actions, pairs, next_states, states })
    }

    /// What it runs.
    pub fn control(&self) -> &SoftmaxControl {
        &self.control
    }

    /// The pair of a state of [`states`](Self::states).
    pub fn pair_of(&self, state: usize) -> usize {
        self.pairs[state]
    }

    /// The layer of SARSA and Expected SARSA as the linear operator of policy evaluation with pairs as states, of which
    /// certificates can be asked.
    pub fn states(&self) -> Result<&StateOperator, ControlError> {
        if self.next_states.is_some() { Err(ControlError::NotLinear) } else { Ok(&self.states) }
    }

    /// The weights and counts, whatever the backup.
    pub(super) fn weights(&self) -> &StateOperator {
        &self.states
    }

    /// Number of actions.
    pub(super) fn num_actions(&self) -> usize {
        self.num_actions
    }

    /// One layer with step size α on the values of all pairs.
    ///
    /// # Panics
    /// When there is not one value per pair.
    pub fn apply(&self, step_size: f64, q: &[f64]) -> Vec<f64> {
        assert_eq!(q.len(), self.pairs.len(), "apply: one value per pair expected");
        let grouped: Vec<f64> = self.pairs.iter().map(|&pair| q[pair]).collect();
        let next = match &self.next_states {
            None => self.states.apply(step_size, &grouped),
            Some(next_states) => {
                let errors = self.boltzmann_errors(next_states, q, &grouped);
                self.states.apply_errors(step_size, &grouped, &errors)
            }
        };
        let mut values = vec![0.0; q.len()];
        self.pairs.iter().zip(next).for_each(|(&pair, value)| values[pair] = value);
        values
    }

    /// TD errors summed by source pair.
    fn boltzmann_errors(&self, next: &[Vec<(usize, f64)>], q: &[f64], grouped: &[f64]) -> Vec<f64> {
        let statistics = self.states.statistics();
        let backup = &self.control.config().backup;
        let states = q.chunks_exact(self.num_actions).enumerate();
        let best: Vec<f64> = states.filter_map(|(s, q)| backup.of_state(s, q)).collect();
        let error = |(g, next): (usize, &Vec<(usize, f64)>)| {
            let bootstrap: f64 = next.iter().map(|&(s, count)| count * best[s]).sum();
            statistics.reward_sums()[g] + self.control.config().gamma * bootstrap
                - statistics.visits()[g] * grouped[g]
        };
        next.iter().enumerate().map(error).collect()
    }

    /// The values of all pairs before the first and after every layer.
    pub fn run(&self, initial: &[f64]) -> Result<Vec<Vec<f64>>, ControlError> {
        check_initial(initial, self.pairs.len())?;
        let mut history = vec![initial.to_vec()];
        for (layer, &step_size) in self.control.config().step_sizes.iter().enumerate() {
            history.push(finite(self.apply(step_size, &history[layer]), layer + 1)?);
        }
        Ok(history)
    }
}
