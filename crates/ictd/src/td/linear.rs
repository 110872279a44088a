//! Batch linear TD.

use super::{Estimator, iterate, sources, td_errors};
use crate::context::{Context, Role};
use crate::linalg::{self, LinalgError};
use crate::matrix::Matrix;
use crate::transformer::ForwardError;
use crate::watch::Watch;

/// Batch linear TD (paper, eq:nl td update with linear values): v(s) = ⟨w, x(s)⟩ and w ← w + (α/n) Σ_k δ_k x_{k-1}, from w = 0.
#[derive(Clone, Debug)]
pub struct LinearTd {
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes: one per iteration.
    pub step_sizes: Vec<f64>,
}

impl Estimator for LinearTd {
    fn name(&self) -> &str {
        "linear TD"
    }

    fn run_watched(&self, context: &Context, watch: &dyn Watch) -> Result<Vec<Vec<f64>>, ForwardError> {
        let mut w = vec![0.0; context.feature_dim()];
        iterate(context, watch, &self.step_sizes, |step_size, v| {
            self.step(context, step_size, v, &mut w);
            values_of(context, &w)
        })
    }
}

impl LinearTd {
    /// The weight vectors before the first and after every iteration.
    pub fn weights(&self, context: &Context) -> Vec<Vec<f64>> {
        let mut history = vec![vec![0.0; context.feature_dim()]];
        for (t, &step_size) in self.step_sizes.iter().enumerate() {
            let mut w = history[t].clone();
            self.step(context, step_size, &values_of(context, &w), &mut w);
            history.push(w);
        }
        history
    }

    /// Moves the weights w, whose values are `values`, by one iteration.
    fn step(&self, context: &Context, step_size: f64, values: &[f64], w: &mut [f64]) {
        let (sources, delta) = (sources(context), td_errors(context, self.gamma, values));
        let n = sources.len() as f64;
        for (&k, delta) in sources.iter().zip(delta) {
            for (w, x) in w.iter_mut().zip(context.features_of(k)) {
                *w += step_size / n * delta * x;
            }
        }
    }

    /// The weights the iteration converges to, if it does: Σ_k x_{k-1} (x_{k-1} - γ x_k)ᵀ w = Σ_k R_k x_{k-1}
    /// (least-squares TD).
    pub fn fixed_point(&self, context: &Context) -> Result<Vec<f64>, LinalgError> {
        let d = context.feature_dim();
        let (mut a, mut b) = (Matrix::zeros(d, d), vec![0.0; d]);
        for k in sources(context) {
            let (x, next) = (context.features_of(k), context.features_of(k + 1));
            let gamma = if context.roles()[k + 1] == Role::Terminal { 0.0 } else { self.gamma };
            for i in 0..d {
                b[i] += context.rewards()[k] * x[i];
                for j in 0..d {
                    a[(i, j)] += x[i] * (x[j] - gamma * next[j]);
                }
            }
        }
        linalg::solve(&a, &b)
    }
}

/// ⟨w, x⟩ for every column, 0 for terminal states.
pub(super) fn values_of(context: &Context, w: &[f64]) -> Vec<f64> {
    let value = |j: usize| match context.roles()[j] {
        Role::Terminal => 0.0,
        _ => w.iter().zip(context.features_of(j)).map(|(w, x)| w * x).sum(),
    };
    (0..context.num_columns()).map(value).collect()
}
