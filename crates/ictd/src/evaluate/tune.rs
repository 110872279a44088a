//! Choosing settings by episodes that were held out.

use std::ops::ControlFlow;

use rayon::prelude::*;

use super::cell::ReturnCell;
use super::log::Log;
use super::method::{Basis, Fit, FitError, Lstd, Method, SoftmaxTd};
use super::sample::Sample;
use super::table::Merge;
use crate::matrix::Matrix;
use crate::random::{Purpose, Stream};
use crate::statistics::MeanSem;

/// What is compared with the held-out episodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Σ (v(s) - g - d·v(last))² over held-out visits: the returns that followed.
    Returns,
    /// Σ (v(s) - w(s))² over held-out visits, with w the values of tabular LSTD on the held-out episodes alone: the same
    /// returns where no state repeats, and less noisy where states do.
    #[default]
    HeldOutLstd,
}

/// Visits of which more than this share run into a state that no held-out episode leaves.
const OPEN_ENDED: f64 = 0.02;

impl Loss {
    /// The loss for the folds of a log: the values of tabular LSTD, unless held-out episodes are truncated in states that no
    /// other of them leaves. Tabular LSTD knows nothing of those, and takes one number for all of them; the returns take the
    /// value of the estimate itself.
    pub fn of(log: &Log, folds: &Folds) -> Self {
        let (mut open, mut all) = (0.0, 0.0);
        for (_, held_out) in folds.first() {
            let sample = log.sample(&held_out);
            let grid = log.returns();
            for pair in (0..grid.num_states()).flat_map(|s| grid.pairs_of(s)) {
                let is_open = grid.to(pair).is_some_and(|last| !(sample.visits()[last] > 0.0));
                let cells = grid.cells(pair).filter(|(block, _)| held_out[*block] > 0.0);
                let visits: f64 = cells.map(|(_, cell)| cell.count).sum();
                all += visits;
                open += if is_open { visits } else { 0.0 };
            }
        }
        if open > OPEN_ENDED * all { Self::Returns } else { Self::HeldOutLstd }
    }
}

/// Several partitions of the blocks of a log into folds.
#[derive(Clone, Debug, PartialEq)]
pub struct Folds {
    /// By partition, by block.
    fold_of: Vec<Vec<usize>>,
    num_folds: usize,
}

impl Folds {
    /// `repeats` random partitions into `num_folds` folds of as equal numbers of blocks as can be; as many folds as blocks
    /// where there are fewer blocks.
    pub fn new(log: &Log, num_folds: usize, repeats: usize, seed: u64) -> Result<Self, TuneError> {
        let num_blocks = log.num_blocks();
        if num_blocks < 2 {
            return Err(TuneError::TooFewBlocks { found: num_blocks });
        }
        let num_folds = num_folds.clamp(2, num_blocks);
        let partition = |repeat: usize| {
            let mut stream = Stream::new(seed, Purpose::Resampling, 1 + repeat as u64);
            let mut folds: Vec<usize> = (0..num_blocks).map(|block| block % num_folds).collect();
            for k in (1..num_blocks).rev() {
                folds.swap(k, stream.below(k as u32 + 1) as usize);
            }
            folds
        };
        Ok(Self { fold_of: (0..repeats.max(1)).map(partition).collect(), num_folds })
    }

    /// For every partition and fold: the weights of blocks that train, and of those that are held out.
    fn weights(&self) -> Vec<(Vec<f64>, Vec<f64>)> {
        self.fold_of.iter().flat_map(|fold_of| self.of(fold_of)).collect()
    }

    /// The same of the first partition alone.
    pub(super) fn first(&self) -> Vec<(Vec<f64>, Vec<f64>)> {
        self.of(&self.fold_of[0])
    }

    fn of(&self, fold_of: &[usize]) -> Vec<(Vec<f64>, Vec<f64>)> {
        let weights = |fold: usize| {
            let held_out: Vec<f64> = fold_of.iter().map(|f| f64::from(u8::from(*f == fold))).collect();
            (held_out.iter().map(|w| 1.0 - w).collect(), held_out)
        };
        (0..self.num_folds).map(weights).collect()
    }
}

/// Settings that are fitted together, because one run gives the values of all.
pub trait Candidates: Sync {
    /// Number of settings.
    fn num_settings(&self) -> usize;

    /// Shows the values of the states (rows) in every training sample (columns), setting by setting; `show` answers with the
    /// held-out loss. Settings that are not shown have not been tried.
    fn visit(&self, training: &[Sample<'_>], show: &mut dyn FnMut(Result<&Matrix, FitError>) -> f64);
}

/// One setting: a method.
impl Candidates for Box<dyn Method> {
    fn num_settings(&self) -> usize {
        1
    }

    fn visit(&self, training: &[Sample<'_>], show: &mut dyn FnMut(Result<&Matrix, FitError>) -> f64) {
        let fits: Result<Vec<Box<dyn Fit>>, FitError> =
            training.par_iter().map(|sample| self.fit(sample)).collect();
        let side_by_side = |fits: Vec<Box<dyn Fit>>| {
            Matrix::from_fn(fits[0].values().len(), fits.len(), |s, b| fits[b].values()[s])
        };
        show(fits.map(side_by_side).as_ref().map_err(FitError::clone));
    }
}

/// Softmax TD at several depths, all from one run.
#[derive(Clone, Debug)]
pub struct Depths {
    /// The method; its own depth does not count.
    pub method: SoftmaxTd,
    /// Depths, in increasing order.
    pub depths: Vec<usize>,
    /// After how many depths without a new smallest loss deeper ones are not tried. Values that are not finite end the run too.
    pub patience: usize,
}

impl Candidates for Depths {
    fn num_settings(&self) -> usize {
        self.depths.len()
    }

    fn visit(&self, training: &[Sample<'_>], show: &mut dyn FnMut(Result<&Matrix, FitError>) -> f64) {
        let deepest = self.depths.last().copied().unwrap_or(0);
        let method = SoftmaxTd { num_layers: deepest, ..self.method.clone() };
        let (mut shown, mut best) = (0, (0, f64::INFINITY));
        let fitted = method.fit_all(training, &self.depths, |values| {
            let loss = show(Ok(values));
            shown += 1;
            if loss < best.1 {
                best = (shown, loss);
            }
            let over = !loss.is_finite() || shown >= best.0 + self.patience;
            if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if let Err(error) = fitted {
            self.depths.iter().for_each(|_| {
                show(Err(error.clone()));
            });
        }
    }
}

/// How one setting did.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Mean loss over held-out visits; NaN where the setting has no values or was not tried.
    pub loss: f64,
    /// Standard error of the loss over folds.
    pub sem: f64,
    /// The sum of losses in every fold.
    folds: Vec<f64>,
    /// Why the setting has no values.
    pub error: Option<FitError>,
}

impl Trial {
    fn without_values(error: Option<FitError>) -> Self {
        Self { loss: f64::NAN, sem: f64::NAN, folds: Vec::new(), error }
    }
}

/// How all settings did.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// In the order of candidates and of their settings.
    pub trials: Vec<Trial>,
    /// The setting of the smallest loss, the first of equals.
    pub best: usize,
}

/// Why there is nothing to choose.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum TuneError {
    /// Held-out episodes need others to train on.
    #[error("{found} block of episodes, expected at least 2 to hold some out")]
    TooFewBlocks { found: usize },
    /// At least one setting must have finite values.
    #[error("none of {settings} settings has a finite loss{}", first.as_ref().map_or(String::new(), |e| format!(": {e}")))]
    NoCandidate { settings: usize, first: Option<FitError> },
}

/// What is held out in a fold, in the form its loss needs.
#[derive(Debug)]
enum Target {
    Returns(Vec<(usize, Option<usize>, ReturnCell)>),
    Values { targets: Vec<f64>, visits: Vec<f64> },
}

impl Target {
    fn new(loss: Loss, held_out: &Sample<'_>) -> Result<Self, FitError> {
        if loss == Loss::HeldOutLstd {
            let lstd = Lstd { basis: Basis::Table, traces: false, ridge: 0.0 };
            let targets = lstd.fit(held_out)?.values().to_vec();
            return Ok(Self::Values { targets, visits: held_out.visits().to_vec() });
        }
        let grid = held_out.log().returns();
        let mut cells = Vec::new();
        for s in 0..held_out.num_states() {
            for pair in grid.pairs_of(s) {
                let mut counted = grid.cells(pair).filter(|(block, _)| held_out.weights()[*block] > 0.0);
                if let Some((_, &first)) = counted.next() {
                    let mut merged = first;
                    counted.for_each(|(_, cell)| merged.merge(cell));
                    cells.push((s, grid.to(pair), merged));
                }
            }
        }
        Ok(Self::Returns(cells))
    }

    /// The sum of losses over visits.
    fn loss(&self, value: impl Fn(usize) -> f64) -> f64 {
        match self {
            Self::Returns(cells) => {
                let square = |&(s, last, cell): &(usize, Option<usize>, ReturnCell)| {
                    cell.squares(value(s), last.map_or(0.0, &value))
                };
                cells.iter().map(square).sum()
            }
            Self::Values { targets, visits } => {
                let square = |s: usize| visits[s] * (value(s) - targets[s]).powi(2);
                (0..targets.len()).filter(|&s| visits[s] > 0.0).map(square).sum()
            }
        }
    }
}

/// Folds of a log, ready for settings to be tried on.
///
/// Values are held within the range of returns that the training episodes saw ([`Sample::return_range`]): a wide kernel
/// extrapolates at the rim.
#[derive(Debug)]
pub struct Trials<'a> {
    training: Vec<Sample<'a>>,
    targets: Vec<Target>,
    /// Held-out visits by fold.
    visits: Vec<f64>,
    ranges: Vec<(f64, f64)>,
    num_folds: usize,
}

impl<'a> Trials<'a> {
    /// Takes the log apart.
    pub fn new(log: &'a Log, folds: &Folds, loss: Loss) -> Result<Self, FitError> {
        let weights = folds.weights();
        let training: Vec<Sample<'a>> = weights.par_iter().map(|(train, _)| log.sample(train)).collect();
        let held_out: Vec<Sample<'_>> =
            weights.par_iter().map(|(_, held_out)| log.sample(held_out)).collect();
        let targets =
            held_out.par_iter().map(|sample| Target::new(loss, sample)).collect::<Result<_, _>>()?;
        let range = |sample: &Sample<'_>| sample.return_range().unwrap_or((f64::NAN, f64::NAN));
        Ok(Self {
            ranges: training.iter().map(range).collect(),
            training,
            targets,
            visits: held_out.iter().map(Sample::num_visits).collect(),
            num_folds: folds.num_folds,
        })
    }

    /// The most states that the training episodes of a fold left.
    pub fn num_states(&self) -> usize {
        let left = |sample: &Sample<'_>| sample.visits().iter().filter(|n| **n > 0.0).count();
        self.training.iter().map(left).max().unwrap_or(0)
    }

    /// Tries all settings of these candidates. One that fails, or whose values are not finite, is kept with its error.
    pub fn of(&self, candidates: &dyn Candidates) -> Vec<Trial> {
        let mut trials = Vec::with_capacity(candidates.num_settings());
        candidates.visit(&self.training, &mut |fitted| {
            let trial = fitted
                .map_or_else(|error| Trial::without_values(Some(error)), |values| self.summarize(values));
            let loss = trial.loss;
            trials.push(trial);
            loss
        });
        trials.resize(candidates.num_settings(), Trial::without_values(None));
        trials
    }

    /// Mean loss per visit of these values (rows are states, columns folds), and its standard error from the folds as a ratio of
    /// sums.
    fn summarize(&self, values: &Matrix) -> Trial {
        // `clamp` would hide an infinite value, and refuses a range of NaN.
        let held = |s: usize, fold: usize| {
            let (value, (low, high)) = (values[(s, fold)], self.ranges[fold]);
            if value.is_finite() { value.max(low).min(high) } else { f64::NAN }
        };
        let loss = |fold: usize| self.targets[fold].loss(|s| held(s, fold));
        let folds: Vec<f64> = (0..self.targets.len()).into_par_iter().map(loss).collect();
        let (loss, residuals) = self.ratio(&folds);
        let sem = MeanSem::of(&residuals).map_or(f64::NAN, |mean| mean.sem);
        Trial { loss, sem, folds, error: None }
    }

    /// Sums by fold over visits, and what each fold deviates by, as a share of its visits.
    fn ratio(&self, folds: &[f64]) -> (f64, Vec<f64>) {
        let total: f64 = self.visits.iter().sum();
        let ratio = folds.iter().sum::<f64>() / total;
        let share = total / self.visits.len() as f64;
        (ratio, folds.iter().zip(&self.visits).map(|(sum, n)| (sum - ratio * n) / share).collect())
    }

    /// By how much the loss of the second is larger, and the standard error of that. Partitions of the same episodes are not
    /// independent, so that only the folds of one of them count.
    pub fn advantage(&self, of: &Trial, over: &Trial) -> (f64, f64) {
        if of.folds.len() != over.folds.len() || of.folds.is_empty() {
            return (f64::NAN, f64::NAN);
        }
        let gaps: Vec<f64> = of.folds.iter().zip(&over.folds).map(|(a, b)| b - a).collect();
        let (gap, residuals) = self.ratio(&gaps);
        let repeats = residuals.len() as f64 / self.num_folds as f64;
        let sem = MeanSem::of(&residuals).map_or(f64::NAN, |mean| mean.sem);
        (gap, sem * repeats.sqrt())
    }
}

/// The place of the trial of the smallest loss, the first of equals.
pub fn best(trials: &[Trial]) -> Option<usize> {
    let finite = trials.iter().enumerate().filter(|(_, trial)| trial.loss.is_finite());
    finite.reduce(|best, next| if next.1.loss < best.1.loss { next } else { best }).map(|(place, _)| place)
}

/// Tries all settings of all candidates on every fold. A setting without finite values is never chosen.
pub fn tune(
    log: &Log,
    folds: &Folds,
    loss: Loss,
    candidates: &[&dyn Candidates],
) -> Result<Curve, TuneError> {
    let settings = candidates.iter().map(|c| c.num_settings()).sum();
    let held_out = Trials::new(log, folds, loss);
    let held_out = held_out.map_err(|error| TuneError::NoCandidate { settings, first: Some(error) })?;
    // One after the other: each works in parallel, and needs memory for weights.
    let trials: Vec<Trial> = candidates.iter().flat_map(|&candidates| held_out.of(candidates)).collect();
    match best(&trials) {
        Some(best) => Ok(Curve { trials, best }),
        None => {
            let first = trials.into_iter().find_map(|trial| trial.error);
            Err(TuneError::NoCandidate { settings, first })
        }
    }
}
