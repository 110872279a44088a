//! Scaling features, so that no unit of measurement decides who is near whom.

use super::log::Log;
use crate::matrix::Matrix;
use crate::vector;

/// How features are scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// Not at all.
    None,
    /// To mean 0 and standard deviation 1 over the visits of the log.
    #[default]
    Standardize,
    /// Every state's feature vector to length 1; a vector of zeros stays.
    UnitNorm,
}

/// A scaling with the numbers it takes from a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaler {
    scaling: Scaling,
    means: Vec<f64>,
    deviations: Vec<f64>,
}

impl Scaler {
    /// The scaler of a log. The means and deviations are over visits, so that a state counts as often as it was left.
    pub fn of(scaling: Scaling, log: &Log) -> Self {
        let (x, visits) = (log.features(), log.whole().visits().to_vec());
        let n: f64 = visits.iter().sum();
        let mean = |f: &dyn Fn(&[f64]) -> f64| -> f64 {
            x.rows().zip(&visits).filter(|(_, n)| **n > 0.0).map(|(x, w)| w / n * f(x)).sum()
        };
        let means: Vec<f64> = (0..x.num_cols()).map(|a| mean(&|x| x[a])).collect();
        let deviation = |a: usize| {
            let largest = x.rows().map(|x| (x[a] - means[a]).abs()).fold(0.0, f64::max);
            // Squares of what is divided by the largest neither overflow nor vanish.
            let scaled = |x: &[f64]| if largest > 0.0 { ((x[a] - means[a]) / largest).powi(2) } else { 0.0 };
            let deviation = largest * mean(&scaled).sqrt();
            // What rounding leaves of a constant is no deviation.
            if deviation > 1e-12 * means[a].abs() { deviation } else { 0.0 }
        };
        let deviations = (0..x.num_cols()).map(deviation).collect();
        Self { scaling, means, deviations }
    }

    /// Features that are the same in all visits: standardized they become 0 for every state.
    pub fn constant_features(&self) -> Vec<usize> {
        (0..self.deviations.len()).filter(|&a| self.deviations[a] == 0.0).collect()
    }

    /// Scaled features, row by row.
    ///
    /// # Panics
    /// When there are not as many features as the log had.
    pub fn apply(&self, features: &Matrix) -> Matrix {
        assert_eq!(features.num_cols(), self.means.len(), "apply: as many features as the log's expected");
        let standardized = |x: f64, a: usize| match self.deviations[a] {
            0.0 => 0.0,
            deviation => (x - self.means[a]) / deviation,
        };
        let lengths: Vec<f64> = features.rows().map(vector::length).collect();
        let scaled = |i: usize, a: usize| match self.scaling {
            Scaling::Standardize => standardized(features[(i, a)], a),
            Scaling::UnitNorm if lengths[i] > 0.0 => features[(i, a)] / lengths[i],
            Scaling::UnitNorm | Scaling::None => features[(i, a)],
        };
        Matrix::from_fn(features.num_rows(), features.num_cols(), scaled)
    }
}
