//! Other estimators beside the chosen one.

use ictd::evaluate::{Sample, Trials};
use serde::Serialize;

use super::Estimator;
use super::candidates::{Settings, Tuned};
use crate::{LabError, Progress};

/// An estimator beside the others, at its best settings.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Rival {
    pub estimator: Estimator,
    pub settings: String,
    pub loss: Option<f64>,
    /// By how much its loss is larger than that of the chosen one, and the standard error of that.
    pub behind: Option<f64>,
    pub behind_error: Option<f64>,
    /// The mean over the states in which episodes begin.
    pub mean: Option<f64>,
    pub why_not: Option<String>,
}

/// All estimators at the settings that do best on the same held-out episodes.
pub(super) fn rivals(
    settings: &Settings,
    trials: &Trials<'_>,
    own: &Tuned,
    whole: &Sample<'_>,
    progress: &Progress,
) -> Result<Vec<Rival>, LabError> {
    let has_traces = whole.log().lambda().is_some();
    let initial = whole.initial();
    let episodes: f64 = initial.iter().sum();
    let (low, high) = whole.return_range().unwrap_or((f64::NAN, f64::NAN));
    let mut rivals = Vec::new();
    for estimator in Estimator::ALL.into_iter().filter(|e| *e != own.estimator) {
        let (mut settled, mut why_not) = (None, None);
        let mut mean = None;
        match settings.tune(estimator, trials, progress) {
            Err(_) if estimator == Estimator::LstdLambda && !has_traces => {
                why_not = Some("--lambda says which λ".into());
            }
            Err(LabError::Refused { problem, .. }) => why_not = Some(problem),
            Err(LabError::Diverged { source, .. }) => why_not = Some(source.to_string()),
            Err(error) => return Err(error),
            Ok(tuned) => {
                match settings.method(estimator, tuned.setting())?.fit(whole) {
                    Err(error) => why_not = Some(error.to_string()),
                    Ok(fit) => {
                        let terms = initial.iter().zip(fit.values()).map(|(n, v)| n * v.max(low).min(high));
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
