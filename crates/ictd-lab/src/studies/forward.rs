//! The forward pass on a context of the user's own.

use ictd::context::{Context, ContextStatistics, Role};
use ictd::evaluate::{Judgement, Level, Limit, PassEvidence};
use ictd::operator::StateOperator;
use ictd::theory::{Certificate, Spectrum};
use ictd::transformer::{Evaluator, ForwardError, LayerValues, Parameters, Transformer};
use serde::Serialize;

use crate::figure::{Axis, Chart, Scene, Series, Width, style::PALETTE};
use crate::memory::{self, DOUBLE};
use crate::report::{Records, Report, Table, wrapped};
use crate::{LabError, Progress};

/// Largest number of distinct states of the fixed point: its system is dense.
const MAX_STATES: usize = 5000;
/// Largest number of distinct states whose fixed point is looked for unasked, to judge values: it takes a fraction of a second.
const JUDGED_STATES: usize = 500;
/// Columns drawn in the figure: the last ones, which hold the queries.
const DRAWN: usize = 6;

/// Values, targets and, on request, token matrices and the infinite-depth limit; and whether to use them.
#[derive(Clone, Debug, Serialize)]
pub struct ForwardReport {
    judgement: Level,
    reasons: Vec<String>,
    /// Row l: the value estimate of every column after l layers.
    values: Vec<Vec<f64>>,
    /// Row l: the target memory of every column after l layers.
    targets: Vec<Vec<f64>>,
    /// Every layer's full token matrix, row by row.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Vec<Vec<Vec<f64>>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    row_names: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed_point: Option<FixedPoint>,
    #[serde(skip)]
    judged: Judgement,
}

/// The infinite-depth values and whether the iteration reaches them.
#[derive(Clone, Debug, Serialize)]
struct FixedPoint {
    values: Vec<f64>,
    /// Factor by which TD errors shrink per layer in the long run, at the first layer's step size; absent where it could not be
    /// found.
    spectral_radius: Option<f64>,
    /// Whether layers with that step size reach the values: what a certificate says, so not where rounding decides.
    converges: bool,
    /// The certificate's status: `certified`, `estimated`, `refused` or `undecided`.
    status: &'static str,
}

/// A row of `values.csv`.
#[derive(Serialize)]
struct Cell {
    layer: usize,
    column: usize,
    value: f64,
    target: f64,
}

/// A row of `tokens.csv`.
#[derive(Serialize)]
struct Token<'a> {
    layer: usize,
    row: &'a str,
    column: usize,
    value: f64,
}

/// What is wanted of a forward pass besides its values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Every layer's token matrix.
    pub tokens: bool,
    /// The values of infinitely many layers.
    pub fixed_point: bool,
    /// That it is printed as JSON, not as text.
    pub json: bool,
    /// That it is written to files.
    pub files: bool,
}

/// Runs the forward pass.
pub fn report(
    transformer: &Transformer,
    context: &Context,
    wanted: Wanted,
    progress: &Progress,
) -> Result<ForwardReport, LabError> {
    let Wanted { tokens: with_tokens, fixed_point: with_fixed_point, .. } = wanted;
    let statistics = ContextStatistics::per_state(context);
    if with_fixed_point {
        check_fixed_point(transformer, &statistics)?;
    }
    let why_unknown = why_unknown(transformer, &statistics, with_fixed_point);
    let solved = if why_unknown.is_none() { statistics.num_groups() } else { 0 };
    memory::admit(memory(transformer, context, wanted, solved), "--layers, or the number of columns")?;
    progress.begin("forward", "layers", transformer.num_layers() as u64)?;
    let (values, overflow) = finite_values(transformer, context, progress)?;
    let layers = 0..=values.num_layers();
    let (mut tokens, mut row_names) = (None, Vec::new());
    if with_tokens {
        progress.begin("forward: token matrices", "", 0)?;
        let z = cut(transformer, values.num_layers())?.tokens(context)?;
        row_names = (0..z[0].matrix().num_rows()).map(|i| z[0].row_name(i)).collect();
        tokens = Some(z.iter().map(|z| z.matrix().rows().map(<[f64]>::to_vec).collect()).collect());
    }
    let by_layer: Vec<Vec<f64>> = layers.clone().map(|l| values.values(l)).collect();
    progress.begin("forward: limit of infinitely many layers", "", 0)?;
    let solution = match why_unknown {
        Some(why) => Err(why),
        None => match Solution::of(transformer, &statistics, context) {
            Err(error) if with_fixed_point => return Err(error),
            found => found.map_err(|error| error.to_string()),
        },
    };
    progress.check()?;
    let judged = PassEvidence {
        context,
        statistics: &statistics,
        gamma: transformer.config().gamma,
        layers: &by_layer,
        overflow,
        limit: solution.as_ref().map_or_else(|why| Limit::Unknown(why.clone()), Solution::limit),
        effective: solution.as_ref().map_or(&[], |solution| &solution.effective),
    }
    .judge();
    let fixed_point = solution.ok().filter(|_| with_fixed_point).map(Solution::fixed_point).transpose()?;
    Ok(ForwardReport {
        judgement: judged.level,
        reasons: judged.reasons.iter().map(|reason| reason.text.clone()).collect(),
        values: by_layer,
        targets: layers.map(|l| values.targets(l)).collect(),
        tokens,
        row_names,
        fixed_point,
        judged,
    })
}

/// The values of all layers up to the first that overflows, and which that is.
fn finite_values(
    transformer: &Transformer,
    context: &Context,
    progress: &Progress,
) -> Result<(LayerValues, Option<usize>), LabError> {
    let mut evaluator = Evaluator::default();
    let mut run = |transformer: &Transformer| evaluator.evaluate_watched(transformer, context, &());
    let found = match run(transformer) {
        Err(ForwardError::Diverged { layer }) => (run(&cut(transformer, layer - 1)?)?, Some(layer)),
        found => (found?, None),
    };
    progress.check()?;
    Ok(found)
}

/// The first layers of a Transformer.
fn cut(transformer: &Transformer, num_layers: usize) -> Result<Transformer, LabError> {
    let mut config = transformer.config().clone();
    if config.step_sizes.len() == config.num_layers {
        config.step_sizes.truncate(num_layers.max(1));
    }
    if let Parameters::PerLayer(params) = &mut config.parameters {
        params.truncate(num_layers);
    }
    config.num_layers = num_layers;
    Ok(config.check()?)
}

/// Bytes: values and targets of all layers, tokens if asked, and the largest of what is made of them: text, JSON, or records and
/// a figure.
fn memory(transformer: &Transformer, context: &Context, wanted: Wanted, solved_states: usize) -> f64 {
    let (layers, columns) = (transformer.num_layers() as f64 + 1.0, context.num_columns() as f64);
    // Numbers take 60 bytes as cells of a table or as tokens row by row, 92 as JSON or as a record, 110 as points of a curve.
    let tokens = if wanted.tokens { 60.0 * (context.feature_dim() as f64 + 3.0) } else { 0.0 };
    let printed = if wanted.json { 92.0 * columns } else { 68.0 * (columns.min(SHOWN as f64) + 3.0) };
    let files = if wanted.files { 92.0 * columns + 110.0 * columns.min(DRAWN as f64) } else { 0.0 };
    layers * (columns * (2.0 * DOUBLE + tokens) + printed.max(files))
        + columns * (2.0 * DOUBLE * context.feature_dim() as f64 + 60.0)
        // The weights, the equations, and what is made of them to find eigenvalues.
        + 8.0 * DOUBLE * (solved_states * solved_states) as f64
}

/// Refuses what has no fixed point, or one that is too costly.
fn check_fixed_point(transformer: &Transformer, statistics: &ContextStatistics) -> Result<(), LabError> {
    if transformer.config().parameters != Parameters::ThetaStar {
        return Err(LabError::refused("fixed-point", "expected theta_*, found --params"));
    }
    let num_states = statistics.num_groups();
    if num_states > MAX_STATES {
        let problem = format!("the context has {num_states} distinct states, expected at most {MAX_STATES}");
        return Err(LabError::refused("fixed-point", problem));
    }
    Ok(())
}

/// Why the limit is not looked for; `None` where it is.
fn why_unknown(
    transformer: &Transformer,
    statistics: &ContextStatistics,
    with_fixed_point: bool,
) -> Option<String> {
    let (config, states) = (transformer.config(), statistics.num_groups());
    if with_fixed_point {
        None
    } else if config.parameters != Parameters::ThetaStar {
        Some("it is looked for without --params only".into())
    } else if config.attention.diagonal_mix() != 0.0 {
        Some("it is looked for without diagonal mixing only".into())
    } else if states > JUDGED_STATES {
        let more = if states <= MAX_STATES { ", --fixed-point does so for more" } else { "" };
        Some(format!("it is looked for up to {JUDGED_STATES} distinct states and there are {states}{more}"))
    } else {
        None
    }
}

/// What is known of the layers of theta_* on a context, however many they are.
struct Solution {
    certificate: Result<Certificate, LabError>,
    /// The values of infinite depth, column by column.
    values: Result<Vec<f64>, LabError>,
    /// How many transitions the value of every source column rests on; empty for signed weights.
    effective: Vec<f64>,
}

impl Solution {
    fn of(
        transformer: &Transformer,
        statistics: &ContextStatistics,
        context: &Context,
    ) -> Result<Self, LabError> {
        let config = transformer.config();
        let operator = StateOperator::of(statistics.clone(), &config.attention, config.gamma)?;
        let by_column = |by_state: Vec<f64>| -> Vec<f64> {
            let value = |j| statistics.group_of(j).map_or(0.0, |u| by_state[u]);
            (0..context.num_columns()).map(value).collect()
        };
        let effective = if config.attention.kernel().linear_scale().is_some() {
            Vec::new()
        } else {
            let of_states = (0..statistics.num_groups()).map(|u| operator.effective_transitions(u)).collect();
            let columns = by_column(of_states).into_iter().zip(context.roles());
            columns.filter(|(_, role)| **role == Role::Source).map(|(ess, _)| ess).collect()
        };
        Ok(Self {
            certificate: Certificate::verdict(&operator, config.step_sizes[0]).map_err(Into::into),
            values: operator.infinite_depth().map(by_column).map_err(Into::into),
            effective,
        })
    }

    /// Where more layers lead.
    fn limit(&self) -> Limit<'_> {
        let certificate = match &self.certificate {
            Ok(certificate) => certificate,
            Err(error) => return Limit::Unknown(error.to_string()),
        };
        let unstable = certificate.stability.spectrum.as_ref().is_some_and(Spectrum::is_unstable);
        let too_large = certificate.steps.largest_stable.is_some_and(|limit| certificate.step_size >= limit);
        match (&self.values, certificate.contraction.spectral_radius) {
            (Ok(values), _) if certificate.status.converges() => Limit::Known(values),
            (_, Some(radius)) if (unstable || too_large) && radius >= 1.0 => Limit::Diverges(radius),
            (Err(error), _) => Limit::Unknown(error.to_string()),
            _ => Limit::Unknown("rounding decides whether layers converge".into()),
        }
    }

    fn fixed_point(self) -> Result<FixedPoint, LabError> {
        let (values, certificate) = (self.values?, self.certificate?);
        Ok(FixedPoint {
            values,
            spectral_radius: certificate.contraction.spectral_radius,
            converges: certificate.status.converges(),
            status: certificate.status.as_str(),
        })
    }
}

impl ForwardReport {
    /// Whether to use the values, and why.
    pub fn judgement(&self) -> &Judgement {
        &self.judged
    }

    /// The value estimates of the last columns, layer by layer.
    pub fn figure(&self) -> Scene {
        let columns = self.values[0].len();
        let series = (columns.saturating_sub(DRAWN)..columns).zip(PALETTE).map(|(j, color)| {
            let points = self.values.iter().enumerate().map(|(l, row)| (l as f64, row[j]));
            Series::new(format!("*v*[{j}]"), color, points.collect())
        });
        let (x, y) = (Axis::linear("layer *l*"), Axis::linear("value estimate *v*_{*l*}"));
        let chart = Chart::new("Value estimates, layer by layer", x, y, series.collect());
        let left_out = columns > DRAWN;
        let note = if left_out { format!("the last {DRAWN} of {columns} columns") } else { String::new() };
        chart.noted(note).scene(Width::Column)
    }
}

/// Columns shown in the terminal before the rest is left to --json and --out.
const SHOWN: usize = 12;

/// Six decimals for ordinary numbers, powers of ten for very large and very small ones.
fn number(x: &f64) -> String {
    if *x == 0.0 || (1e-4..1e6).contains(&x.abs()) { format!("{x:.6}") } else { format!("{x:.5e}") }
}

impl Report for ForwardReport {
    fn text(&self, width: usize) -> String {
        let columns = self.values[0].len();
        let first = columns.saturating_sub(SHOWN);
        let mut header: Vec<String> = vec!["layer".into()];
        header.extend((first..columns).map(|j| format!("v[{j}]")));
        let row = |name: String, row: &[f64]| [name].into_iter().chain(row.iter().map(number)).collect();
        let rows = self.values.iter().enumerate().map(|(l, values)| row(l.to_string(), &values[first..]));
        let mut out = Table::new(&header, rows).text(width);
        if first > 0 {
            out += &format!("(columns 0 to {} left out here; --json and --out give all)\n", first - 1);
        }
        if let Some(fixed) = &self.fixed_point {
            let last: Vec<String> = fixed.values[first..].iter().map(number).collect();
            out += &wrapped(&format!("\ninfinitely many layers: {}\n", last.join(" ")), width);
            let (radius, status) = (fixed.spectral_radius, fixed.status);
            let what = match radius {
                _ if fixed.converges => "converges to these values",
                Some(radius) if radius < 1.0 => "may not converge to them, rounding decides",
                Some(_) => "does not converge to them",
                None => "may or may not converge to them",
            };
            let radius = radius.map_or_else(|| "unknown".into(), |radius| format!("{radius:.6}"));
            out += &format!("spectral radius {radius}, {status}: the iteration {what}\n");
        }
        for (layer, z) in self.tokens.iter().flatten().enumerate() {
            out += &format!("\nZ_{layer}\n");
            let rows = z.iter().zip(&self.row_names).map(|(values, name)| row(name.clone(), values));
            let mut header: Vec<String> = vec!["row".into()];
            header.extend((0..columns).map(|j| j.to_string()));
            out += &Table::new(&header, rows).text(width);
        }
        out
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("values".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        let cells =
            self.values.iter().zip(&self.targets).enumerate().flat_map(|(layer, (values, targets))| {
                let pairs = values.iter().zip(targets).enumerate();
                pairs.map(move |(column, (&value, &target))| Cell { layer, column, value, target })
            });
        let mut tables = vec![Records::of("values", cells)?];
        if let Some(tokens) = &self.tokens {
            let cells = tokens.iter().enumerate().flat_map(|(layer, z)| {
                z.iter().zip(&self.row_names).flat_map(move |(values, row)| {
                    values.iter().enumerate().map(move |(column, &value)| Token { layer, row, column, value })
                })
            });
            tables.push(Records::of("tokens", cells)?);
        }
        Ok(tables)
    }

    fn json_name(&self) -> Option<&str> {
        Some("forward")
    }
}
