//! Temporal-difference learning written as algorithms, without Transformers: what the forward pass
//! is compared with.

mod linear;
mod nonparametric;
mod reflected;
mod tabular;
mod weighted;

pub use linear::LinearTd;
pub use nonparametric::NonParametricTd;
pub use reflected::ReflectedTd;
pub use tabular::TabularTd;
pub use weighted::WeightedSoftmaxTd;

use crate::context::{Context, Role};

/// The columns of the sources: transition k goes from column `sources[k]` to the column after it.
fn sources(context: &Context) -> Vec<usize> {
    (0..context.num_columns()).filter(|&j| context.roles()[j] == Role::Source).collect()
}

/// The TD errors δ_k = R_k + γ·v(S_k) - v(S_{k-1}) of all transitions (paper, Section 3), where
/// `values` has one entry per column.
pub fn td_errors(context: &Context, gamma: f64, values: &[f64]) -> Vec<f64> {
    let error = |j: usize| context.rewards()[j] + gamma * values[j + 1] - values[j];
    sources(context).into_iter().map(error).collect()
}
