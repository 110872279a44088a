//! Weighted softmax TD in direct form.

use super::{sources, td_errors};
use crate::context::{Context, Role};
use crate::kernel::{Attention, AttentionError, KernelWeights};
use crate::matrix::Matrix;
use crate::prompt::TokenMatrix;
use crate::transformer::AttentionParams;

/// Weighted softmax TD (paper, Section 3):
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

impl WeightedSoftmaxTd {
    /// The value estimates of all columns before the first and after every iteration.
    pub fn run(&self, context: &Context) -> Result<Vec<Vec<f64>>, AttentionError> {
        let identity = AttentionParams::theta_star(context.feature_dim());
        let prompt = TokenMatrix::prompt(context);
        let weights = KernelWeights::new(&self.attention, identity.score_matrix(), &prompt, context.roles())?;
        Ok(self.run_with(context, weights.matrix()))
    }

    fn run_with(&self, context: &Context, k: &Matrix) -> Vec<Vec<f64>> {
        let sources = sources(context);
        let mut history = vec![vec![0.0; context.num_columns()]];
        for (t, alpha) in self.step_sizes.iter().enumerate() {
            let v = &history[t];
            let delta = td_errors(context, self.gamma, v);
            let next = (0..v.len()).map(|j| {
                // A terminal state's value is 0 by definition.
                if context.roles()[j] == Role::Terminal {
                    return 0.0;
                }
                let update: f64 = sources.iter().zip(&delta).map(|(&i, d)| d * k[(i, j)]).sum();
                v[j] + alpha * update
            });
            let next = next.collect();
            history.push(next);
        }
        history
    }
}
