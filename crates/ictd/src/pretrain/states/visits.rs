//! Which states a trajectory visits, and how often each of its windows does.

use super::super::lanes::{Element, WIDTH};
use super::super::shape::Columns;

/// States are taken this many at a time: their sums stay in registers and do not wait for one another.
pub(super) const TILE: usize = 8;

/// The states of a trajectory and of the queries asked of it, numbered in the order in which they are met, and the
/// transitions between them.
///
/// States are filled up to a whole number of tiles with ones that nothing visits; their features are 0.
#[derive(Clone, Debug)]
pub struct Visits<E> {
    num_states: usize,
    /// Dimension by dimension: x of every state.
    features: Vec<E>,
    /// Position by position: the state, and which of `successors` says what follows it; none follows the last.
    states: Vec<u32>,
    links: Vec<u32>,
    /// State by state: those that follow it somewhere, from `starts[s]` on.
    starts: Vec<u32>,
    successors: Vec<u32>,
    /// Window by window: the state that is asked about.
    queries: Vec<u32>,
}

impl<E: Element> Visits<E> {
    /// The visits of a trajectory; `None` where it and the queries have more than `most` states. `table` has the
    /// features, d by state.
    pub fn of(table: &[f64], d: usize, states: &[usize], queries: &[usize], most: usize) -> Option<Self> {
        const UNSEEN: u32 = u32::MAX;
        let mut numbers = vec![UNSEEN; table.len() / d];
        let mut met = Vec::new();
        for &state in states.iter().chain(queries) {
            if numbers[state] == UNSEEN {
                if met.len() == most {
                    return None;
                }
                numbers[state] = met.len() as u32;
                met.push(state);
            }
        }
        let renumber = |given: &[usize]| given.iter().map(|&s| numbers[s]).collect::<Vec<u32>>();
        let (states, queries) = (renumber(states), renumber(queries));
        let num_states = met.len().next_multiple_of(TILE);
        let stride = num_states.next_multiple_of(WIDTH);
        let mut features = vec![E::default(); d * stride];
        for (s, &state) in met.iter().enumerate() {
            for a in 0..d {
                features[a * stride + s] = E::of(table[state * d + a]);
            }
        }
        let mut transitions: Vec<(u32, u32)> =
            states.iter().copied().zip(states[1..].iter().copied()).collect();
        transitions.sort_unstable();
        transitions.dedup();
        let starts: Vec<u32> = (0..=num_states as u32)
            .map(|state| transitions.partition_point(|&(from, _)| from < state) as u32)
            .collect();
        let successors: Vec<u32> = transitions.into_iter().map(|(_, to)| to).collect();
        let link = |(&from, to): (&u32, &u32)| {
            let (start, end) = (starts[from as usize] as usize, starts[from as usize + 1] as usize);
            (start + successors[start..end].partition_point(|known| known < to)) as u32
        };
        let links = states.iter().zip(&states[1..]).map(link).collect();
        Some(Self { num_states, features, states, links, starts, successors, queries })
    }
}

impl<E> Visits<E> {
    /// The bytes of the visits of a trajectory with this many positions, states and queries.
    pub fn bytes(d: usize, num_states: usize, positions: usize, queries: usize) -> f64 {
        let padded = num_states.next_multiple_of(WIDTH) as f64;
        // While it is made, the renumbered positions and the transitions between them lie beside one another.
        let elements = d as f64 * padded * size_of::<E>() as f64;
        elements + 16.0 * padded + 24.0 * positions as f64 + 4.0 * queries as f64
    }

    /// Number of states, a whole number of tiles.
    #[inline(always)]
    pub(super) fn num_states(&self) -> usize {
        self.num_states
    }

    /// Dimension by dimension, a stride apart: x of every state.
    #[inline(always)]
    pub(super) fn features(&self) -> &[E] {
        &self.features
    }

    /// Number of different transitions.
    #[inline(always)]
    pub(super) fn num_links(&self) -> usize {
        self.successors.len()
    }

    /// The transitions out of a state, and where they lead.
    #[inline(always)]
    pub(super) fn links_of(&self, state: usize) -> std::ops::Range<usize> {
        self.starts[state] as usize..self.starts[state + 1] as usize
    }

    /// Where a transition leads.
    #[inline(always)]
    pub(super) fn successor(&self, link: usize) -> usize {
        self.successors[link] as usize
    }

    /// The state that window `t` is asked about.
    #[inline(always)]
    pub(super) fn query(&self, t: usize) -> usize {
        self.queries[t] as usize
    }
}

/// Sums over the sources of a window, moved on from one window to the next. In double precision, so that what is
/// added and taken away again leaves nothing that single precision would see.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    window: usize,
    /// Numbers of sources in the sum: of all, with their reward, with their successor.
    reaches: [usize; 3],
    /// State by state: sources, and the sum of their rewards.
    counts: Vec<f64>,
    rewards: Vec<f64>,
    /// Transition by transition: sources.
    links: Vec<f64>,
}

impl Tally {
    /// The sums of window `t` of n sources, whose rewards are given by position.
    pub fn start<E: Element>(
        &mut self,
        visits: &Visits<E>,
        rewards: &[E],
        t: usize,
        n: usize,
        columns: Columns,
    ) {
        for (array, len) in [
            (&mut self.counts, visits.num_states),
            (&mut self.rewards, visits.num_states),
            (&mut self.links, visits.num_links()),
        ] {
            array.clear();
            array.resize(len, 0.0);
        }
        self.window = t;
        self.reaches = [n, columns.rewarded(n), columns.linked(n)];
        let [sources, rewarded, linked] = self.reaches;
        for p in t..t + sources {
            self.counts[visits.states[p] as usize] += 1.0;
        }
        for p in t..t + rewarded {
            self.rewards[visits.states[p] as usize] += rewards[p].get();
        }
        for p in t..t + linked {
            self.links[visits.links[p] as usize] += 1.0;
        }
    }

    /// Goes to the next window: it has lost the first source and won one at the end.
    pub fn advance<E: Element>(&mut self, visits: &Visits<E>, rewards: &[E]) {
        let t = self.window;
        let [sources, rewarded, linked] = self.reaches.map(|reach| t + reach);
        self.counts[visits.states[t] as usize] -= 1.0;
        self.counts[visits.states[sources] as usize] += 1.0;
        self.rewards[visits.states[t] as usize] -= rewards[t].get();
        self.rewards[visits.states[rewarded] as usize] += rewards[rewarded].get();
        self.links[visits.links[t] as usize] -= 1.0;
        self.links[visits.links[linked] as usize] += 1.0;
        self.window += 1;
    }

    /// Counts, rewards and links, one after the other.
    pub fn sums(&self) -> impl Iterator<Item = f64> {
        self.counts.iter().chain(&self.rewards).chain(&self.links).copied()
    }
}
