//! Batch residual gradient.

use super::weights::{add, descend};
use super::{Estimator, sources, td_errors};
use crate::context::{Context, Role};
use crate::matrix::Matrix;
use crate::transformer::ForwardError;
use crate::watch::Watch;

/// The batch residual gradient: w ← w + (α/n)·C Σ_k δ_k (x_k − γx_{k+1}), which without C descends the mean of δ²/2 (arXiv 2405.13861).
#[derive(Clone, Debug)]
pub struct ResidualGradientTd {
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes: one per iteration.
    pub step_sizes: Vec<f64>,
    /// Preconditioners C: one per iteration, or none.
    pub preconditioners: Vec<Matrix>,
}

impl Estimator for ResidualGradientTd {
    fn name(&self) -> &str {
        "residual gradient"
    }

    fn run_watched(&self, context: &Context, watch: &dyn Watch) -> Result<Vec<Vec<f64>>, ForwardError> {
        let sources = sources(context);
        descend(context, watch, &self.step_sizes, &self.preconditioners, |v| {
            let mut g = vec![0.0; context.feature_dim()];
            for (&k, delta) in sources.iter().zip(td_errors(context, self.gamma, v)) {
                add(&mut g, delta, context.features_of(k));
                if context.roles()[k + 1] != Role::Terminal {
                    add(&mut g, -self.gamma * delta, context.features_of(k + 1));
                }
            }
            g
        })
    }
}
