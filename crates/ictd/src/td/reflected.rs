//! Weighted softmax TD on reflected transitions in direct form: what the mirror block computes.

use super::{Estimator, iterate, sources, weighted_step};
use crate::context::Context;
use crate::theory::lemmas::softmax;
use crate::transformer::ForwardError;
use crate::watch::Watch;

/// Softmax TD whose every transition (x, R, x') is replaced by its reflection (−x, −R, −x'), and whose estimate
/// is odd: a reflected state −x is worth −v(x).
///
/// v_{t+1}(S_j) = v_t(S_j) + α_t Σ_k K(−x_k, x_j)·(−R_k + γ·v_t(−x'_k) − v_t(−x_k)), v_t(−x) = −v_t(x),
/// with K the softmax kernel ∝ exp(⟨·, ·⟩/τ), normalised over transitions. Where values are linear in the
/// features a reflected transition is a transition of the same process, so its TD error is unbiased too.
#[derive(Clone, Debug)]
pub struct ReflectedTd {
    /// Softmax temperature τ.
    pub temperature: f64,
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes: one per iteration.
    pub step_sizes: Vec<f64>,
}

impl Estimator for ReflectedTd {
    fn name(&self) -> &str {
        "TD on reflected transitions"
    }

    fn run_watched(&self, context: &Context, watch: &dyn Watch) -> Result<Vec<Vec<f64>>, ForwardError> {
        let sources = sources(context);
        // The reflected data, written out: sources −x and rewards −R.
        let reflected: Vec<Vec<f64>> =
            sources.iter().map(|&k| context.features_of(k).iter().map(|x| -x).collect()).collect();
        let score =
            |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| a * b).sum::<f64>() / self.temperature;
        // K(−x_k, x_j) for every column and reflected source.
        let weights: Vec<Vec<f64>> = (0..context.num_columns())
            .map(|j| softmax(reflected.iter().map(|x| score(x, context.features_of(j)))))
            .collect();
        iterate(context, watch, &self.step_sizes, |step_size, v| {
            // The value of a reflected state is minus that of the state itself.
            let of_reflected = |column: usize| -v[column];
            let error =
                |&k: &usize| -context.rewards()[k] + self.gamma * of_reflected(k + 1) - of_reflected(k);
            let errors: Vec<f64> = sources.iter().map(error).collect();
            weighted_step(step_size, v, &errors, &weights)
        })
    }
}
