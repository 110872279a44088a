//! Weighted softmax TD.

use std::sync::Arc;

use rayon::prelude::*;

use super::smoother::{PANEL, Smoother};
use super::{Fit, FitError, Method, centre, check_step_size};
use crate::evaluate::sample::Sample;
use crate::kernel::Kernel;
use crate::matrix::Matrix;

/// Weighted softmax TD (paper, eq:wktd-update), with the transitions of every state summed:
/// v(x) ← v(x) + α Σ_s K(x, s)·[Σr_s + γ Σ_s' N_ss' v(s') - n_s v(s)] / Σ_s n_s K(x, s).
///
/// This is the forward pass of a Transformer at theta_* whose layers all have this kernel, on the context of all episodes.
/// Depth is what regularises: in the limit of infinitely many layers visited states get the values of tabular LSTD.
#[derive(Clone, Debug)]
pub struct SoftmaxTd {
    /// Kernel, with its temperature.
    pub kernel: Arc<dyn Kernel>,
    /// Depth L.
    pub num_layers: usize,
    /// Step size α.
    pub step_size: f64,
    /// Whether to start from the constant that fits best, rather than from 0.
    pub centred: bool,
}

/// Softmax TD on several samples of one log.
#[derive(Clone, Debug)]
pub struct SoftmaxTdFits {
    smoother: Smoother,
    step_size: f64,
    constants: Vec<f64>,
    /// Visits of the sources, by sample.
    visits: Matrix,
    /// Σ over layers of the sum of TD errors of every source, by sample: all that a new state needs to know.
    totals: Matrix,
    values: Matrix,
}

impl SoftmaxTdFits {
    /// The values of the states of the log (rows) in every sample (columns). Not finite where the iteration diverged.
    pub fn values(&self) -> &Matrix {
        &self.values
    }

    /// The values at these features (rows) in every sample (columns).
    pub fn predict(&self, states: &Matrix) -> Result<Matrix, FitError> {
        let cols = self.constants.len();
        let mut predicted = Vec::with_capacity(states.num_rows() * cols);
        // Some rows at a time, so that weights of many states need little memory.
        for first in (0..states.num_rows()).step_by(1024) {
            let rows = (states.num_rows() - first).min(1024);
            let part = Matrix::from_fn(rows, states.num_cols(), |i, a| states[(first + i, a)]);
            let mut values = Matrix::from_fn(rows, cols, |_, b| self.constants[b]);
            let weights = self.smoother.weights(&part, &self.visits)?;
            weights.add_averages(self.step_size, &self.totals, &mut values);
            predicted.extend_from_slice(values.as_slice());
        }
        Ok(Matrix::from_vec(states.num_rows(), cols, predicted))
    }
}

/// The sums of several samples, side by side.
struct Batch<'a> {
    samples: &'a [Sample<'a>],
    sources: Vec<usize>,
    visits: Matrix,
    reward_sums: Matrix,
    /// Next states of every source; transitions of each are rows of `counts`.
    successors: Vec<Vec<(usize, usize)>>,
    counts: Matrix,
}

impl<'a> Batch<'a> {
    fn new(samples: &'a [Sample<'a>]) -> Self {
        let (log, cols) = (samples[0].log(), samples.len());
        let counted = |s: &usize| samples.iter().any(|sample| sample.visits()[*s] > 0.0);
        let sources: Vec<usize> = (0..log.num_states()).filter(counted).collect();
        let of = |f: &dyn Fn(&Sample<'_>) -> f64| samples.iter().map(f).collect::<Vec<f64>>();
        let side_by_side = |f: &dyn Fn(&Sample<'_>, usize) -> f64| {
            let rows = sources.iter().flat_map(|&s| of(&|sample| f(sample, s)));
            Matrix::from_vec(sources.len(), cols, rows.collect())
        };
        let (visits, reward_sums) = (
            side_by_side(&|sample, s| sample.visits()[s]),
            side_by_side(&|sample, s| sample.reward_sums()[s]),
        );
        let grid = log.transitions();
        let (mut successors, mut counts) = (Vec::with_capacity(sources.len()), Vec::new());
        for &s in &sources {
            let mut found = Vec::new();
            for pair in grid.pairs_of(s) {
                let row = of(&|sample| sample.counts()[pair]);
                if let Some(next) = grid.to(pair).filter(|_| row.iter().any(|c| *c > 0.0)) {
                    found.push((next, counts.len() / cols));
                    counts.extend(row);
                }
            }
            successors.push(found);
        }
        let counts = Matrix::from_vec(counts.len() / cols, cols, counts);
        Self { samples, sources, visits, reward_sums, successors, counts }
    }

    /// Sums of TD errors of every source, by sample, into `errors`.
    fn td_errors(&self, values: &Matrix, errors: &mut [f64]) {
        let (cols, gamma) = (self.samples.len(), self.samples[0].gamma());
        errors.par_chunks_mut(PANEL * cols).enumerate().for_each(|(panel, errors)| {
            for (k, error) in errors.chunks_exact_mut(cols).enumerate() {
                let i = panel * PANEL + k;
                error.fill(0.0);
                for &(next, row) in &self.successors[i] {
                    let terms = self.counts.row(row).iter().zip(values.row(next));
                    error.iter_mut().zip(terms).for_each(|(sum, (count, v))| *sum += count * v);
                }
                let own = self.visits.row(i).iter().zip(values.row(self.sources[i]));
                let own = own.zip(self.reward_sums.row(i));
                error.iter_mut().zip(own).for_each(|(e, ((n, v), r))| *e = r + gamma * *e - n * v);
            }
        });
    }
}

impl SoftmaxTd {
    /// Fits several samples of one log at once: one product of matrices per layer. `at_depth` is shown the values (rows are
    /// states of the log, columns samples) after 0, 1, … layers.
    ///
    /// # Panics
    /// When there are no samples.
    pub fn fit_all(
        &self,
        samples: &[Sample<'_>],
        mut at_depth: impl FnMut(usize, &Matrix),
    ) -> Result<SoftmaxTdFits, FitError> {
        check_step_size(self.step_size)?;
        let mut constants = samples.iter().map(centre).collect::<Result<Vec<f64>, FitError>>()?;
        if !self.centred {
            constants.fill(0.0);
        }
        let batch = Batch::new(samples);
        let features = samples[0].features();
        let smoother = Smoother::new(self.kernel.clone(), features, &batch.sources)?;
        let weights = smoother.weights(features, &batch.visits)?;
        let mut values = Matrix::from_fn(features.num_rows(), samples.len(), |_, b| constants[b]);
        let mut totals = vec![0.0; batch.sources.len() * samples.len()];
        let mut errors = Matrix::zeros(batch.sources.len(), samples.len());
        at_depth(0, &values);
        for layer in 0..self.num_layers {
            batch.td_errors(&values, errors.as_mut_slice());
            totals.iter_mut().zip(errors.as_slice()).for_each(|(total, e)| *total += e);
            weights.add_averages(self.step_size, &errors, &mut values);
            at_depth(layer + 1, &values);
        }
        let totals = Matrix::from_vec(batch.sources.len(), samples.len(), totals);
        Ok(SoftmaxTdFits {
            smoother,
            step_size: self.step_size,
            constants,
            visits: batch.visits,
            totals,
            values,
        })
    }
}

#[derive(Debug)]
struct SoftmaxTdFit {
    fits: SoftmaxTdFits,
}

impl Method for SoftmaxTd {
    fn name(&self) -> &'static str {
        "softmax TD"
    }

    fn fit(&self, sample: &Sample<'_>) -> Result<Box<dyn Fit>, FitError> {
        let fits = self.fit_all(std::slice::from_ref(sample), |_, _| {})?;
        if !fits.values.as_slice().iter().all(|v| v.is_finite()) {
            return Err(FitError::Diverged { layers: self.num_layers });
        }
        Ok(Box::new(SoftmaxTdFit { fits }))
    }
}

impl Fit for SoftmaxTdFit {
    fn values(&self) -> &[f64] {
        self.fits.values.as_slice()
    }

    fn predict(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        Ok(self.fits.predict(states)?.as_slice().to_vec())
    }
}
