//! Weighted softmax TD in direct form.

use super::{Estimator, iterate, sources, td_errors, weighted_step};
use crate::context::Context;
use crate::kernel::{Attention, Kernel, Normalization};
use crate::transformer::ForwardError;
use crate::watch::{Stopped, Watch};

/// Weighted softmax TD (paper, eq:wktd-update with the weights of eq:softmax-weight-sync):
/// v_{t+1}(S_j) = v_t(S_j) + α_t Σ_k δ_k^{(t)} K(S_{k-1}, S_j).
///
/// Special cases, by choice of kernel:
/// - linear: batch linear TD ([`LinearTd`](super::LinearTd));
/// - tabular: expected tabular TD ([`TabularTd`](super::TabularTd));
/// - softmax with one-hot features scaled by c → ∞: tabular TD in the limit;
/// - softmax with g = log κ: normalised non-parametric TD, for instance [`Rbf`](crate::kernel::Rbf).
#[derive(Clone, Debug)]
pub struct WeightedSoftmaxTd {
    /// Kernel and diagonal mixing.
    pub attention: Attention,
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes: one per iteration.
    pub step_sizes: Vec<f64>,
}

impl Estimator for WeightedSoftmaxTd {
    fn name(&self) -> &str {
        "weighted softmax TD"
    }

    fn run_watched(&self, context: &Context, watch: &dyn Watch) -> Result<Vec<Vec<f64>>, ForwardError> {
        let sources = sources(context);
        let weights = |j: usize| {
            watch.advance(0)?;
            Ok(self.weights(context, &sources, j))
        };
        let weights: Vec<Vec<f64>> =
            (0..context.num_columns()).map(weights).collect::<Result<_, Stopped>>()?;
        iterate(context, watch, &self.step_sizes, |step_size, v| {
            weighted_step(step_size, v, &td_errors(context, self.gamma, v), &weights)
        })
    }
}

impl WeightedSoftmaxTd {
    /// K(S_{k-1}, S_j) for every transition k.
    fn weights(&self, context: &Context, sources: &[usize], j: usize) -> Vec<f64> {
        let features: Vec<&[f64]> = sources.iter().map(|&k| context.features_of(k)).collect();
        let weights = kernel_weights(self.attention.kernel(), &features, context.features_of(j));
        let rho = self.attention.diagonal_mix();
        let mixed = |(w, &k): (f64, &usize)| (1.0 - rho) * w + if k == j { rho } else { 0.0 };
        weights.into_iter().zip(sources).map(mixed).collect()
    }
}

/// The weight of every source for features y, as defined: no score matrix, no tokens, no mixing.
pub(crate) fn kernel_weights(kernel: &dyn Kernel, sources: &[&[f64]], y: &[f64]) -> Vec<f64> {
    let mut weights: Vec<f64> = sources.iter().map(|x| kernel.similarity().of(x, y)).collect();
    kernel.weigh(&mut weights);
    let divisor = match kernel.normalization() {
        Normalization::ByColumn => weights.iter().sum(),
        Normalization::ByCount => sources.len() as f64,
    };
    weights.into_iter().map(|w| if divisor == 0.0 { 0.0 } else { w / divisor }).collect()
}
