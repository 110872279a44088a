//! The (visit, transition) statistics of a context.

use super::{Context, Role};
use crate::matrix::Matrix;
use crate::statistics::largest;
use crate::task::FiniteTask;
use crate::vector::LANES;

/// Marks a column without a group: a terminal state, whose value is 0.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// Source features around a middle that is more than this many times as far from 0 as features lie from their middles count from there:
/// it would cost three bits, and more.
const FAR: f64 = 8.0;

/// Sufficient statistics of a context: its columns in groups, and for every group of sources the
/// number of visits, the sum of rewards, and the counts of successor groups.
///
/// With one group per column nothing is lost and nothing gained. With one group per distinct state
/// ([`per_state`](Self::per_state)) a layer costs O(states²) however long the context is, and is
/// still exact whenever attention depends on states alone: columns with equal features get equal
/// weights, hence equal values, in every layer.
///
/// Groups that contain a source come first; the others (states seen only last or as queries) follow.
#[derive(Clone, Debug, Default)]
pub struct ContextStatistics {
    pub(super) feature_dim: usize,
    pub(super) num_transitions: usize,
    pub(super) num_groups: usize,
    pub(super) num_source_groups: usize,
    pub(super) group_of: Vec<u32>,
    /// Features of the groups, group after group.
    pub(super) features: Vec<f64>,
    /// Features of the source groups, dimension after dimension, each padded to whole blocks.
    pub(super) source_features: Vec<f64>,
    /// What the source features of a dimension lie around, where that is far from 0 beside how far features lie apart; else 0.
    pub(super) centres: Vec<f64>,
    pub(super) visits: Vec<f64>,
    pub(super) reward_sums: Vec<f64>,
    /// Successors of source group s: entries offsets[s]..offsets[s + 1].
    pub(super) offsets: Vec<u32>,
    pub(super) successors: Vec<u32>,
    pub(super) counts: Vec<f64>,
    pub(super) scratch: Scratch,
}

impl ContextStatistics {
    /// One group per column.
    pub fn per_column(context: &Context) -> Self {
        let mut statistics = Self::default();
        statistics.fill_per_column(context);
        statistics
    }

    /// One group per distinct state, where states are the same when their features are.
    pub fn per_state(context: &Context) -> Self {
        let mut statistics = Self::default();
        statistics.fill_per_state(context);
        statistics
    }

    /// What a long trajectory of a task would show on average: visits are the stationary law, transitions
    /// those of the model. Numbers are shares of one transition.
    pub fn expected(task: &FiniteTask) -> Self {
        let (mu, p) = (task.stationary_distribution(), task.mrp().transitions().matrix());
        let counts = Matrix::from_fn(mu.len(), mu.len(), |s, next| mu[s] * p[(s, next)]);
        let mut statistics = Self::counted(task.features(), task.mrp().rewards(), &counts);
        statistics.num_transitions = 1;
        statistics
    }

    /// From features and rewards state by state and the number of transitions from every state to every
    /// other. All states are source groups; those without transitions have no visits.
    pub fn counted(features: &Matrix, rewards: &[f64], counts: &Matrix) -> Self {
        let (m, d) = (features.num_rows(), features.num_cols());
        let visits: Vec<f64> = counts.rows().map(|row| row.iter().sum()).collect();
        let mut statistics = Self {
            feature_dim: d,
            num_transitions: visits.iter().sum::<f64>() as usize,
            num_groups: m,
            num_source_groups: m,
            features: features.as_slice().to_vec(),
            reward_sums: visits.iter().zip(rewards).map(|(c, r)| c * r).collect(),
            visits,
            offsets: vec![0],
            ..Self::default()
        };
        for row in counts.rows() {
            let followed = row.iter().enumerate().filter(|(_, count)| **count > 0.0);
            statistics.push_successors(followed.map(|(next, &count)| (next as u32, count)));
        }
        statistics.fill_source_features();
        statistics
    }

    /// Groups with these features and nothing else, of which weights can be asked: sources, each visited once, then others.
    pub(crate) fn of_features(sources: &Matrix, others: &Matrix) -> Self {
        let n = sources.num_rows();
        let mut statistics = Self {
            feature_dim: sources.num_cols(),
            num_transitions: n,
            num_groups: n + others.num_rows(),
            num_source_groups: n,
            features: [sources.as_slice(), others.as_slice()].concat(),
            visits: vec![1.0; n],
            ..Self::default()
        };
        statistics.fill_source_features();
        statistics
    }

    /// The features of the source groups, dimension after dimension.
    pub(super) fn fill_source_features(&mut self) {
        let (d, stride) = (self.feature_dim, self.stride());
        self.source_features.clear();
        self.source_features.resize(d * stride, 0.0);
        for (group, x) in self.features.chunks_exact(d).take(self.num_source_groups).enumerate() {
            for (a, &value) in x.iter().enumerate() {
                self.source_features[a * stride + group] = value;
            }
        }
        let features = &self.source_features;
        let ends = |a: usize| {
            let features = features[a * stride..][..self.num_source_groups].iter();
            features.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)))
        };
        let reach = largest((0..d).map(ends).map(|(low, high)| 0.5 * high - 0.5 * low));
        self.centres.clear();
        self.centres.extend((0..d).map(ends).map(|(low, high)| {
            let middle = 0.5 * low + 0.5 * high;
            if middle.abs() > FAR * reach { middle } else { 0.0 }
        }));
    }

    /// Appends the successors of the next source group and how often each followed.
    pub(super) fn push_successors(&mut self, followed: impl Iterator<Item = (u32, f64)>) {
        for (next, count) in followed {
            self.successors.push(next);
            self.counts.push(count);
        }
        self.offsets.push(self.successors.len() as u32);
    }

    /// Number of groups, queries included.
    pub fn num_groups(&self) -> usize {
        self.num_groups
    }

    /// Number of groups that contain a source; they are groups 0, …, this number - 1.
    pub fn num_source_groups(&self) -> usize {
        self.num_source_groups
    }

    /// Number of transitions n.
    pub fn num_transitions(&self) -> usize {
        self.num_transitions
    }

    /// Feature dimension d.
    pub fn feature_dim(&self) -> usize {
        self.feature_dim
    }

    /// The group of a column; `None` for a terminal state.
    pub fn group_of(&self, column: usize) -> Option<usize> {
        let group = self.group_of[column];
        (group != NO_GROUP).then_some(group as usize)
    }

    /// The first column of a group; the group itself where statistics came without columns.
    pub(crate) fn first_column(&self, group: usize) -> usize {
        self.scratch.representative.get(group).map_or(group, |&column| column as usize)
    }

    pub(crate) fn groups(&self) -> &[u32] {
        &self.group_of
    }

    /// The features of a group.
    pub fn features(&self, group: usize) -> &[f64] {
        &self.features[group * self.feature_dim..(group + 1) * self.feature_dim]
    }

    /// The source group that group `u` is itself, if it is one.
    pub(crate) fn own(&self, u: usize) -> Option<usize> {
        (u < self.num_source_groups).then_some(u)
    }

    /// Length of a padded row over source groups.
    pub(crate) fn stride(&self) -> usize {
        self.num_source_groups.next_multiple_of(LANES)
    }

    /// Feature `a` of every source group, padded with zeros.
    pub(crate) fn source_feature(&self, a: usize) -> &[f64] {
        let stride = self.stride();
        &self.source_features[a * stride..(a + 1) * stride]
    }

    /// What feature `a` of the source groups lies around where it is so far from 0 that products with it lose digits; else 0.
    pub(crate) fn centre(&self, a: usize) -> f64 {
        self.centres[a]
    }

    /// Visits c(s) of every source group.
    pub fn visits(&self) -> &[f64] {
        &self.visits
    }

    /// Sum of the rewards paid on leaving each source group.
    pub fn reward_sums(&self) -> &[f64] {
        &self.reward_sums
    }

    /// Other rewards in the place of those that were paid, summed by source group.
    pub(crate) fn set_reward_sums(&mut self, sums: Vec<f64>) {
        debug_assert_eq!(sums.len(), self.num_source_groups);
        self.reward_sums = sums;
    }

    /// The largest mean reward of a source group, in absolute value.
    pub fn largest_reward(&self) -> f64 {
        largest(self.reward_sums.iter().zip(&self.visits).map(|(sum, visits)| (sum / visits).abs()))
    }

    /// Successor groups of a source group and how often each followed; terminal states left out.
    pub fn successors(&self, source: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.offsets[source] as usize..self.offsets[source + 1] as usize;
        self.successors[range.clone()]
            .iter()
            .zip(&self.counts[range])
            .map(|(&next, &count)| (next as usize, count))
    }
}

/// Buffers for building; kept so that refilling does not allocate.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    table: Vec<u32>,
    /// The first column of every group.
    pub(super) representative: Vec<u32>,
    is_source: Vec<bool>,
    relabel: Vec<u32>,
    sorted: Vec<u32>,
    tally: Vec<f64>,
}

impl ContextStatistics {
    /// Refills with one group per column.
    pub(crate) fn fill_per_column(&mut self, context: &Context) {
        let roles = context.roles();
        self.group_of.clear();
        self.group_of.resize(roles.len(), NO_GROUP);
        self.scratch.representative.clear();
        let sources_first = [true, false];
        for want_source in sources_first {
            for (j, &role) in roles.iter().enumerate() {
                if role != Role::Terminal && (role == Role::Source) == want_source {
                    self.group_of[j] = self.scratch.representative.len() as u32;
                    self.scratch.representative.push(j as u32);
                }
            }
        }
        self.num_source_groups = context.num_transitions();
        self.fill_counts(context);
    }

    /// Refills with one group per distinct state.
    pub(crate) fn fill_per_state(&mut self, context: &Context) {
        let roles = context.roles();
        // Open addressing with at most half the slots used; entries are group numbers.
        let num_slots = (2 * roles.len()).next_power_of_two().max(16);
        let Scratch { table, representative, is_source, relabel, .. } = &mut self.scratch;
        // Most contexts have far fewer states than columns: start small and grow.
        let mut slots = num_slots.min(1024);
        table.clear();
        table.resize(slots, NO_GROUP);
        representative.clear();
        is_source.clear();
        self.group_of.clear();
        for (j, &role) in roles.iter().enumerate() {
            if role == Role::Terminal {
                self.group_of.push(NO_GROUP);
                continue;
            }
            if 2 * representative.len() >= slots {
                slots *= 4;
                table.clear();
                table.resize(slots, NO_GROUP);
                for (group, &column) in representative.iter().enumerate() {
                    let mut slot = hash(context.features_of(column as usize)) as usize & (slots - 1);
                    while table[slot] != NO_GROUP {
                        slot = (slot + 1) & (slots - 1);
                    }
                    table[slot] = group as u32;
                }
            }
            let x = context.features_of(j);
            let mut slot = hash(x) as usize & (slots - 1);
            let group = loop {
                match table[slot] {
                    NO_GROUP => {
                        let group = representative.len() as u32;
                        table[slot] = group;
                        representative.push(j as u32);
                        is_source.push(false);
                        break group;
                    }
                    group if context.features_of(representative[group as usize] as usize) == x => {
                        break group;
                    }
                    _ => slot = (slot + 1) & (slots - 1),
                }
            };
            is_source[group as usize] |= role == Role::Source;
            self.group_of.push(group);
        }
        // Renumber: groups with sources first, order of appearance otherwise.
        self.num_source_groups = is_source.iter().filter(|&&source| source).count();
        let (mut next_source, mut next_other) = (0, self.num_source_groups as u32);
        relabel.clear();
        for &source in is_source.iter() {
            let counter = if source { &mut next_source } else { &mut next_other };
            relabel.push(*counter);
            *counter += 1;
        }
        let columns = representative.clone();
        for (old, &column) in columns.iter().enumerate() {
            representative[relabel[old] as usize] = column;
        }
        for group in self.group_of.iter_mut().filter(|g| **g != NO_GROUP) {
            *group = relabel[*group as usize];
        }
        self.fill_counts(context);
    }

    /// Fills features, visits, rewards and transition counts, given groups and representatives.
    fn fill_counts(&mut self, context: &Context) {
        let d = context.feature_dim();
        let sources = self.num_source_groups;
        self.feature_dim = d;
        self.num_transitions = context.num_transitions();
        self.num_groups = self.scratch.representative.len();
        self.features.clear();
        for &column in &self.scratch.representative {
            self.features.extend_from_slice(context.features_of(column as usize));
        }
        self.fill_source_features();
        for sums in [&mut self.visits, &mut self.reward_sums] {
            sums.clear();
            sums.resize(sources, 0.0);
        }
        for (j, &role) in context.roles().iter().enumerate() {
            if role == Role::Source {
                let group = self.group_of[j] as usize;
                self.visits[group] += 1.0;
                self.reward_sums[group] += context.rewards()[j];
            }
        }
        self.fill_successors(context);
    }

    /// Counting sort of the transitions by source group, then a tally of each group's successors.
    fn fill_successors(&mut self, context: &Context) {
        let sources = self.num_source_groups;
        let Scratch { sorted, tally, relabel: starts, .. } = &mut self.scratch;
        starts.clear();
        let mut start = 0;
        for &visits in &self.visits {
            starts.push(start);
            start += visits as u32;
        }
        sorted.clear();
        sorted.resize(self.num_transitions, NO_GROUP);
        for (j, &role) in context.roles().iter().enumerate() {
            if role == Role::Source {
                let cursor = &mut starts[self.group_of[j] as usize];
                sorted[*cursor as usize] = self.group_of[j + 1];
                *cursor += 1;
            }
        }
        tally.clear();
        tally.resize(self.num_groups, 0.0);
        self.offsets.clear();
        self.successors.clear();
        self.counts.clear();
        let mut begin = 0;
        for end in starts[..sources].iter().map(|&end| end as usize) {
            self.offsets.push(self.successors.len() as u32);
            let first = self.successors.len();
            // A terminal successor has value 0 and is left out.
            for &next in sorted[begin..end].iter().filter(|&&next| next != NO_GROUP) {
                if tally[next as usize] == 0.0 {
                    self.successors.push(next);
                }
                tally[next as usize] += 1.0;
            }
            for &next in &self.successors[first..] {
                self.counts.push(std::mem::take(&mut tally[next as usize]));
            }
            begin = end;
        }
        self.offsets.push(self.successors.len() as u32);
    }
}

/// A multiplicative hash of the bits; equal vectors have equal bits because contexts hold no -0.
fn hash(x: &[f64]) -> u64 {
    let mixed =
        x.iter().fold(0u64, |h, v| (h.rotate_left(26) ^ v.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    // Slots are taken from the low bits, which the multiplications leave poor when inputs have many
    // trailing zeros, as small integers do.
    let folded = (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    folded ^ (folded >> 29)
}
