//! The data of an epoch: one fresh task, one trajectory, the queries of its windows.

use super::config::{Family, Loss, PretrainConfig, QueryPosition};
use super::lanes::Element;
use super::reading::Target;
use super::shape::Shape;
use super::windows::Windows;
use crate::random::{Purpose, Stream, running_sums};
use crate::task::{Boyan, BoyanDraw, Dense, FiniteTask, Loop, Representation, TaskError};

/// Sampled returns are followed until what is left is worth less than this.
const RETURN_TOLERANCE: f64 = 1e-4;

/// A task and a trajectory of it, as far as training needs them.
#[derive(Clone, Debug, Default)]
pub(super) struct Rollout {
    /// State by state: features, reward, exact value.
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

/// How states follow one another.
enum Dynamics {
    Chain(BoyanDraw, Vec<f64>),
    Finite(FiniteTask),
}

impl Dynamics {
    #[inline]
    fn next(&self, s: usize, stream: &mut Stream) -> usize {
        match self {
            Self::Chain(draw, restart) => chain_step(draw, restart, s, stream),
            Self::Finite(task) => task.mrp().transitions().sample(s, stream),
        }
    }
}

/// Where a rollout's randomness comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// Seed of the run.
    pub seed: u64,
    /// Which epoch.
    pub epoch: u64,
    /// Fresh tasks for measuring instead of training.
    pub evaluation: bool,
}

impl Source {
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
        Stream::new(self.seed, Purpose::Evaluation, 3 * self.epoch + which)
    }
}

impl Rollout {
    /// Draws a task and everything `num_windows` windows need, one more included for the last target.
    pub fn sample(
        &mut self,
        config: &PretrainConfig,
        source: Source,
        num_windows: usize,
    ) -> Result<(), TaskError> {
        let mut stream = source.stream(Purpose::Task);
        let dynamics = self.draw_task(config, &mut stream)?;
        let mut stream = source.stream(Purpose::Trajectory);
        let num_transitions = num_windows + config.context_len + 1;
        self.states.clear();
        self.states.reserve(num_transitions + 1);
        let mut state = match &dynamics {
            Dynamics::Chain(draw, _) => stream.categorical(&running_sums(&draw.initial)),
            Dynamics::Finite(task) => stream.categorical(&running_sums(task.mrp().initial_distribution())),
        };
        self.states.push(state);
        for _ in 0..num_transitions {
            state = dynamics.next(state, &mut stream);
            self.states.push(state);
        }
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
                let law = running_sums(&stationary(&dynamics));
                let mut stream = source.stream(Purpose::Query);
                for _ in 0..=num_windows {
                    let query = stream.categorical(&law);
                    self.queries.push(query);
                    self.successors.push(dynamics.next(query, &mut stream));
                }
            }
        }
        self.returns.clear();
        // Measuring compares with exact values.
        if config.loss == Loss::MonteCarlo && !source.evaluation {
            let mut stream = source.stream(Purpose::MonteCarlo);
            for t in 0..num_windows {
                self.returns.push(self.sample_return(config.gamma, &dynamics, self.queries[t], &mut stream));
            }
        }
        Ok(())
    }

    fn sample_return(&self, gamma: f64, dynamics: &Dynamics, start: usize, stream: &mut Stream) -> f64 {
        let (mut state, mut discount, mut total) = (start, 1.0, 0.0);
        while discount > RETURN_TOLERANCE {
            total += discount * self.rewards[state];
            state = dynamics.next(state, stream);
            discount *= gamma;
        }
        total
    }

    fn draw_task(&mut self, config: &PretrainConfig, stream: &mut Stream) -> Result<Dynamics, TaskError> {
        let (num_states, feature_dim, gamma) = (config.states, config.features, config.gamma);
        let representation = if config.representable { Representation::Linear } else { Representation::Free };
        let task = match config.family {
            Family::Boyan => {
                let boyan = Boyan { num_states, feature_dim, gamma, representation };
                // The values of free rewards need the whole matrix; linear ones do not.
                if representation == Representation::Linear {
                    return self.draw_chain(&boyan, stream);
                }
                boyan.generate(stream)?
            }
            Family::Loop => {
                let threshold = config.threshold;
                Loop { num_states, feature_dim, threshold, gamma, representation }.generate(stream)?
            }
            Family::Dense => Dense { num_states, feature_dim, gamma, representation }.generate(stream)?,
        };
        self.table.clear();
        self.table.extend_from_slice(task.features().as_slice());
        self.rewards.clear();
        self.rewards.extend_from_slice(task.mrp().rewards());
        self.values.clear();
        self.values.extend_from_slice(task.values());
        Ok(Dynamics::Finite(task))
    }

    /// A representable Boyan chain without its matrix: the same numbers as [`Boyan::generate`].
    fn draw_chain(&mut self, boyan: &Boyan, stream: &mut Stream) -> Result<Dynamics, TaskError> {
        let draw = boyan.draw(stream)?;
        let m = boyan.num_states;
        self.table.clear();
        self.table.extend_from_slice(draw.features.as_slice());
        self.values = draw.features.mul_vec(draw.weight.as_deref().unwrap_or_default());
        let v = &self.values;
        self.rewards.clear();
        for s in 0..m {
            let expected = match s {
                s if s + 2 < m => draw.ahead[s] * v[s + 1] + (1.0 - draw.ahead[s]) * v[s + 2],
                s if s + 2 == m => v[m - 1],
                _ => draw.restart.iter().zip(v).map(|(p, v)| p * v).sum(),
            };
            self.rewards.push(v[s] - boyan.gamma * expected);
        }
        let restart = running_sums(&draw.restart);
        Ok(Dynamics::Chain(draw, restart))
    }

    /// Writes the windows' contexts and, where they are columns of their own, queries.
    pub fn fill_windows<E: Element>(&self, shape: &Shape, windows: &mut Windows<E>) {
        // Without a column of its own the query is the last state, which the context has.
        let columns = if shape.columns.separate_query { self.queries.as_slice() } else { &[] };
        self.fill(shape.feature_dim, columns.iter(), windows);
    }

    /// Writes the windows whose predictions are targets: the successor of window t's query, asked of the
    /// context of window t, or of window t + 1 where targets are shifted.
    pub fn fill_target_windows<E: Element>(&self, d: usize, target: Target, windows: &mut Windows<E>) {
        match target {
            Target::Same => self.fill(d, self.successors.iter(), windows),
            Target::Shifted => {
                let shifted: Vec<usize> =
                    self.successors[..1].iter().chain(&self.successors).copied().collect();
                self.fill(d, shifted[..self.queries.len()].iter(), windows);
            }
        }
    }

    fn fill<'a, E: Element>(
        &self,
        d: usize,
        queries: impl ExactSizeIterator<Item = &'a usize>,
        windows: &mut Windows<E>,
    ) {
        let row = |s: usize| &self.table[s * d..(s + 1) * d];
        windows.fill(d, self.states.iter().map(|&s| (row(s), self.rewards[s])), queries.map(|&s| row(s)));
    }

    /// The reward paid on leaving the query of window `t`.
    pub fn reward(&self, t: usize) -> f64 {
        self.rewards[self.queries[t]]
    }

    /// The mean over the sources of window `t` of the rewards that its prompt shows.
    pub fn mean_reward(&self, t: usize, shape: &Shape) -> f64 {
        let shown = shape.columns.rewarded(shape.context_len);
        let sum: f64 = self.states[t..t + shown].iter().map(|&s| self.rewards[s]).sum();
        sum / shape.context_len as f64
    }

    /// Window `t` as a context with a query of its own.
    #[cfg(test)]
    pub fn context(&self, t: usize, shape: &Shape) -> crate::context::Context {
        let (n, d) = (shape.context_len, shape.feature_dim);
        let row = |s: usize| &self.table[s * d..(s + 1) * d];
        let rows: Vec<&[f64]> = self.states[t..=t + n].iter().map(|&s| row(s)).collect();
        let rewards: Vec<f64> = self.states[t..t + n].iter().map(|&s| self.rewards[s]).collect();
        let builder = crate::context::Context::builder();
        let builder = builder.episode(&rows, &rewards, crate::context::End::Truncated);
        builder.query(row(self.queries[t])).build().unwrap()
    }

    /// The exact value of the query of window `t`.
    pub fn value(&self, t: usize) -> f64 {
        self.values[self.queries[t]]
    }

    /// A sampled return of the query of window `t`.
    pub fn sampled_return(&self, t: usize) -> f64 {
        self.returns[t]
    }
}

/// The same step as sampling the chain's row of P by its running sums.
#[inline]
fn chain_step(draw: &BoyanDraw, restart: &[f64], s: usize, stream: &mut Stream) -> usize {
    let last = restart.len() - 1;
    if s == last {
        return stream.categorical(restart);
    }
    if s + 1 == last {
        stream.uniform();
        return last;
    }
    let ahead = draw.ahead[s];
    let u = stream.uniform() * (ahead + (1.0 - ahead));
    s + 1 + usize::from(ahead <= u)
}

/// The stationary law; for a chain by following the mass that leaves the last state.
fn stationary(dynamics: &Dynamics) -> Vec<f64> {
    let Dynamics::Chain(draw, _) = dynamics else {
        let Dynamics::Finite(task) = dynamics else { return Vec::new() };
        return task.stationary_distribution().to_vec();
    };
    let m = draw.restart.len();
    let mut mass = draw.restart.clone();
    for s in 0..m - 1 {
        let share = mass[s];
        if s + 2 < m {
            mass[s + 1] += draw.ahead[s] * share;
            mass[s + 2] += (1.0 - draw.ahead[s]) * share;
        } else {
            mass[s + 1] += share;
        }
    }
    // All that arrives in the last state is what left it: 1.
    let total: f64 = mass.iter().sum();
    mass.iter_mut().for_each(|x| *x /= total);
    mass
}

#[cfg(test)]
mod tests {
    use super::super::reading::SourceColumns;
    use super::*;

    fn rollout(config: &PretrainConfig, epoch: u64) -> Rollout {
        let mut rollout = Rollout::default();
        rollout.sample(config, Source { seed: 3, epoch, evaluation: false }, 320).unwrap();
        rollout
    }

    /// The chain without its matrix is the task of the generator, to the last bit.
    #[test]
    fn fast_chains_are_the_generator_s_tasks() {
        let config = PretrainConfig::paper();
        for epoch in 0..20 {
            let fast = rollout(&config, epoch);
            let task = Boyan::paper().generate(&mut Stream::new(3, Purpose::Task, epoch)).unwrap();
            assert_eq!(fast.table, task.features().as_slice());
            assert_eq!(fast.values, task.values());
            assert_eq!(fast.rewards, task.mrp().rewards());
            let states = task.mrp().sample_states(331, &mut Stream::new(3, Purpose::Trajectory, epoch));
            assert_eq!(fast.states, states);
        }
    }

    #[test]
    fn fast_stationary_law_is_the_chain_s() {
        let task = Boyan::paper().generate(&mut Stream::new(1, Purpose::Task, 0)).unwrap();
        let draw = Boyan::paper().draw(&mut Stream::new(1, Purpose::Task, 0)).unwrap();
        let restart = running_sums(&draw.restart);
        let law = stationary(&Dynamics::Chain(draw, restart));
        for (a, b) in law.iter().zip(task.stationary_distribution()) {
            // Both without subtractions, sums of at most 64 terms.
            assert!((a - b).abs() <= 1e-14 * b, "{a} {b}");
        }
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
