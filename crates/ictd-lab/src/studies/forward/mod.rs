//! The forward pass on a context of the user's own.

mod construction;
mod judge;
mod limit;
mod options;
mod show;

pub use construction::{ConstructionOptions, ConstructionReport};
pub use options::{Options, StepSizes};

use ictd::context::{Context, ContextStatistics, Role};
use ictd::evaluate::{Judgement, Level, Limit, PassEvidence};
use ictd::kernel::{Effort, Precision, Route, Similarity, weights_memory};
use ictd::prompt::TokenMatrix;
use ictd::transformer::{Approximation, Evaluator, ForwardError, LayerValues, Parameters, Path, Transformer};
use serde::Serialize;

use crate::memory::{self, DOUBLE};
use crate::studies::attention::Weights;
use crate::{LabError, Progress, Watched};
use limit::{FixedPoint, Solution, check_fixed_point, why_unknown};
use show::{DRAWN, SHOWN};

/// Values, targets and, on request, token matrices and the infinite-depth limit; and whether to use them.
#[derive(Clone, Debug, Serialize)]
pub struct ForwardReport {
    judgement: Level,
    reasons: Vec<String>,
    /// How weights were computed.
    route: Taken,
    /// What is known about the values where they are not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    approximation: Option<Approximation>,
    /// The first column that values are given of, where not of all.
    #[serde(skip_serializing_if = "is_zero")]
    first_column: usize,
    /// Row l: the value estimate of every column after l layers.
    values: Vec<Vec<f64>>,
    /// Row l: the target memory of every column after l layers.
    targets: Vec<Vec<f64>>,
    /// Every layer's full token matrix, row by row.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Vec<Vec<Vec<f64>>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    row_names: Vec<String>,
    #[serde(flatten)]
    attention: Option<Weights>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed_point: Option<FixedPoint>,
    #[serde(skip)]
    judged: Judgement,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// How weights were computed, and why so.
#[derive(Clone, Debug, Serialize)]
struct Taken {
    name: &'static str,
    precision: Precision,
    reason: String,
}

impl Taken {
    fn by(evaluator: &Evaluator, path: Path, asked: &Asked) -> Self {
        let (route, reason) = evaluator.route();
        let (name, reason) = match path {
            Path::Tokens => ("tokens", "the parameters read or write more of the tokens than values"),
            _ if reason.is_empty() => (route.as_str(), "no layer needs any"),
            _ => (route.as_str(), reason),
        };
        let own = match route {
            Route::Pivots if asked.tolerance.is_none() => {
                ", chosen because exact layers would take over ten seconds (--precision double takes them)"
            }
            _ => "",
        };
        Self { name, precision: evaluator.precision(), reason: format!("{reason}{own}") }
    }
}

/// How weights between many distinct states are to be computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Exactly, in this arithmetic.
    pub precision: Option<Precision>,
    /// Through pivots, with at most this error of a column.
    pub tolerance: Option<f64>,
    /// Gigabytes that pivots may take.
    pub memory: Option<f64>,
}

impl Asked {
    fn effort(&self, transformer: &Transformer, statistics: &ContextStatistics) -> Result<Effort, LabError> {
        let Self { precision, tolerance, memory } = *self;
        // Negated, so that NaN is refused.
        if let Some(tolerance) = tolerance.filter(|t| !(*t > 0.0 && *t < 1.0)) {
            return Err(LabError::value("tolerance", tolerance, "a number > 0 and < 1"));
        }
        if let Some(memory) = memory.filter(|gigabytes| !(*gigabytes > 0.0)) {
            return Err(LabError::value("memory", memory, "a number of gigabytes > 0"));
        }
        let (states, d) = (statistics.num_groups(), statistics.feature_dim());
        let automatic = Effort::automatic(states, d, transformer.num_layers());
        let exact = precision.map(|precision| Effort { precision, ..Effort::default() });
        let mut effort = exact.unwrap_or(automatic);
        effort.tolerance = tolerance.or(effort.tolerance);
        effort.memory = memory.map_or(memory::limit(), |gigabytes| 1e9 * gigabytes);
        Ok(effort)
    }
}

/// What is wanted of a forward pass besides its values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// How weights are computed.
    pub asked: Asked,
    /// The values of the queries only; of the last column where there are none.
    pub last: bool,
    /// Every layer's token matrix.
    pub tokens: bool,
    /// The attention weights.
    pub attention: bool,
    /// The values of infinitely many layers.
    pub fixed_point: bool,
    /// That it is printed as JSON, not as text.
    pub json: bool,
    /// That it is written to files.
    pub files: bool,
    /// That step size and depth are those of a checkpoint, so that judgements do not advise others.
    pub is_fixed: bool,
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
    // With mixing a column weighs its own message, so that layers run on columns whether their states repeat or not.
    let by_column = (transformer.config().attention.diagonal_mix() != 0.0)
        .then(|| ContextStatistics::per_column(context));
    let run_on = by_column.as_ref().unwrap_or(&statistics);
    let effort = wanted.asked.effort(transformer, run_on)?;
    // Nothing is approximated unasked where the limit rests on it.
    let exact = Effort { tolerance: wanted.asked.tolerance, ..effort };
    if with_fixed_point {
        check_fixed_point(transformer, &statistics, &exact, progress)?;
    }
    if wanted.attention {
        Weights::admit(context)?;
    }
    let why_unknown = why_unknown(transformer, &statistics, with_fixed_point);
    let solved = if why_unknown.is_none() { statistics.num_groups() } else { 0 };
    let weights = weights_memory(&transformer.config().attention, run_on, &effort, transformer.num_layers());
    drop(by_column);
    let bytes = memory(transformer, context, wanted, solved) + weights;
    memory::admit(bytes, "--layers, or the number of columns")?;
    progress.begin("forward", "layers", transformer.num_layers() as u64)?;
    let mut evaluator = Evaluator::with(effort);
    let (values, overflow) = finite_values(&mut evaluator, transformer, context, progress)?;
    let layers = 0..=values.num_layers();
    let first_column = if wanted.last { context.num_columns() - context.num_queries().max(1) } else { 0 };
    let (mut tokens, mut row_names) = (None, Vec::new());
    if with_tokens {
        progress.begin("forward: token matrices", "", 0)?;
        let z = cut(transformer, values.num_layers())?.tokens(context)?;
        row_names = (0..z[0].matrix().num_rows()).map(|i| z[0].row_name(i)).collect();
        let rows = |z: &TokenMatrix| z.matrix().rows().map(|row| row[first_column..].to_vec()).collect();
        tokens = Some(z.iter().map(rows).collect());
    }
    let attention = match wanted.attention {
        true => Some(Weights::of_context(&cut(transformer, values.num_layers())?, context)?),
        false => None,
    };
    let mut by_layer: Vec<Vec<f64>> = layers.clone().map(|l| values.values(l)).collect();
    progress.begin("forward: limit of infinitely many layers", "", 0)?;
    let solution = match why_unknown {
        Some(why) => Err(why),
        None => match Solution::of(transformer, &statistics, context, &exact, progress) {
            Err(error) if with_fixed_point => return Err(error),
            found => found.map_err(|error| error.to_string()),
        },
    };
    progress.check()?;
    let mut judged = PassEvidence {
        context,
        statistics: &statistics,
        gamma: transformer.config().gamma,
        layers: &by_layer,
        overflow,
        limit: solution.as_ref().map_or_else(|why| Limit::Unknown(why.clone()), Solution::limit),
        effective: solution.as_ref().map_or(&[], |solution| &solution.effective),
        approximation: evaluator.approximation(),
        is_fixed: wanted.is_fixed,
    }
    .judge();
    if let Some(text) = blank(transformer, context) {
        judged = judged.and(Level::Caution, text);
    }
    let mut fixed_point = None;
    match solution.ok().filter(|_| with_fixed_point).map(Solution::fixed_point) {
        // Layers have values all the same.
        Some(Err(error)) => judged = judged.and(Level::Refuse, format!("the limit is not known: {error}")),
        found => fixed_point = found.transpose()?,
    }
    if let Some(fixed) = &mut fixed_point {
        fixed.values.drain(..first_column);
    }
    by_layer.iter_mut().for_each(|row| drop(row.drain(..first_column)));
    let target = |l: usize| (first_column..context.num_columns()).map(|j| values.target(l, j)).collect();
    Ok(ForwardReport {
        judgement: judged.level,
        reasons: judged.reasons.iter().map(|reason| reason.text.clone()).collect(),
        route: Taken::by(&evaluator, values.path(), &wanted.asked),
        approximation: evaluator.approximation(),
        first_column,
        values: by_layer,
        targets: layers.map(target).collect(),
        tokens,
        row_names,
        attention,
        fixed_point,
        judged,
    })
}

/// What to say of values that are 0 whatever the rewards are: those of states whose features are all 0, where such a score has no weight.
fn blank(transformer: &Transformer, context: &Context) -> Option<String> {
    let config = transformer.config();
    let kernel = config.attention.kernel();
    let mut weight = [0.0];
    kernel.weigh(&mut weight);
    let scores = kernel.similarity() == Similarity::InnerProduct && weight == [0.0];
    // With mixing a source takes from itself.
    if !scores || config.parameters != Parameters::ThetaStar || config.attention.diagonal_mix() != 0.0 {
        return None;
    }
    let roles = context.roles();
    let states = (0..roles.len()).filter(|&j| roles[j] != Role::Terminal);
    let is_blank = |&j: &usize| context.features_of(j).iter().all(|&x| x == 0.0);
    let blank = states.clone().filter(is_blank).count();
    let text = format!(
        "{blank} of {} values are 0 whatever the rewards are: features of their states are all 0, which this kernel gives no weight",
        states.count()
    );
    (blank > 0 && config.num_layers > 0).then_some(text)
}

/// The values of all layers up to the first that overflows, and which that is.
fn finite_values(
    evaluator: &mut Evaluator,
    transformer: &Transformer,
    context: &Context,
    progress: &Progress,
) -> Result<(LayerValues, Option<usize>), LabError> {
    let watched = Watched { progress, prefix: "forward" };
    let mut run = |transformer: &Transformer| evaluator.evaluate_watched(transformer, context, &watched);
    Ok(match run(transformer) {
        Err(ForwardError::Diverged { layer }) => (run(&cut(transformer, layer - 1)?)?, Some(layer)),
        found => (found?, None),
    })
}

/// The first layers of a Transformer.
pub(crate) fn cut(transformer: &Transformer, num_layers: usize) -> Result<Transformer, LabError> {
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
    let rows = context.feature_dim() as f64 + 3.0;
    let tokens = if wanted.tokens { 60.0 * rows } else { 0.0 };
    // Tokens and attention write V and A out, with what is made of them.
    let matrices = if wanted.tokens || wanted.attention { 6.0 * DOUBLE * rows * rows } else { 0.0 };
    let given = if wanted.last { context.num_queries().max(1) as f64 } else { columns };
    let printed = if wanted.json { 92.0 * given } else { 68.0 * (given.min(SHOWN as f64) + 3.0) };
    let files = if wanted.files { 92.0 * given + 110.0 * given.min(DRAWN as f64) } else { 0.0 };
    layers * (columns * (2.0 * DOUBLE + tokens) + DOUBLE * given + printed.max(files))
        + columns * (2.0 * DOUBLE * context.feature_dim() as f64 + 60.0)
        + matrices
        + limit::memory(solved_states)
}

impl ForwardReport {
    /// Whether to use the values, and why.
    pub fn judgement(&self) -> &Judgement {
        &self.judged
    }
}
