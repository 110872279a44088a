//! Values by state, without generalisation; tabular TD.

use super::{Fit, FitError, Method, centre, check_dim, check_step_size, finite};
use crate::evaluate::sample::Sample;
use crate::matrix::Matrix;

/// Values of the states of a log; any other state has the constant that fits best.
#[derive(Debug)]
pub(in crate::evaluate) struct Table {
    features: Matrix,
    values: Vec<f64>,
    constant: f64,
}

impl Table {
    pub fn new(sample: &Sample<'_>, values: Vec<f64>, constant: f64) -> Self {
        Self { features: sample.features().clone(), values, constant }
    }
}

impl Fit for Table {
    fn values(&self) -> &[f64] {
        &self.values
    }

    fn predict(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        check_dim(self.features.num_cols(), states)?;
        let numbers: Vec<usize> = (0..self.values.len()).collect();
        let value = |x: &[f64]| {
            // Rows of a log are in lexicographic order.
            let order = |&s: &usize| {
                let pairs = self.features.row(s).iter().zip(x);
                pairs
                    .map(|(a, b)| a.total_cmp(&(b + 0.0)))
                    .find(|o| o.is_ne())
                    .unwrap_or(std::cmp::Ordering::Equal)
            };
            numbers.binary_search_by(order).map_or(self.constant, |s| self.values[s])
        };
        Ok(states.rows().map(value).collect())
    }
}

/// Tabular TD with expected updates: v(s) ← v(s) + α·(mean of r + γ·v(s') - v(s) over the visits of s), for every state that
/// was left; others keep the start.
#[derive(Clone, Copy, Debug)]
pub struct TabularTd {
    /// Number of updates of every state.
    pub num_layers: usize,
    /// Step size α.
    pub step_size: f64,
    /// Whether to start from the constant that fits best, rather than from 0.
    pub centred: bool,
}

impl Method for TabularTd {
    fn name(&self) -> &'static str {
        "tabular TD"
    }

    fn fit(&self, sample: &Sample<'_>) -> Result<Box<dyn Fit>, FitError> {
        check_step_size(self.step_size)?;
        let mean = centre(sample)?;
        let start = if self.centred { mean } else { 0.0 };
        let mut values = vec![start; sample.num_states()];
        for _ in 0..self.num_layers {
            let errors = sample.td_errors(&values);
            for (value, (error, &visits)) in values.iter_mut().zip(errors.iter().zip(sample.visits())) {
                if visits > 0.0 {
                    *value += self.step_size * error / visits;
                }
            }
        }
        Ok(Box::new(Table::new(sample, finite(values, self.num_layers)?, start)))
    }
}
