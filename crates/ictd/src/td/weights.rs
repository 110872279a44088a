//! What algorithms with linear values share: weights that are moved along a direction.

use super::linear::values_of;
use super::{iterate, sources};
use crate::context::Context;
use crate::matrix::Matrix;
use crate::transformer::ForwardError;
use crate::watch::Watch;

/// v = ⟨w, x⟩ and w ← w + (α/n)·C g, from w = 0, where g is the `direction` at the values before: values of all columns, iteration by iteration. There is
/// one preconditioner C per iteration, or none.
pub(super) fn descend(
    context: &Context,
    watch: &dyn Watch,
    step_sizes: &[f64],
    preconditioners: &[Matrix],
    mut direction: impl FnMut(&[f64]) -> Vec<f64>,
) -> Result<Vec<Vec<f64>>, ForwardError> {
    let n = sources(context).len() as f64;
    let mut w = vec![0.0; context.feature_dim()];
    let mut preconditioners = preconditioners.iter();
    iterate(context, watch, step_sizes, |step_size, v| {
        let g = direction(v);
        let g = preconditioners.next().map_or_else(|| g.clone(), |c| c.mul_vec(&g));
        for (w, g) in w.iter_mut().zip(g) {
            *w += step_size * g / n;
        }
        values_of(context, &w)
    })
}

/// Adds δ·x to a direction.
pub(super) fn add(direction: &mut [f64], delta: f64, x: &[f64]) {
    for (g, x) in direction.iter_mut().zip(x) {
        *g += delta * x;
    }
}
