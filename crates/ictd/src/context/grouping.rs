//! How a context's columns become groups: one each, or one per distinct state.

use super::statistics::NO_GROUP;
use super::{Context, ContextStatistics, Role};

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
