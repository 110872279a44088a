//! Normalised non-parametric TD.

use super::{Estimator, iterate, sources, td_errors};
use crate::context::Context;
use crate::transformer::ForwardError;
use crate::watch::Watch;

/// Normalised batch non-parametric TD for a positive similarity κ (paper, eq:nonparam-td-general
/// with normalised weights): v(y) ← v(y) + α Σ_k δ_k κ(x_{k-1}, y) / Σ_k κ(x_{k-1}, y).
///
/// Weighted softmax TD with score g = log κ; with the Gaussian κ it is the [`Rbf`](crate::kernel::Rbf)
/// kernel.
#[derive(Clone, Debug)]
pub struct NonParametricTd<F> {
    /// The similarity κ(x, y) > 0.
    pub kappa: F,
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes: one per iteration.
    pub step_sizes: Vec<f64>,
}

impl<F: Fn(&[f64], &[f64]) -> f64> Estimator for NonParametricTd<F> {
    fn name(&self) -> &str {
        "non-parametric TD"
    }

    fn run_watched(&self, context: &Context, watch: &dyn Watch) -> Result<Vec<Vec<f64>>, ForwardError> {
        let sources = sources(context);
        iterate(context, watch, &self.step_sizes, |step_size, v| {
            let delta = td_errors(context, self.gamma, v);
            let update = |j: usize| {
                // What is found of an iteration that is stopped in its midst is thrown away.
                if watch.advance(0).is_err() {
                    return f64::NAN;
                }
                let y = context.features_of(j);
                let similarities = sources.iter().map(|&k| (self.kappa)(context.features_of(k), y));
                let (weighted, total) = similarities
                    .zip(&delta)
                    .fold((0.0, 0.0), |(weighted, total), (kappa, d)| (weighted + kappa * d, total + kappa));
                v[j] + step_size * weighted / total
            };
            (0..v.len()).map(update).collect()
        })
    }
}
