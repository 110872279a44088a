//! Values linear in the features; linear TD.

use super::{Fit, FitError, Method, centre, check_dim, check_step_size, finite};
use crate::evaluate::sample::Sample;
use crate::matrix::Matrix;

/// v(x) = c + ⟨w, x⟩.
#[derive(Debug)]
pub(super) struct LinearFit {
    constant: f64,
    weights: Vec<f64>,
    values: Vec<f64>,
}

impl LinearFit {
    pub fn new(sample: &Sample<'_>, constant: f64, weights: Vec<f64>) -> Self {
        let values = linear_values(sample.features(), constant, &weights);
        Self { constant, weights, values }
    }
}

/// c + ⟨w, x⟩ for every row x.
fn linear_values(features: &Matrix, constant: f64, weights: &[f64]) -> Vec<f64> {
    features.mul_vec(weights).into_iter().map(|v| constant + v).collect()
}

impl Fit for LinearFit {
    fn values(&self) -> &[f64] {
        &self.values
    }

    fn predict(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        check_dim(self.weights.len(), states)?;
        Ok(linear_values(states, self.constant, &self.weights))
    }
}

/// Batch linear TD: w ← w + (α/n) Σ δ·x over the n transitions, from w = 0.
#[derive(Clone, Copy, Debug)]
pub struct LinearTd {
    /// Number of updates.
    pub num_layers: usize,
    /// Step size α.
    pub step_size: f64,
    /// Whether values are c + ⟨w, x⟩ with c the constant that fits best, rather than ⟨w, x⟩.
    pub centred: bool,
}

impl Method for LinearTd {
    fn name(&self) -> &'static str {
        "linear TD"
    }

    fn fit(&self, sample: &Sample<'_>) -> Result<Box<dyn Fit>, FitError> {
        check_step_size(self.step_size)?;
        let mean = centre(sample)?;
        let constant = if self.centred { mean } else { 0.0 };
        let (features, n) = (sample.features(), sample.num_visits());
        let mut weights = vec![0.0; features.num_cols()];
        for _ in 0..self.num_layers {
            let errors = sample.td_errors(&linear_values(features, constant, &weights));
            for (x, error) in features.rows().zip(errors).filter(|(_, error)| *error != 0.0) {
                weights.iter_mut().zip(x).for_each(|(w, x)| *w += self.step_size / n * error * x);
            }
        }
        Ok(Box::new(LinearFit::new(sample, constant, finite(weights, self.num_layers)?)))
    }
}
