//! `evaluate`: the value of every state in a log, with intervals and a judgement.

mod asked;
mod candidates;
mod estimator;
mod figures;
mod pictures;
mod report;
mod show;

pub use asked::Row;
pub use estimator::Estimator;

use std::path::Path;
use std::sync::Arc;

use ictd::evaluate::method::{Basis, Lstd};
use ictd::evaluate::{
    Drifts, Evidence, FitError, Folds, Interval, Intervals, Judgement, Keys, Level, Log, LogBuilder, Loss,
    Losses, Method, Sample, Scaler, Scaling, Trial, Trials, resamples,
};
use ictd::kernel::KernelName;
use ictd::matrix::Matrix;
use serde::Serialize;

use crate::logs::{self, Counts, Queries, Reading, States, Wanted};
use crate::{LabError, Progress};
use asked::Asked;
use candidates::{Settings, Tuned};
use pictures::Pictures;

/// Labels beyond this number are told apart without features of their own.
const MAX_ONE_HOT: usize = 512;
/// States beyond this number are attended to by landmarks.
const MAX_STATES: usize = 2048;
/// States times landmarks.
const MAX_WEIGHTS: usize = 1 << 24;
/// Folds of episodes, and how often they are drawn.
const FOLDS: (usize, usize) = (5, 2);
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
        let make = || Ok(LogBuilder::new(config.gamma, config.traces())?);
        // Before the file is read.
        make()?;
        let (reading, builder) = logs::read(path, wanted, make, progress)?;
        Self::new(reading, builder)
    }

    fn new(reading: Reading, builder: LogBuilder) -> Result<Self, LabError> {
        let log = builder.build(features(&reading.states, reading.visited))?;
        Ok(Self { reading, log })
    }

    /// What the reader understood.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }
}

/// Features of the first states: those of the file, or what stands for labels.
fn features(states: &States, number: usize) -> Matrix {
    match states {
        States::Labels(_) if number <= MAX_ONE_HOT => Matrix::identity(number),
        States::Labels(_) => Matrix::from_fn(number, 1, |s, _| s as f64),
        States::Features { rows, .. } => Matrix::from_fn(number, rows.num_cols(), |s, a| rows[(s, a)]),
    }
}

/// The settings that were chosen. What an estimator does not have is absent.
#[derive(Clone, Debug, Serialize)]
pub struct Chosen {
    estimator: Estimator,
    kernel: Option<&'static str>,
    temperature: Option<f64>,
    layers: Option<usize>,
    ridge: Option<f64>,
    lambda: Option<f64>,
    scale: Scaling,
    /// On held-out episodes; absent where nothing could be held out.
    losses: Option<Losses>,
    /// What is added to the intervals for the bias of stopping there.
    bias: f64,
    /// Landmarks that stand for states; absent where all states do.
    landmarks: Option<usize>,
}

/// One setting that was tried.
#[derive(Clone, Debug, Serialize)]
struct Tried {
    temperature: Option<f64>,
    layers: Option<usize>,
    ridge: Option<f64>,
    loss: Option<f64>,
    standard_error: Option<f64>,
}

/// An estimator beside the others, at its best settings.
#[derive(Clone, Debug, Serialize)]
struct Rival {
    estimator: Estimator,
    settings: String,
    loss: Option<f64>,
    /// By how much its loss is larger than that of the chosen one, and the standard error of that.
    behind: Option<f64>,
    behind_error: Option<f64>,
    /// The mean over the states in which episodes begin.
    mean: Option<f64>,
    why_not: Option<String>,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    judgement: Level,
    reasons: Vec<String>,
    chosen: Chosen,
    rows: Vec<Row>,
    mean: Option<Interval>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    estimators: Vec<Rival>,
    counts: Counts,
    #[serde(skip)]
    tried: Vec<Tried>,
    #[serde(skip)]
    judged: Judgement,
    #[serde(skip)]
    pictures: Option<Pictures>,
    /// Whether rows are in an order that means something: that of ids or of queries.
    #[serde(skip)]
    is_ordered: bool,
    #[serde(skip)]
    gamma: f64,
    #[serde(skip)]
    strict: bool,
}

impl Evaluation {
    /// Whether the result should not be used.
    pub fn is_refused(&self) -> bool {
        self.judgement == Level::Refuse || self.strict && self.judgement == Level::Caution
    }

    /// Rows with their values.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}

/// Evaluates a log, at the states of `queries` or else at its own.
pub fn run(
    logged: &Logged,
    queries: Option<&Queries>,
    config: &EvaluateConfig,
    progress: &Progress,
) -> Result<Evaluation, LabError> {
    let Logged { reading, log } = logged;
    let is_labels = matches!(reading.states, States::Labels(_));
    let scaling = config.scaling.unwrap_or(if is_labels { Scaling::None } else { Scaling::Standardize });
    let scaler = Scaler::of(scaling, log);
    let log = log.with_features(&scaler.apply(log.features()))?;
    let Ok(folds) = Folds::new(&log, FOLDS.0, FOLDS.1, config.seed) else {
        return Ok(too_few(&log, reading, scaling, config));
    };
    let whole = log.whole();
    let keys = landmarks(&log);
    let without_features = is_labels && reading.visited > MAX_ONE_HOT;
    let settings = Settings::new(config, &whole, keys.clone(), without_features)?;
    progress.begin("evaluate: folds", "", 0)?;
    let trials = Trials::new(&log, &folds, Loss::default()).map_err(failed)?;
    let constant = settings.tune(Estimator::Constant, &trials, progress)?;
    let tuned = settings.tune(config.estimator, &trials, progress)?;
    progress.begin("evaluate: intervals", "", 0)?;
    let weights = resamples(&log, RESAMPLES, config.seed);
    let intervals = match config.estimator {
        Estimator::SoftmaxTd => {
            let method = settings.softmax_td(tuned.setting())?;
            let reference = settings.reference(tuned.setting())?;
            Intervals::of_softmax_td(&log, &method, &reference, &weights)
        }
        other => Intervals::of_method(&log, &*settings.method(other, tuned.setting())?, &weights),
    };
    let intervals = intervals.map_err(failed)?;
    let values: Vec<f64> = intervals.states().iter().map(|i| i.value).collect();
    let asked = match queries {
        Some(queries) => Asked::of_queries(queries, reading, &log, &scaler),
        None => Asked::of_log(reading, &log, &scaler),
    };
    let answers = asked.answers(&whole, keys.as_deref(), &intervals, progress)?;
    let drifts = Drifts::of(&log, &values)?;
    let losses = losses(&trials, tuned.trial(), constant.trial());
    let shown: Vec<f64> = answers.rows.iter().map(|row| row.interval.value).collect();
    let evidence = Evidence {
        episodes: log.num_episodes(),
        transitions: log.num_transitions(),
        truncated: log.num_truncated(),
        gamma: config.gamma,
        losses: Some(losses),
        depth: tuned.setting().layers.map(|layers| (layers, limit_gap(&whole, &values))),
        values: &shown,
        effective: &answers.effective,
        extrapolated: &answers.extrapolated,
        returns: intervals.range(),
        return_spread: return_spread(&whole),
        landmark_gap: keys.as_ref().zip(tuned.setting().temperature).map(|(k, t)| k.radius() / t.sqrt()),
        states: whole.visits().iter().filter(|n| **n > 0.0).count(),
        is_corrected: config.estimator == Estimator::SoftmaxTd,
        drifts: &drifts,
    };
    let judged = evidence.judge();
    let rivals = if config.compare { rivals(&settings, &trials, &tuned, &whole, progress)? } else { Vec::new() };
    progress.begin("evaluate: pictures", "", 0)?;
    let pictures = Pictures::of(&log, &folds, &settings, &tuned, &intervals, reading)?;
    let setting = tuned.setting();
    let uses_kernel = setting.temperature.is_some();
    Ok(Evaluation {
        judgement: judged.level,
        reasons: judged.reasons.iter().map(|reason| reason.text.clone()).collect(),
        chosen: Chosen {
            estimator: config.estimator,
            kernel: uses_kernel.then(|| settings.kernel.as_str()),
            temperature: setting.temperature,
            layers: setting.layers,
            ridge: setting.ridge,
            lambda: (config.estimator == Estimator::LstdLambda).then(|| log.lambda()).flatten(),
            scale: scaling,
            losses: Some(losses),
            bias: intervals.bias(),
            landmarks: keys.as_ref().filter(|_| uses_kernel).map(|keys| keys.states().len()),
        },
        rows: answers.rows,
        mean: Some(intervals.mean()),
        estimators: rivals,
        counts: reading.counts,
        tried: tried(&tuned),
        judged,
        pictures: Some(pictures),
        is_ordered: queries.is_some() || !reading.ids.is_empty(),
        gamma: config.gamma,
        strict: config.strict,
    })
}

/// What can be said of a single episode: nothing.
fn too_few(log: &Log, reading: &Reading, scaling: Scaling, config: &EvaluateConfig) -> Evaluation {
    let judged = Judgement::too_few_episodes(log.num_episodes());
    Evaluation {
        judgement: judged.level,
        reasons: judged.reasons.iter().map(|reason| reason.text.clone()).collect(),
        chosen: Chosen {
            estimator: config.estimator,
            kernel: None,
            temperature: config.temperature,
            layers: config.layers,
            ridge: config.ridge,
            lambda: config.lambda,
            scale: scaling,
            losses: None,
            bias: 0.0,
            landmarks: None,
        },
        rows: Vec::new(),
        mean: None,
        estimators: Vec::new(),
        counts: reading.counts,
        tried: Vec::new(),
        judged,
        pictures: None,
        is_ordered: false,
        gamma: config.gamma,
        strict: config.strict,
    }
}

fn losses(trials: &Trials<'_>, own: &Trial, constant: &Trial) -> Losses {
    Losses { loss: own.loss, constant: constant.loss, error: trials.advantage(own, constant).1 }
}

/// Every setting with its loss.
fn tried(tuned: &Tuned) -> Vec<Tried> {
    let finite = |x: f64| x.is_finite().then_some(x);
    let pairs = tuned.settings.iter().zip(&tuned.trials);
    pairs
        .map(|(setting, trial)| Tried {
            temperature: setting.temperature,
            layers: setting.layers,
            ridge: setting.ridge,
            loss: finite(trial.loss),
            standard_error: finite(trial.sem),
        })
        .collect()
}

/// All estimators at the settings that do best on the same held-out episodes.
fn rivals(
    settings: &Settings,
    trials: &Trials<'_>,
    own: &Tuned,
    whole: &Sample<'_>,
    progress: &Progress,
) -> Result<Vec<Rival>, LabError> {
    let initial = whole.initial();
    let episodes: f64 = initial.iter().sum();
    let mut rivals = Vec::new();
    for estimator in Estimator::ALL.into_iter().filter(|e| *e != own.estimator) {
        let (mut settled, mut why_not) = (None, None);
        let mut mean = None;
        match settings.tune(estimator, trials, progress) {
            Err(LabError::Refused { problem, .. }) => why_not = Some(problem),
            Err(error) => return Err(error),
            Ok(tuned) => {
                match settings.method(estimator, tuned.setting())?.fit(whole) {
                    Err(error) => why_not = Some(error.to_string()),
                    Ok(fit) => {
                        let terms = initial.iter().zip(fit.values()).map(|(n, v)| n * v);
                        mean = Some(terms.sum::<f64>() / episodes);
                    }
                }
                settled = Some(tuned);
            }
        }
        let behind = settled.as_ref().map(|tuned| trials.advantage(own.trial(), tuned.trial()));
        rivals.push(Rival {
            estimator,
            settings: settled.as_ref().map_or_else(String::new, |tuned| tuned.setting().words()),
            loss: settled.as_ref().map(|tuned| tuned.trial().loss),
            behind: behind.map(|b| b.0),
            behind_error: behind.map(|b| b.1),
            mean,
            why_not,
        });
    }
    Ok(rivals)
}

/// An error of a fit as one of the command.
fn failed(error: FitError) -> LabError {
    LabError::refused("evaluate", error.to_string())
}

/// Landmarks where there are many states.
fn landmarks(log: &Log) -> Option<Arc<Keys>> {
    let states = log.num_states();
    (states > MAX_STATES).then(|| Arc::new(Keys::of(log, (MAX_WEIGHTS / states).clamp(64, 1024))))
}

/// How far values are from those of infinite depth, over the spread of those; absent where those are not known.
fn limit_gap(whole: &Sample<'_>, values: &[f64]) -> Option<f64> {
    let limit = Lstd { basis: Basis::Table, traces: false, ridge: 0.0 }.fit(whole).ok()?;
    let (visits, total) = (whole.visits(), whole.num_visits());
    let mean_square = |f: &dyn Fn(usize) -> f64| {
        (0..visits.len()).filter(|&s| visits[s] > 0.0).map(|s| visits[s] * f(s) * f(s)).sum::<f64>() / total
    };
    let mean = (0..visits.len()).map(|s| visits[s] * limit.values()[s]).sum::<f64>() / total;
    let gap = mean_square(&|s| values[s] - limit.values()[s]);
    let spread = mean_square(&|s| limit.values()[s] - mean);
    Some((gap / spread).sqrt()).filter(|gap| gap.is_finite())
}

/// Standard deviation of the returns that followed states.
fn return_spread(whole: &Sample<'_>) -> f64 {
    let mean = whole.return_sums().iter().sum::<f64>() / whole.num_visits();
    whole.return_loss(&vec![mean; whole.num_states()]).sqrt()
}
