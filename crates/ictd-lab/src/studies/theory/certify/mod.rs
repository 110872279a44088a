//! `certify`: whether depth can be trusted on a task or a context, and what to change.

mod counts;
mod show;
mod suggestions;

pub use counts::{Counts, count};
pub use suggestions::SuggestionJson;
use suggestions::{describe, note};

use std::sync::Arc;

use ictd::context::{Context, ContextStatistics};
use ictd::kernel::{Attention, Kernel, KernelName};
use ictd::linalg::LinalgError;
use ictd::operator::{OperatorError, StateOperator};
use ictd::random::{Purpose, Stream};
use ictd::statistics::largest;
use ictd::theory::{Certificate, CertificateConfig, Change, Suggestion, SuggestionConfig};
use serde::Serialize;

use super::{Tasks, apart, layers};
use crate::Progress;
use crate::error::{LabError, check_range};
use crate::memory::{self, DOUBLE};

/// Largest number of distinct states: eigenvalues cost their cube.
const MAX_STATES: usize = 3000;
/// Layers drawn at least, so that slow growth shows.
const DRAWN_LAYERS: usize = 200;
/// Curves end where errors exceed this multiple of the values.
const DRAWN_LIMIT: f64 = 1e6;

/// How the layer is built.
#[derive(Clone, Debug)]
pub struct LayerConfig {
    /// The kernel.
    pub kernel: KernelName,
    /// Temperature τ.
    pub temperature: f64,
    /// The step size, and what is asked: at which depth, and to what tolerance.
    pub certificate: CertificateConfig,
    /// Whether a figure will be drawn, which needs the curves behind it.
    pub draw: bool,
}

impl Default for LayerConfig {
    fn default() -> Self {
        let certificate = CertificateConfig::default();
        Self { kernel: KernelName::Softmax, temperature: 1.0, certificate, draw: false }
    }
}

impl LayerConfig {
    fn attention(&self) -> Result<Attention, LabError> {
        let CertificateConfig { step_size, num_layers, tolerance } = self.certificate;
        for (name, value) in [("step-size", step_size), ("tolerance", tolerance)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(LabError::value(name, value, "a finite number > 0"));
            }
        }
        check_range("layers", num_layers, 0..=1_000_000)?;
        Ok(Attention::new(self.kernel.at(self.temperature)?, 0.0)?)
    }

    fn kernel_at(&self, temperature: f64) -> Option<Arc<dyn Kernel>> {
        // The others do not depend on a temperature in a way that changes their weights.
        let has_temperature = matches!(self.kernel, KernelName::Softmax | KernelName::Rbf | KernelName::Elu1);
        let applies = has_temperature || temperature == self.temperature;
        applies.then(|| self.kernel.at(temperature).ok()).flatten()
    }
}

/// A certificate with everything around it, as written to JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    /// The verdict and the numbers behind it.
    #[serde(flatten)]
    pub certificate: Certificate,
    subject: String,
    gamma: f64,
    n_transitions: Option<usize>,
    n_episodes: Option<usize>,
    kernel: KernelJson,
    coverage: CoverageJson,
    assumptions: [AssumptionJson; 2],
    /// Error after the layers asked for, as it is: a share of the largest value, as for suggestions.
    pub error_at_depth: Option<f64>,
    /// Changes that help: first at this depth, then in the long run, the best first.
    pub suggestions: Vec<SuggestionJson>,
    /// What the suggestions amount to.
    pub suggestions_note: String,
    /// Trials that could not be examined, for instance because scores overflow.
    suggestions_dropped: usize,
    data_warnings: Vec<String>,
    #[serde(skip)]
    curves: Vec<Curve>,
}

#[derive(Clone, Debug, Serialize)]
struct KernelJson {
    name: &'static str,
    temperature: f64,
    normalize: bool,
}

#[derive(Clone, Debug, Serialize)]
struct CoverageJson {
    states_seen: usize,
    /// The smallest effective number of transitions behind a value, 1/Σ K²; absent where no transition is behind any.
    min_kernel_ess: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct AssumptionJson {
    name: &'static str,
    checked: bool,
    evidence: &'static str,
}

/// The error to infinite depth, layer by layer, as a share of the largest value.
#[derive(Clone, Debug)]
struct Curve {
    name: String,
    errors: Vec<f64>,
}

fn check_states(family: &Tasks) -> Result<(), LabError> {
    check_range("states", family.num_states(), 1..=MAX_STATES)?;
    family.check()
}

/// Refuses more states than fit: bytes of a certificate and of the changes that are tried at once.
fn admit(num_states: usize, feature_dim: usize, context: f64, draw: bool) -> Result<(), LabError> {
    let [m, d] = [num_states, feature_dim].map(|x| x as f64);
    let matrices = 8.0 + 10.0 * memory::threads(18.0) + if draw { 6.0 } else { 0.0 };
    let blocks = 2.0 * memory::threads(18.0) * d * d;
    memory::admit(DOUBLE * (m * (matrices * m + 8.0 * d) + blocks) + context, "--states, --features or --n")
}

/// Bytes of a context and its statistics.
fn context_bytes(num_columns: usize, feature_dim: usize) -> f64 {
    num_columns as f64 * (DOUBLE * feature_dim as f64 + 60.0)
}

/// The certificate of the population of a task.
pub fn task(
    family: &Tasks,
    index: u64,
    config: &LayerConfig,
    progress: &Progress,
) -> Result<Report, LabError> {
    let attention = config.attention()?;
    check_states(family)?;
    admit(family.num_states(), family.feature_dim(), 0.0, config.draw)?;
    begin(progress)?;
    let task = family.task(index)?;
    let operator = StateOperator::population(&task, &attention)?;
    let subject = format!("task {index} of {}: infinitely long contexts", family.describe());
    report(subject, &operator, None, config, progress)
}

/// The certificate of a context of `n` transitions sampled from a task.
pub fn sampled(
    family: &Tasks,
    index: u64,
    n: usize,
    config: &LayerConfig,
    progress: &Progress,
) -> Result<Report, LabError> {
    config.attention()?;
    check_states(family)?;
    check_range("n", n, 1..=10_000_000)?;
    let d = family.feature_dim();
    admit(family.num_states(), d, context_bytes(n, d), config.draw)?;
    begin(progress)?;
    let task = family.task(index)?;
    let (sample, _) = task.sample_context(n, &mut Stream::new(family.seed, Purpose::Trajectory, index));
    let subject = format!("task {index} of {}: a context of {n} transitions", family.describe());
    context_report(subject, &sample, family.gamma(), false, config, progress)
}

/// The certificate of a context, its feature vectors divided by their lengths if asked.
pub fn context(
    context: &Context,
    gamma: f64,
    unit_norm: bool,
    config: &LayerConfig,
    progress: &Progress,
) -> Result<Report, LabError> {
    if !(0.0..1.0).contains(&gamma) {
        return Err(LabError::value("gamma", gamma, "0 <= gamma < 1"));
    }
    let subject = format!("a context of {} transitions", context.num_transitions());
    context_report(subject, context, gamma, unit_norm, config, progress)
}

fn context_report(
    subject: String,
    context: &Context,
    gamma: f64,
    unit_norm: bool,
    config: &LayerConfig,
    progress: &Progress,
) -> Result<Report, LabError> {
    let mut statistics = ContextStatistics::per_state(context);
    if statistics.num_groups() > MAX_STATES {
        let found = statistics.num_groups();
        return Err(LabError::value("number of distinct states", found, format!("at most {MAX_STATES}")));
    }
    let d = context.feature_dim();
    admit(statistics.num_groups(), d, context_bytes(context.num_columns(), d), config.draw)?;
    if unit_norm {
        statistics = statistics.with_unit_features().ok_or_else(|| {
            LabError::refused("unit-norm", "a feature vector is 0, expected a length to divide by")
        })?;
    }
    let attention = config.attention()?;
    begin(progress)?;
    let operator = StateOperator::of(statistics, &attention, gamma)?;
    report(subject, &operator, Some(context), config, progress)
}

/// All input has been checked; how many changes will be tried is not known yet.
fn begin(progress: &Progress) -> Result<(), LabError> {
    progress.begin("certify: weights and eigenvalues", "", 0)
}

fn report(
    subject: String,
    operator: &StateOperator,
    context: Option<&Context>,
    config: &LayerConfig,
    progress: &Progress,
) -> Result<Report, LabError> {
    let kernel_at = |t: f64| config.kernel_at(t);
    let LayerConfig { kernel, temperature, certificate: asked, draw } = *config;
    let search = SuggestionConfig { num_layers: asked.num_layers, temperature, kernel_at: &kernel_at };
    let certificate = asked.certify(operator).map_err(|error| located(error, operator))?;
    let changes = search.changes(operator, &certificate).len() as u64;
    progress.begin("certify: changes that may help", "eigenvalue problems", changes)?;
    let tried = search.suggest_watched(operator, &certificate, &|| progress.advance(1));
    progress.begin("certify: curves", "", 0)?;
    let curves = if draw { curves(operator, asked, &tried.found, &search) } else { Vec::new() };
    let statistics = operator.statistics();
    let never_left = Some(certificate.contraction.never_left_states).filter(|&states| states > 0);
    let warning = |n| format!("{n} states were reached but never left: their values rest on other states");
    let ess = |u: usize| operator.effective_transitions(u);
    Ok(Report {
        schema: "ictd.certificate/1",
        subject,
        gamma: operator.gamma(),
        n_transitions: context.map(Context::num_transitions),
        n_episodes: context.map(|x| x.episodes().count()),
        kernel: KernelJson { name: kernel.as_str(), temperature, normalize: kernel != KernelName::Linear },
        coverage: CoverageJson {
            states_seen: statistics.num_source_groups(),
            min_kernel_ess: context
                .map(|_| (0..statistics.num_groups()).map(ess).fold(f64::INFINITY, f64::min))
                .filter(|ess| ess.is_finite()),
        },
        assumptions: [
            ("on_policy", "transitions are taken as the policy's own"),
            ("markov_state", "states with equal features are taken as the same state"),
        ]
        .map(|(name, evidence)| AssumptionJson { name, checked: false, evidence }),
        error_at_depth: tried.error_at_depth,
        suggestions: tried.found.iter().map(|s| describe(s, context.is_none())).collect(),
        suggestions_note: note(&tried, asked.num_layers),
        suggestions_dropped: tried.dropped,
        data_warnings: never_left.map(warning).into_iter().collect(),
        curves,
        certificate,
    })
}

/// An error about entries that are not finite as one about the features that they come from.
fn located(error: OperatorError, operator: &StateOperator) -> LabError {
    if error != OperatorError::Linalg(LinalgError::NotFinite) {
        return error.into();
    }
    let statistics = operator.statistics();
    let size = |u: &usize| largest(statistics.features(*u).iter().map(|x| x.abs()));
    let state = (0..statistics.num_groups()).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(0);
    let problem = format!(
        "state {state} has an entry of size {:e}: products of features overflow when they are summed, expected smaller features (or a smaller A)",
        size(&state)
    );
    LabError::refused("features", problem)
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
fn curves(
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
