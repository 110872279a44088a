//! Choosing settings by episodes that were held out.

use std::ops::ControlFlow;

use super::folds::Folds;
use super::log::Log;
use super::loss::{Kept, Loss, Target};
use super::method::{Fit, FitError, Method, SoftmaxTd};
use super::sample::Sample;
use crate::matrix::Matrix;
use crate::parallel;
use crate::statistics::MeanSem;

/// How often returns are completed anew at most.
const ROUNDS: usize = 8;

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
        let fits = parallel::try_map(training.len(), |fold| self.fit(&training[fold]));
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
            self.depths.iter().skip(shown).for_each(|_| {
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
    /// Values where the loss needs them again, by fold.
    kept: Vec<Kept>,
    /// Why the setting has no values.
    pub error: Option<FitError>,
}

impl Trial {
    fn without_values(error: Option<FitError>) -> Self {
        Self { loss: f64::NAN, sem: f64::NAN, folds: Vec::new(), kept: Vec::new(), error }
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
        let training = parallel::map(weights.len(), |fold| log.sample(&weights[fold].0));
        let held_out = parallel::map(weights.len(), |fold| log.sample(&weights[fold].1));
        let target = |fold: usize| Target::new(loss, &training[fold], &held_out[fold]);
        let targets = parallel::try_map(weights.len(), target)?;
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
        let (folds, kept) = parallel::map(self.targets.len(), loss).into_iter().unzip();
        self.trial(folds, kept)
    }

    fn trial(&self, folds: Vec<f64>, kept: Vec<Kept>) -> Trial {
        let (loss, sem) = self.mean(&folds);
        Trial { loss, sem, folds, kept, error: None }
    }

    /// Completes the returns of truncated episodes with the values of the best of these trials, and judges all of them anew, until
    /// the best is the same; gives its place. Other losses are what they were.
    pub fn settle(&mut self, trials: &mut [Trial]) -> Option<usize> {
        let mut chosen = best(trials)?;
        if !self.targets.iter().all(|target| matches!(target, Target::Returns { .. })) {
            return Some(chosen);
        }
        for _ in 0..ROUNDS {
            for (target, kept) in self.targets.iter_mut().zip(&trials[chosen].kept) {
                if let Target::Returns { worth, .. } = target {
                    *worth = kept.lasts.iter().map(|&v| f64::from(v)).collect();
                }
            }
            for trial in trials.iter_mut().filter(|trial| !trial.kept.is_empty()) {
                let kept = std::mem::take(&mut trial.kept);
                let folds = self.targets.iter().zip(&kept).map(|(target, kept)| target.again(kept)).collect();
                *trial = self.trial(folds, kept);
            }
            let next = best(trials)?;
            if next == chosen {
                break;
            }
            chosen = next;
        }
        Some(chosen)
    }

    /// Sums by fold over visits, and what each fold deviates by, as a share of its visits.
    fn ratio(&self, folds: &[f64]) -> (f64, Vec<f64>) {
        let total: f64 = self.visits.iter().sum();
        let ratio = folds.iter().sum::<f64>() / total;
        let share = total / self.visits.len() as f64;
        (ratio, folds.iter().zip(&self.visits).map(|(sum, n)| (sum - ratio * n) / share).collect())
    }

    /// By how much the loss of the second is larger, and the standard error of that.
    pub fn advantage(&self, of: &Trial, over: &Trial) -> (f64, f64) {
        if of.folds.len() != over.folds.len() || of.folds.is_empty() {
            return (f64::NAN, f64::NAN);
        }
        let gaps: Vec<f64> = of.folds.iter().zip(&over.folds).map(|(a, b)| b - a).collect();
        self.mean(&gaps)
    }

    /// The mean per visit of sums by fold, and its standard error. Partitions of the same episodes are not independent, so that
    /// only the folds of one of them count.
    fn mean(&self, folds: &[f64]) -> (f64, f64) {
        let (mean, residuals) = self.ratio(folds);
        let repeats = residuals.len() as f64 / self.num_folds as f64;
        let sem = MeanSem::of(&residuals).map_or(f64::NAN, |mean| mean.sem);
        (mean, sem * repeats.sqrt())
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
    let mut held_out = held_out.map_err(|error| TuneError::NoCandidate { settings, first: Some(error) })?;
    // One after the other: each works in parallel, and needs memory for weights.
    let mut trials: Vec<Trial> = candidates.iter().flat_map(|&candidates| held_out.of(candidates)).collect();
    match held_out.settle(&mut trials) {
        Some(best) => Ok(Curve { trials, best }),
        None => {
            let first = trials.into_iter().find_map(|trial| trial.error);
            Err(TuneError::NoCandidate { settings, first })
        }
    }
}
