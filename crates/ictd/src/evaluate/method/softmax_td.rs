//! Weighted softmax TD.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::coordinates::Coordinates;
use super::pivots::{Averaging, PivotSmoother};
use super::smoother::{PANEL, Smoother, Weights, pick};
use super::{Fit, FitError, Method, centre, check_dim, check_step_size};
use crate::evaluate::keys::Keys;
use crate::evaluate::sample::Sample;
use crate::kernel::Kernel;
use crate::matrix::Matrix;
use crate::watch::Stopped;

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
    /// Landmarks that stand for states in the sums over s, where there are many states; `None` for all states. Beyond 2048 states and where the kernel is
    /// wide, pivots take their place, which have a bound on the error ([`SoftmaxTdFits::averaging`]).
    pub keys: Option<Arc<Keys>>,
    /// Ends its layers when it is set elsewhere: the fit is then [`FitError::Stopped`].
    pub stop: Option<Arc<AtomicBool>>,
}

/// Weights of new states that are computed at a time.
const MAX_PART: usize = 1 << 24;

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
    /// The same by way of pivots, where keys are all states that were left and too many to go through for every new state.
    pivots: Option<(Box<PivotSmoother>, Matrix)>,
    averaging: Option<Averaging>,
    values: Matrix,
}

impl SoftmaxTdFits {
    /// The values of the states of the log (rows) in every sample (columns). Not finite where the iteration diverged.
    pub fn values(&self) -> &Matrix {
        &self.values
    }

    /// The fit of the first sample alone: the same values, to rounding, without the cost of the others.
    #[must_use]
    pub fn first(&self) -> Self {
        let column = |of: &Matrix| Matrix::from_fn(of.num_rows(), 1, |i, _| of[(i, 0)]);
        let pivots = self.pivots.as_ref();
        Self {
            smoother: self.smoother.clone(),
            step_size: self.step_size,
            constants: self.constants[..1].to_vec(),
            visits: column(&self.visits),
            totals: column(&self.totals),
            pivots: pivots.map(|(pivots, totals)| (Box::new(pivots.first()), column(totals))),
            averaging: self.averaging.clone(),
            values: column(&self.values),
        }
    }

    /// How many transitions of the first sample the values at these features rest on: 1/Σ w² over the weights w of transitions.
    /// NaN where all are too far away to weigh anything.
    pub fn effective(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        let found = self.each(
            states,
            1,
            |pivots, _, weights| Matrix::from_vec(weights.rows.num_rows(), 1, pivots.effective(weights)),
            |part| Ok(Matrix::from_vec(part.num_rows(), 1, self.smoother.effective(part, &self.visits)?)),
        )?;
        Ok(found.as_slice().to_vec())
    }

    /// How averages are taken where there are many states; `None` where all states are attended to.
    pub fn averaging(&self) -> Option<&Averaging> {
        self.averaging.as_ref()
    }

    /// The values at these features (rows) in every sample (columns).
    pub fn predict(&self, states: &Matrix) -> Result<Matrix, FitError> {
        let cols = self.constants.len();
        let values = |weights: &Weights, totals: &Matrix| {
            let mut values = Matrix::from_fn(weights.rows.num_rows(), cols, |_, b| self.constants[b]);
            weights.add_averages(self.step_size, totals, &mut values);
            values
        };
        self.each(
            states,
            cols,
            |_, totals, weights| values(weights, totals),
            |part| Ok(values(&self.smoother.weights(part, &self.visits)?, &self.totals)),
        )
    }

    /// A row of `cols` numbers for every state: by `near` through pivots, where there are any and they reach it, else by `exact`.
    fn each(
        &self,
        states: &Matrix,
        cols: usize,
        near: impl Fn(&PivotSmoother, &Matrix, &Weights) -> Matrix,
        exact: impl Fn(&Matrix) -> Result<Matrix, FitError>,
    ) -> Result<Matrix, FitError> {
        check_dim(self.smoother.feature_dim(), states)?;
        let mut found = Vec::with_capacity(states.num_rows() * cols);
        // Some rows at a time, so that weights of many states need little memory.
        let step = (MAX_PART / self.smoother.num_sources().max(1)).clamp(1, 1024);
        for first in (0..states.num_rows()).step_by(step) {
            let rows: Vec<usize> = (first..states.num_rows().min(first + step)).collect();
            let part = pick(states, &rows);
            let rows = match &self.pivots {
                None => exact(&part)?,
                Some((pivots, totals)) => {
                    let weights = pivots.weights(&part);
                    let mut rows = near(pivots, totals, &weights);
                    let far = pivots.out_of_reach(&weights);
                    if !far.is_empty() {
                        let anew = exact(&pick(&part, &far))?;
                        far.iter()
                            .zip(anew.rows())
                            .for_each(|(&u, row)| rows.row_mut(u).copy_from_slice(row));
                    }
                    rows
                }
            };
            found.extend_from_slice(rows.as_slice());
        }
        Ok(Matrix::from_vec(states.num_rows(), cols, found))
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

    /// What the TD errors of source `i` lose per unit of the values of states, in sample `b`.
    fn losses(&self, i: usize, b: usize) -> impl Iterator<Item = (usize, f64)> {
        let gamma = self.samples[0].gamma();
        let followed =
            self.successors[i].iter().map(move |&(next, row)| (next, -gamma * self.counts[(row, b)]));
        std::iter::once((self.sources[i], self.visits[(i, b)])).chain(followed)
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
        let mut smoother = Smoother::new(self.kernel.clone(), pick(features, &batch.sources))?;
        let (mut averaging, mut pivots, mut visits) = (None, None, Cow::Borrowed(&batch.visits));
        if let Some(keys) = &self.keys {
            match PivotSmoother::of(&smoother, features, &batch.sources, &batch.visits) {
                Ok(found) => {
                    averaging = Some(Averaging::pivots(&found.0));
                    pivots = Some(found);
                }
                Err(reason) => {
                    averaging = Some(Averaging::landmarks(keys.states().len(), reason));
                    smoother = Smoother::new(self.kernel.clone(), keys.features().clone())?;
                    visits = batch.by_key(&batch.visits);
                }
            }
        }
        let visits = visits.into_owned();
        let (pivots, weights) = match pivots {
            Some((pivots, weights)) => (Some(Box::new(pivots)), weights),
            None => (None, smoother.weights(features, &visits)?),
        };
        let values = Matrix::from_fn(features.num_rows(), cols, |_, b| constants[b]);
        let mut run = Run::new(batch, &weights, pivots.as_deref(), self.step_size, values);
        let mut depth = 0;
        let stops =
            depths.iter().copied().filter(|depth| *depth <= self.num_layers).map(|depth| (depth, true));
        for (stop, shown) in stops.chain([(self.num_layers, false)]) {
            run.advance(stop - depth, self.stop.as_deref())?;
            depth = stop;
            if shown && show(&run.values).is_break() {
                break;
            }
        }
        let by_source = pivots.is_some().then(|| run.errors_of(depth));
        let Run { totals, values, .. } = run;
        let (totals, pivots) = match (by_source, pivots) {
            (Some(by_source), Some(pivots)) => (by_source, Some((pivots, totals))),
            _ => (totals, None),
        };
        let step_size = self.step_size;
        Ok(SoftmaxTdFits { smoother, step_size, constants, visits, totals, pivots, averaging, values })
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
    /// Σ over layers of `totals` before each, where there are coordinates.
    history: Matrix,
}

impl<'a> Run<'a> {
    fn new(
        batch: Batch<'a>,
        weights: &'a Weights,
        pivots: Option<&PivotSmoother>,
        step_size: f64,
        start: Matrix,
    ) -> Self {
        let (num_keys, cols) = (weights.rows.num_cols(), start.num_cols());
        let mut errors = Matrix::zeros(batch.sources.len(), cols);
        batch.td_errors(&start, errors.as_mut_slice());
        let losses = |i: usize, b: usize| batch.losses(i, b);
        let coordinates = match (pivots, &batch.key_of) {
            (Some(pivots), _) => {
                let right = pivots.gather(&weights.rows, &batch.sources, &errors);
                let sources = (batch.sources.as_slice(), pivots.amplitudes());
                Some(Coordinates::by_pivots(weights, sources, losses, right))
            }
            (None, Some((_, key_of))) if 4 * num_keys <= start.num_rows() && weights.is_plain() => {
                let right = batch.by_key(&errors).into_owned();
                Some(Coordinates::by_landmark(weights, key_of, losses, right))
            }
            _ => None,
        };
        let (values, totals) = (start.clone(), Matrix::zeros(num_keys, cols));
        let history = totals.clone();
        Self { batch, weights, step_size, coordinates, start, values, errors, totals, history }
    }

    /// Σ over all layers so far of the TD errors of every source: as they are affine in the values, so many times those of the mean.
    fn errors_of(&mut self, depth: usize) -> Matrix {
        let (layers, mut mean) = (depth as f64, self.start.clone());
        let history = self.history.map(|sum| if depth == 0 { 0.0 } else { sum / layers });
        self.weights.add_averages(self.step_size, &history, &mut mean);
        self.batch.td_errors(&mean, self.errors.as_mut_slice());
        self.errors.map(|error| layers * error)
    }

    fn advance(&mut self, layers: usize, stop: Option<&AtomicBool>) -> Result<(), Stopped> {
        if layers == 0 {
            return Ok(());
        }
        if let Some(coordinates) = &self.coordinates {
            coordinates.advance(layers, self.step_size, &mut self.totals, &mut self.history);
            self.values.clone_from(&self.start);
            self.weights.add_averages(self.step_size, &self.totals, &mut self.values);
            return Ok(());
        }
        for _ in 0..layers {
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(Stopped);
            }
            self.batch.td_errors(&self.values, self.errors.as_mut_slice());
            let sums = self.batch.by_key(&self.errors);
            let totals = self.totals.as_mut_slice().iter_mut();
            totals.zip(sums.as_slice()).for_each(|(total, e)| *total += e);
            self.weights.add_averages(self.step_size, &sums, &mut self.values);
        }
        Ok(())
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
