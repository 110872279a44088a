//! Statistics that come as numbers, not from columns.

use super::ContextStatistics;
use crate::matrix::Matrix;

impl ContextStatistics {
    /// One group per row of `features`, the first of which are sources: as many as there are `visits` and `reward_sums`. Entry s of
    /// `successors` has the groups that follow source s and how often; what is missing to the visits is terminal. Numbers need
    /// not be whole: shares of transitions are as good as counts.
    pub(crate) fn weighted(
        features: &Matrix,
        visits: Vec<f64>,
        reward_sums: Vec<f64>,
        successors: &[Vec<(usize, f64)>],
    ) -> Self {
        let mut statistics = Self {
            feature_dim: features.num_cols(),
            num_transitions: visits.iter().sum::<f64>().round() as usize,
            num_groups: features.num_rows(),
            num_source_groups: visits.len(),
            features: features.as_slice().to_vec(),
            visits,
            reward_sums,
            offsets: vec![0],
            ..Self::default()
        };
        for followed in successors {
            statistics.push_successors(followed.iter().map(|&(next, count)| (next as u32, count)));
        }
        statistics.fill_source_features();
        statistics
    }
}
