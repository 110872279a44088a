//! Suggestions as written to JSON.

use ictd::theory::{Change, Helps, Suggestion, Suggestions};
use serde::Serialize;

/// A verified change.
#[derive(Clone, Debug, Serialize)]
pub struct SuggestionJson {
    /// What to change, in words.
    pub change: String,
    /// The options of `certify` that make it, in place of those in use; empty where there are none.
    pub options: String,
    /// What it does, recomputed.
    #[serde(flatten)]
    pub found: Suggestion,
}

/// A suggestion in words and options; `generated` when features come from a family.
pub(super) fn describe(suggestion: &Suggestion, generated: bool) -> SuggestionJson {
    let alpha = suggestion.step_size;
    // Generated features are normalised before they are scaled.
    let unit = if generated { "--unit-norm --score-scale 1" } else { "--unit-norm" };
    let (change, options) = match suggestion.change {
        Change::StepSize(_) => (format!("step size {alpha}"), format!("--step-size {alpha}")),
        Change::Temperature(t) => (
            format!("temperature {t} and step size {alpha}"),
            format!("--temperature {t} --step-size {alpha}"),
        ),
        Change::UnitFeatures => (
            format!("feature vectors of length 1 and step size {alpha}"),
            format!("{unit} --step-size {alpha}"),
        ),
        Change::UnitFeaturesAndTemperature(t) => (
            format!("feature vectors of length 1, temperature {t} and step size {alpha}"),
            format!("{unit} --temperature {t} --step-size {alpha}"),
        ),
        Change::StepsByMass => (
            format!("a step size per state, {alpha} times its share of the largest kernel mass"),
            String::new(),
        ),
        other => (format!("{other:?} and step size {alpha}"), String::new()),
    };
    SuggestionJson { change, options, found: suggestion.clone() }
}

/// Whether anything helps at the depth asked for.
pub(super) fn note(tried: &Suggestions, num_layers: usize) -> String {
    let best = tried.found.first().filter(|s| s.helps == Helps::AtThisDepth).and_then(|s| s.error_at_depth);
    let mut note = match (tried.error_at_depth, best) {
        (Some(now), Some(best)) => format!(
            "the best change lowers the error after {num_layers} layers from {now:.1e} to {best:.1e} of the largest value"
        ),
        (None, Some(best)) => format!(
            "as it is there is no limit; with the best change the error after {num_layers} layers is {best:.1e} of the largest value"
        ),
        _ => format!("no change tried lowers the error after {num_layers} layers"),
    };
    if tried.dropped > 0 {
        note += &format!("; {} of the trials could not be examined", tried.dropped);
    }
    note
}
