//! `certify`: whether layers converge with depth on a task or a context, and what to change. That what they converge to is right
//! is not certified.

mod counts;
mod curves;
mod operator;
mod options;
mod parts;
mod show;
mod subsample;
mod suggestions;
mod trained;
mod whole;

pub use counts::{Counts, count};
use curves::{Curve, curves};
pub(crate) use operator::operator_of;
pub use options::Options;
use parts::{Examination, Subject, TRIED_STATES};
pub use subsample::Subsample;
pub use suggestions::SuggestionJson;
use suggestions::{Tried, advice};
use trained::AsTd;
pub use trained::{Trained, Typed};
pub use whole::Examined;

use std::sync::Arc;

use ictd::context::{Context, ContextStatistics};
use ictd::evaluate::Level;
use ictd::kernel::{Attention, Kernel, KernelName};
use ictd::linalg::LinalgError;
use ictd::operator::{OperatorError, StateOperator};
use ictd::random::{Purpose, Stream};
use ictd::statistics::largest;
use ictd::theory::{Certificate, CertificateConfig, Status, Suggestion, SuggestionConfig};
use serde::Serialize;

use super::Tasks;
use crate::Progress;
use crate::error::{LabError, check_range};
use crate::memory::{self, DOUBLE};
use crate::studies::attention::Weights;

/// Largest number of distinct states whose eigenvalues are all found: they cost their cube.
const MAX_STATES: usize = 3000;
/// Distinct states that are examined where there are more than that: it takes seconds.
const SUBSAMPLED_STATES: usize = 500;
/// Transitions that stand for a task with more states than that.
const SUBSAMPLED_TRANSITIONS: usize = 10 * SUBSAMPLED_STATES;
/// What a certificate is about.
const CERTIFIES: &str = "convergence with depth, that layers approach a limit; not that the limit, or the values on the way to it, are right";
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
    /// Whether the attention weights are given.
    pub show_attention: bool,
    /// Parameters in the place of theta_*.
    pub trained: Option<Trained>,
    /// Seed of the part that is examined of a context with too many states.
    pub seed: u64,
}

impl Default for LayerConfig {
    fn default() -> Self {
        let certificate = CertificateConfig::default();
        Self {
            kernel: KernelName::Softmax,
            temperature: 1.0,
            certificate,
            draw: false,
            show_attention: false,
            trained: None,
            seed: 0,
        }
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
    /// What the certificate is about.
    certifies: &'static str,
    /// Whether to rely on it.
    pub judgement: Level,
    /// The verdict and the numbers behind it.
    #[serde(flatten)]
    pub certificate: Certificate,
    subject: String,
    /// The part that was examined, where not everything was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subsample: Option<Subsample>,
    /// How everything was examined, where matrices would be too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examined: Option<Examined>,
    gamma: f64,
    /// What the layer was made of, where its parameters are trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    trained: Option<AsTd>,
    n_transitions: Option<usize>,
    n_episodes: Option<usize>,
    kernel: KernelJson,
    coverage: CoverageJson,
    assumptions: [AssumptionJson; 2],
    /// Error after the layers asked for, as it is: a share of the largest value, as for suggestions.
    pub error_at_depth: Option<f64>,
    /// What to do, in one sentence.
    pub suggestion: String,
    /// Changes that help: first at this depth, then in the long run, the best first.
    pub suggestions: Vec<SuggestionJson>,
    /// What the suggestions amount to.
    pub suggestions_note: String,
    /// Trials that could not be examined, for instance because scores overflow.
    suggestions_dropped: usize,
    data_warnings: Vec<String>,
    #[serde(skip)]
    curves: Vec<Curve>,
    /// What they are curves of.
    #[serde(skip)]
    drawn: String,
    #[serde(flatten)]
    attention: Option<Weights>,
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

/// The certificate of the population of a task; of a part of a long context where it has too many states.
pub fn task(
    family: &Tasks,
    index: u64,
    config: &LayerConfig,
    progress: &Progress,
) -> Result<Report, LabError> {
    if config.trained.is_some() {
        check_range("states", family.num_states(), 1..=TRIED_STATES)?;
    }
    if family.num_states() > MAX_STATES {
        return sampled(family, index, SUBSAMPLED_TRANSITIONS, config, progress);
    }
    let attention = config.attention()?;
    family.check()?;
    admit(family.num_states(), family.feature_dim(), 0.0, config.draw)?;
    begin(progress)?;
    let task = family.task(index)?;
    let (operator, trained) =
        config.operator(ContextStatistics::expected(&task), &attention, family.gamma())?;
    let name = format!("task {index} of {}: infinitely long contexts", family.describe());
    let tried = if family.num_states() > TRIED_STATES {
        let mut stream = Stream::new(family.seed, Purpose::Trajectory, index);
        let (sample, _) = task.sample_context(SUBSAMPLED_TRANSITIONS, &mut stream);
        let statistics = ContextStatistics::per_state(&sample);
        let examination =
            Examination { attention: &attention, gamma: family.gamma(), unit_norm: false, config, progress };
        Some(Box::new(examination.part(&name, &sample, &statistics, family.num_states())?))
    } else {
        None
    };
    report(Subject { name, context: None, subsample: None, tried }, (&operator, trained), config, progress)
}

/// The certificate of a context of `n` transitions sampled from a task.
pub fn sampled(
    family: &Tasks,
    index: u64,
    n: usize,
    config: &LayerConfig,
    progress: &Progress,
) -> Result<Report, LabError> {
    let attention = config.attention()?;
    family.check()?;
    check_range("n", n, 1..=10_000_000)?;
    let (m, d) = (family.num_states(), family.feature_dim());
    let task_bytes = if m > MAX_STATES { memory::task(m, d) } else { 0.0 };
    admit(examined_states(m), d, context_bytes(n, d) + task_bytes, config.draw)?;
    begin(progress)?;
    let task = family.task(index)?;
    let (sample, _) = task.sample_context(n, &mut Stream::new(family.seed, Purpose::Trajectory, index));
    let subject = format!("task {index} of {}: a context of {n} transitions", family.describe());
    Examination { attention: &attention, gamma: family.gamma(), unit_norm: false, config, progress }
        .context(subject, &sample, m)
}

/// The certificate of a context, its feature vectors divided by their lengths if asked.
pub fn context(
    context: &Context,
    gamma: f64,
    unit_norm: bool,
    config: &LayerConfig,
    progress: &Progress,
) -> Result<Report, LabError> {
    check_discount(gamma)?;
    let subject = format!("a context of {} transitions", context.num_transitions());
    let attention = config.attention()?;
    Examination { attention: &attention, gamma, unit_norm, config, progress }.context(subject, context, 0)
}

fn check_discount(gamma: f64) -> Result<(), LabError> {
    if (0.0..1.0).contains(&gamma) { Ok(()) } else { Err(LabError::value("gamma", gamma, "0 <= gamma < 1")) }
}

/// How many states are examined where there are so many.
fn examined_states(num_states: usize) -> usize {
    if num_states > MAX_STATES { SUBSAMPLED_STATES } else { num_states }
}

/// All input has been checked; how many changes will be tried is not known yet.
fn begin(progress: &Progress) -> Result<(), LabError> {
    progress.begin("certify: weights and eigenvalues", "", 0)
}

fn report(
    Subject { name: subject, context, subsample, tried: elsewhere }: Subject<'_>,
    (operator, trained): (&StateOperator, Option<AsTd>),
    config: &LayerConfig,
    progress: &Progress,
) -> Result<Report, LabError> {
    let kernel_at = |t: f64| config.kernel_at(t);
    let LayerConfig { kernel, temperature, certificate: mut asked, draw, .. } = *config;
    asked.step_size *= trained.map_or(1.0, |layer| layer.step_factor);
    let attention = if config.show_attention { Some(Weights::of_states(operator)?) } else { None };
    let search = SuggestionConfig { num_layers: asked.num_layers, temperature, kernel_at: &kernel_at };
    let certificate = asked.certify(operator).map_err(|error| located(error, operator))?;
    let tried = match elsewhere {
        Some(part) => Tried::of_part(*part, &certificate, operator.statistics().num_groups()),
        None => {
            progress.begin("certify: kernels that contract", "", 0)?;
            // Trained parameters are what they are.
            let changes = if trained.is_some() { vec![] } else { search.changes(operator, &certificate) };
            progress.begin("certify: changes that may help", "eigenvalue problems", changes.len() as u64)?;
            let tried = search.suggest_among(operator, &certificate, &changes, &|| progress.advance(1));
            Tried::here(&tried, context.is_none(), config)
        }
    };
    progress.begin("certify: curves", "", 0)?;
    let found: Vec<Suggestion> = tried.suggestions.iter().map(|s| s.found.clone()).collect();
    let curves = if draw { curves(operator, asked, &found, &search) } else { Vec::new() };
    let statistics = operator.statistics();
    let never_left = Some(certificate.contraction.never_left_states).filter(|&states| states > 0);
    let ess = |u: usize| operator.effective_transitions(u);
    let judgement = match certificate.status {
        Status::Certified if subsample.is_none() => Level::Trust,
        Status::Certified | Status::Estimated => Level::Caution,
        Status::Refused | Status::Undecided => Level::Refuse,
    };
    let warnings =
        never_left.map(never_left_warning).into_iter().chain(subsample.as_ref().map(Subsample::warning));
    let warnings = warnings.chain(tried.examined.as_ref().and_then(Examined::part_in_words));
    Ok(Report {
        schema: "ictd.certificate/1",
        certifies: CERTIFIES,
        judgement,
        suggestion: advice(operator, &certificate, config, &tried),
        drawn: subject.clone(),
        subject,
        subsample,
        examined: tried.examined.clone(),
        gamma: operator.gamma(),
        trained,
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
        data_warnings: warnings.collect(),
        error_at_depth: tried.error_at_depth,
        suggestions: tried.suggestions,
        suggestions_note: tried.note,
        suggestions_dropped: tried.dropped,
        curves,
        attention,
        certificate,
    })
}

/// What states that were reached and never left mean for values.
fn never_left_warning(states: usize) -> String {
    format!("{states} states were reached but never left: their values rest on other states")
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

#[cfg(test)]
mod tests {
    use super::*;
    use ictd::context::End;

    /// What is certain of a part need not hold for the rest.
    #[test]
    fn a_certificate_of_a_part_asks_for_caution() {
        let rows: Vec<[f64; 1]> = (0..6).map(|k| [f64::from(k)]).collect();
        let context = Context::builder().episode(&rows, &[1.0; 5], End::Terminated).build().unwrap();
        let config = LayerConfig { kernel: KernelName::Tabular, ..LayerConfig::default() };
        let of = |subsample| {
            let subject = Subject { name: "a chain".into(), context: Some(&context), subsample, tried: None };
            let (attention, progress) = (config.attention().unwrap(), Progress::default());
            Examination {
                attention: &attention,
                gamma: 0.9,
                unit_norm: false,
                config: &config,
                progress: &progress,
            }
            .dense(subject, ContextStatistics::per_state(&context))
            .unwrap()
        };
        let (whole, part) = (of(None), of(Some(Subsample { states: 5, of: 5000 })));
        assert_eq!((whole.certificate.status, whole.judgement), (Status::Certified, Level::Trust));
        assert_eq!((part.certificate.status, part.judgement), (Status::Certified, Level::Caution));
    }
}
