//! `evaluate`: the value of every state in a log, with intervals and a judgement.

mod candidates;
mod show;

use std::path::Path;
use std::sync::Arc;

use ictd::evaluate::method::{Basis, Lstd};
use ictd::evaluate::{
    Drifts, Evidence, FitError, Folds, Interval, Intervals, Judgement, Keys, Level, Log, LogBuilder, Loss,
    Method, Reach, Sample, Scaler, Scaling, resamples, tune,
};
use ictd::kernel::KernelName;
use ictd::matrix::Matrix;
use serde::Serialize;

use crate::logs::{self, Counts, Reading, States, Wanted};
use crate::{LabError, Progress};
use candidates::Grid;

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
/// The rougher fit that the bias is estimated from is at least so deep.
const REFERENCE_LAYERS: usize = 16;

/// What is asked.
#[derive(Clone, Debug)]
pub struct EvaluateConfig {
    /// Discount.
    pub gamma: f64,
    /// How features are scaled; standardised where they are numbers unless said otherwise.
    pub scaling: Option<Scaling>,
    /// The kernel.
    pub kernel: KernelName,
    /// A temperature instead of those that are tried.
    pub temperature: Option<f64>,
    /// A depth instead of those that are tried.
    pub layers: Option<usize>,
    /// Whether other estimators are fitted beside it.
    pub compare: bool,
    /// Seed of folds and resamples.
    pub seed: u64,
    /// Whether a result to be taken with caution counts as refused.
    pub strict: bool,
}

/// A log as it was read.
#[derive(Debug)]
pub struct Logged {
    reading: Reading,
    log: Log,
}

impl Logged {
    /// Reads a log.
    pub fn read(path: &Path, wanted: &Wanted, gamma: f64, progress: &Progress) -> Result<Self, LabError> {
        let make = || Ok(LogBuilder::new(gamma, None)?);
        // Before the file is read.
        make()?;
        let (reading, builder) = logs::read(path, wanted, make, progress)?;
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

/// The settings that were chosen.
#[derive(Clone, Debug, Serialize)]
pub struct Chosen {
    estimator: &'static str,
    kernel: &'static str,
    temperature: f64,
    layers: usize,
    scale: Scaling,
    /// Mean loss on held-out episodes, and that of one number for all states.
    loss: f64,
    constant_loss: f64,
    /// What is added to the intervals for the bias of stopping there.
    bias: f64,
    /// Landmarks that stand for states; absent where all states do.
    #[serde(skip_serializing_if = "Option::is_none")]
    landmarks: Option<usize>,
}

/// A state or an id and its value.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// How often the log left the state.
    visits: u64,
    #[serde(flatten)]
    interval: Interval,
    /// Whether nothing like the state was seen.
    extrapolated: bool,
}

/// One setting that was tried.
#[derive(Clone, Debug, Serialize)]
struct Tried {
    temperature: f64,
    layers: usize,
    loss: Option<f64>,
    standard_error: Option<f64>,
}

/// An estimator beside the others, at its best settings.
#[derive(Clone, Debug, Serialize)]
struct Rival {
    estimator: &'static str,
    settings: String,
    loss: Option<f64>,
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
    mean: Interval,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    estimators: Vec<Rival>,
    counts: Counts,
    #[serde(skip)]
    tried: Vec<Tried>,
    #[serde(skip)]
    judged: Judgement,
    #[serde(skip)]
    gamma: f64,
    #[serde(skip)]
    strict: bool,
}

impl Evaluation {
    /// Whether the result may be used.
    pub fn is_refused(&self) -> bool {
        self.judgement == Level::Refuse || self.strict && self.judgement == Level::Caution
    }
}

/// Evaluates a log.
pub fn run(logged: &Logged, config: &EvaluateConfig, progress: &Progress) -> Result<Evaluation, LabError> {
    let Logged { reading, log } = logged;
    let is_labels = matches!(reading.states, States::Labels(_));
    let scaling = config.scaling.unwrap_or(if is_labels { Scaling::None } else { Scaling::Standardize });
    let scaler = Scaler::of(scaling, log);
    let log = log.with_features(&scaler.apply(log.features()))?;
    let whole = log.whole();
    let keys = landmarks(&log);
    let wide_labels = is_labels && reading.visited > MAX_ONE_HOT;
    let grid = Grid::new(config, &whole, keys.clone(), wide_labels)?;
    let folds = Folds::new(&log, FOLDS.0, FOLDS.1, config.seed)
        .map_err(|e| LabError::refused("episodes", e.to_string()))?;
    progress.begin("evaluate: settings on held-out episodes", "", 0)?;
    let curve = tune(&log, &folds, Loss::default(), &grid.candidates())
        .map_err(|e| LabError::refused("evaluate", e.to_string()))?;
    progress.check()?;
    let best = grid.best(&curve)?;
    progress.begin("evaluate: intervals", "", 0)?;
    let weights = resamples(&log, RESAMPLES, config.seed);
    let intervals =
        Intervals::of_softmax_td(&log, &best.method, &grid.reference(&best)?, &weights).map_err(failed)?;
    progress.check()?;
    let values: Vec<f64> = intervals.states().iter().map(|i| i.value).collect();
    progress.begin("evaluate: rows", "", 0)?;
    let asked = Asked::of(reading, &log, &scaler, keys.as_deref(), &intervals)?;
    let drifts = Drifts::of(&log, &values)?;
    let losses = (curve.trials[best.place].loss, curve.trials[0].loss);
    let shown: Vec<f64> = asked.intervals.iter().map(|i| i.value).collect();
    let evidence = Evidence {
        episodes: log.num_episodes(),
        transitions: log.num_transitions(),
        truncated: log.num_truncated(),
        gamma: config.gamma,
        losses: Some(losses),
        depth: Some((best.method.num_layers, limit_gap(&whole, &values))),
        values: &shown,
        effective: &asked.effective,
        extrapolated: &asked.extrapolated,
        returns: intervals.range(),
        return_spread: return_spread(&whole),
        landmark_gap: keys.as_ref().map(|keys| keys.radius() / best.temperature.sqrt()),
        drifts: &drifts,
    };
    let judged = evidence.judge();
    let estimators = if config.compare {
        progress.begin("evaluate: other estimators", "", 0)?;
        candidates::rivals(&log, &folds, &grid)
    } else {
        Vec::new()
    };
    Ok(Evaluation {
        judgement: judged.level,
        reasons: judged.reasons.iter().map(|reason| reason.text.clone()).collect(),
        chosen: Chosen {
            estimator: best.method.name(),
            kernel: grid.kernel().as_str(),
            temperature: best.temperature,
            layers: best.method.num_layers,
            scale: scaling,
            loss: losses.0,
            constant_loss: losses.1,
            bias: intervals.bias(),
            landmarks: keys.as_ref().map(|keys| keys.states().len()),
        },
        rows: asked.rows(reading),
        mean: intervals.mean(),
        estimators,
        counts: reading.counts,
        tried: grid.tried(&curve),
        judged,
        gamma: config.gamma,
        strict: config.strict,
    })
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

/// The states that values are wanted of.
struct Asked {
    /// Their numbers in the file, and names where they are ids.
    states: Vec<(u32, Option<String>)>,
    visits: Vec<u64>,
    intervals: Vec<Interval>,
    effective: Vec<f64>,
    extrapolated: Vec<bool>,
}

impl Asked {
    /// The last states of ids where there are ids, else all states of the log.
    fn of(
        reading: &Reading,
        log: &Log,
        scaler: &Scaler,
        keys: Option<&Keys>,
        intervals: &Intervals,
    ) -> Result<Self, LabError> {
        let states: Vec<(u32, Option<String>)> = if reading.ids.is_empty() {
            (0..reading.visited as u32).map(|s| (s, None)).collect()
        } else {
            reading.ids.iter().map(|(name, s)| (*s, Some(name.clone()))).collect()
        };
        let whole = log.whole();
        let is_known = |s: u32| (s as usize) < reading.visited;
        let visits = |s: u32| if is_known(s) { whole.visits()[log.number_of(s)] as u64 } else { 0 };
        // A label that no transition speaks of is like none; features may be like others.
        let rows: Vec<f64> = match &reading.states {
            States::Labels(_) => {
                let dim = log.features().num_cols();
                let row = |s: u32| {
                    if is_known(s) { log.features().row(log.number_of(s)).to_vec() } else { vec![0.0; dim] }
                };
                states.iter().flat_map(|(s, _)| row(*s)).collect()
            }
            States::Features { rows, .. } => {
                let given =
                    Matrix::from_fn(states.len(), rows.num_cols(), |k, a| rows[(states[k].0 as usize, a)]);
                scaler.apply(&given).as_slice().to_vec()
            }
        };
        let points = Matrix::from_vec(states.len(), log.features().num_cols(), rows);
        let mut extrapolated = Reach::of(&whole, keys).beyond(&points);
        if matches!(reading.states, States::Labels(_)) {
            extrapolated = states.iter().map(|(s, _)| !is_known(*s) || visits(*s) == 0).collect();
        }
        Ok(Self {
            visits: states.iter().map(|(s, _)| visits(*s)).collect(),
            intervals: intervals.predict(&points).map_err(failed)?,
            effective: intervals.effective(&points).map_err(failed)?,
            extrapolated,
            states,
        })
    }

    fn rows(self, reading: &Reading) -> Vec<Row> {
        let state = |s: u32| match &reading.states {
            States::Labels(labels) => {
                let label = &labels[s as usize];
                label.parse::<i64>().map_or_else(|_| label.clone().into(), serde_json::Value::from)
            }
            States::Features { names, rows } => {
                let entries = names.iter().cloned().zip(rows.row(s as usize).iter().map(|&x| x.into()));
                serde_json::Value::Object(entries.collect())
            }
        };
        let parts = self.states.into_iter().zip(self.visits).zip(self.intervals).zip(self.extrapolated);
        parts
            .map(|((((s, id), visits), interval), extrapolated)| {
                let state = id.is_none().then(|| state(s));
                Row { state, id, visits, interval, extrapolated }
            })
            .collect()
    }
}
