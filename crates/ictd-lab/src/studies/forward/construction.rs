//! A construction in linear attention on a context of the user's own.

use ictd::construction::{Algorithm, Construction, ConstructionConfig, ConstructionError};
use ictd::context::Context;
use ictd::evaluate::{Judgement, Level, Reason};
use ictd::statistics::largest;
use ictd::transformer::ForwardError;
use serde::Serialize;

use super::StepSizes;
use super::show::{number, tokens_records, tokens_text};
use crate::figure::{Axis, Chart, Scene, Series, Width, style::PALETTE};
use crate::memory::{self, DOUBLE};
use crate::report::{Records, Report, Table, wrapped};
use crate::{LabError, Progress, Watched};

/// λ where none is given: that of the verification in arXiv 2405.13861.
const USUAL_LAMBDA: f64 = 0.5;
/// Largest number of features up to which the factor of errors is looked for: it takes a fraction of a second.
const JUDGED_FEATURES: usize = 300;
/// A factor of errors that is no further from 1 is 1 but for rounding.
const ROUNDING: f64 = 1e-9;
/// A value that is no further from its limit, and that the last layer changes no more, as shares of the limit, is as good as there.
const NEAR: f64 = 0.01;

/// What may be said about a construction beside its context.
///
/// | option | default | range |
/// |---|---|---|
/// | `lambda` | 0.5 for td-lambda | \[0, 1\], for td-lambda alone |
/// | `layers` | 15 | ≥ 0 |
/// | `gamma` | 0.9, or 1 for average-reward | \[0, 1), or 1 for average-reward |
/// | `step_size` | 1 | a finite number, or one for each layer |
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the table above")]
pub struct ConstructionOptions {
    pub algorithm: Algorithm,
    pub lambda: Option<f64>,
    pub layers: Option<usize>,
    pub gamma: Option<f64>,
    pub step_size: Option<StepSizes>,
    /// Whether every token matrix is wanted.
    pub tokens: bool,
}

impl ConstructionOptions {
    /// The construction that the options describe.
    pub fn construction(&self) -> Result<Construction, LabError> {
        let algorithm = self.algorithm;
        let usual = ConstructionConfig::new(algorithm, self.layers.unwrap_or(15));
        let lambda = match (self.lambda, algorithm) {
            (lambda, Algorithm::TdLambda) => lambda.unwrap_or(USUAL_LAMBDA),
            // Refused even where it says what is so.
            (Some(found), _) => return Err(ConstructionError::NoTraces { algorithm, found }.into()),
            (None, _) => 0.0,
        };
        let step_sizes = self.step_size.as_ref().map_or(vec![1.0], |sizes| sizes.list().to_vec());
        let gamma = self.gamma.unwrap_or(usual.gamma);
        Ok(ConstructionConfig { lambda, gamma, step_sizes, ..usual }.check()?)
    }

    /// Runs it.
    pub fn report(&self, context: &Context, progress: &Progress) -> Result<ConstructionReport, LabError> {
        let construction = self.construction()?;
        construction.check_context(context)?;
        memory::admit(self.memory(&construction, context), "--layers, or the number of rows")?;
        let watched = Watched { progress, prefix: "forward" };
        let layers = construction.num_layers() as u64;
        progress.begin("forward", "layers", layers)?;
        let (construction, query_values, overflow) =
            match construction.query_values_watched(context, &watched) {
                Err(ConstructionError::Forward(ForwardError::Diverged { layer })) => {
                    let config = construction.config();
                    let step_sizes = config.step_sizes.iter().copied().take((layer - 1).max(1)).collect();
                    let config = ConstructionConfig { num_layers: layer - 1, step_sizes, ..config.clone() };
                    let cut = config.check()?;
                    let values = cut.query_values(context)?;
                    (cut, values, Some(layer))
                }
                found => (construction, found?, None),
            };
        let is_judged = overflow.is_none()
            && construction.config().step_sizes.len() == 1
            && context.feature_dim() <= JUDGED_FEATURES;
        // Numbers that overflow have no factor, and values may be finite all the same.
        let spectral_radius =
            if is_judged { construction.spectral_radius(context).ok().flatten() } else { None };
        // Step sizes change how fast the limit is approached, not where it is.
        let limit = if context.feature_dim() <= JUDGED_FEATURES && overflow.is_none() {
            construction.limit(context).ok()
        } else {
            None
        };
        let judged = judge(&query_values, overflow, spectral_radius, limit);
        let mut tokens = None;
        if self.tokens {
            progress.begin("forward: token matrices", "layers", layers)?;
            let rows = |z: &ictd::Matrix| z.rows().map(<[f64]>::to_vec).collect();
            let found = construction.tokens_watched(context, &watched)?;
            tokens = Some(found.iter().map(rows).collect());
        }
        let config = construction.config();
        Ok(ConstructionReport {
            query_values,
            construction: self.algorithm,
            lambda: (self.algorithm == Algorithm::TdLambda).then_some(config.lambda),
            gamma: config.gamma,
            step_sizes: config.step_sizes.clone(),
            judgement: judged.level,
            reasons: judged.reasons.iter().map(|reason| reason.text.clone()).collect(),
            spectral_radius,
            limit: limit.filter(|_| spectral_radius.is_none_or(|radius| radius < 1.0 - ROUNDING)),
            row_names: if tokens.is_some() {
                construction.row_names(context.feature_dim())
            } else {
                Vec::new()
            },
            tokens,
            judged,
        })
    }

    /// Bytes: what the fast path keeps of transitions, and with tokens those of all layers as numbers and text, the mask and attention.
    fn memory(&self, construction: &Construction, context: &Context) -> f64 {
        let [n, d, layers] = [context.num_transitions(), context.feature_dim(), construction.num_layers()]
            .map(|size| size as f64 + 1.0);
        let columns = if self.algorithm == Algorithm::ChainOfThought { n + layers } else { n };
        let tokens = layers * 3.0 * d * columns * (DOUBLE + 120.0) + 4.0 * DOUBLE * columns * columns;
        DOUBLE * (3.0 * n * d + 4.0 * d * d) + 300.0 * layers + if self.tokens { tokens } else { 0.0 }
    }
}

/// The values of the query layer by layer, on request every token matrix, and whether to use them.
#[derive(Clone, Debug, Serialize)]
pub struct ConstructionReport {
    /// Entry l: the value of the query after l layers.
    query_values: Vec<f64>,
    construction: Algorithm,
    #[serde(skip_serializing_if = "Option::is_none")]
    lambda: Option<f64>,
    gamma: f64,
    step_sizes: Vec<f64>,
    judgement: Level,
    reasons: Vec<String>,
    /// What errors of the weights are multiplied by in the long run, per layer, where all layers are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    spectral_radius: Option<f64>,
    /// The value that layers lead to, where they lead anywhere and that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<f64>,
    /// Every layer's full token matrix, row by row.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Vec<Vec<Vec<f64>>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    row_names: Vec<String>,
    #[serde(skip)]
    judged: Judgement,
}

/// Whether to use the values: not where they overflow, nor where layers change them more and more and have no limit; with care where they are
/// away from their limit, or it is not known.
fn judge(values: &[f64], overflow: Option<usize>, radius: Option<f64>, limit: Option<f64>) -> Judgement {
    let depth = values.len() - 1;
    let say = |level, text| Judgement::of(vec![Reason { level, text }]);
    if let Some(layer) = overflow {
        return say(
            Level::Refuse,
            format!(
                "values overflow in layer {layer}: layers diverge; lower the step size or the depth (values are given up to layer {depth})"
            ),
        );
    }
    if depth == 0 {
        return say(Level::Caution, "without layers all values are 0".into());
    }
    let changes: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let change = changes[depth - 1];
    let last = format!("the last layer changes the value by {change:.1e}");
    match (radius, limit) {
        (Some(radius), _) if radius > 1.0 + ROUNDING => {
            // The last quarter of the layers against the one before, so that swinging values do not hide it.
            let span = (depth / 4).max(1);
            let late = largest(changes.iter().rev().take(span).copied());
            let before = largest(changes.iter().rev().skip(span).take(span).copied());
            if depth > span && late > before {
                let text = format!(
                    "values diverge: the last of {depth} layers change the value by up to {late:.1e}, those before by {before:.1e}, and in the \
                     long run a layer multiplies errors by {radius:.4}; lower the step size or the depth"
                );
                return say(Level::Refuse, text);
            }
            let text = format!(
                "there is no limit: in the long run a layer multiplies errors by {radius:.4}; {last}"
            );
            say(Level::Caution, text)
        }
        (Some(radius), _) if radius >= 1.0 - ROUNDING => say(
            Level::Caution,
            format!(
                "a layer multiplies some errors by 1, which no depth mends: the step size is 0, or transitions leave a value open; {last}"
            ),
        ),
        (radius, Some(limit)) => {
            let away = (values[depth] - limit).abs();
            let near = |distance: f64| distance <= NEAR * limit.abs();
            let level = if near(away) && near(change) { Level::Trust } else { Level::Caution };
            let pace = radius.map_or_else(String::new, |radius| {
                format!("; in the long run a layer multiplies errors by {radius:.4}")
            });
            say(level, format!("the value is {away:.1e} from its limit {}{pace}; {last}", number(&limit)))
        }
        _ => say(
            Level::Caution,
            format!(
                "where layers lead is not known: the context leaves it open, features are many, or numbers are too large; {last}"
            ),
        ),
    }
}

/// A row of `values.csv`.
#[derive(Serialize)]
struct Row {
    layer: usize,
    value: f64,
}

impl ConstructionReport {
    /// Whether to use the values, and why.
    pub fn judgement(&self) -> &Judgement {
        &self.judged
    }
}

impl Report for ConstructionReport {
    fn text(&self, width: usize) -> String {
        let rows = self.query_values.iter().enumerate().map(|(l, value)| vec![l.to_string(), number(value)]);
        let lambda = self.lambda.map_or_else(String::new, |lambda| format!(", λ = {lambda}"));
        let steps: Vec<String> = self.step_sizes.iter().map(f64::to_string).collect();
        let head =
            format!("{}: γ = {}{lambda}, step size {}\n\n", self.construction, self.gamma, steps.join(","));
        wrapped(&head, width)
            + &Table::new(&["layer", "v[query]"], rows).text(width)
            + &tokens_text(self.tokens.iter().flatten(), &self.row_names, width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        let points = self.query_values.iter().enumerate().map(|(l, value)| (l as f64, *value)).collect();
        let series = Series::new(self.construction.as_str(), PALETTE[0], points);
        let (x, y) = (Axis::linear("layer *l*"), Axis::linear("value of the query"));
        let chart = Chart::new("Value of the query, layer by layer", x, y, vec![series]);
        vec![("values".into(), chart.scene(Width::Column))]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        let rows = self.query_values.iter().enumerate().map(|(layer, &value)| Row { layer, value });
        let mut tables = vec![Records::of("values", rows)?];
        if let Some(tokens) = &self.tokens {
            tables.push(tokens_records(tokens, &self.row_names)?);
        }
        Ok(tables)
    }

    fn json_name(&self) -> Option<&str> {
        Some("forward")
    }
}
