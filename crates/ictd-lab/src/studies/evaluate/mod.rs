//! `evaluate`: the value of every state in a log, with intervals and a judgement.

mod asked;
mod candidates;
mod estimate;
mod estimator;
mod evaluation;
mod figures;
mod fitted;
mod measures;
mod options;
mod pictures;
mod processes;
mod report;
mod rivals;
mod self_test;
mod show;

pub use asked::Row;
pub use estimator::Estimator;
pub use evaluation::Evaluation;
pub use fitted::Fitted;
pub use options::Options;
pub use self_test::{SelfTest, self_test};

use std::path::Path;
use std::sync::Arc;

use ictd::evaluate::{FitError, Judgement, Keys, Log, LogBuilder, Scaler, Scaling};
use ictd::kernel::KernelName;
use ictd::matrix::Matrix;

use crate::logs::{self, Arrays, Queries, Reading, States, Wanted};
use crate::{LabError, Progress};
use estimate::Estimate;

/// Labels beyond this number are told apart without features of their own.
const MAX_ONE_HOT: usize = 512;
/// States beyond this number are attended to by landmarks, or by pivots where the kernel is wide.
const MAX_STATES: usize = 2048;
/// States times landmarks.
const MAX_WEIGHTS: usize = 1 << 24;
/// Folds of episodes, and how often they are drawn: twice, where it is not the folds that take the time.
const FOLDS: usize = 5;
const REPEATS: usize = 2;
/// Resamples of episodes behind intervals: standard deviations are then known to 9 %.
const RESAMPLES: usize = 64;
/// Decay of LSTD(λ) where none is given.
const LAMBDA: f64 = 0.9;

/// What is asked.
#[derive(Clone, Debug)]
pub struct EvaluateConfig {
    /// Discount.
    pub gamma: f64,
    /// The estimator.
    pub estimator: Estimator,
    /// How features are scaled; standardised where they are numbers unless said otherwise.
    pub scaling: Option<Scaling>,
    /// The kernel.
    pub kernel: KernelName,
    /// A temperature instead of those that are tried.
    pub temperature: Option<f64>,
    /// A depth instead of those that are tried.
    pub layers: Option<usize>,
    /// A ridge instead of those that are tried.
    pub ridge: Option<f64>,
    /// Decay of traces, which LSTD(λ) needs.
    pub lambda: Option<f64>,
    /// Whether other estimators are fitted beside it.
    pub compare: bool,
    /// Seed of folds and resamples.
    pub seed: u64,
    /// Whether a result to be taken with caution counts as refused.
    pub strict: bool,
}

impl EvaluateConfig {
    /// The usual questions at this discount.
    pub fn new(gamma: f64) -> Self {
        Self {
            gamma,
            estimator: Estimator::default(),
            scaling: None,
            kernel: KernelName::Rbf,
            temperature: None,
            layers: None,
            ridge: None,
            lambda: None,
            compare: false,
            seed: 0,
            strict: false,
        }
    }

    /// Refuses settings that the estimator does not have, which would change nothing.
    fn check(&self) -> Result<(), LabError> {
        use Estimator as E;
        let given = [
            ("temperature", self.temperature.is_some(), &[E::SoftmaxTd, E::KernelLstd, E::Kbrl][..]),
            ("layers", self.layers.is_some(), &[E::SoftmaxTd, E::TabularTd, E::LinearTd]),
            ("ridge", self.ridge.is_some(), &[E::KernelLstd, E::LinearLstd]),
            ("lambda", self.lambda.is_some(), &[E::LstdLambda]),
        ];
        match given.iter().find(|(_, is_given, of)| *is_given && !of.contains(&self.estimator)) {
            Some((name, _, of)) if !self.compare => {
                let names = of.iter().map(|e| e.as_str()).collect::<Vec<_>>().join(", ");
                let problem =
                    format!("{} has none, expected one of {names}, or --compare", self.estimator.as_str());
                Err(LabError::refused(*name, problem))
            }
            _ => Ok(()),
        }
    }

    /// What takes the episodes of a log for these questions; refuses settings that the estimator does not have.
    pub(crate) fn builder(&self) -> Result<LogBuilder, LabError> {
        self.check()?;
        Ok(LogBuilder::new(self.gamma, self.traces())?)
    }

    /// How the features of a log are scaled. Where labels are too many for features of their own there is nothing to scale.
    fn scaling(&self, logged: &Logged) -> Scaling {
        let usual = if logged.has_labels() { Scaling::None } else { Scaling::Standardize };
        self.scaling.filter(|_| logged.has_features()).unwrap_or(usual)
    }

    /// The decay of the traces that are kept, if any.
    fn traces(&self) -> Option<f64> {
        self.lambda.or((self.estimator == Estimator::LstdLambda).then_some(LAMBDA))
    }
}

/// A log as it was read.
#[derive(Debug)]
pub struct Logged {
    reading: Reading,
    log: Log,
}

impl Logged {
    /// Reads a log for these questions.
    pub fn read(
        path: &Path,
        wanted: &Wanted,
        config: &EvaluateConfig,
        progress: &Progress,
    ) -> Result<Self, LabError> {
        let make = || config.builder();
        // Before the file is read.
        make()?;
        let (reading, builder) = logs::read(path, wanted, make, progress)?;
        Self::new(reading, builder)
    }

    /// The same of arrays in memory.
    pub fn of_arrays(arrays: Arrays, config: &EvaluateConfig, progress: &Progress) -> Result<Self, LabError> {
        let (reading, builder) = logs::read_arrays(arrays, || config.builder(), progress)?;
        Self::new(reading, builder)
    }

    /// A log of which all episodes were taken.
    pub(crate) fn new(reading: Reading, builder: LogBuilder) -> Result<Self, LabError> {
        let log = builder.build(features(&reading.states, reading.visited))?;
        Ok(Self { reading, log })
    }

    /// Feature rows scaled as those of the log are.
    pub(crate) fn scaled(&self, config: &EvaluateConfig, features: &Matrix) -> Matrix {
        Scaler::of(config.scaling(self), &self.log).apply(features)
    }

    /// Whether states have features, if only which of few labels they are.
    fn has_features(&self) -> bool {
        !self.has_labels() || self.reading.visited <= MAX_ONE_HOT
    }

    fn has_labels(&self) -> bool {
        matches!(self.reading.states, States::Labels(_))
    }

    /// What the reader understood.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }
}

/// Features of the first states: those of the file, or what stands for labels, which does not depend on their order in the file.
fn features(states: &States, number: usize) -> Matrix {
    match states {
        States::Labels(labels) => {
            let ranks = ranks(&labels[..number]);
            match number <= MAX_ONE_HOT {
                true => Matrix::from_fn(number, number, |s, a| f64::from(u8::from(ranks[s] == a))),
                false => Matrix::from_fn(number, 1, |s, _| ranks[s] as f64),
            }
        }
        States::Features { rows, .. } => Matrix::from_fn(number, rows.num_cols(), |s, a| rows[(s, a)]),
    }
}

/// The place of every label among all: numbers by size, before words by letters.
fn ranks(labels: &[String]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by_cached_key(|&s| (labels[s].parse::<i64>().map_err(|_| &labels[s]), &labels[s]));
    let mut ranks = vec![0; labels.len()];
    order.iter().enumerate().for_each(|(rank, &s)| ranks[s] = rank);
    ranks
}

/// Evaluates a log, at the states of `queries` or else at its own. Where values diverge that is the judgement.
pub fn run(
    logged: &Logged,
    queries: Option<&Queries>,
    config: &EvaluateConfig,
    progress: &Progress,
) -> Result<Evaluation, LabError> {
    match evaluation(logged, queries, config, progress) {
        Err(LabError::Diverged { source, .. }) => {
            Ok(Evaluation::refused(Judgement::diverged(&source), logged, config))
        }
        found => found,
    }
}

fn evaluation(
    logged: &Logged,
    queries: Option<&Queries>,
    config: &EvaluateConfig,
    progress: &Progress,
) -> Result<Evaluation, LabError> {
    if logged.log.num_blocks() < 2 {
        let judged = Judgement::too_few_episodes(logged.log.num_episodes());
        return Ok(Evaluation::refused(judged, logged, config));
    }
    let estimate = Estimate::of(logged, config, progress)?;
    let found = estimate.evaluation(logged, queries, config, progress)?;
    progress.begin("evaluate: pictures", "", 0)?;
    Ok(Evaluation { pictures: estimate.pictures(logged)?, ..found })
}

/// An error of a fit as one of the command.
fn failed(error: FitError) -> LabError {
    match error {
        FitError::Diverged { .. } => LabError::diverged(error),
        FitError::Stopped(_) => LabError::Stopped,
        _ => LabError::refused("evaluate", error.to_string()),
    }
}

/// Landmarks where there are many states.
fn landmarks_of(log: &Log) -> Option<Arc<Keys>> {
    let states = log.num_states();
    (states > MAX_STATES).then(|| Arc::new(Keys::of(log, (MAX_WEIGHTS / states).clamp(64, 1024))))
}
