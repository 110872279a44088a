//! Statistics with feature vectors of length 1.

use std::collections::BTreeMap;

use super::ContextStatistics;
use super::statistics::NO_GROUP;
use crate::random::{Purpose, Stream};
use crate::vector::length;

/// Entries of vectors that look the same differ by at most this. They are at most 1: a division leaves a few units in the last place.
const SAME: f64 = 1e-14;

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
        let mut known = Shadows::new(d);
        for group in 0..self.num_groups {
            let x = self.features(group);
            let norm = length(x);
            if !(norm > 0.0) {
                return None;
            }
            let unit: Vec<f64> = x.iter().map(|v| v / norm).collect();
            label.push(known.find(&unit, &features).unwrap_or_else(|| {
                known.add(&unit, features.len() / d);
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
        let mut counts = vec![BTreeMap::new(); num_source_groups];
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

/// Unit vectors in the order of their shadows on one direction: those that look the same have shadows near each other, and a
/// direction at random has few others there.
struct Shadows {
    direction: Vec<f64>,
    /// How far apart shadows of vectors that look the same may be at most: a step.
    width: f64,
    /// Groups by step.
    by_shadow: BTreeMap<i64, Vec<usize>>,
}

impl Shadows {
    fn new(dim: usize) -> Self {
        // Any fixed stream will do.
        let direction = Stream::new(0, Purpose::Evaluation, 2).uniform_vec(dim, -1.0, 1.0);
        // Entries of the direction are at most 1; a shadow is rounded once per entry.
        let width = dim as f64 * (SAME + 4.0 * dim as f64 * f64::EPSILON);
        Self { direction, width, by_shadow: BTreeMap::new() }
    }

    /// A shadow in steps so wide that those of vectors that look the same are in the same one or in neighbours.
    fn step(&self, x: &[f64]) -> i64 {
        let shadow: f64 = self.direction.iter().zip(x).map(|(a, b)| a * b).sum();
        (shadow / self.width).floor() as i64
    }

    fn add(&mut self, x: &[f64], group: usize) {
        self.by_shadow.entry(self.step(x)).or_default().push(group);
    }

    /// The first group that looks the same.
    fn find(&self, x: &[f64], features: &[f64]) -> Option<usize> {
        let step = self.step(x);
        let same = |group: &usize| {
            let y = &features[group * x.len()..][..x.len()];
            y.iter().zip(x).all(|(a, b)| (a - b).abs() <= SAME)
        };
        let near = self.by_shadow.range(step - 1..=step + 1);
        near.flat_map(|(_, groups)| groups).copied().filter(same).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Context, End};

    /// Vectors on few rays, some of them only nearly, against a search of all.
    #[test]
    fn groups_are_those_that_a_search_of_all_finds() {
        let mut stream = Stream::new(3, Purpose::Prompt, 0);
        for dim in [1, 2, 5] {
            let rays: Vec<Vec<f64>> = (0..20).map(|_| stream.uniform_vec(dim, -1.0, 1.0)).collect();
            let row = |_| {
                let ray = &rays[stream.below(20) as usize];
                let scale = stream.uniform_in(0.1, 10.0);
                let nudge = if stream.uniform() < 0.2 { 2e-14 } else { 0.0 };
                ray.iter().map(|x| scale * (x + nudge * stream.uniform_in(-1.0, 1.0))).collect()
            };
            let rows: Vec<Vec<f64>> = (0..200).map(row).collect();
            let context = Context::builder().episode(&rows, &[1.0; 199], End::Truncated).build().unwrap();
            let statistics = ContextStatistics::per_state(&context);
            let (merged, label) = statistics.unit_features().unwrap();
            let mut found: Vec<Vec<f64>> = Vec::new();
            for (group, &given) in label.iter().enumerate() {
                let x = statistics.features(group);
                let unit: Vec<f64> = x.iter().map(|v| v / length(x)).collect();
                let same = |y: &Vec<f64>| y.iter().zip(&unit).all(|(a, b)| (a - b).abs() <= SAME);
                let expected = found.iter().position(same).unwrap_or_else(|| {
                    found.push(unit.clone());
                    found.len() - 1
                });
                assert_eq!(given, expected, "dimension {dim}, group {group}");
            }
            assert_eq!(merged.num_groups(), found.len());
        }
    }
}
