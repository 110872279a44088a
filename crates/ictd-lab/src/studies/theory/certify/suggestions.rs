//! Suggestions as written to JSON.

use ictd::kernel::Route;
use ictd::operator::StateOperator;
use ictd::theory::{Certificate, Change, Helps, Suggestion, Suggestions};
use serde::Serialize;

use super::{Examined, LayerConfig, Report};
use crate::studies::theory::{apart, layers};

/// How near to the limit is near enough to be told the number of layers for, as a share of the largest value.
pub(super) const NEAR: f64 = 0.01;
/// Weights that are multiplied to find that number: a tenth of a second.
const PATIENCE: usize = 100_000_000;

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

/// What was tried, and where.
pub(super) struct Tried {
    pub error_at_depth: Option<f64>,
    pub suggestions: Vec<SuggestionJson>,
    pub note: String,
    pub dropped: usize,
    /// Where it was a part.
    pub examined: Option<Examined>,
}

impl Tried {
    /// On all states; `generated` when features come from a family.
    pub fn here(tried: &Suggestions, generated: bool, config: &LayerConfig) -> Self {
        let note = match config.trained {
            Some(_) => "the parameters are trained: no changes are tried".into(),
            None => note(tried, config.certificate.num_layers),
        };
        Self {
            error_at_depth: tried.error_at_depth,
            suggestions: tried.found.iter().map(|s| describe(s, generated)).collect(),
            note,
            dropped: tried.dropped,
            examined: None,
        }
    }

    /// On a part of so many states, of which there is a certificate.
    pub fn of_part(part: Report, certificate: &Certificate, states: usize) -> Self {
        let examined = Examined {
            states,
            route: Route::Kept,
            reason: format!("the weights of {states} states fit into memory"),
            suggestions_from: part.subsample,
        };
        let from = examined.part_in_words().map_or_else(String::new, |part| format!("; {part}"));
        Self {
            error_at_depth: relative_error(certificate),
            suggestions: part.suggestions,
            note: part.suggestions_note + &from,
            dropped: part.suggestions_dropped,
            examined: Some(examined),
        }
    }
}

/// The error after the layers asked for, as a share of the largest value.
pub(super) fn relative_error(certificate: &Certificate) -> Option<f64> {
    let found = certificate.fixed_point.as_ref()?;
    Some(found.error / found.largest_value).filter(|share| share.is_finite())
}

/// A suggestion in words and options; `generated` when features come from a family.
fn describe(suggestion: &Suggestion, generated: bool) -> SuggestionJson {
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
        Change::Tabular => (
            format!("the tabular kernel, every state for itself, and step size {alpha}"),
            format!("--kernel tabular --step-size {alpha}"),
        ),
        other => (format!("{other:?} and step size {alpha}"), String::new()),
    };
    SuggestionJson { change, options, found: suggestion.clone() }
}

/// Whether anything helps at the depth asked for.
fn note(tried: &Suggestions, num_layers: usize) -> String {
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

/// What to do: how many layers come near to the limit where there is one, else the change that helps most.
pub(super) fn advice(
    operator: &StateOperator,
    certificate: &Certificate,
    config: &LayerConfig,
    Tried { suggestions, examined, .. }: &Tried,
) -> String {
    let num_layers = config.certificate.num_layers;
    if !certificate.status.converges() {
        return if config.has_options() {
            instead(num_layers, suggestions, examined.is_some())
        } else {
            NOT_HERE.into()
        };
    }
    match layers_to(operator, certificate) {
        Some((enough, _)) if enough <= num_layers as u64 => {
            format!(
                "{num_layers} layers are enough: after {enough} all values are within 1 % of the largest of their limit"
            )
        }
        Some((enough, true)) => {
            format!("{} bring all values within 1 % of the largest of their limit", config.depth(enough))
        }
        Some((enough, false)) => format!(
            "about {enough:.1e} layers, by the rate, bring all values within 1 % of the largest of their limit{}",
            suggestions.first().map_or_else(String::new, |s| format!("; {} is faster", s.change)),
            enough = enough as f64
        ),
        None if config.has_options() => FAR.into(),
        None => "values are near their limit only after more layers than can be counted".into(),
    }
}

/// Of a checkpoint neither the depth nor anything else can be chosen.
const NOT_HERE: &str =
    "the checkpoint is what it is: do not use its values here, or hold them against values that are known";

impl LayerConfig {
    /// A number of layers in words, and how to ask for them where that is possible.
    pub(super) fn depth(&self, enough: u64) -> String {
        let how = if self.has_options() {
            format!("--layers {enough}")
        } else {
            "more than the checkpoint has".into()
        };
        format!("{enough} layers ({how})")
    }
}

/// Where a limit is too far away.
pub(super) const FAR: &str = "values are near their limit only after more layers than can be counted: choose a depth on held-out episodes \
                              with `ictd evaluate`";

/// The change that helps most, where layers do not converge.
pub(super) fn instead(num_layers: usize, suggestions: &[SuggestionJson], on_a_part: bool) -> String {
    let tried = if on_a_part { ", as tried on a part of the states" } else { "" };
    suggestions.first().map_or_else(
        || "keep depth small, and choose it on held-out episodes with `ictd evaluate`".into(),
        |s| {
            let options = if s.options.is_empty() { String::new() } else { format!(" ({})", s.options) };
            let error = s.found.error_at_depth.map_or_else(String::new, |error| {
                format!(", with an error of {error:.1e} of the largest value after {num_layers} layers")
            });
            format!("try {}{options}: {} then{error}{tried}", s.change, s.found.status.as_str())
        },
    )
}

/// The number of layers after which values are near their limit, and whether that was seen or follows from the rate.
fn layers_to(operator: &StateOperator, certificate: &Certificate) -> Option<(u64, bool)> {
    let limit = operator.infinite_depth().ok()?;
    let scale = apart(&limit, &vec![0.0; limit.len()]);
    let statistics = operator.statistics();
    let patience = PATIENCE / (statistics.num_groups() * statistics.num_source_groups()).max(1);
    let mut tried = layers(operator, certificate.step_size).take(patience.max(100));
    if let Some(seen) = tried.position(|v| apart(&v, &limit) <= NEAR * scale) {
        return Some((seen as u64, true));
    }
    layers_by_rate(certificate).map(|needed| (needed, false))
}

/// The number of layers after which values are near their limit by the spectral radius; `None` where that says nothing.
pub(super) fn layers_by_rate(certificate: &Certificate) -> Option<u64> {
    let rate = certificate.contraction.spectral_radius.filter(|rate| *rate < 1.0)?;
    // Beyond 2⁵³ a count of layers is no number.
    Some((NEAR.ln() / rate.ln()).ceil()).filter(|needed| *needed < 9e15).map(|needed| needed as u64)
}
