//! Batch average-reward TD.

use super::weights::{add, descend};
use super::{Estimator, sources, td_errors};
use crate::context::Context;
use crate::matrix::Matrix;
use crate::transformer::ForwardError;
use crate::watch::Watch;

/// Batch average-reward TD: w ← w + (α/n)·C Σ_k (R_k − R̄_k + v(S_k) − v(S_{k-1})) x_{k-1}, where R̄_k is the mean of the first k rewards (arXiv 2405.13861).
///
/// Values are differences: how much more follows a state than follows on average.
#[derive(Clone, Debug)]
pub struct AverageRewardTd {
    /// Step sizes: one per iteration.
    pub step_sizes: Vec<f64>,
    /// Preconditioners C: one per iteration, or none.
    pub preconditioners: Vec<Matrix>,
}

impl Estimator for AverageRewardTd {
    fn name(&self) -> &str {
        "average-reward TD"
    }

    fn run_watched(&self, context: &Context, watch: &dyn Watch) -> Result<Vec<Vec<f64>>, ForwardError> {
        let sources = sources(context);
        let mut means: Vec<f64> = Vec::with_capacity(sources.len());
        for (k, &column) in sources.iter().enumerate() {
            let before = means.last().copied().unwrap_or(0.0);
            means.push(before + (context.rewards()[column] - before) / (k + 1) as f64);
        }
        descend(context, watch, &self.step_sizes, &self.preconditioners, |v| {
            let mut g = vec![0.0; context.feature_dim()];
            for ((&k, delta), mean) in sources.iter().zip(td_errors(context, 1.0, v)).zip(&means) {
                add(&mut g, delta - mean, context.features_of(k));
            }
            g
        })
    }
}
