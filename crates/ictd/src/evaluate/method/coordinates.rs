//! Softmax TD over landmarks or by way of pivots, in their own coordinates.

use super::smoother::Weights;
use crate::matrix::Matrix;
use crate::{linalg, parallel, vector};

/// With landmarks values are c + α Σ_k W(·, k) g_k, where g_k is the sum over layers of the TD errors attributed to landmark k.
/// These errors are an affine function of g, e - α A g, so that a layer costs as much as there are pairs of landmarks, however
/// many states there are. One system per column of a batch. By way of pivots it is the same, but that every TD error counts for all of
/// them, as a(s)·f(s) says.
pub(super) struct Coordinates {
    systems: Vec<Matrix>,
    /// TD errors of the constant, by landmark and column.
    right: Matrix,
}

impl Coordinates {
    /// Over landmarks: source i belongs to `key_of[i]`, and in column b its TD errors lose what `losses(i, b)` says per unit of the values of states:
    /// (state, loss).
    pub fn by_landmark<I: Iterator<Item = (usize, f64)>>(
        weights: &Weights,
        key_of: &[usize],
        losses: impl Fn(usize, usize) -> I + Sync,
        right: Matrix,
    ) -> Self {
        let num_keys = right.num_rows();
        let system = |b: usize| {
            let mut system = Matrix::zeros(num_keys, num_keys);
            for (i, &key) in key_of.iter().enumerate() {
                add_rows(weights, b, losses(i, b), system.row_mut(key));
            }
            system
        };
        Self { systems: parallel::map(right.num_cols(), system), right }
    }

    /// By way of pivots: TD errors of source i count `amplitudes[i]` times row `sources[i]` of the weights.
    pub fn by_pivots<I: Iterator<Item = (usize, f64)>>(
        weights: &Weights,
        (sources, amplitudes): (&[usize], &[f64]),
        losses: impl Fn(usize, usize) -> I + Sync,
        right: Matrix,
    ) -> Self {
        let system = |b: usize| {
            let mut system = OuterProducts::new(right.num_rows());
            for (i, &state) in sources.iter().enumerate() {
                if losses(i, b).any(|(_, loss)| loss != 0.0) {
                    system.add(amplitudes[i], weights.rows.row(state), |lost| {
                        add_rows(weights, b, losses(i, b), lost);
                    });
                }
            }
            system.finish()
        };
        Self { systems: parallel::map(right.num_cols(), system), right }
    }

    /// Adds the TD errors of so many layers to `totals`, by landmark and column, and what `totals` is before each layer to `history`.
    pub fn advance(&self, layers: usize, step_size: f64, totals: &mut Matrix, history: &mut Matrix) {
        let column = |of: &Matrix, b: usize| of.rows().map(|row| row[b]).collect::<Vec<f64>>();
        let columns: Vec<(Vec<f64>, Vec<f64>)> = parallel::map(totals.num_cols(), |b| {
            let (mut total, mut past) = (column(totals, b), column(history, b));
            for _ in 0..layers {
                past.iter_mut().zip(&total).for_each(|(sum, total)| *sum += total);
                let error =
                    |(k, row): (usize, &[f64])| self.right[(k, b)] - step_size * vector::dot(row, &total);
                let errors: Vec<f64> = self.systems[b].rows().enumerate().map(error).collect();
                total.iter_mut().zip(errors).for_each(|(total, error)| *total += error);
            }
            (total, past)
        });
        *totals = Matrix::from_fn(totals.num_rows(), totals.num_cols(), |k, b| columns[b].0[k]);
        *history = Matrix::from_fn(totals.num_rows(), totals.num_cols(), |k, b| columns[b].1[k]);
    }
}

/// Adds losses times the weights of their states in column `b`.
fn add_rows(weights: &Weights, b: usize, losses: impl Iterator<Item = (usize, f64)>, out: &mut [f64]) {
    for (state, loss) in losses.filter(|(_, loss)| *loss != 0.0) {
        vector::axpy(loss * weights.factor(state, b), weights.rows.row(state), out);
    }
}

/// Σ x yᵀ, some terms at a time as a product of matrices.
pub(super) struct OuterProducts {
    left: Vec<f64>,
    right: Vec<f64>,
    sum: Matrix,
}

impl OuterProducts {
    /// Terms that are kept before they are multiplied.
    const TERMS: usize = 256;

    /// Of vectors of this length.
    pub fn new(len: usize) -> Self {
        Self { left: Vec::new(), right: Vec::new(), sum: Matrix::zeros(len, len) }
    }

    /// Adds scale·x·yᵀ, where `fill` writes y over zeros.
    pub fn add(&mut self, scale: f64, x: &[f64], fill: impl FnOnce(&mut [f64])) {
        self.left.extend(x.iter().map(|x| scale * x));
        let from = self.right.len();
        self.right.resize(from + x.len(), 0.0);
        fill(&mut self.right[from..]);
        if self.left.len() >= Self::TERMS * x.len() {
            self.multiply();
        }
    }

    fn multiply(&mut self) {
        linalg::add_transposed_product(&self.left, &self.right, &mut self.sum);
        self.left.clear();
        self.right.clear();
    }

    pub fn finish(mut self) -> Matrix {
        self.multiply();
        self.sum
    }
}
