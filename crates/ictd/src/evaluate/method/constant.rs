//! One value for all states.

use super::{Fit, FitError, Method, centre, check_dim};
use crate::evaluate::sample::Sample;
use crate::matrix::Matrix;

/// The constant that fits best, [`Sample::mean_value`]: what any other estimate has to beat.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConstantMean;

#[derive(Debug)]
struct Constant {
    feature_dim: usize,
    values: Vec<f64>,
}

impl Method for ConstantMean {
    fn name(&self) -> &'static str {
        "constant mean"
    }

    fn fit(&self, sample: &Sample<'_>) -> Result<Box<dyn Fit>, FitError> {
        let values = vec![centre(sample)?; sample.num_states()];
        Ok(Box::new(Constant { feature_dim: sample.features().num_cols(), values }))
    }
}

impl Fit for Constant {
    fn values(&self) -> &[f64] {
        &self.values
    }

    fn predict(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        check_dim(self.feature_dim, states)?;
        Ok(vec![self.values[0]; states.num_rows()])
    }
}
