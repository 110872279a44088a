//! What an evaluation finds.

use ictd::evaluate::method::Averaging;
use ictd::evaluate::{Interval, Judgement, Level, Loss, Losses, Scaling};
use serde::Serialize;

use super::candidates::Tuned;
use super::pictures::Pictures;
use super::rivals::Rival;
use super::{Estimator, EvaluateConfig, Logged, Row};
use crate::logs::Counts;

/// The settings that were chosen. What an estimator does not have is absent.
#[derive(Clone, Debug, Serialize)]
pub struct Chosen {
    pub(super) estimator: Estimator,
    pub(super) kernel: Option<&'static str>,
    pub(super) temperature: Option<f64>,
    pub(super) layers: Option<usize>,
    pub(super) ridge: Option<f64>,
    pub(super) lambda: Option<f64>,
    pub(super) scale: Scaling,
    /// What is compared with held-out episodes; absent where nothing could be held out.
    pub(super) loss: Option<Loss>,
    pub(super) losses: Option<Losses>,
    /// What is added in quadrature to the scatter of values for the bias of stopping there.
    pub(super) bias: f64,
    /// How many standard deviations intervals reach to each side.
    pub(super) quantile: Option<f64>,
    /// Landmarks that stand for states; absent where all states do, or pivots.
    pub(super) landmarks: Option<usize>,
    /// How averages over many states are taken; left out where there are few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) route: Option<Averaging>,
}

/// One setting that was tried.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Tried {
    pub(super) temperature: Option<f64>,
    pub(super) layers: Option<usize>,
    pub(super) ridge: Option<f64>,
    pub(super) loss: Option<f64>,
    pub(super) standard_error: Option<f64>,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    pub(super) judgement: Level,
    pub(super) reasons: Vec<String>,
    pub(super) chosen: Chosen,
    pub(super) rows: Vec<Row>,
    pub(super) mean: Option<Interval>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) estimators: Vec<Rival>,
    pub(super) counts: Counts,
    /// What the columns of the file were taken for, and what was doubtful in it.
    pub(super) columns: Vec<String>,
    pub(super) warnings: Vec<String>,
    #[serde(skip)]
    pub(super) tried: Vec<Tried>,
    #[serde(skip)]
    pub(super) judged: Judgement,
    #[serde(skip)]
    pub(super) pictures: Option<Pictures>,
    /// Whether rows are in an order that means something: that of ids or of queries.
    #[serde(skip)]
    pub(super) is_ordered: bool,
    #[serde(skip)]
    pub(super) gamma: f64,
    #[serde(skip)]
    pub(super) strict: bool,
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

    /// What is left to say where there are no values.
    pub(super) fn refused(judged: Judgement, logged: &Logged, config: &EvaluateConfig) -> Self {
        Self {
            judgement: judged.level,
            reasons: judged.reasons.iter().map(|reason| reason.text.clone()).collect(),
            chosen: Chosen {
                estimator: config.estimator,
                kernel: None,
                temperature: config.temperature,
                layers: config.layers,
                ridge: config.ridge,
                lambda: config.lambda,
                scale: config.scaling(logged),
                loss: None,
                losses: None,
                bias: 0.0,
                quantile: None,
                landmarks: None,
                route: None,
            },
            rows: Vec::new(),
            mean: None,
            estimators: Vec::new(),
            counts: logged.reading.counts,
            columns: logged.reading.columns(),
            warnings: logged.reading.warnings.clone(),
            tried: Vec::new(),
            judged,
            pictures: None,
            is_ordered: false,
            gamma: config.gamma,
            strict: config.strict,
        }
    }
}

/// Every setting with its loss.
pub(super) fn tried(tuned: &Tuned) -> Vec<Tried> {
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
