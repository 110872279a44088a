//! Regression on returns by linear attention.

use super::form::{Factors, Form, Step, feature_names};
use super::td::Td;
use crate::context::Context;
use crate::matrix::Matrix;

/// Gradient descent of the regression on the returns that were seen.
///
/// Columns are (φ_i, 0, G_i) with the discounted sum G_i = r_i + γG_{i+1} of the rewards from i to the end of the trajectory, and (φ_q, 0, 0) for
/// the query; a layer is that of TD(0). Without successors its TD errors are those of regression, G_i − φ_iᵀw.
///
/// It follows w ← w + (α/n)·C Σ_i (G_i − φ_iᵀw) φ_i. Nothing stands for what follows the end of the trajectory.
#[derive(Clone, Debug)]
pub(super) struct MonteCarlo {
    /// Discount γ of the returns.
    pub gamma: f64,
}

/// TD without successors.
const REGRESSION: Td = Td { gamma: 0.0, lambda: 0.0 };

impl MonteCarlo {
    fn returns(&self, context: &Context) -> Vec<f64> {
        let mut returns = context.rewards()[..context.num_transitions()].to_vec();
        for i in (1..returns.len()).rev() {
            returns[i - 1] += self.gamma * returns[i];
        }
        returns
    }
}

impl Form for MonteCarlo {
    fn row_names(&self, d: usize) -> Vec<String> {
        feature_names(d).into_iter().chain(["return error".into()]).collect()
    }

    fn prompt(&self, context: &Context) -> Matrix {
        let mut z = REGRESSION.prompt(context);
        let returns = self.returns(context);
        z.row_mut(2 * context.feature_dim())[..returns.len()].copy_from_slice(&returns);
        z
    }

    fn layer(&self, z: &Matrix, step: Step<'_>) -> Matrix {
        REGRESSION.layer(z, step)
    }

    fn value(&self, z: &Matrix, query: &[f64]) -> f64 {
        REGRESSION.value(z, query)
    }

    fn factors(&self, context: &Context) -> Factors {
        Factors { rewards: self.returns(context), ..Factors::td(context, 0.0) }
    }
}
