//! The data of an epoch: one fresh task, one trajectory, the queries of its windows.

use std::sync::Arc;

use super::config::{Loss, PretrainConfig, QueryPosition};
use super::lanes::{Element, WIDTH};
use super::reading::Target;
use super::shape::Shape;
use super::states::Visits;
use crate::random::{EVALUATION_STREAMS, Purpose, Stream, running_sums};
use crate::task::{TaskError, TaskSource};

/// Sampled returns are followed until what is left is worth less than this.
const RETURN_TOLERANCE: f64 = 1e-4;

/// A task and a trajectory of it, as far as training needs them.
#[derive(Clone, Debug)]
pub(super) struct Rollout {
    /// What tasks are drawn from.
    source: Arc<dyn TaskSource>,
    /// State by state: features, reward, exact value (NaN where it is not known).
    table: Vec<f64>,
    rewards: Vec<f64>,
    values: Vec<f64>,
    /// The trajectory.
    states: Vec<usize>,
    /// Window by window: the query and its successor.
    queries: Vec<usize>,
    successors: Vec<usize>,
    /// Window by window: a sampled return of the query, for the Monte-Carlo loss.
    returns: Vec<f64>,
}

/// Which streams of random numbers a rollout draws from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    pub seed: u64,
    pub epoch: u64,
    /// Fresh tasks for measuring instead of training.
    pub evaluation: bool,
}

impl Draw {
    /// Evaluation uses a purpose of its own with three streams per epoch, so that measuring never
    /// touches what training draws.
    fn stream(self, purpose: Purpose) -> Stream {
        if !self.evaluation {
            return Stream::new(self.seed, purpose, self.epoch);
        }
        let which = match purpose {
            Purpose::Task => 0,
            Purpose::Trajectory => 1,
            _ => 2,
        };
        Stream::new(self.seed, Purpose::Evaluation, EVALUATION_STREAMS * self.epoch + which)
    }
}

impl Rollout {
    /// Nothing yet, from a source of tasks.
    pub fn new(source: Arc<dyn TaskSource>) -> Self {
        let (table, rewards, values, returns) = Default::default();
        let (states, queries, successors) = Default::default();
        Self { source, table, rewards, values, states, queries, successors, returns }
    }

    /// Draws a task and everything `num_windows` windows need, one more included for the last target.
    pub fn sample(
        &mut self,
        config: &PretrainConfig,
        draw: Draw,
        num_windows: usize,
    ) -> Result<(), TaskError> {
        let mut chain = self.source.draw_chain(&mut draw.stream(Purpose::Task))?;
        let mut stream = draw.stream(Purpose::Trajectory);
        self.states.clear();
        chain.sample_states(num_windows + config.context_len + 1, &mut stream, &mut self.states);
        self.queries.clear();
        self.successors.clear();
        let after = match config.query {
            QueryPosition::Next => Some(config.context_len),
            QueryPosition::Skip => Some(config.context_len + 1),
            QueryPosition::Source => Some(config.shape().context_len - 1),
            QueryPosition::Stationary => None,
        };
        match after {
            Some(after) => {
                // One window more than asked for: its prediction is the last target.
                self.queries.extend_from_slice(&self.states[after..=after + num_windows]);
                self.successors.extend_from_slice(&self.queries[1..]);
            }
            None => {
                let unknown = TaskError::Unknown("the stationary law that queries are drawn from");
                let law = running_sums(&chain.stationary().ok_or(unknown)?);
                let mut stream = draw.stream(Purpose::Query);
                for _ in 0..=num_windows {
                    let query = stream.categorical(&law);
                    self.queries.push(query);
                    self.successors.push(chain.next(query, &mut stream));
                }
            }
        }
        self.returns.clear();
        // Measuring compares with exact values.
        if config.loss == Loss::MonteCarlo && !draw.evaluation {
            let (mut stream, gamma) = (draw.stream(Purpose::MonteCarlo), config.task.gamma);
            for &query in &self.queries[..num_windows] {
                self.returns.push(chain.sample_return(query, gamma, RETURN_TOLERANCE, &mut stream));
            }
        }
        let known = chain.table();
        let (d, states) = (config.task.feature_dim(), known.rewards.len());
        if known.features.len() != d * states {
            return Err(TaskError::Features { rows: known.features.len() / d, cols: d, states });
        }
        known.features.clone_into(&mut self.table);
        known.rewards.clone_into(&mut self.rewards);
        match known.values {
            Some(values) => values.clone_into(&mut self.values),
            None if config.loss == Loss::TrueValue => {
                return Err(TaskError::Unknown("the values that predictions are compared with"));
            }
            None => self.values = vec![f64::NAN; states],
        }
        Ok(())
    }

    /// Writes the windows' contexts and, where they are columns of their own, queries.
    pub fn fill_windows<E: Element>(
        &self,
        shape: &Shape,
        most_states: Option<usize>,
        windows: &mut Windows<E>,
    ) {
        // Without a column of its own the query is the last state, which the context has.
        let columns = if shape.columns.separate_query { self.queries.as_slice() } else { &[] };
        self.fill(shape.feature_dim, columns, windows);
        windows.set_visits(self.visits(shape.feature_dim, &self.queries, most_states));
    }

    /// Writes the windows whose predictions are targets: the successor of window t's query, asked of the
    /// context of window t, or of window t + 1 where targets are shifted.
    pub fn fill_target_windows<E: Element>(
        &self,
        d: usize,
        target: Target,
        most_states: Option<usize>,
        windows: &mut Windows<E>,
    ) {
        let shifted: Vec<usize>;
        let queries = match target {
            Target::Same => &self.successors[..],
            Target::Shifted => {
                shifted = self.successors[..1].iter().chain(&self.successors).copied().collect();
                &shifted[..self.queries.len()]
            }
        };
        self.fill(d, queries, windows);
        windows.set_visits(self.visits(d, queries, most_states));
    }

    fn fill<E: Element>(&self, d: usize, queries: &[usize], windows: &mut Windows<E>) {
        let row = |s: usize| &self.table[s * d..(s + 1) * d];
        let positions = self.states.iter().map(|&s| (row(s), self.rewards[s]));
        windows.fill(d, positions, queries.iter().map(|&s| row(s)));
    }

    /// What a pass by state needs to know, if the states are few enough for it.
    fn visits<E: Element>(
        &self,
        d: usize,
        queries: &[usize],
        most_states: Option<usize>,
    ) -> Option<Visits<E>> {
        Visits::of(&self.table, d, &self.states, queries, most_states?)
    }

    /// The rewards paid on leaving the queries of the windows from `first` on.
    pub fn query_rewards(&self, first: usize, num: usize) -> impl Iterator<Item = f64> {
        self.queries[first..first + num].iter().map(|&query| self.rewards[query])
    }

    /// The mean over the sources of window `t` of the rewards that its prompt shows.
    pub fn mean_reward(&self, t: usize, shape: &Shape) -> f64 {
        let shown = shape.columns.rewarded(shape.context_len);
        let sum: f64 = self.states[t..t + shown].iter().map(|&s| self.rewards[s]).sum();
        sum / shape.context_len as f64
    }

    /// The exact value of the query of window `t`; NaN where it is not known.
    pub fn value(&self, t: usize) -> f64 {
        self.values[self.queries[t]]
    }

    /// A sampled return of the query of window `t`.
    pub fn sampled_return(&self, t: usize) -> f64 {
        self.returns[t]
    }
}

/// Overlapping contexts: window t has sources at positions t, …, t + n - 1 and a query of its own.
///
/// Arrays are padded so that a whole number of lanes can be read at every window.
#[derive(Clone, Debug, Default)]
pub struct Windows<E> {
    stride: usize,
    features: Vec<E>,
    rewards: Vec<E>,
    query_stride: usize,
    queries: Vec<E>,
    visits: Option<Arc<Visits<E>>>,
}

impl<E: Element> Windows<E> {
    /// Refills from feature rows and rewards by position, and the queries' feature rows by window.
    pub fn fill<'a>(
        &mut self,
        feature_dim: usize,
        positions: impl ExactSizeIterator<Item = (&'a [f64], f64)>,
        queries: impl ExactSizeIterator<Item = &'a [f64]>,
    ) {
        self.stride = positions.len() + WIDTH;
        self.query_stride = queries.len() + WIDTH;
        for (array, len) in [
            (&mut self.features, feature_dim * self.stride),
            (&mut self.rewards, self.stride),
            (&mut self.queries, feature_dim * self.query_stride),
        ] {
            array.clear();
            array.resize(len, E::default());
        }
        for (p, (x, reward)) in positions.enumerate() {
            self.rewards[p] = E::of(reward);
            let slots = self.features[p..].iter_mut().step_by(self.stride);
            x.iter().zip(slots).for_each(|(x, slot)| *slot = E::of(*x));
        }
        for (t, x) in queries.enumerate() {
            let slots = self.queries[t..].iter_mut().step_by(self.query_stride);
            x.iter().zip(slots).for_each(|(x, slot)| *slot = E::of(*x));
        }
    }

    /// The states behind positions and queries, where they are known to be few.
    pub(super) fn visits(&self) -> Option<&Arc<Visits<E>>> {
        self.visits.as_ref()
    }

    /// Says which states positions and queries are in.
    pub(super) fn set_visits(&mut self, visits: Option<Visits<E>>) {
        self.visits = visits.map(Arc::new);
    }

    /// Feature `a` from position `p` on.
    #[inline(always)]
    pub(super) fn feature(&self, a: usize, p: usize) -> &[E] {
        &self.features[a * self.stride + p..(a + 1) * self.stride]
    }

    /// Rewards from position `p` on.
    #[inline(always)]
    pub(super) fn reward(&self, p: usize) -> &[E] {
        &self.rewards[p..]
    }

    /// Writes features, then rewards, from position `p` on, to rows of this stride: to the places of a row that `within` says,
    /// and 0 to its others.
    #[inline(always)]
    pub(super) fn copy_rows(&self, p: usize, within: std::ops::Range<usize>, stride: usize, rows: &mut [E]) {
        let d = rows.len() / stride - 1;
        for (a, row) in rows.chunks_exact_mut(stride).enumerate() {
            let source = if a < d { self.feature(a, p) } else { self.reward(p) };
            row[..within.start].fill(E::default());
            row[within.clone()].copy_from_slice(&source[..within.len()]);
            row[within.end..].fill(E::default());
        }
    }

    /// Feature `a` of the queries from window `t` on.
    #[inline(always)]
    pub(super) fn query(&self, a: usize, t: usize) -> &[E] {
        &self.queries[a * self.query_stride + t..(a + 1) * self.query_stride]
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::SourceColumns;
    use super::*;

    fn rollout(config: &PretrainConfig, epoch: u64) -> Rollout {
        let mut rollout = Rollout::new(config.source().unwrap());
        rollout.sample(config, Draw { seed: 3, epoch, evaluation: false }, 320).unwrap();
        rollout
    }

    #[test]
    fn queries_stand_where_they_should() {
        let config = PretrainConfig::paper();
        let next = rollout(&config, 0);
        assert_eq!(next.queries[..], next.states[10..=330]);
        let skip = rollout(&PretrainConfig { query: QueryPosition::Skip, ..config.clone() }, 0);
        assert_eq!(skip.queries[..], skip.states[11..=331]);
        assert_eq!(skip.states, next.states);
        let stationary = rollout(&PretrainConfig { query: QueryPosition::Stationary, ..config }, 0);
        assert_eq!(stationary.states, next.states);
        assert_eq!((stationary.queries.len(), stationary.successors.len()), (321, 321));
        let mut source = PretrainConfig { query: QueryPosition::Source, ..PretrainConfig::paper() };
        assert_eq!(rollout(&source, 0).queries[..], next.states[9..=329]);
        source.source.columns = SourceColumns::NPlus1;
        assert_eq!(rollout(&source, 0).queries[..], next.states[10..=330]);
    }

    /// The mean of 320 sampled returns of each of 40 tasks against exact values: five standard errors.
    #[test]
    fn sampled_returns_have_the_value_as_mean() {
        let config = PretrainConfig { loss: Loss::MonteCarlo, ..PretrainConfig::paper() };
        let gaps: Vec<f64> = (0..40)
            .flat_map(|epoch| {
                let r = rollout(&config, epoch);
                (0..320).map(|t| r.sampled_return(t) - r.value(t)).collect::<Vec<f64>>()
            })
            .collect();
        let statistics = crate::statistics::MeanSem::of(&gaps).unwrap();
        assert!(statistics.mean.abs() < 5.0 * statistics.sem, "{statistics:?}");
    }
}
