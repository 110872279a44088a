//! Softmax TD over landmarks, in the landmarks' own coordinates.

use rayon::prelude::*;

use super::smoother::Weights;
use crate::matrix::Matrix;
use crate::vector;

/// With landmarks values are c + α Σ_k W(·, k) g_k, where g_k is the sum over layers of the TD errors attributed to landmark k.
/// These errors are an affine function of g, e - α A g, so that a layer costs as much as there are pairs of landmarks, however
/// many states there are. One system per column of a batch.
pub(super) struct Coordinates {
    systems: Vec<Matrix>,
    /// TD errors of the constant, by landmark and column.
    right: Matrix,
}

/// What the TD errors of a landmark lose per unit of a state's value: (landmark, state, loss by column of the batch).
pub(super) type Losses = Vec<(usize, usize, Vec<f64>)>;

impl Coordinates {
    pub fn new(weights: &Weights, losses: &Losses, right: Matrix) -> Self {
        let num_keys = right.num_rows();
        let system = |b: usize| {
            let mut system = Matrix::zeros(num_keys, num_keys);
            for (key, state, loss) in losses.iter().filter(|(_, _, loss)| loss[b] != 0.0) {
                let scaled = loss[b] * weights.factor(*state, b);
                vector::axpy(scaled, weights.rows.row(*state), system.row_mut(*key));
            }
            system
        };
        Self { systems: (0..right.num_cols()).into_par_iter().map(system).collect(), right }
    }

    /// Adds the TD errors of so many layers to `totals`, by landmark and column.
    pub fn advance(&self, layers: usize, step_size: f64, totals: &mut Matrix) {
        let columns: Vec<Vec<f64>> = (0..totals.num_cols())
            .into_par_iter()
            .map(|b| {
                let mut total: Vec<f64> = totals.rows().map(|row| row[b]).collect();
                for _ in 0..layers {
                    let error =
                        |(k, row): (usize, &[f64])| self.right[(k, b)] - step_size * vector::dot(row, &total);
                    let errors: Vec<f64> = self.systems[b].rows().enumerate().map(error).collect();
                    total.iter_mut().zip(errors).for_each(|(total, error)| *total += error);
                }
                total
            })
            .collect();
        *totals = Matrix::from_fn(totals.num_rows(), totals.num_cols(), |k, b| columns[b][k]);
    }
}
