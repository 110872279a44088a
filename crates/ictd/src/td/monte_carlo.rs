//! Regression on the returns that were seen.

use super::weights::{add, descend};
use super::{Estimator, sources};
use crate::context::{Context, Role};
use crate::matrix::Matrix;
use crate::transformer::ForwardError;
use crate::watch::Watch;

/// Regression on returns: w ← w + (α/n)·C Σ_k (G_k − v(S_{k-1})) x_{k-1}, where G_k is the discounted sum of the rewards from transition k to the end of its
/// episode. What follows the end of a truncated episode is not counted.
#[derive(Clone, Debug)]
pub struct MonteCarloRegression {
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes: one per iteration.
    pub step_sizes: Vec<f64>,
    /// Preconditioners C: one per iteration, or none.
    pub preconditioners: Vec<Matrix>,
}

impl Estimator for MonteCarloRegression {
    fn name(&self) -> &str {
        "regression on returns"
    }

    fn run_watched(&self, context: &Context, watch: &dyn Watch) -> Result<Vec<Vec<f64>>, ForwardError> {
        let sources = sources(context);
        let goes_on = |column: usize| context.roles()[column] == Role::Source;
        // As defined: every sum by itself.
        let of = |&first: &usize| {
            let columns = (first..).take_while(|&column| goes_on(column));
            columns.zip(0..).map(|(column, t)| self.gamma.powi(t) * context.rewards()[column]).sum()
        };
        let returns: Vec<f64> = sources.iter().map(of).collect();
        descend(context, watch, &self.step_sizes, &self.preconditioners, |v| {
            let mut g = vec![0.0; context.feature_dim()];
            for (&k, sum) in sources.iter().zip(&returns) {
                add(&mut g, sum - v[k], context.features_of(k));
            }
            g
        })
    }
}
