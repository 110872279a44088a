//! `evaluate`: the value of every state in a log, with intervals and a judgement.

mod asked;
mod candidates;
mod estimator;
mod evaluation;
mod figures;
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
pub use options::Options;
pub use self_test::{SelfTest, self_test};

use std::path::Path;
use std::sync::Arc;

use ictd::evaluate::method::Averaging;
use ictd::evaluate::{
    Drifts, Evidence, FitError, Folds, Intervals, Judgement, Keys, Log, LogBuilder, Loss, Losses, Scaler,
    Scaling, Trial, Trials, resamples,
};
use ictd::kernel::KernelName;
use ictd::matrix::Matrix;

use crate::logs::{self, Queries, Reading, States, Wanted};
use crate::{LabError, Progress, memory};
use asked::Asked;
use candidates::{Settings, tabular_td};
use evaluation::{Chosen, tried};
use measures::{beyond_end, limit_gap, memory_of, outlier, ranges, return_spread, widths};
use pictures::Pictures;
use rivals::rivals;

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
    let Logged { reading, log } = logged;
    let scaling = config.scaling(logged);
    let scaler = Scaler::of(scaling, log);
    let log = log.with_features(&scaler.apply(log.features()))?;
    // Labels that have no features have no places either.
    let keys = if logged.has_features() { landmarks_of(&log) } else { None };
    memory::admit(memory_of(&log, keys.as_deref(), logged.has_features()), "the number of different states")?;
    let repeats = if keys.is_some() { 1 } else { REPEATS };
    let Ok(folds) = Folds::new(&log, FOLDS, repeats, config.seed) else {
        return Ok(Evaluation::refused(Judgement::too_few_episodes(log.num_episodes()), logged, config));
    };
    let whole = log.whole();
    let settings = Settings::new(config, &whole, keys.clone(), logged.has_features())?;
    progress.begin("evaluate: folds", "", 0)?;
    let loss = Loss::of(&log, &folds);
    let mut trials = Trials::new(&log, &folds, loss).map_err(failed)?;
    let mut tuned = settings.tune(config.estimator, &trials, progress)?;
    tuned.settle(&mut trials);
    let constant = settings.tune(Estimator::Constant, &trials, progress)?;
    progress.begin("evaluate: intervals", "", 0)?;
    let weights = resamples(&log, RESAMPLES, config.seed);
    let intervals = match config.estimator {
        Estimator::SoftmaxTd if !logged.has_features() => {
            Intervals::of_tabular_td(&log, &tabular_td(tuned.setting()), &weights)
        }
        Estimator::SoftmaxTd => {
            let method = settings.softmax_td(tuned.setting())?;
            let reference = settings.reference(tuned.setting())?;
            Intervals::of_softmax_td(&log, &method, &reference, &weights)
        }
        other => Intervals::of_method(&log, &*settings.method(other, tuned.setting())?, &weights),
    };
    let mut intervals = intervals.map_err(failed)?;
    // What is held out has noise of its own: values are off by less than they are off from it.
    intervals.hold_bias_below(tuned.trial().loss.sqrt());
    let values: Vec<f64> = intervals.states().iter().map(|i| i.value).collect();
    let asked = match queries {
        Some(queries) => Asked::of_queries(queries, reading, &log, &scaler),
        None => Asked::of_log(logged, &log, &scaler),
    };
    let answers = asked.answers(&whole, keys.as_deref(), &intervals, progress)?;
    let mean = intervals.mean().resting_on(answers.unknown_of_mean, intervals.range());
    let drifts = Drifts::of(&log, &values)?;
    let losses = losses(&trials, tuned.trial(), constant.trial());
    let shown: Vec<f64> = answers.rows.iter().map(|row| row.interval.value).collect();
    let is_by_landmarks = intervals.averaging().is_none_or(Averaging::is_by_landmarks);
    let landmarks = keys.as_deref().filter(|_| is_by_landmarks);
    let evidence = Evidence {
        episodes: log.num_episodes(),
        transitions: log.num_transitions(),
        truncated: log.num_truncated(),
        gamma: config.gamma,
        losses: Some(losses),
        depth: tuned.setting().layers.map(|layers| {
            let is_table = matches!(config.estimator, Estimator::SoftmaxTd | Estimator::TabularTd);
            (layers, if is_table && keys.is_none() { limit_gap(&whole, &values) } else { None })
        }),
        ranges: ranges(&whole, &values),
        values: &shown,
        effective: &answers.effective,
        extrapolated: &answers.extrapolated,
        unknown: answers.unknown,
        beyond_end: beyond_end(&whole),
        tells_ends: reading.tells_ends,
        outlier: match &reading.states {
            States::Features { names, .. } => outlier(&whole, names),
            States::Labels(_) => None,
        },
        returns: intervals.range(),
        return_spread: return_spread(&whole),
        landmark_gap: landmarks.zip(tuned.setting().temperature).map(|(k, t)| k.radius() / t.sqrt()),
        states: whole.visits().iter().filter(|n| **n > 0.0).count(),
        widths: widths(&intervals, &whole),
        is_corrected: intervals.is_corrected(),
        drifts: &drifts,
    };
    let judged = evidence.judge();
    let rivals =
        if config.compare { rivals(&settings, &trials, &tuned, &whole, progress)? } else { Vec::new() };
    progress.begin("evaluate: pictures", "", 0)?;
    let pictures = Pictures::of(&log, &folds, &settings, &tuned, &intervals, reading)?;
    let setting = tuned.setting();
    let uses_kernel = setting.temperature.is_some();
    let is_table = config.estimator == Estimator::SoftmaxTd && !logged.has_features();
    Ok(Evaluation {
        judgement: judged.level,
        reasons: judged.reasons.iter().map(|reason| reason.text.clone()).collect(),
        chosen: Chosen {
            estimator: config.estimator,
            kernel: (uses_kernel || is_table).then(|| settings.kernel.as_str()),
            temperature: setting.temperature,
            layers: setting.layers,
            ridge: setting.ridge,
            lambda: (config.estimator == Estimator::LstdLambda).then(|| log.lambda()).flatten(),
            scale: scaling,
            loss: Some(loss),
            losses: Some(losses),
            bias: intervals.bias(),
            quantile: Some(intervals.quantile()),
            landmarks: landmarks.filter(|_| uses_kernel).map(|keys| keys.states().len()),
            route: intervals.averaging().cloned(),
        },
        rows: answers.rows,
        mean: Some(mean),
        estimators: rivals,
        counts: reading.counts,
        columns: logged.reading.columns(),
        warnings: reading.warnings.clone(),
        tried: tried(&tuned),
        judged,
        pictures: Some(pictures),
        is_ordered: queries.is_some() || !reading.ids.is_empty(),
        gamma: config.gamma,
        strict: config.strict,
    })
}

fn losses(trials: &Trials<'_>, own: &Trial, constant: &Trial) -> Losses {
    Losses { loss: own.loss, constant: constant.loss, error: trials.advantage(own, constant).1 }
}

/// An error of a fit as one of the command.
fn failed(error: FitError) -> LabError {
    match error {
        FitError::Diverged { .. } => LabError::diverged(error),
        _ => LabError::refused("evaluate", error.to_string()),
    }
}

/// Landmarks where there are many states.
fn landmarks_of(log: &Log) -> Option<Arc<Keys>> {
    let states = log.num_states();
    (states > MAX_STATES).then(|| Arc::new(Keys::of(log, (MAX_WEIGHTS / states).clamp(64, 1024))))
}
