//! Normalised non-parametric TD.

use super::{sources, td_errors};
use crate::context::{Context, Role};

/// Normalised batch non-parametric TD for a positive similarity κ (paper, after the weighted softmax
/// TD update): v(y) ← v(y) + α Σ_k δ_k κ(x_{k-1}, y) / Σ_k κ(x_{k-1}, y).
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

impl<F: Fn(&[f64], &[f64]) -> f64> NonParametricTd<F> {
    /// The value estimates of all columns before the first and after every iteration.
    pub fn run(&self, context: &Context) -> Vec<Vec<f64>> {
        let sources = sources(context);
        let mut history = vec![vec![0.0; context.num_columns()]];
        for (t, alpha) in self.step_sizes.iter().enumerate() {
            let v = &history[t];
            let delta = td_errors(context, self.gamma, v);
            let update = |j: usize| {
                if context.roles()[j] == Role::Terminal {
                    return 0.0;
                }
                let y = context.features_of(j);
                let similarities = sources.iter().map(|&k| (self.kappa)(context.features_of(k), y));
                let (weighted, total) = similarities
                    .zip(&delta)
                    .fold((0.0, 0.0), |(weighted, total), (kappa, d)| (weighted + kappa * d, total + kappa));
                v[j] + alpha * weighted / total
            };
            let next = (0..v.len()).map(update).collect();
            history.push(next);
        }
        history
    }
}
