//! The operator of a layer on so many states that its matrix is never formed.

use rayon::prelude::*;

use super::OperatorError;
use super::masses::{are_distinct, log_mass};
use super::state::never_left;
use super::weight_errors::weight_error;
use crate::context::ContextStatistics;
use crate::kernel::{Attention, Effort, GroupWeights, Route, Scores};
use crate::statistics::largest;
use crate::transformer::ValueRow;
use crate::watch::{Stopped, Watch};

/// The operator T(v) = (I - M + γP) v + M r of a layer at theta_* (paper, eq:operator-compact), as [`StateOperator`](super::StateOperator) has it, but
/// for products with vectors alone: weights are computed anew in each, and memory is linear in the number of states.
///
/// With c the visits, N the counts of successors, R the reward sums and W(s, u) the weight of a visit to source state s for state u,
/// summed TD errors are g = R - F v with F v = c·v - γ N v, a layer is v ↦ v + α·Wᵀ g, and it multiplies summed TD errors by I - α F Wᵀ.
pub struct AppliedOperator<'a> {
    statistics: ContextStatistics,
    attention: Attention,
    gamma: f64,
    weights: GroupWeights,
    diagonal: Diagonal,
    never_left: Vec<usize>,
    watch: &'a dyn Watch,
}

/// What there is to know of M without its other entries.
struct Diagonal {
    /// M(s, s) of the source states.
    self_weights: Vec<f64>,
    /// log w(s) of the source states, for positive definite kernels on distinct features, and a bound on what rounding did to any.
    log_masses: Option<(Vec<f64>, f64)>,
    /// A bound on Σ_s c(s)·|Ŵ(s, u) - W(s, u)| over all source states u.
    weight_error: f64,
}

impl<'a> AppliedOperator<'a> {
    /// The operator of given statistics. Every product is watched, and ends when `watch` says so.
    pub fn new(
        statistics: ContextStatistics,
        attention: &Attention,
        gamma: f64,
        effort: &Effort,
        watch: &'a dyn Watch,
    ) -> Result<Self, OperatorError> {
        if attention.diagonal_mix() != 0.0 {
            return Err(OperatorError::DiagonalMix(attention.diagonal_mix()));
        }
        let scores = Scores { attention, block: None, statistics: &statistics };
        let mut weights = GroupWeights::default();
        weights.fill(scores, effort, PRODUCTS, watch)?;
        watch.begin("weights", weights.unit(), weights.units())?;
        let diagonal = match weights.self_weights(scores, watch)? {
            Some((self_weights, error)) => Diagonal::of_sums(scores, self_weights, error),
            None => Diagonal::of_columns(scores, watch)?,
        };
        let never_left = never_left(&statistics);
        let attention = attention.clone();
        Ok(Self { statistics, attention, gamma, weights, diagonal, never_left, watch })
    }

    /// How products would be computed, before any weight is where weights are not kept.
    pub fn planned_route(
        statistics: &ContextStatistics,
        attention: &Attention,
        effort: &Effort,
        watch: &dyn Watch,
    ) -> Result<Route, OperatorError> {
        let mut weights = GroupWeights::default();
        weights.fill(Scores { attention, block: None, statistics }, effort, PRODUCTS, watch)?;
        Ok(weights.route())
    }

    /// The discount γ.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// The states and their statistics.
    pub fn statistics(&self) -> &ContextStatistics {
        &self.statistics
    }

    /// The attention of the layer.
    pub fn attention(&self) -> &Attention {
        &self.attention
    }

    /// How products are computed.
    pub fn route(&self) -> Route {
        self.weights.route()
    }

    /// Why so.
    pub fn reason(&self) -> &str {
        self.weights.reason()
    }

    /// M̂(s, s) of every source state.
    pub fn self_weights(&self) -> &[f64] {
        &self.diagonal.self_weights
    }

    /// A bound on Σ_s |M̂(u, s) - M(u, s)| over all source states u: the weights as computed against those that the features define in
    /// exact arithmetic. Infinite where rounding decides what a state attends to.
    pub fn weight_error(&self) -> f64 {
        self.diagonal.weight_error
    }

    /// log w(s) of every source state, where M(u, s) = c(s)·k(s, u)/w(u), and a bound on what rounding did to any of them; for positive
    /// definite kernels on distinct features.
    pub(crate) fn log_masses(&self) -> Option<(&[f64], f64)> {
        self.diagonal.log_masses.as_ref().map(|(masses, error)| (masses.as_slice(), *error))
    }

    /// The states that were reached but never left, in order; as [`StateOperator::never_left`](super::StateOperator::never_left).
    pub fn never_left(&self) -> &[usize] {
        &self.never_left
    }

    /// M̂(u, s) over source states s.
    pub fn predecessor_weights(&self, u: usize) -> Result<Vec<f64>, OperatorError> {
        let mut column = self.scores().column(u)?;
        column.iter_mut().zip(self.statistics.visits()).for_each(|(w, c)| *w *= c);
        Ok(column)
    }

    /// Says that work of so many products begins.
    pub(crate) fn begin(&self, work: &str, products: usize) -> Result<(), Stopped> {
        self.watch.begin(work, self.weights.unit(), self.weights.units() * products as u64)
    }

    /// One layer with step size α, v + α·M(r + γP v - v) (paper, eq:recur).
    pub fn apply(&mut self, step_size: f64, v: &[f64]) -> Result<Vec<f64>, OperatorError> {
        let errors = self.summed_errors(v);
        let mut next = v.to_vec();
        self.add_product(step_size, errors, &mut next)?;
        Ok(next)
    }

    /// The values Wᵀ y of every state, for y by source state.
    pub(super) fn values(&mut self, y: &[f64]) -> Result<Vec<f64>, OperatorError> {
        let mut values = vec![0.0; self.statistics.num_groups()];
        self.add_product(1.0, y.to_vec(), &mut values)?;
        Ok(values)
    }

    /// An error when the work shall stop.
    pub(super) fn check(&self) -> Result<(), Stopped> {
        self.watch.advance(0)
    }

    /// The TD errors of all transitions at the values `v`, summed by source state.
    pub(super) fn summed_errors(&self, v: &[f64]) -> Vec<f64> {
        self.messages(ValueRow::TD, v)
    }

    /// F v: summed values less discounted successors, by source state.
    fn differences(&self, v: &[f64]) -> Vec<f64> {
        self.messages(ValueRow { reward: 0.0, target: -1.0, value: 1.0, ..ValueRow::TD }, v)
    }

    /// F Wᵀ y, what a layer with step size 1 takes off summed TD errors y. Its spectrum decides what depth does
    /// ([`StateOperator::eigenvalues`](super::StateOperator::eigenvalues)).
    pub fn error_map(&mut self, y: &[f64]) -> Result<Vec<f64>, OperatorError> {
        let values = self.values(y)?;
        Ok(self.differences(&values))
    }

    fn scores(&self) -> Scores<'_> {
        Scores { attention: &self.attention, block: None, statistics: &self.statistics }
    }

    fn messages(&self, row: ValueRow<'_>, v: &[f64]) -> Vec<f64> {
        let message = |s| row.message(&self.statistics, self.gamma, v, s);
        (0..self.statistics.num_source_groups()).map(message).collect()
    }

    fn add_product(
        &mut self,
        step_size: f64,
        mut messages: Vec<f64>,
        out: &mut [f64],
    ) -> Result<(), OperatorError> {
        messages.resize(self.statistics.stride(), 0.0);
        let scores = Scores { attention: &self.attention, block: None, statistics: &self.statistics };
        Ok(self.weights.add_product(scores, step_size, &messages, out, self.watch)?)
    }
}

/// Products that are expected, which decides whether pivots pay where they are asked for.
const PRODUCTS: usize = 100;

impl Diagonal {
    /// From M(s, s), when weights are exponentials whose sums are off by `error` of themselves.
    fn of_sums(scores: Scores<'_>, self_weights: Vec<f64>, error: f64) -> Self {
        let Scores { attention, statistics, .. } = scores;
        let own = |s: usize| {
            let x = statistics.features(s);
            attention.kernel().log_weight(attention.kernel().similarity().of(x, x))
        };
        let masses = || -> Option<(Vec<f64>, f64)> {
            let logs: Vec<f64> = (0..self_weights.len()).map(own).collect::<Option<_>>()?;
            let weights = self_weights.iter().zip(statistics.visits()).map(|(m, c)| m / c);
            let masses: Vec<f64> = logs.iter().zip(weights).map(|(log, w)| log - w.ln()).collect();
            // A similarity is rounded once per feature, then divided.
            let steps = f64::EPSILON * (statistics.feature_dim() as f64 + 4.0);
            let rounding = 2.0 * error + steps * (1.0 + largest(logs.iter().map(|x| x.abs())));
            masses.iter().all(|m| m.is_finite()).then_some((masses, rounding))
        };
        let log_masses = if are_distinct(statistics) { masses() } else { None };
        Self { self_weights, log_masses, weight_error: error }
    }

    /// From the weights of every state, column by column.
    fn of_columns(scores: Scores<'_>, watch: &dyn Watch) -> Result<Self, OperatorError> {
        let Scores { attention, statistics, .. } = scores;
        let visits = statistics.visits();
        let steps = f64::EPSILON * (statistics.feature_dim() as f64 + 8.0);
        let one = |u: usize| -> Result<(f64, Option<(f64, f64)>, f64), OperatorError> {
            let weights = scores.column(u)?;
            let error = weight_error(attention, None, statistics, &weights, 1.0, u);
            // The mass comes from the largest weight: its relative error, and that of the similarity.
            let mass = log_mass(attention, statistics, &weights, u).map(|mass| {
                let top = weights.iter().zip(visits).map(|(w, c)| w * c).fold(0.0, f64::max);
                (mass, error / top + steps * (1.0 + mass.abs() + top.ln().abs()))
            });
            watch.advance(0)?;
            Ok((visits[u] * weights[u], mass, error))
        };
        let found: Vec<_> =
            (0..visits.len()).into_par_iter().map(one).collect::<Result<_, OperatorError>>()?;
        watch.advance(1)?;
        let masses: Option<Vec<(f64, f64)>> = found.iter().map(|f| f.1).collect();
        let log_masses = masses.filter(|_| are_distinct(statistics)).map(|masses| {
            let rounding = largest(masses.iter().map(|m| m.1));
            (masses.into_iter().map(|m| m.0).collect(), rounding)
        });
        let worst = largest(found.iter().map(|f| f.2));
        // Anything that is no number decides nothing.
        let weight_error = if worst.is_nan() { f64::INFINITY } else { worst };
        Ok(Self { self_weights: found.iter().map(|f| f.0).collect(), log_masses, weight_error })
    }
}

impl std::fmt::Debug for AppliedOperator<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AppliedOperator")
            .field("states", &self.statistics.num_groups())
            .field("gamma", &self.gamma)
            .field("attention", &self.attention)
            .field("route", &self.route())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::StateOperator;
    use crate::random::{Purpose, Stream};
    use crate::{Context, End, KernelName};

    /// F Wᵀ, against the matrix, on states of which one was never left and one is a query.
    #[test]
    fn the_map_of_errors_is_that_of_the_matrix() {
        let mut stream = Stream::new(8, Purpose::Prompt, 0);
        let rows: Vec<Vec<f64>> = (0..40).map(|_| stream.uniform_vec(3, -1.0, 1.0)).collect();
        let rewards = stream.uniform_vec(39, -1.0, 1.0);
        let context =
            Context::builder().episode(&rows, &rewards, End::Truncated).query(&[0.1; 3]).build().unwrap();
        for kernel in [KernelName::Softmax, KernelName::Rbf, KernelName::Tabular] {
            let attention = Attention::new(kernel.at(0.2).unwrap(), 0.0).unwrap();
            let dense = StateOperator::empirical(&context, &attention, 0.8).unwrap();
            let statistics = ContextStatistics::per_state(&context);
            let mut operator =
                AppliedOperator::new(statistics, &attention, 0.8, &Effort::default(), &()).unwrap();
            let y = stream.uniform_vec(39, -1.0, 1.0);
            let expected = dense.residual_map().mul_vec(&y);
            for (found, expected) in operator.error_map(&y).unwrap().iter().zip(expected) {
                // Sums of 40 weights of at most 1.
                assert!((found - expected).abs() < 1e-13);
            }
            let (masses, rounding) = operator.log_masses().unwrap();
            for (found, expected) in masses.iter().zip(dense.log_masses().unwrap()) {
                assert!((found - expected).abs() <= 1e-13 && rounding < 1e-11, "{found} {expected}");
            }
        }
    }
}
