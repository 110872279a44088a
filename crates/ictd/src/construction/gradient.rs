//! The derivatives of a construction's value, by what is trained of it.

use super::form::Factors;
use super::{Construction, ConstructionError};
use crate::context::Context;
use crate::matrix::Matrix;
use crate::transformer::ForwardError;
use crate::vector::{all_finite, axpy, dot};

/// ∂v/∂C and ∂v/∂α of every layer, with v the value of the query after the last one. Where layers share a preconditioner or a step size,
/// the derivative by it is the sum over layers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConstructionGradient {
    /// The value of the query after the last layer.
    pub value: f64,
    /// Entry l: ∂v/∂C_l, d × d.
    pub preconditioners: Vec<Matrix>,
    /// Entry l: ∂v/∂α_l.
    pub step_sizes: Vec<f64>,
}

impl Construction {
    /// The derivatives of the value of the query, in O(n·d) per layer.
    ///
    /// Layer l moves weights by Δ_l = (α_l/n)·C_l s_l with s_l = Σ_i δ_i e_i, and TD errors by D Δ_l, where row i of D is γφ'_i − φ_i; the value
    /// is ⟨φ_q, Σ_l Δ_l⟩. Backwards, with rows e_i in E and the derivatives δ̄ by TD errors, from 0:
    ///
    /// ```text
    /// Δ̄ = φ_q + Dᵀ δ̄     ∂v/∂C_l = (α_l/n)·Δ̄ s_lᵀ     ∂v/∂α_l = ⟨Δ̄, C_l s_l⟩/n     δ̄ ← δ̄ + (α_l/n)·E C_lᵀ Δ̄
    /// ```
    pub fn gradient(&self, context: &Context) -> Result<ConstructionGradient, ConstructionError> {
        self.check_context(context)?;
        let (n, d) = (context.num_transitions(), context.feature_dim());
        let factors = self.form().factors(context);
        let query = context.features_of(n);
        let (mut delta, mut value) = (factors.rewards.clone(), 0.0);
        let mut sums = Vec::with_capacity(self.num_layers());
        for layer in 0..self.num_layers() {
            sums.push(factors.sum(&delta));
            let c = self.preconditioner(layer, d);
            value += dot(query, &factors.layer(&mut delta, self.step(layer, context, &c)));
            // Negated, so that NaN is divergence.
            if !(value.is_finite() && all_finite(&delta)) {
                return Err(ForwardError::Diverged { layer: layer + 1 }.into());
            }
        }
        let Factors { eligibility, difference, .. } = &factors;
        let mut delta_bar = vec![0.0; n];
        let (mut preconditioners, mut step_sizes) = (Vec::new(), Vec::new());
        for (layer, sum) in sums.iter().enumerate().rev() {
            let c = self.preconditioner(layer, d);
            let share = self.step(layer, context, &c).share();
            let mut moved_bar = query.to_vec();
            for (bar, difference) in delta_bar.iter().zip(difference.rows()) {
                axpy(*bar, difference, &mut moved_bar);
            }
            preconditioners.push(Matrix::from_fn(d, d, |i, j| share * moved_bar[i] * sum[j]));
            step_sizes.push(dot(&moved_bar, &c.mul_vec(sum)) / n as f64);
            let sum_bar = c.transpose().mul_vec(&moved_bar);
            for (bar, e) in delta_bar.iter_mut().zip(eligibility.rows()) {
                *bar += share * dot(e, &sum_bar);
            }
            if !all_finite(&delta_bar) {
                return Err(ForwardError::Diverged { layer: layer + 1 }.into());
            }
        }
        preconditioners.reverse();
        step_sizes.reverse();
        Ok(ConstructionGradient { value, preconditioners, step_sizes })
    }
}
