//! Choosing settings by episodes that were held out.

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
        let weights = |fold_of: &Vec<usize>, fold: usize| {
            let held_out: Vec<f64> = fold_of.iter().map(|f| f64::from(u8::from(*f == fold))).collect();
            (held_out.iter().map(|w| 1.0 - w).collect(), held_out)
        };
        let folds = |fold_of| (0..self.num_folds).map(move |fold| weights(fold_of, fold));
        self.fold_of.iter().flat_map(folds).collect()
    }
}

/// Settings that are fitted together, because one run gives the values of all.
pub trait Candidates: Sync {
    /// Number of settings.
    fn num_settings(&self) -> usize;

    /// For every setting the values of the states (rows) in every training sample (columns).
    fn fit(&self, training: &[Sample<'_>]) -> Vec<Result<Matrix, FitError>>;
}

/// One setting: a method.
impl Candidates for Box<dyn Method> {
    fn num_settings(&self) -> usize {
        1
    }

    fn fit(&self, training: &[Sample<'_>]) -> Vec<Result<Matrix, FitError>> {
        let fits: Result<Vec<Box<dyn Fit>>, FitError> =
            training.par_iter().map(|sample| Method::fit(&**self, sample)).collect();
        let side_by_side = |fits: Vec<Box<dyn Fit>>| {
            Matrix::from_fn(fits[0].values().len(), fits.len(), |s, b| fits[b].values()[s])
        };
        vec![fits.map(side_by_side)]
    }
}

/// Softmax TD at several depths, all from one run of the deepest.
#[derive(Clone, Debug)]
pub struct Depths {
    /// The method; its own depth does not count.
    pub method: SoftmaxTd,
    /// Depths, in increasing order.
    pub depths: Vec<usize>,
}

impl Candidates for Depths {
    fn num_settings(&self) -> usize {
        self.depths.len()
    }

    fn fit(&self, training: &[Sample<'_>]) -> Vec<Result<Matrix, FitError>> {
        let deepest = self.depths.last().copied().unwrap_or(0);
        let method = SoftmaxTd { num_layers: deepest, ..self.method.clone() };
        let mut found = Vec::with_capacity(self.depths.len());
        let fitted = method.fit_all(training, |depth, values| {
            if self.depths.get(found.len()) == Some(&depth) {
                found.push(Ok(values.clone()));
            }
        });
        match fitted {
            Ok(_) => found,
            Err(error) => self.depths.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

/// How one setting did.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Mean loss over held-out visits; NaN where the setting has no values.
    pub loss: f64,
    /// Standard error of the loss over folds.
    pub sem: f64,
    /// Why the setting has no values.
    pub error: Option<FitError>,
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
enum HeldOut {
    Returns(Vec<(usize, Option<usize>, ReturnCell)>),
    Values { targets: Vec<f64>, visits: Vec<f64> },
}

impl HeldOut {
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

/// Tries all settings of all candidates on every fold.
///
/// Values are held within the range of returns that the training episodes saw ([`Sample::return_range`]): a wide kernel
/// extrapolates at the rim. A setting that fails, or whose values are not finite, is kept with its error and never chosen.
pub fn tune(
    log: &Log,
    folds: &Folds,
    loss: Loss,
    candidates: &[&dyn Candidates],
) -> Result<Curve, TuneError> {
    let weights = folds.weights();
    let training: Vec<Sample<'_>> = weights.par_iter().map(|(train, _)| log.sample(train)).collect();
    let held_out: Vec<Sample<'_>> = weights.par_iter().map(|(_, held_out)| log.sample(held_out)).collect();
    let targets: Result<Vec<HeldOut>, FitError> =
        held_out.par_iter().map(|sample| HeldOut::new(loss, sample)).collect();
    let settings = candidates.iter().map(|c| c.num_settings()).sum();
    let targets = targets.map_err(|error| TuneError::NoCandidate { settings, first: Some(error) })?;
    let visits: Vec<f64> = held_out.iter().map(Sample::num_visits).collect();
    let ranges: Vec<(f64, f64)> =
        training.iter().map(|sample| sample.return_range().unwrap_or((f64::NAN, f64::NAN))).collect();
    let trial = |fitted: Result<Matrix, FitError>| match fitted {
        Err(error) => Trial { loss: f64::NAN, sem: f64::NAN, error: Some(error) },
        Ok(values) => {
            // `clamp` would hide an infinite value, and refuses a range of NaN.
            let held = |s: usize, fold: usize| {
                let (value, (low, high)) = (values[(s, fold)], ranges[fold]);
                if value.is_finite() { value.max(low).min(high) } else { f64::NAN }
            };
            let losses: Vec<f64> = (0..targets.len()).map(|f| targets[f].loss(|s| held(s, f))).collect();
            summarize(&losses, &visits)
        }
    };
    let trials: Vec<Vec<Trial>> = candidates
        .par_iter()
        .map(|candidates| candidates.fit(&training).into_iter().map(trial).collect())
        .collect();
    let trials = trials.concat();
    let finite = trials.iter().enumerate().filter(|(_, trial)| trial.loss.is_finite());
    let best = finite.reduce(|best, next| if next.1.loss < best.1.loss { next } else { best });
    match best.map(|(best, _)| best) {
        Some(best) => Ok(Curve { trials, best }),
        None => {
            let first = trials.into_iter().find_map(|trial| trial.error);
            Err(TuneError::NoCandidate { settings, first })
        }
    }
}

/// Mean loss per visit, and its standard error from the folds as a ratio of sums.
fn summarize(losses: &[f64], visits: &[f64]) -> Trial {
    let total: f64 = visits.iter().sum();
    let loss = losses.iter().sum::<f64>() / total;
    let share = total / visits.len() as f64;
    let residuals: Vec<f64> = losses.iter().zip(visits).map(|(l, n)| (l - loss * n) / share).collect();
    let sem = MeanSem::of(&residuals).map_or(f64::NAN, |mean| mean.sem);
    Trial { loss, sem, error: None }
}
