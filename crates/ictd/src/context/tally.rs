//! Statistics of a trajectory through the states of a task, and of the one that starts a step later.

use super::ContextStatistics;
use super::statistics::NO_GROUP;
use crate::task::FiniteTask;

const ABSENT: usize = usize::MAX;

/// Transitions of a trajectory, counted in a table of the states that occur.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// The states that occur, as numbers of the task, and the place of every state of the task among them.
    states: Vec<usize>,
    place: Vec<usize>,
    visits: Vec<f64>,
    /// How often each state followed each, by place.
    counts: Vec<f64>,
}

impl Tally {
    /// Counts the trajectory through `states` of a task with `num_states` states.
    pub fn load(&mut self, num_states: usize, states: &[usize]) {
        self.place.clear();
        self.place.resize(num_states, ABSENT);
        self.states.clear();
        self.visits.clear();
        states.iter().for_each(|&state| self.know(state));
        let m = self.states.len();
        self.counts.clear();
        self.counts.resize(m * m, 0.0);
        states.windows(2).for_each(|pair| self.add((pair[0], pair[1]), 1.0));
    }

    /// Counts the trajectory that follows that of `before`: without its first transition and with one more at its end, each
    /// as (state, next state). Costs O(states²), however long the trajectory is.
    pub fn load_shifted(&mut self, before: &Tally, first: (usize, usize), last: (usize, usize)) {
        self.place.clone_from(&before.place);
        self.states.clone_from(&before.states);
        self.visits.clone_from(&before.visits);
        self.know(last.0);
        self.know(last.1);
        let (old, m) = (before.states.len(), self.states.len());
        self.counts.clear();
        self.counts.resize(m * m, 0.0);
        for (row, counts) in self.counts.chunks_exact_mut(m).zip(before.counts.chunks_exact(old)) {
            row[..old].copy_from_slice(counts);
        }
        self.add(first, -1.0);
        self.add(last, 1.0);
    }

    fn know(&mut self, state: usize) {
        if self.place[state] == ABSENT {
            self.place[state] = self.states.len();
            self.states.push(state);
            self.visits.push(0.0);
        }
    }

    fn add(&mut self, (state, next): (usize, usize), change: f64) {
        let (s, t) = (self.place[state], self.place[next]);
        self.visits[s] += change;
        self.counts[s * self.states.len() + t] += change;
    }

    /// The statistics: a group for every state that was left, then for every other one in `queries`, which the last state
    /// must be among. Their columns are the states of the task. A state that only a dropped transition left has no group.
    pub fn fill(&self, task: &FiniteTask, queries: &[usize], statistics: &mut ContextStatistics) {
        let (features, rewards) = (task.features(), task.mrp().rewards());
        let left = |&&(_, visits): &&(usize, f64)| visits > 0.0;
        let known: Vec<(usize, f64)> = self.states.iter().copied().zip(self.visits.iter().copied()).collect();
        let out = statistics;
        out.feature_dim = features.num_cols();
        out.group_of.clear();
        out.group_of.resize(features.num_rows(), NO_GROUP);
        out.scratch.representative.clear();
        out.features.clear();
        let sources = known.iter().filter(left).map(|(state, _)| state);
        out.num_source_groups = sources.clone().count();
        for &state in sources.chain(queries) {
            if out.group_of[state] == NO_GROUP {
                out.group_of[state] = out.scratch.representative.len() as u32;
                out.scratch.representative.push(state as u32);
                out.features.extend_from_slice(features.row(state));
            }
        }
        out.num_groups = out.scratch.representative.len();
        out.num_transitions = self.visits.iter().sum::<f64>() as usize;
        out.visits.clear();
        out.visits.extend(known.iter().filter(left).map(|(_, visits)| visits));
        out.reward_sums.clear();
        out.reward_sums.extend(known.iter().filter(left).map(|&(state, visits)| visits * rewards[state]));
        out.offsets.clear();
        out.offsets.push(0);
        out.successors.clear();
        out.counts.clear();
        for (row, _) in self.counts.chunks_exact(known.len()).zip(&self.visits).filter(|(_, c)| **c > 0.0) {
            for (&count, &next) in row.iter().zip(&self.states).filter(|(count, _)| **count > 0.0) {
                out.successors.push(out.group_of[next]);
                out.counts.push(count);
            }
            out.offsets.push(out.successors.len() as u32);
        }
        out.fill_source_features();
    }
}
