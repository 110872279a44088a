//! Temporal-difference learning written as algorithms, without Transformers: what the forward pass
//! is compared with.
//!
//! All of them, and the Transformer itself, are an [`Estimator`].
//!
//! ```
//! use ictd::{Context, End, Estimator, LinearTd, TabularTd};
//!
//! let context = Context::builder().episode(&[[1.0], [0.5], [1.0]], &[1.0, 0.0], End::Truncated).build()?;
//! let step_sizes = vec![0.5; 10];
//! let linear = LinearTd { gamma: 0.9, step_sizes: step_sizes.clone() };
//! let tabular = TabularTd { gamma: 0.9, step_sizes };
//! let estimators: [&dyn Estimator; 2] = [&linear, &tabular];
//! for estimator in estimators {
//!     let values = estimator.run(&context)?;
//!     println!("{}: {:.3}", estimator.name(), values[10][2]);
//!     assert!(values[10][2] > 0.0);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod average_reward;
mod lambda;
mod linear;
mod monte_carlo;
mod nonparametric;
mod reflected;
mod residual_gradient;
mod tabular;
mod weighted;
mod weights;

pub use average_reward::AverageRewardTd;
pub use lambda::LambdaTd;
pub use linear::LinearTd;
pub use monte_carlo::MonteCarloRegression;
pub use nonparametric::NonParametricTd;
pub use reflected::ReflectedTd;
pub use residual_gradient::ResidualGradientTd;
pub use tabular::TabularTd;
pub use weighted::WeightedSoftmaxTd;
pub(crate) use weighted::kernel_weights;

use crate::context::{Context, Role};
use crate::transformer::{Evaluator, ForwardError, Transformer};
use crate::watch::Watch;

/// An algorithm that estimates the values of a context's columns step by step.
pub trait Estimator {
    /// What to call it in a table.
    fn name(&self) -> &str;

    /// The value estimates of all columns before the first and after every iteration, which for a Transformer is a layer.
    fn run(&self, context: &Context) -> Result<Vec<Vec<f64>>, ForwardError> {
        self.run_watched(context, &())
    }

    /// As [`run`](Self::run), for work that takes long.
    fn run_watched(&self, context: &Context, watch: &dyn Watch) -> Result<Vec<Vec<f64>>, ForwardError>;
}

impl Estimator for Transformer {
    fn name(&self) -> &str {
        "Transformer"
    }

    fn run_watched(&self, context: &Context, watch: &dyn Watch) -> Result<Vec<Vec<f64>>, ForwardError> {
        let values = Evaluator::default().evaluate_watched(self, context, watch)?;
        Ok((0..=values.num_layers()).map(|layer| values.values(layer)).collect())
    }
}

/// The columns of the sources: transition k goes from column `sources[k]` to the column after it.
fn sources(context: &Context) -> Vec<usize> {
    (0..context.num_columns()).filter(|&j| context.roles()[j] == Role::Source).collect()
}

/// The TD errors δ_k = R_k + γ·v(S_k) - v(S_{k-1}) of all transitions (paper, eq:tderror), where
/// `values` has one entry per column.
///
/// # Panics
/// When there are fewer values than columns.
pub fn td_errors(context: &Context, gamma: f64, values: &[f64]) -> Vec<f64> {
    let error = |j: usize| context.rewards()[j] + gamma * values[j + 1] - values[j];
    sources(context).into_iter().map(error).collect()
}

/// The iteration that the algorithms share: values from 0, then from every step size and the values before it what `step` makes
/// of them. A terminal state's value is 0 by definition.
fn iterate(
    context: &Context,
    watch: &dyn Watch,
    step_sizes: &[f64],
    mut step: impl FnMut(f64, &[f64]) -> Vec<f64>,
) -> Result<Vec<Vec<f64>>, ForwardError> {
    watch.begin("iterations", "iterations", step_sizes.len() as u64)?;
    let mut history = vec![vec![0.0; context.num_columns()]];
    for (t, &step_size) in step_sizes.iter().enumerate() {
        let mut values = step(step_size, &history[t]);
        watch.advance(1)?;
        for (value, role) in values.iter_mut().zip(context.roles()) {
            if *role == Role::Terminal {
                *value = 0.0;
            }
        }
        if values.iter().any(|v| !v.is_finite()) {
            return Err(ForwardError::Diverged { layer: t + 1 });
        }
        history.push(values);
    }
    Ok(history)
}

/// v(S_j) + α Σ_k δ_k K(k, j) for every column j, `weights[j]` being K(·, j).
fn weighted_step(step_size: f64, values: &[f64], errors: &[f64], weights: &[Vec<f64>]) -> Vec<f64> {
    let change = |w: &Vec<f64>| errors.iter().zip(w).map(|(e, w)| e * w).sum::<f64>();
    values.iter().zip(weights).map(|(v, w)| v + step_size * change(w)).collect()
}
