//! Statistics with feature vectors of length 1.

use super::ContextStatistics;
use super::statistics::NO_GROUP;
use crate::vector::length;

impl ContextStatistics {
    /// The same statistics with every feature vector divided by its length; `None` when one is 0. Groups that
    /// look the same then, up to rounding, become one.
    pub fn with_unit_features(&self) -> Option<Self> {
        Some(self.unit_features()?.0)
    }

    /// As [`with_unit_features`](Self::with_unit_features), with the new group of every old one.
    pub(crate) fn unit_features(&self) -> Option<(Self, Vec<usize>)> {
        let d = self.feature_dim;
        let mut features: Vec<f64> = Vec::new();
        // Representatives of the new groups, by old group; sources come first, so their groups do too.
        let mut label = Vec::with_capacity(self.num_groups);
        let mut num_source_groups = 0;
        for group in 0..self.num_groups {
            let x = self.features(group);
            let norm = length(x);
            if !(norm > 0.0) {
                return None;
            }
            let unit: Vec<f64> = x.iter().map(|v| v / norm).collect();
            // Entries are at most 1: a division leaves a few units in the last place.
            let same = |y: &[f64]| y.iter().zip(&unit).all(|(a, b)| (a - b).abs() <= 1e-14);
            let known = features.chunks_exact(d).position(same);
            label.push(known.unwrap_or_else(|| {
                features.extend_from_slice(&unit);
                features.len() / d - 1
            }));
            if group < self.num_source_groups {
                num_source_groups = features.len() / d;
            }
        }
        let mut merged = Self {
            feature_dim: d,
            num_transitions: self.num_transitions,
            num_groups: features.len() / d,
            num_source_groups,
            group_of: self
                .group_of
                .iter()
                .map(|&g| if g == NO_GROUP { g } else { label[g as usize] as u32 })
                .collect(),
            features,
            visits: vec![0.0; num_source_groups],
            reward_sums: vec![0.0; num_source_groups],
            offsets: vec![0],
            ..Self::default()
        };
        let mut counts = vec![std::collections::BTreeMap::new(); num_source_groups];
        for s in 0..self.num_source_groups {
            merged.visits[label[s]] += self.visits[s];
            merged.reward_sums[label[s]] += self.reward_sums[s];
            for (next, count) in self.successors(s) {
                *counts[label[s]].entry(label[next] as u32).or_insert(0.0) += count;
            }
        }
        for row in counts {
            merged.push_successors(row.into_iter());
        }
        merged.fill_source_features();
        Some((merged, label))
    }
}
