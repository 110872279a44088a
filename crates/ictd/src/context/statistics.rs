//! The (visit, transition) statistics of a context.

use super::Context;
use super::grouping::Scratch;
use crate::matrix::Matrix;
use crate::task::FiniteTask;
use crate::vector::LANES;

/// Marks a column without a group: a terminal state, whose value is 0.
pub(crate) const NO_GROUP: u32 = u32::MAX;

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

    /// Visits c(s) of every source group.
    pub fn visits(&self) -> &[f64] {
        &self.visits
    }

    /// Sum of the rewards paid on leaving each source group.
    pub fn reward_sums(&self) -> &[f64] {
        &self.reward_sums
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
