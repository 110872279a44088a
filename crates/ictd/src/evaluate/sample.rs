//! Weighted sums of the blocks of a log: what estimators see.

use super::log::Log;
use crate::matrix::Matrix;

/// A log in which every block of episodes counts with a weight.
#[derive(Clone, Debug)]
pub struct Sample<'a> {
    log: &'a Log,
    weights: Vec<f64>,
    /// Transitions by pair of [`Log::transitions`].
    counts: Vec<f64>,
    visits: Vec<f64>,
    reward_sums: Vec<f64>,
}

impl<'a> Sample<'a> {
    pub(super) fn new(log: &'a Log, weights: &[f64]) -> Self {
        assert_eq!(weights.len(), log.num_blocks(), "sample: one weight per block expected");
        let counts = log.transitions.weigh(weights, |cell| cell.count);
        let reward_sums = log.transitions.by_state(&log.transitions.weigh(weights, |cell| cell.sum));
        let visits = log.transitions.by_state(&counts);
        Self { log, weights: weights.to_vec(), counts, visits, reward_sums }
    }

    /// The log.
    pub fn log(&self) -> &'a Log {
        self.log
    }

    /// Weights of the blocks.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Discount γ.
    pub fn gamma(&self) -> f64 {
        self.log.gamma()
    }

    /// Number of states of the log.
    pub fn num_states(&self) -> usize {
        self.log.num_states()
    }

    /// Features of the states.
    pub fn features(&self) -> &'a Matrix {
        self.log.features()
    }

    /// How often each state was left.
    pub fn visits(&self) -> &[f64] {
        &self.visits
    }

    /// How often any state was left.
    pub fn num_visits(&self) -> f64 {
        self.visits.iter().sum()
    }

    /// Sum of the rewards paid on leaving each state.
    pub fn reward_sums(&self) -> &[f64] {
        &self.reward_sums
    }

    /// Transitions by pair of [`Log::transitions`].
    pub fn counts(&self) -> &[f64] {
        &self.counts
    }

    /// Next states of a state and how often each followed; where the episode terminated there is none.
    pub fn successors(&self, state: usize) -> impl Iterator<Item = (usize, f64)> {
        let grid = &self.log.transitions;
        grid.pairs_of(state).filter_map(|pair| Some((grid.to(pair)?, self.counts[pair])))
    }

    /// How many episodes began in each state.
    pub fn initial(&self) -> Vec<f64> {
        self.log.initial.by_state(&self.log.initial.weigh(&self.weights, |count| *count))
    }

    /// Sum of the discounted rewards to the end of the episode, over the visits of each state. Where an episode was truncated
    /// what would have followed is missing.
    pub fn return_sums(&self) -> Vec<f64> {
        self.log.returns.by_state(&self.log.returns.weigh(&self.weights, |cell| cell.sum))
    }

    /// The constant that fits best: c with Σ (r + γ·c·[not terminated] - c) = 0, which without discount is the mean return of an
    /// episode. 0 for an empty sample.
    pub fn mean_value(&self) -> f64 {
        let (mut ended, mut went_on) = (0.0, 0.0);
        for (pair, count) in self.counts.iter().enumerate() {
            *(if self.log.transitions.to(pair).is_some() { &mut went_on } else { &mut ended }) += count;
        }
        // Written as a sum of terms >= 0, of which none cancels where γ is 1.
        let divisor = ended + (1.0 - self.gamma()) * went_on;
        if divisor > 0.0 { self.reward_sums.iter().sum::<f64>() / divisor } else { 0.0 }
    }

    /// The smallest and the largest return that was seen. Where episodes were truncated what is to come is at least the smallest
    /// return again, and at most the largest: low = min (g + d·low), which is min g/(1 - d), of means over the visits of a block
    /// to the same state in episodes with the same last state. `None` for an empty sample.
    pub fn return_range(&self) -> Option<(f64, f64)> {
        let counted = |block: &usize| self.weights[*block] > 0.0;
        let terminated = (0..self.weights.len()).filter(counted).filter_map(|b| self.log.ranges[b]);
        let returns = &self.log.returns;
        let truncated = (0..returns.num_pairs()).filter(|&pair| returns.to(pair).is_some());
        let truncated = truncated.flat_map(|pair| returns.cells(pair)).filter(|(block, _)| counted(block));
        let again = truncated.map(|(_, cell)| cell.sum / (cell.count - cell.discount));
        terminated.chain(again.map(|g| (g, g))).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Σ δ over the transitions that leave each state, δ = r + γ·v(s') - v(s), where nothing follows a terminated episode.
    pub fn td_errors(&self, values: &[f64]) -> Vec<f64> {
        let error = |s: usize| {
            let next: f64 = self.successors(s).map(|(next, count)| count * values[next]).sum();
            self.reward_sums[s] + self.gamma() * next - self.visits[s] * values[s]
        };
        (0..self.num_states()).map(error).collect()
    }

    /// Mean of (v(s) - g - d·v(last))² over the visits: how far values are from the returns that followed; NaN for an empty
    /// sample.
    pub fn return_loss(&self, values: &[f64]) -> f64 {
        let losses = self.log.return_losses(values);
        losses.iter().zip(&self.weights).map(|(loss, weight)| loss * weight).sum::<f64>() / self.num_visits()
    }
}
