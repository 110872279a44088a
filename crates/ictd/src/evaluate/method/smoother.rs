//! Averages of sums over states, weighted by a kernel: what softmax TD and kernel-based reinforcement learning are made of.

use std::sync::Arc;

use rayon::prelude::*;

use super::{FitError, check_dim};
use crate::context::ContextStatistics;
use crate::evaluate::sample::Sample;
use crate::kernel::{Attention, Kernel, Normalization, Scores};
use crate::linalg;
use crate::matrix::Matrix;
use crate::vector;

/// Weights kept at a time: 1 GiB.
const MAX_WEIGHTS: usize = 1 << 27;
/// Rows a thread works on at a time. Fixed, so that the result does not depend on the number of threads.
pub(super) const PANEL: usize = 64;
/// Up to this many columns a product is made of inner products, beyond by the linear-algebra library.
const FEW_COLUMNS: usize = 16;
/// Sums of weights below this are made anew from the sources that count, relative to the nearest of them.
const SMALLEST_SUM: f64 = 1e-290;

/// Weights up to this number are made by whoever asks for them: threads would take longer to begin, and a process that forked has none.
pub(super) const SMALL: usize = 1 << 14;

/// A kernel and the states it weighs.
#[derive(Clone, Debug)]
pub(super) struct Smoother {
    attention: Attention,
    sources: Matrix,
}

/// Weights of sources for some states in every column of a batch, divided by their sum over visits.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    /// Unnormalised, one row per state.
    pub rows: Matrix,
    /// What to multiply sums by, state by column of the batch.
    factors: Matrix,
    /// Weights of single states in single columns that had to be made anew: state, column, (source, weight).
    anew: Vec<(usize, usize, Vec<(usize, f64)>)>,
}

impl Smoother {
    /// A kernel over states with these features.
    pub fn new(kernel: Arc<dyn Kernel>, sources: Matrix) -> Result<Self, FitError> {
        Ok(Self { attention: Attention::new(kernel, 0.0)?, sources })
    }

    pub fn num_sources(&self) -> usize {
        self.sources.num_rows()
    }

    pub fn feature_dim(&self) -> usize {
        self.sources.num_cols()
    }

    /// The scores at theta_* between the sources and other states of these statistics.
    pub fn scores<'a>(&'a self, statistics: &'a ContextStatistics) -> Scores<'a> {
        Scores { attention: &self.attention, block: None, statistics }
    }

    /// Unnormalised weights: row u for state u.
    fn rows(&self, states: &Matrix) -> Result<Matrix, FitError> {
        check_dim(self.sources.num_cols(), states)?;
        let statistics = ContextStatistics::of_features(&self.sources, states);
        let scores = self.scores(&statistics);
        let (n, stride) = (self.num_sources(), statistics.stride());
        let mut rows = vec![0.0; n * states.num_rows()];
        let padded = || vec![0.0; stride];
        let fill = |padded: &mut Vec<f64>, (u, row): (usize, &mut [f64])| {
            padded.fill(0.0);
            scores.unnormalized(n + u, padded)?;
            row.copy_from_slice(&padded[..n]);
            Ok::<(), FitError>(())
        };
        if rows.len() <= SMALL {
            let mut padded = padded();
            rows.chunks_mut(n).enumerate().try_for_each(|numbered| fill(&mut padded, numbered))?;
        } else {
            rows.par_chunks_mut(n).enumerate().try_for_each_init(padded, fill)?;
        }
        Ok(Matrix::from_vec(states.num_rows(), n, rows))
    }

    /// Weights for states, given the visits of the sources in every column of a batch.
    pub fn weights(&self, states: &Matrix, visits: &Matrix) -> Result<Weights, FitError> {
        let n = self.num_sources();
        if states.num_rows().saturating_mul(n) > MAX_WEIGHTS {
            let limit = MAX_WEIGHTS.isqrt();
            return Err(FitError::TooManyStates { found: states.num_rows().max(n), limit });
        }
        let rows = self.rows(states)?;
        let mut anew = Vec::new();
        let factors = match self.attention.kernel().normalization() {
            Normalization::ByCount => {
                let totals: Vec<f64> =
                    (0..visits.num_cols()).map(|b| visits.rows().map(|row| row[b]).sum()).collect();
                Matrix::from_fn(states.num_rows(), totals.len(), |_, b| reciprocal(totals[b]))
            }
            Normalization::ByColumn => {
                let mut sums = Matrix::zeros(states.num_rows(), visits.num_cols());
                multiply(&rows, visits, &mut sums, |_, product, out| out.copy_from_slice(product));
                for u in 0..sums.num_rows() {
                    for b in 0..sums.num_cols() {
                        if !(sums[(u, b)] >= SMALLEST_SUM) {
                            sums[(u, b)] = 0.0;
                            anew.push((u, b, self.alone(states.row(u), visits, b)?));
                        }
                    }
                }
                sums.map(reciprocal)
            }
        };
        anew.retain(|(_, _, weights)| !weights.is_empty());
        Ok(Weights { rows, factors, anew })
    }

    /// (Σ n w)²/Σ n w² for every state, with the visits n of the first column of a batch.
    pub fn effective(&self, states: &Matrix, visits: &Matrix) -> Result<Vec<f64>, FitError> {
        let size = |row: &[f64]| {
            let (mut sum, mut squares) = (0.0, 0.0);
            for (w, n) in row.iter().zip(visits.rows().map(|n| n[0])) {
                sum += n * w;
                squares += n * w * w;
            }
            sum * sum / squares
        };
        Ok(self.rows(states)?.rows().map(size).collect())
    }

    /// The weights of one state in column `b` from the sources that count there.
    fn alone(&self, x: &[f64], visits: &Matrix, b: usize) -> Result<Vec<(usize, f64)>, FitError> {
        let counting: Vec<usize> = (0..visits.num_rows()).filter(|&s| visits[(s, b)] > 0.0).collect();
        if counting.is_empty() {
            return Ok(Vec::new());
        }
        let kept = Self::new(self.attention.shared_kernel(), pick(&self.sources, &counting))?;
        let mut row = kept.rows(&Matrix::from_vec(1, x.len(), x.to_vec()))?.row(0).to_vec();
        let own: Vec<f64> = counting.iter().map(|&s| visits[(s, b)]).collect();
        self.attention.normalize_column(&mut row, &own, 1, None);
        Ok(counting.into_iter().zip(row).filter(|(_, weight)| *weight != 0.0).collect())
    }
}

/// The share of every state of the log in the averages of a kernel at these features: row u, column s has
/// n_s K(u, s) / Σ n K(u, ·) with n the visits of the sample, 0 for states that were never left. These are the weights of attention over all
/// states, also where landmarks or pivots stand for them in a fit.
pub fn attention(kernel: Arc<dyn Kernel>, sample: &Sample<'_>, states: &Matrix) -> Result<Matrix, FitError> {
    let left: Vec<usize> = (0..sample.num_states()).filter(|&s| sample.visits()[s] > 0.0).collect();
    let visits = Matrix::from_fn(left.len(), 1, |i, _| sample.visits()[left[i]]);
    let weights = Smoother::new(kernel, pick(sample.features(), &left))?.weights(states, &visits)?;
    let mut shares = Matrix::zeros(states.num_rows(), sample.num_states());
    for u in 0..states.num_rows() {
        let own = weights.normalized(u);
        left.iter().zip(own).for_each(|(&s, weight)| shares[(u, s)] = weight * sample.visits()[s]);
    }
    Ok(shares)
}

fn reciprocal(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

/// The rows with these numbers.
pub(super) fn pick(rows: &Matrix, numbers: &[usize]) -> Matrix {
    Matrix::from_fn(numbers.len(), rows.num_cols(), |i, a| rows[(numbers[i], a)])
}

/// Hands every row of the product of two matrices to `take`, with its number and the same row of `out`.
fn multiply(rows: &Matrix, sums: &Matrix, out: &mut Matrix, take: impl Fn(usize, &[f64], &mut [f64]) + Sync) {
    let (inner, cols) = (sums.num_rows(), sums.num_cols());
    let transposed = (cols <= FEW_COLUMNS).then(|| sums.transpose());
    let product = || vec![0.0; PANEL * cols];
    let multiply = |product: &mut Vec<f64>, (panel, (rows, out)): (usize, (&[f64], &mut [f64]))| {
        let product = &mut product[..out.len()];
        match &transposed {
            Some(columns) => {
                for (row, product) in rows.chunks_exact(inner).zip(product.chunks_exact_mut(cols)) {
                    let entries = product.iter_mut().zip(columns.rows());
                    entries.for_each(|(entry, column)| *entry = vector::dot(row, column));
                }
            }
            None => linalg::product_into(rows, sums.as_slice(), cols, product),
        }
        for (k, (product, out)) in product.chunks_exact(cols).zip(out.chunks_exact_mut(cols)).enumerate() {
            take(panel * PANEL + k, product, out);
        }
    };
    let (rows, out) = (rows.as_slice(), out.as_mut_slice());
    if rows.len() <= SMALL {
        let mut product = product();
        let panels = rows.chunks(PANEL * inner).zip(out.chunks_mut(PANEL * cols));
        panels.enumerate().for_each(|numbered| multiply(&mut product, numbered));
    } else {
        let panels = rows.par_chunks(PANEL * inner).zip(out.par_chunks_mut(PANEL * cols));
        panels.enumerate().for_each_init(product, multiply);
    }
}

impl Weights {
    /// Rows over their products with visits, both in the same coordinates.
    pub fn new(rows: Matrix, visits: &Matrix) -> Self {
        let mut sums = Matrix::zeros(rows.num_rows(), visits.num_cols());
        multiply(&rows, visits, &mut sums, |_, product, out| out.copy_from_slice(product));
        Self { rows, factors: sums.map(reciprocal), anew: Vec::new() }
    }

    /// What the unnormalised weights of state `u` are multiplied by in column `b`.
    pub fn factor(&self, u: usize, b: usize) -> f64 {
        self.factors[(u, b)]
    }

    /// Whether all weights are rows times factors.
    pub fn is_plain(&self) -> bool {
        self.anew.is_empty()
    }

    /// The weights of all sources for state `u` in the first column of the batch.
    pub fn normalized(&self, u: usize) -> Vec<f64> {
        let mut weights: Vec<f64> = self.rows.row(u).iter().map(|w| w * self.factors[(u, 0)]).collect();
        for (_, _, anew) in self.anew.iter().filter(|(state, b, _)| (*state, *b) == (u, 0)) {
            anew.iter().for_each(|&(s, weight)| weights[s] = weight);
        }
        weights
    }

    /// Adds α times the weighted averages of `sums`, source by column of the batch, to `values`, state by column.
    pub fn add_averages(&self, step_size: f64, sums: &Matrix, values: &mut Matrix) {
        multiply(&self.rows, sums, values, |u, product, values| {
            let terms = self.factors.row(u).iter().zip(product);
            values
                .iter_mut()
                .zip(terms)
                .for_each(|(value, (factor, sum))| *value += step_size * factor * sum);
        });
        for (u, b, weights) in &self.anew {
            let average: f64 = weights.iter().map(|&(s, weight)| weight * sums[(s, *b)]).sum();
            values[(*u, *b)] += step_size * average;
        }
    }
}
