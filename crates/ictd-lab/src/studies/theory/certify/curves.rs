//! Errors over depth, as they are drawn.

use ictd::operator::StateOperator;
use ictd::theory::{CertificateConfig, Change, Suggestion, SuggestionConfig};

use crate::studies::theory::{apart, layers};

/// Layers drawn at least, so that slow growth shows.
const DRAWN_LAYERS: usize = 200;
/// Curves end where errors exceed this multiple of the values.
const DRAWN_LIMIT: f64 = 1e6;

/// The error to infinite depth, layer by layer, as a share of the largest value.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub name: String,
    pub errors: Vec<f64>,
}

/// The error to infinite depth after 0, …, `num_layers` layers, as a share of the largest value, as far as it is drawn.
/// `None` where there is no limit to be near to.
fn errors_over_depth(operator: &StateOperator, step_size: f64, num_layers: usize) -> Option<Vec<f64>> {
    let limit = operator.infinite_depth().ok()?;
    let scale = limit.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let errors = layers(operator, step_size).take(num_layers + 1).map(|v| apart(&v, &limit) / scale);
    // Below 1e-16 errors are rounding.
    Some(errors.take_while(|e| *e <= DRAWN_LIMIT).map(|e| e.max(1e-16)).collect())
}

/// What depth does as it is, and with the first suggestion of every kind.
pub(super) fn curves(
    operator: &StateOperator,
    config: CertificateConfig,
    suggestions: &[Suggestion],
    search: &SuggestionConfig<'_>,
) -> Vec<Curve> {
    let mut cases = vec![("as it is".to_owned(), operator.clone(), config.step_size)];
    let kind = |s: &Suggestion| std::mem::discriminant(&s.change);
    for (k, suggestion) in suggestions.iter().enumerate() {
        if suggestions[..k].iter().any(|s| kind(s) == kind(suggestion)) {
            continue;
        }
        // It could be made when it was tried.
        if let Ok(Some(changed)) = suggestion.change.apply(operator, search) {
            let name = match suggestion.change {
                Change::StepSize(alpha) => format!("step {alpha}"),
                Change::Temperature(t) => format!("τ = {t}"),
                Change::UnitFeatures => "unit norm".to_owned(),
                Change::UnitFeaturesAndTemperature(t) => format!("unit norm, τ = {t}"),
                Change::StepsByMass => "step per state".to_owned(),
                Change::Tabular => "tabular".to_owned(),
                other => format!("{other:?}"),
            };
            cases.push((name, changed, suggestion.step_size));
        }
    }
    let num_layers = config.num_layers.clamp(DRAWN_LAYERS, 5 * DRAWN_LAYERS);
    let curve = |(name, operator, step_size): (String, StateOperator, f64)| {
        Some(Curve { name, errors: errors_over_depth(&operator, step_size, num_layers)? })
    };
    cases.into_iter().filter_map(curve).collect()
}
