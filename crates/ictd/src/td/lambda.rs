//! Batch linear TD with eligibility traces.

use super::weights::{add, descend};
use super::{Estimator, sources, td_errors};
use crate::context::{Context, Role};
use crate::matrix::Matrix;
use crate::transformer::ForwardError;
use crate::watch::Watch;

/// Batch linear TD(λ): w ← w + (α/n)·C Σ_k δ_k e_k with the trace e_k = λe_{k-1} + x_k, which starts anew with every episode.
///
/// The trace decays by λ, not by γλ: it is the one that a mask of attention gives (arXiv 2405.13861). λ = 0 is
/// [`LinearTd`](super::LinearTd), and so is SARSA where columns are pairs of states and actions.
#[derive(Clone, Debug)]
pub struct LambdaTd {
    /// Decay λ of traces.
    pub lambda: f64,
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes: one per iteration.
    pub step_sizes: Vec<f64>,
    /// Preconditioners C: one per iteration, or none.
    pub preconditioners: Vec<Matrix>,
}

impl Estimator for LambdaTd {
    fn name(&self) -> &str {
        "TD(λ)"
    }

    fn run_watched(&self, context: &Context, watch: &dyn Watch) -> Result<Vec<Vec<f64>>, ForwardError> {
        let (sources, d) = (sources(context), context.feature_dim());
        descend(context, watch, &self.step_sizes, &self.preconditioners, |v| {
            let (mut g, mut trace) = (vec![0.0; d], vec![0.0; d]);
            for (&k, delta) in sources.iter().zip(td_errors(context, self.gamma, v)) {
                if k > 0 && context.roles()[k - 1] != Role::Source {
                    trace.fill(0.0);
                }
                for (e, x) in trace.iter_mut().zip(context.features_of(k)) {
                    *e = self.lambda * *e + x;
                }
                add(&mut g, delta, &trace);
            }
            g
        })
    }
}
