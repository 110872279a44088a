//! An estimator fitted to a log: everything that values, intervals and the judgement are made of.

use std::sync::Arc;

use ictd::evaluate::method::{Averaging, attention};
use ictd::evaluate::{
    Drifts, Evidence, Folds, Intervals, Judgement, Keys, Log, Loss, Losses, Sample, Scaler, Scaling, Trial,
    Trials, resamples,
};
use ictd::kernel::KernelName;
use ictd::matrix::Matrix;

use super::asked::{Answers, Asked, Support};
use super::candidates::{Setting, Settings, Tuned, tabular_td};
use super::evaluation::{Chosen, tried};
use super::measures::{beyond_end, limit_gap, memory_of, outlier, ranges, return_spread, widths};
use super::pictures::Pictures;
use super::rivals::{Rival, rivals};
use super::{Estimator, EvaluateConfig, Evaluation, FOLDS, Logged, REPEATS, RESAMPLES, failed, landmarks_of};
use crate::logs::{Queries, States};
use crate::{LabError, Progress, memory};

/// States whose values are computed at a time.
const PART: usize = 1024;

/// What episodes that were held out in turn say.
#[derive(Debug)]
struct Held {
    folds: Folds,
    loss: Loss,
    losses: Losses,
    tuned: Tuned,
    rivals: Vec<Rival>,
}

/// An estimator at its best settings, or at given ones.
#[derive(Debug)]
pub(super) struct Estimate {
    estimator: Estimator,
    /// With features scaled.
    log: Log,
    scaling: Scaling,
    scaler: Scaler,
    keys: Option<Arc<Keys>>,
    settings: Settings,
    setting: Setting,
    intervals: Intervals,
    /// None where there is but one episode, of which nothing can be held out.
    held: Option<Held>,
    support: Support,
}

impl Estimate {
    pub fn of(logged: &Logged, config: &EvaluateConfig, progress: &Progress) -> Result<Self, LabError> {
        let estimator = config.estimator;
        let scaling = config.scaling(logged);
        let scaler = Scaler::of(scaling, &logged.log);
        let log = logged.log.with_features(&scaler.apply(logged.log.features()))?;
        // Labels that have no features have no places either.
        let keys = if logged.has_features() { landmarks_of(&log) } else { None };
        memory::admit(
            memory_of(&log, keys.as_deref(), logged.has_features()),
            "the number of different states",
        )?;
        let repeats = if keys.is_some() { 1 } else { REPEATS };
        let folds = Folds::new(&log, FOLDS, repeats, config.seed).ok();
        let whole = log.whole();
        let settings = Settings::new(config, &whole, keys.clone(), logged.has_features(), progress)?;
        let held = folds.map(|folds| Held::of(folds, &whole, &settings, config, progress)).transpose()?;
        let setting = held.as_ref().map_or_else(|| settings.usual(estimator), |held| held.tuned.setting());
        progress.begin("evaluate: intervals", "", 0)?;
        let weights = resamples(&log, RESAMPLES, config.seed);
        let intervals = match estimator {
            Estimator::SoftmaxTd if !logged.has_features() => {
                Intervals::of_tabular_td(&log, &tabular_td(setting), &weights)
            }
            Estimator::SoftmaxTd => {
                let method = settings.softmax_td(setting)?;
                let reference = settings.reference(setting)?;
                Intervals::of_softmax_td(&log, &method, &reference, &weights)
            }
            other => Intervals::of_method(&log, &*settings.method(other, setting)?, &weights),
        };
        let mut intervals = intervals.map_err(failed)?;
        if let Some(held) = &held {
            // What is held out has noise of its own: values are off by less than they are off from it.
            intervals.hold_bias_below(held.tuned.trial().loss.sqrt());
        }
        let support = Support::of(&whole, keys.as_deref(), logged.has_labels(), held.is_some());
        Ok(Self { estimator, log, scaling, scaler, keys, settings, setting, intervals, held, support })
    }

    /// The scaled log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The setting.
    pub fn setting(&self) -> Setting {
        self.setting
    }

    fn asked<'a>(&self, logged: &'a Logged, queries: Option<&'a Queries>) -> Asked<'a> {
        match queries {
            Some(queries) => Asked::of_queries(queries, &logged.reading, &self.log, &self.scaler),
            None => Asked::of_log(logged, &self.log, &self.scaler),
        }
    }

    /// What is to be said of the states of `queries`, or else of the log's own.
    pub fn answers(
        &self,
        logged: &Logged,
        queries: Option<&Queries>,
        progress: &Progress,
    ) -> Result<Answers, LabError> {
        let (whole, asked) = (self.log.whole(), self.asked(logged, queries));
        asked.answers(&whole, self.keys.as_deref(), &self.intervals, &self.support, progress)
    }

    /// The values at these features, which are scaled: some rows at a time, so that weights of many states need little memory.
    fn values(&self, features: &Matrix, progress: &Progress) -> Result<Vec<f64>, LabError> {
        let (all, d) = (features.num_rows(), features.num_cols());
        if all <= PART {
            return self.intervals.estimates(features).map_err(failed);
        }
        progress.begin("evaluate: values", "rows", all as u64)?;
        let mut values = Vec::with_capacity(all);
        for first in (0..all).step_by(PART) {
            let rows = PART.min(all - first);
            let part = features.as_slice()[first * d..(first + rows) * d].to_vec();
            values.extend(self.intervals.estimates(&Matrix::from_vec(rows, d, part)).map_err(failed)?);
            progress.step(rows as u64)?;
        }
        Ok(values)
    }

    /// The values of queries alone.
    pub fn values_of(
        &self,
        logged: &Logged,
        queries: &Queries,
        progress: &Progress,
    ) -> Result<Vec<f64>, LabError> {
        if let States::Features { rows, .. } = &queries.states {
            return self.values(&self.scaler.apply(rows), progress);
        }
        let (features, known) = self.asked(logged, Some(queries)).known();
        let mut values = self.values(&features, progress)?;
        // There is no place for others among the labels.
        let mean = self.log.whole().mean_value();
        values.iter_mut().zip(known).filter(|(_, known)| !known).for_each(|(value, _)| *value = mean);
        Ok(values)
    }

    /// The share of every state of the log in the averages that values are made of: row by row for the states of `queries`. A label that the
    /// log does not have attends to nothing.
    pub fn attention(&self, logged: &Logged, queries: &Queries) -> Result<Matrix, LabError> {
        let takes_averages = matches!(self.estimator, Estimator::SoftmaxTd | Estimator::Kbrl);
        if !takes_averages {
            let problem = "takes no averages, expected softmax-td or kbrl for its weights";
            return Err(LabError::refused(self.estimator.as_str(), problem));
        }
        let asked = self.asked(logged, Some(queries));
        let (features, known) = asked.known();
        // Labels without features are alike only to themselves.
        let kernel = if logged.has_features() { self.settings.kernel } else { KernelName::Tabular };
        let kernel = kernel.at(self.setting.temperature.unwrap_or(1.0))?;
        let mut weights = attention(kernel, &self.log.whole(), &features).map_err(failed)?;
        if logged.has_labels() {
            let unknown = known.into_iter().enumerate().filter(|(_, known)| !known);
            unknown.for_each(|(row, _)| weights.row_mut(row).fill(0.0));
        }
        Ok(weights)
    }

    /// What is found, without pictures.
    pub fn evaluation(
        &self,
        logged: &Logged,
        queries: Option<&Queries>,
        config: &EvaluateConfig,
        progress: &Progress,
    ) -> Result<Evaluation, LabError> {
        let (reading, whole) = (&logged.reading, self.log.whole());
        let Self { log, intervals, keys, setting, .. } = self;
        let answers = self.answers(logged, queries, progress)?;
        let unsure = if self.held.is_some() { answers.unknown_of_mean } else { 1.0 };
        let mean = intervals.mean().resting_on(unsure, intervals.range());
        let is_by_landmarks = intervals.averaging().is_none_or(Averaging::is_by_landmarks);
        let landmarks = keys.as_deref().filter(|_| is_by_landmarks);
        let judged = self.judged(logged, config, &answers, landmarks)?;
        let uses_kernel = setting.temperature.is_some();
        let is_table = config.estimator == Estimator::SoftmaxTd && !logged.has_features();
        let held = self.held.as_ref();
        Ok(Evaluation {
            judgement: judged.level,
            reasons: judged.reasons.iter().map(|reason| reason.text.clone()).collect(),
            chosen: Chosen {
                estimator: config.estimator,
                kernel: (uses_kernel || is_table).then(|| self.settings.kernel.as_str()),
                temperature: setting.temperature,
                layers: setting.layers,
                ridge: setting.ridge,
                lambda: (config.estimator == Estimator::LstdLambda).then(|| log.lambda()).flatten(),
                scale: self.scaling,
                loss: held.map(|held| held.loss),
                losses: held.map(|held| held.losses),
                bias: intervals.bias(),
                quantile: Some(intervals.quantile()),
                landmarks: landmarks.filter(|_| uses_kernel).map(|keys| keys.states().len()),
                route: intervals.averaging().cloned(),
            },
            rows: answers.rows,
            mean: Some(mean),
            estimators: held.map_or_else(Vec::new, |held| held.rivals.clone()),
            counts: reading.counts,
            columns: reading.columns(),
            warnings: reading.warnings.clone(),
            tried: held.map_or_else(Vec::new, |held| tried(&held.tuned)),
            judged,
            pictures: None,
            is_ordered: queries.is_some() || !reading.ids.is_empty(),
            gamma: whole.gamma(),
            strict: config.strict,
        })
    }

    fn judged(
        &self,
        logged: &Logged,
        config: &EvaluateConfig,
        answers: &Answers,
        landmarks: Option<&Keys>,
    ) -> Result<Judgement, LabError> {
        let (reading, whole) = (&logged.reading, self.log.whole());
        let Self { log, intervals, keys, setting, .. } = self;
        let values: Vec<f64> = intervals.states().iter().map(|i| i.value).collect();
        let drifts = Drifts::of(log, &values)?;
        let shown: Vec<f64> = answers.rows.iter().map(|row| row.interval.value).collect();
        let evidence = Evidence {
            episodes: log.num_episodes(),
            transitions: log.num_transitions(),
            truncated: log.num_truncated(),
            gamma: config.gamma,
            losses: self.held.as_ref().map(|held| held.losses),
            depth: setting.layers.map(|layers| {
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
            landmark_gap: landmarks.zip(setting.temperature).map(|(k, t)| k.radius() / t.sqrt()),
            states: whole.visits().iter().filter(|n| **n > 0.0).count(),
            widths: widths(intervals, &whole),
            is_corrected: intervals.is_corrected(),
            drifts: &drifts,
        };
        Ok(evidence.judge())
    }

    /// What is drawn beside values; nothing where nothing was held out.
    pub fn pictures(&self, logged: &Logged) -> Result<Option<Pictures>, LabError> {
        let draw = |held: &Held| {
            let Held { folds, tuned, .. } = held;
            Pictures::of(&self.log, folds, &self.settings, tuned, &self.intervals, &logged.reading)
        };
        self.held.as_ref().map(draw).transpose()
    }
}

impl Held {
    fn of(
        folds: Folds,
        whole: &Sample<'_>,
        settings: &Settings,
        config: &EvaluateConfig,
        progress: &Progress,
    ) -> Result<Self, LabError> {
        progress.begin("evaluate: folds", "", 0)?;
        let loss = Loss::of(whole.log(), &folds);
        let mut trials = Trials::new(whole.log(), &folds, loss).map_err(failed)?;
        let mut tuned = settings.tune(config.estimator, &trials, progress)?;
        tuned.settle(&mut trials);
        let constant = settings.tune(Estimator::Constant, &trials, progress)?;
        let losses = losses(&trials, tuned.trial(), constant.trial());
        let rivals =
            if config.compare { rivals(settings, &trials, &tuned, whole, progress)? } else { Vec::new() };
        drop(trials);
        Ok(Self { folds, loss, losses, tuned, rivals })
    }
}

fn losses(trials: &Trials<'_>, own: &Trial, constant: &Trial) -> Losses {
    Losses { loss: own.loss, constant: constant.loss, error: trials.advantage(own, constant).1 }
}
