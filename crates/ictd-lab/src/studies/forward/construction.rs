//! A construction in linear attention on a context of the user's own.

use std::cmp::Ordering;

use ictd::construction::{Algorithm, Construction, ConstructionConfig, ConstructionError};
use ictd::context::Context;
use ictd::evaluate::{Judgement, Level};
use ictd::statistics::largest;
use ictd::transformer::ForwardError;
use serde::Serialize;

use super::StepSizes;
use super::judge::Evidence;
use super::show::{number, short, tokens_records, tokens_text};
use crate::figure::{Axis, Chart, Scene, Series, Width, style::PALETTE};
use crate::memory::{self, DOUBLE};
use crate::report::{Records, Report, Table, wrapped};
use crate::{LabError, Progress, Watched};

/// λ where none is given: that of the verification in arXiv 2405.13861.
const USUAL_LAMBDA: f64 = 0.5;
/// Largest number of features up to which the limit and the factor of errors are looked for: the eigenvalues of so many take a fraction of a
/// second.
const JUDGED_FEATURES: usize = 300;

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
        let config = construction.config();
        // Numbers that overflow have no factor, and values may be finite all the same.
        let is_examined = overflow.is_none() && context.feature_dim() <= JUDGED_FEATURES;
        let outlook = is_examined.then(|| construction.outlook_watched(context, &watched)).transpose()?;
        let is_one = config.step_sizes.windows(2).all(|pair| pair[0] == pair[1]);
        let n = context.num_transitions();
        let evidence = Evidence {
            values: &query_values,
            overflow,
            step_size: config.step_sizes.last().copied().unwrap_or(0.0),
            is_one,
            cut: if self.algorithm == Algorithm::MonteCarlo { cut(config.gamma, n) } else { 0.0 },
            is_biased: self.algorithm == Algorithm::ResidualGradient && is_random(context),
            outlook: outlook.as_ref(),
            num_transitions: n,
            feature_dim: context.feature_dim(),
            reward: largest(context.rewards().iter().map(|r| r.abs())),
            horizon: if config.gamma < 1.0 { 1.0 / (1.0 - config.gamma) } else { n as f64 },
            is_blank: context.features_of(n).iter().all(|&x| x == 0.0),
        };
        let (judged, limit) = (evidence.judge(), evidence.limit());
        let spectral_radius = outlook.filter(|_| is_one).and_then(|outlook| outlook.spectral_radius);
        let mut tokens = None;
        if self.tokens {
            progress.begin("forward: token matrices", "layers", layers)?;
            let rows = |z: &ictd::Matrix| z.rows().map(<[f64]>::to_vec).collect();
            let found = construction.tokens_watched(context, &watched)?;
            tokens = Some(found.iter().map(rows).collect());
        }
        let query_values = query_values.into_iter().map(Some).chain(std::iter::repeat(None));
        Ok(ConstructionReport {
            query_values: query_values.take(layers as usize + 1).collect(),
            construction: self.algorithm,
            lambda: (self.algorithm == Algorithm::TdLambda).then_some(config.lambda),
            gamma: config.gamma,
            step_sizes: config.step_sizes.clone(),
            judgement: judged.level,
            reasons: judged.reasons.iter().map(|reason| reason.text.clone()).collect(),
            spectral_radius,
            limit,
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
        DOUBLE * (6.0 * n * d + 8.0 * d * d) + 300.0 * layers + if self.tokens { tokens } else { 0.0 }
    }
}

/// How much of the weight Σ_k γ^k of a return lies beyond the end of the trajectory: the mean over i of γ^{n−i}.
fn cut(gamma: f64, n: usize) -> f64 {
    let ends = (1..=n).scan(1.0, |weight, _| {
        *weight *= gamma;
        Some(*weight)
    });
    ends.sum::<f64>() / n as f64
}

/// Whether equal states have different successors.
fn is_random(context: &Context) -> bool {
    let compare = |a: &[f64], b: &[f64]| {
        let order = a.iter().zip(b).map(|(x, y)| x.total_cmp(y)).find(|order| order.is_ne());
        order.unwrap_or(Ordering::Equal)
    };
    let state = |i: usize| context.features_of(i);
    let mut left: Vec<usize> = (0..context.num_transitions()).collect();
    left.sort_by(|&a, &b| compare(state(a), state(b)));
    left.windows(2).any(|pair| state(pair[0]) == state(pair[1]) && state(pair[0] + 1) != state(pair[1] + 1))
}

/// The values of the query layer by layer, on request every token matrix, and whether to use them.
#[derive(Clone, Debug, Serialize)]
pub struct ConstructionReport {
    /// Entry l: the value of the query after l layers; absent from the layer on in which it overflows.
    query_values: Vec<Option<f64>>,
    construction: Algorithm,
    #[serde(skip_serializing_if = "Option::is_none")]
    lambda: Option<f64>,
    gamma: f64,
    step_sizes: Vec<f64>,
    judgement: Level,
    reasons: Vec<String>,
    /// What errors of the weights that layers reach are multiplied by in the long run, per layer; absent where layers differ or it is not known.
    spectral_radius: Option<f64>,
    /// The value that layers lead to; absent where they lead nowhere, or it is not known where.
    limit: Option<f64>,
    /// Every layer's full token matrix, row by row.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Vec<Vec<Vec<f64>>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    row_names: Vec<String>,
    #[serde(skip)]
    judged: Judgement,
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

    /// Layers and values, as far as they are finite.
    fn finite(&self) -> impl Iterator<Item = (usize, f64)> {
        self.query_values.iter().copied().enumerate().filter_map(|(layer, value)| Some((layer, value?)))
    }
}

impl Report for ConstructionReport {
    fn text(&self, width: usize) -> String {
        let rows = self.finite().map(|(l, value)| vec![l.to_string(), number(&value)]);
        let lambda = self.lambda.map_or_else(String::new, |lambda| format!(", λ = {}", short(&lambda)));
        let steps: Vec<String> = self.step_sizes.iter().map(short).collect();
        let head = format!(
            "{}: γ = {}{lambda}, step size {}\n\n",
            self.construction,
            short(&self.gamma),
            steps.join(",")
        );
        wrapped(&head, width)
            + &Table::new(&["layer", "v[query]"], rows).text(width)
            + &tokens_text(self.tokens.iter().flatten(), &self.row_names, width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        let points = self.finite().map(|(l, value)| (l as f64, value)).collect();
        let series = Series::new(self.construction.as_str(), PALETTE[0], points);
        let (x, y) = (Axis::linear("layer *l*"), Axis::linear("value of the query"));
        let chart = Chart::new("Value of the query, layer by layer", x, y, vec![series]);
        vec![("values".into(), chart.scene(Width::Column))]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        let rows = self.finite().map(|(layer, value)| Row { layer, value });
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
