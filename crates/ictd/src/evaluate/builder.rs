//! Collecting a log episode by episode.

use std::collections::BTreeMap;

use super::calendar::Calendar;
use super::cell::{ReturnTally, RewardTally};
use super::grid::Grid;
use super::log::{Log, LogError, canonical};
use super::sum::Sum;
use super::table::{NONE, Table};
use super::traces::Traces;
use crate::context::End;
use crate::matrix::Matrix;

/// Every episode is a block of its own up to this many episodes; beyond, there are [`FOLDED`] blocks.
const MAX_BLOCKS: usize = 512;
/// Blocks when there are more episodes; keys modulo this number.
const FOLDED: u64 = 128;

/// Counts episodes into a [`Log`]: memory grows with the number of distinct states and pairs of states, not with the number of
/// transitions.
///
/// ```
/// use ictd::evaluate::LogBuilder;
/// use ictd::{End, Matrix};
///
/// let mut builder = LogBuilder::new(0.9, None)?;
/// builder.episode(17, &[0, 1, 0], &[1.0, 0.0, 2.0], End::Terminated, None)?;
/// builder.episode(18, &[1, 0], &[0.5], End::Truncated, None)?;
/// let log = builder.build(Matrix::from_vec(2, 1, vec![1.0, -1.0]))?;
/// assert_eq!((log.num_states(), log.num_episodes(), log.num_transitions()), (2, 2, 4));
/// // States are numbered by their features: what was state 0 is now state 1.
/// assert_eq!(log.number_of(0), 1);
/// # Ok::<(), ictd::evaluate::LogError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LogBuilder {
    gamma: f64,
    lambda: Option<f64>,
    num_episodes: usize,
    num_truncated: usize,
    num_transitions: usize,
    num_states: usize,
    blocks: Vec<Block>,
    /// Places of the blocks by key, or by key modulo [`FOLDED`] once there are more than [`MAX_BLOCKS`].
    place_of: BTreeMap<u64, usize>,
    folded: bool,
    /// By octave of the number of the step in its episode.
    phases: Vec<Table<RewardTally>>,
    calendar: Calendar,
}

/// The tallies of a block of episodes.
#[derive(Clone, Debug, Default)]
struct Block {
    num_episodes: f64,
    /// The smallest and the largest return of episodes that terminated.
    range: Option<(f64, f64)>,
    transitions: Table<RewardTally>,
    /// Returns in episodes that terminated, by state, and in those that were truncated, by state and last state.
    terminated: Table<RewardTally>,
    truncated: Table<ReturnTally>,
    initial: Table<Sum>,
    traces: Table<Sum>,
    trace_rewards: Table<Sum>,
}

impl Block {
    fn absorb(&mut self, other: &Self) {
        self.num_episodes += other.num_episodes;
        self.range = self.range.into_iter().chain(other.range).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        self.transitions.absorb(&other.transitions);
        self.terminated.absorb(&other.terminated);
        self.truncated.absorb(&other.truncated);
        self.initial.absorb(&other.initial);
        self.traces.absorb(&other.traces);
        self.trace_rewards.absorb(&other.trace_rewards);
    }
}

impl LogBuilder {
    /// Starts an empty log with discount γ in [0, 1]. With λ in [0, 1] what LSTD(λ) needs is kept too, at a cost that grows
    /// with the number of states an episode meets.
    pub fn new(gamma: f64, lambda: Option<f64>) -> Result<Self, LogError> {
        if !(0.0..=1.0).contains(&gamma) {
            return Err(LogError::Gamma(gamma));
        }
        if let Some(lambda) = lambda.filter(|lambda| !(0.0..=1.0).contains(lambda)) {
            return Err(LogError::Lambda(lambda));
        }
        Ok(Self {
            gamma,
            lambda,
            num_episodes: 0,
            num_truncated: 0,
            num_transitions: 0,
            num_states: 0,
            blocks: Vec::new(),
            place_of: BTreeMap::new(),
            folded: false,
            phases: Vec::new(),
            calendar: Calendar::default(),
        })
    }

    /// Episodes so far.
    pub fn num_episodes(&self) -> usize {
        self.num_episodes
    }

    /// Bytes that are kept, roughly.
    pub fn memory(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| {
            let Block { transitions, terminated, truncated, initial, traces, trace_rewards, .. } = block;
            let sums = [initial, traces, trace_rewards].map(Table::memory);
            transitions.memory() + terminated.memory() + truncated.memory() + sums.iter().sum::<usize>()
        });
        blocks.sum::<usize>() + self.phases.iter().map(Table::memory).sum::<usize>() + self.calendar.memory()
    }

    /// Adds one episode of T ≥ 1 rewards.
    ///
    /// `key` is a hash of what identifies the episode: it decides the block the episode belongs to, so that the order of
    /// episodes does not. `states` are numbers of states in the caller's table: T of them when the episode terminated, T + 1
    /// when it was truncated. `times` are the absolute times of the T steps, where the log has them.
    pub fn episode(
        &mut self,
        key: u64,
        states: &[u32],
        rewards: &[f64],
        end: End,
        times: Option<&[f64]>,
    ) -> Result<(), LogError> {
        self.part(0, key, states, rewards, end, times)
    }

    /// Adds a part of an episode, which may have gaps: its steps from number `first` on. The part from 0 on begins an episode;
    /// others go on with the one before, whose part before was not where it ended.
    pub fn part(
        &mut self,
        first: usize,
        key: u64,
        states: &[u32],
        rewards: &[f64],
        end: End,
        times: Option<&[f64]>,
    ) -> Result<(), LogError> {
        self.check(states, rewards, end, times)?;
        let begins = usize::from(first == 0);
        self.num_episodes += begins;
        self.num_truncated =
            (self.num_truncated + usize::from(end == End::Truncated)).saturating_sub(1 - begins);
        self.num_transitions += rewards.len();
        let largest = states.iter().fold(0, |largest, &s| largest.max(s));
        self.num_states = self.num_states.max(largest as usize + 1);
        let next = |t: usize| states.get(t + 1).copied().unwrap_or(NONE);
        let phases = (first + rewards.len()).ilog2() as usize + 2;
        if self.phases.len() < phases {
            self.phases.resize_with(phases, Table::default);
        }
        for (t, &reward) in rewards.iter().enumerate() {
            // Steps 0, 1, 2–3, 4–7, …
            let phase = (first + t).checked_ilog2().map_or(0, |octave| octave as usize + 1);
            self.phases[phase].at(states[t], next(t)).add(reward);
        }
        for (t, &time) in times.into_iter().flatten().enumerate() {
            self.calendar.at(time).at(states[t], next(t)).add(rewards[t]);
        }
        let place = self.place(key);
        let (gamma, block) = (self.gamma, &mut self.blocks[place]);
        if first == 0 {
            block.num_episodes += 1.0;
            block.initial.at(states[0], NONE).add(1.0);
        }
        for (t, &reward) in rewards.iter().enumerate() {
            block.transitions.at(states[t], next(t)).add(reward);
        }
        let (mut g, mut d): (f64, f64) = (0.0, 1.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for (t, &reward) in rewards.iter().enumerate().rev() {
            g = reward + gamma * g;
            d *= gamma;
            (low, high) = (low.min(g), high.max(g));
            match end {
                End::Terminated => block.terminated.at(states[t], NONE).add(g),
                End::Truncated => block.truncated.at(states[t], states[rewards.len()]).add(g, d),
            }
        }
        if end == End::Terminated {
            let (a, b) = block.range.unwrap_or((low, high));
            block.range = Some((low.min(a), high.max(b)));
        }
        if let Some(lambda) = self.lambda {
            let traces = Traces { gamma, lambda };
            let returns = &mut block.trace_rewards;
            traces.rewards(rewards, |t, sum| returns.at(states[t], NONE).add(sum));
            let pairs = &mut block.traces;
            traces.pairs(states, rewards.len(), |from, to, weight| pairs.at(from, to).add(weight));
        }
        Ok(())
    }

    fn check(
        &self,
        states: &[u32],
        rewards: &[f64],
        end: End,
        times: Option<&[f64]>,
    ) -> Result<(), LogError> {
        let (episode, steps) = (self.num_episodes, rewards.len());
        if steps == 0 {
            return Err(LogError::NoTransition { episode });
        }
        let expected = steps + usize::from(end == End::Truncated);
        if states.len() != expected {
            return Err(LogError::States { episode, found: states.len(), expected });
        }
        if end == End::Truncated && self.gamma == 1.0 {
            return Err(LogError::Undiscounted { episode });
        }
        if states.contains(&NONE) {
            return Err(LogError::StateNumber { episode });
        }
        if let Some(step) = rewards.iter().position(|r| !r.is_finite()) {
            return Err(LogError::Reward { episode, step, value: rewards[step] });
        }
        // The largest return there can be, whose square is summed over at most 2⁵³ visits.
        if !(rewards.iter().map(|r| r.abs()).sum::<f64>() < 1e145) {
            return Err(LogError::Overflow { episode });
        }
        if let Some(times) = times {
            if times.len() != steps {
                return Err(LogError::Times { episode, found: times.len(), expected: steps });
            }
            if let Some(step) = times.iter().position(|t| !t.is_finite()) {
                return Err(LogError::Time { episode, step, value: times[step] });
            }
        }
        Ok(())
    }

    /// The place of the block that an episode with this key belongs to.
    fn place(&mut self, key: u64) -> usize {
        if !self.folded && self.blocks.len() == MAX_BLOCKS && !self.place_of.contains_key(&key) {
            self.folded = true;
            let unfolded = std::mem::take(&mut self.blocks);
            for (key, place) in std::mem::take(&mut self.place_of) {
                let folded = self.place(key);
                self.blocks[folded].absorb(&unfolded[place]);
            }
        }
        let place =
            *self.place_of.entry(if self.folded { key % FOLDED } else { key }).or_insert(self.blocks.len());
        if place == self.blocks.len() {
            self.blocks.push(Block::default());
        }
        place
    }

    /// The log of all episodes. `features` holds one row per number of a state; rows that no episode mentions become states
    /// that were never seen, rows that are equal become one state. States are numbered anew in the order of their features
    /// ([`Log::number_of`]), so that the order of rows and episodes does not matter.
    pub fn build(self, features: Matrix) -> Result<Log, LogError> {
        if self.num_episodes == 0 {
            return Err(LogError::Empty);
        }
        if features.num_rows() < self.num_states {
            return Err(LogError::Features { found: features.num_rows(), expected: self.num_states });
        }
        let (number_of, features) = canonical(&features)?;
        let m = features.num_rows();
        let renumber = |s: u32| number_of[s as usize];
        let blocks = || self.place_of.values().map(|&place| &self.blocks[place]);
        let terminated = blocks().enumerate().flat_map(|(part, block)| {
            let found = block.terminated.iter();
            found.map(move |(from, _, a)| (renumber(from), NONE, part as u32, ReturnTally::terminated(*a)))
        });
        let truncated = blocks().enumerate().flat_map(|(part, block)| {
            let found = block.truncated.iter();
            found.map(move |(from, last, a)| (renumber(from), renumber(last), part as u32, *a))
        });
        let returns = Grid::collect(m, terminated.chain(truncated).collect(), ReturnTally::finish);
        let sums =
            |pick: fn(&Block) -> &Table<Sum>| Grid::of_tables(m, blocks().map(pick), renumber, Sum::value);
        let bins: Vec<((f64, f64), &Table<RewardTally>)> = self.calendar.bins().collect();
        Ok(Log {
            transitions: Grid::of_tables(m, blocks().map(|b| &b.transitions), renumber, RewardTally::finish),
            returns,
            initial: sums(|b| &b.initial),
            traces: sums(|b| &b.traces),
            trace_rewards: sums(|b| &b.trace_rewards),
            ranges: blocks().map(|b| b.range).collect(),
            block_sizes: blocks().map(|b| b.num_episodes).collect(),
            phases: Grid::of_tables(m, self.phases.iter(), renumber, RewardTally::finish),
            calendar: Grid::of_tables(m, bins.iter().map(|bin| bin.1), renumber, RewardTally::finish),
            stretches: bins.iter().map(|bin| bin.0).collect(),
            gamma: self.gamma,
            lambda: self.lambda,
            num_truncated: self.num_truncated,
            num_transitions: self.num_transitions,
            number_of,
            features,
        })
    }
}
