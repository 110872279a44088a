//! Which way the first gradient turns the reward coefficient, and the correlation behind it.

use ictd::pretrain::first_gradient;
use serde::{Deserialize, Serialize};

use super::pretrain::Settings;
use super::{in_parallel, mean_and_sem};
use crate::{LabError, Progress};

/// Tasks per seed.
const TASKS: u64 = 50;

/// The first gradient of a setting: its sign decides which way the reward coefficient moves.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FirstGradientSign {
    pub query: String,
    /// Derivative of the loss by V's reward entry at the initial parameters, mean over tasks and seeds.
    pub gradient: f64,
    pub gradient_sem: f64,
    /// What uniform attention predicts: -2·L·E[r(query)·mean R].
    pub predicted: f64,
    pub predicted_sem: f64,
    /// E[v(query)·mean R].
    pub value_correlation: f64,
    pub value_correlation_sem: f64,
}

impl FirstGradientSign {
    /// Measures the first gradient of the seeds, 50 tasks each.
    pub fn measure(
        query: &str,
        settings: &Settings,
        seeds: &[u64],
        progress: &Progress,
    ) -> Result<Self, LabError> {
        let found = in_parallel(seeds, |&seed| {
            let found = first_gradient(&settings.config, seed, TASKS)?;
            progress.step(1).map(|()| found)
        })?;
        let factor = -2.0 * settings.config.num_layers as f64;
        let (gradient, gradient_sem) = mean_and_sem("seeds", found.iter().flat_map(|f| f.gradient.clone()))?;
        let rewards = found.iter().flat_map(|f| &f.reward_correlation);
        let (predicted, predicted_sem) = mean_and_sem("seeds", rewards.map(|c| factor * c))?;
        let values = found.iter().flat_map(|f| f.value_correlation.clone());
        let (value_correlation, value_correlation_sem) = mean_and_sem("seeds", values)?;
        Ok(Self {
            query: query.to_owned(),
            gradient,
            gradient_sem,
            predicted,
            predicted_sem,
            value_correlation,
            value_correlation_sem,
        })
    }
}
