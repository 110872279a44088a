//! The coordinates in which layers move values.

use super::StateOperator;
use super::span::Directions;
use crate::matrix::Matrix;
use crate::statistics::largest;
use crate::transformer::ValueRow;

/// Every iterate from v = 0 is v = U y, and y converges to the solution of K y = β.
///
/// For most kernels U(u, s) = W(s, u), K = F U and β the reward sums, with F v the summed values less discounted
/// successors of the source states. For the linear kernel U holds the features, times B where a block was learned, and K = Xᵀ F U, β = XᵀR, with
/// X the features of the source states: layers move values in d directions only.
#[derive(Clone, Debug)]
pub(crate) struct Coordinates {
    /// U.
    pub basis: Matrix,
    /// K.
    pub system: Matrix,
    /// β.
    pub right: Vec<f64>,
    /// What entries of a residual β - K y are naturally measured in.
    pub scales: Vec<f64>,
    /// What one layer with step size 1 multiplies a residual by to get the change of y.
    pub step: f64,
    /// Xᵀ for the linear kernel.
    projection: Option<Matrix>,
    /// Bounds on the rounding of the rows of U, weighted by `scales`; features are exact, their products with a block are not.
    errors: Vec<f64>,
}

impl Coordinates {
    /// The coordinates of an operator.
    pub fn of(operator: &StateOperator) -> Self {
        let statistics = operator.statistics();
        let visits = statistics.visits();
        let Some(scale) = operator.attention.kernel().linear_scale() else {
            return Self {
                basis: operator.weights.clone(),
                system: operator.residual_map(),
                right: statistics.reward_sums().to_vec(),
                scales: visits.to_vec(),
                step: 1.0,
                projection: None,
                errors: operator.weight_errors(),
            };
        };
        let (d, sources) = (statistics.feature_dim(), statistics.num_source_groups());
        let directions = Directions::all(statistics, operator.block.as_ref());
        let (system, right) = operator.normal_equations(&directions);
        let Directions { moved, seen } = directions;
        let mass = |a: usize| (0..sources).map(|s| visits[s] * moved[(s, a)].abs()).sum();
        let scales: Vec<f64> = (0..d).map(mass).collect();
        let errors = (0..statistics.num_groups()).map(|u| match &operator.block {
            None => 0.0,
            // A sum of d products.
            Some(block) => {
                let sizes = block
                    .mul_vec_of_sizes(&statistics.features(u).iter().map(|x| x.abs()).collect::<Vec<_>>());
                f64::EPSILON
                    * d as f64
                    * sizes.iter().zip(&scales).map(|(size, scale)| size * scale).sum::<f64>()
            }
        });
        Self {
            errors: errors.collect(),
            basis: seen,
            system,
            right,
            step: scale / statistics.num_transitions() as f64,
            projection: Some(Matrix::from_fn(d, sources, |a, s| moved[(s, a)])),
            scales,
        }
    }

    /// The residual of y from the summed TD errors of U y.
    pub fn project(&self, errors: &[f64]) -> Vec<f64> {
        self.projection.as_ref().map_or_else(|| errors.to_vec(), |x| x.mul_vec(errors))
    }

    /// How large a residual summed TD errors of sizes `errors` can make; roundings of the projection included.
    pub fn project_size(&self, errors: &[f64]) -> Vec<f64> {
        self.projection.as_ref().map_or_else(|| errors.to_vec(), |x| x.mul_vec_of_sizes(errors))
    }

    /// A bound on |(U* - U) z| for z ≥ 0, state by state, where U* is U without rounding.
    pub fn basis_error(&self, z: &[f64]) -> Vec<f64> {
        let share = largest(z.iter().zip(&self.scales).map(|(z, c)| z / c));
        // An infinite error of nothing is none.
        self.errors.iter().map(|e| if share == 0.0 { 0.0 } else { e * share }).collect()
    }
}

impl StateOperator {
    /// |F| v for sizes v ≥ 0: what summed TD errors change by at most when values change by v.
    pub(crate) fn error_sizes(&self, v: &[f64]) -> Vec<f64> {
        self.messages(ValueRow { reward: 0.0, value: 1.0, ..ValueRow::TD }, v)
    }

    /// The largest number of terms of the sums in a layer.
    pub(crate) fn num_terms(&self) -> usize {
        let sources = self.statistics.num_source_groups();
        let successors = (0..sources).map(|s| self.statistics.successors(s).count()).max();
        sources + successors.unwrap_or(0)
    }
}
