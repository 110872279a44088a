//! Weighted softmax TD.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

use rayon::prelude::*;

use super::coordinates::{Coordinates, Losses};
use super::smoother::{PANEL, Smoother, Weights, pick};
use super::{Fit, FitError, Method, centre, check_step_size};
use crate::evaluate::keys::Keys;
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
    /// Landmarks that stand for states in the sums over s, where there are many states; `None` for all states.
    pub keys: Option<Arc<Keys>>,
}

/// Softmax TD on several samples of one log.
#[derive(Clone, Debug)]
pub struct SoftmaxTdFits {
    smoother: Smoother,
    step_size: f64,
    constants: Vec<f64>,
    /// Visits of the keys, by sample.
    visits: Matrix,
    /// Σ over layers of the sum of TD errors of every key, by sample: all that a new state needs to know.
    totals: Matrix,
    values: Matrix,
}

impl SoftmaxTdFits {
    /// The values of the states of the log (rows) in every sample (columns). Not finite where the iteration diverged.
    pub fn values(&self) -> &Matrix {
        &self.values
    }

    /// How many transitions of the first sample the values at these features rest on: 1/Σ w² over the weights w of transitions.
    /// NaN where all are too far away to weigh anything.
    pub fn effective(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        self.smoother.effective(states, &self.visits)
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
    /// States that are left in some sample.
    sources: Vec<usize>,
    /// The key of every source, where there are landmarks.
    key_of: Option<(usize, Vec<usize>)>,
    visits: Matrix,
    reward_sums: Matrix,
    /// Next states of every source; transitions of each are rows of `counts`.
    successors: Vec<Vec<(usize, usize)>>,
    counts: Matrix,
}

impl<'a> Batch<'a> {
    fn new(samples: &'a [Sample<'a>], keys: Option<&Keys>) -> Self {
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
        let key_of = keys.map(|keys| {
            let key_of = sources.iter().map(|&s| keys.key_of()[s] as usize).collect();
            (keys.features().num_rows(), key_of)
        });
        Self { samples, sources, key_of, visits, reward_sums, successors, counts }
    }

    /// Sums over sources to sums over keys.
    fn by_key<'b>(&self, sums: &'b Matrix) -> Cow<'b, Matrix> {
        let Some((num_keys, key_of)) = &self.key_of else { return Cow::Borrowed(sums) };
        let mut found = Matrix::zeros(*num_keys, sums.num_cols());
        for (row, &key) in sums.rows().zip(key_of) {
            found.row_mut(key).iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        Cow::Owned(found)
    }

    /// What TD errors, summed by landmark, lose per unit of every state's value.
    fn losses(&self) -> Losses {
        let Some((_, key_of)) = &self.key_of else { return Vec::new() };
        let gamma = self.samples[0].gamma();
        let mut losses = Vec::with_capacity(self.sources.len() + self.counts.num_rows());
        for (i, &key) in key_of.iter().enumerate() {
            losses.push((key, self.sources[i], self.visits.row(i).to_vec()));
            for &(next, row) in &self.successors[i] {
                losses.push((key, next, self.counts.row(row).iter().map(|count| -gamma * count).collect()));
            }
        }
        losses
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
    /// Fits several samples of one log at once: one product of matrices per layer. `show` sees the values (rows are states of
    /// the log, columns samples) at the given depths, in increasing order, and may end the iteration.
    ///
    /// With few landmarks a layer costs less than values do: ask for them at few depths.
    ///
    /// # Panics
    /// When there are no samples, or keys are not those of the samples' log.
    pub fn fit_all(
        &self,
        samples: &[Sample<'_>],
        depths: &[usize],
        mut show: impl FnMut(&Matrix) -> ControlFlow<()>,
    ) -> Result<SoftmaxTdFits, FitError> {
        check_step_size(self.step_size)?;
        let mut constants = samples.iter().map(centre).collect::<Result<Vec<f64>, FitError>>()?;
        if !self.centred {
            constants.fill(0.0);
        }
        let (features, cols) = (samples[0].features(), samples.len());
        let batch = Batch::new(samples, self.keys.as_deref());
        let keys = match &self.keys {
            Some(keys) => keys.features().clone(),
            None => pick(features, &batch.sources),
        };
        let smoother = Smoother::new(self.kernel.clone(), keys)?;
        let visits = batch.by_key(&batch.visits).into_owned();
        let weights = smoother.weights(features, &visits)?;
        let values = Matrix::from_fn(features.num_rows(), cols, |_, b| constants[b]);
        let mut run = Run::new(batch, &weights, self.step_size, values);
        let mut depth = 0;
        let stops =
            depths.iter().copied().filter(|depth| *depth <= self.num_layers).map(|depth| (depth, true));
        for (stop, shown) in stops.chain([(self.num_layers, false)]) {
            run.advance(stop - depth);
            depth = stop;
            if shown && show(&run.values).is_break() {
                break;
            }
        }
        let Run { totals, values, .. } = run;
        Ok(SoftmaxTdFits { smoother, step_size: self.step_size, constants, visits, totals, values })
    }
}

/// An iteration under way.
struct Run<'a> {
    batch: Batch<'a>,
    weights: &'a Weights,
    step_size: f64,
    /// Where there are so few landmarks that their coordinates pay.
    coordinates: Option<Coordinates>,
    start: Matrix,
    values: Matrix,
    errors: Matrix,
    totals: Matrix,
}

impl<'a> Run<'a> {
    fn new(batch: Batch<'a>, weights: &'a Weights, step_size: f64, start: Matrix) -> Self {
        let (num_keys, cols) = (weights.rows.num_cols(), start.num_cols());
        let mut errors = Matrix::zeros(batch.sources.len(), cols);
        let few = batch.key_of.is_some() && 4 * num_keys <= start.num_rows() && weights.is_plain();
        let coordinates = few.then(|| {
            batch.td_errors(&start, errors.as_mut_slice());
            Coordinates::new(weights, &batch.losses(), batch.by_key(&errors).into_owned())
        });
        let (values, totals) = (start.clone(), Matrix::zeros(num_keys, cols));
        Self { batch, weights, step_size, coordinates, start, values, errors, totals }
    }

    fn advance(&mut self, layers: usize) {
        if layers == 0 {
            return;
        }
        if let Some(coordinates) = &self.coordinates {
            coordinates.advance(layers, self.step_size, &mut self.totals);
            self.values.clone_from(&self.start);
            self.weights.add_averages(self.step_size, &self.totals, &mut self.values);
            return;
        }
        for _ in 0..layers {
            self.batch.td_errors(&self.values, self.errors.as_mut_slice());
            let sums = self.batch.by_key(&self.errors);
            let totals = self.totals.as_mut_slice().iter_mut();
            totals.zip(sums.as_slice()).for_each(|(total, e)| *total += e);
            self.weights.add_averages(self.step_size, &sums, &mut self.values);
        }
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
        let fits = self.fit_all(std::slice::from_ref(sample), &[], |_| ControlFlow::Continue(()))?;
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
