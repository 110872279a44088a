//! The certificate of a context with so many states that no matrix is formed.

use ictd::context::{Context, ContextStatistics};
use ictd::evaluate::Level;
use ictd::kernel::{Effort, KernelName, Route};
use ictd::operator::AppliedOperator;
use ictd::theory::{Certificate, Status};
use serde::Serialize;

use super::parts::Examination;
use super::suggestions::{FAR, NEAR, SuggestionJson, instead, layers_by_rate, relative_error};
use super::{CoverageJson, LayerConfig, Report, Subsample, never_left_warning};
use crate::memory::{self, DOUBLE};
use crate::{LabError, Watched};

/// Most states whose weights are computed in blocks: a product takes seconds.
const MAX_STATES: usize = 100_000;
/// Most states whose weights are computed column by column, several times slower.
const MAX_COLUMNS: usize = 20_000;
/// Vectors over states: bases of two subspaces that are not kept at once, and what products work on.
const VECTORS: f64 = 64.0;

/// How a context was examined without matrices.
#[derive(Clone, Debug, Serialize)]
pub struct Examined {
    /// Distinct states: all of them.
    pub states: usize,
    /// How products with the weights were computed.
    pub route: Route,
    /// Why so.
    pub reason: String,
    /// The part that suggestions were tried on.
    pub suggestions_from: Option<Subsample>,
}

impl Examined {
    /// Which part changes were tried on.
    pub(super) fn part_in_words(&self) -> Option<String> {
        let part = self.suggestions_from?;
        Some(format!("suggestions were tried on {} of {} states", part.states, part.of))
    }
}

/// Whether products are quick enough on these states, whatever their features are. With the linear kernel values move in few
/// directions, and eigenvalues are 0 in all others.
pub(super) fn is_possible(statistics: &ContextStatistics, kernel: KernelName) -> bool {
    let most = match kernel {
        KernelName::Softmax | KernelName::Rbf => MAX_STATES,
        KernelName::Linear => 0,
        _ => MAX_COLUMNS,
    };
    statistics.num_groups() <= most
}

/// Refuses more states than fit, beside so many bytes of the context.
pub(super) fn admit(statistics: &ContextStatistics, context: f64) -> Result<(), LabError> {
    let [m, d] = [statistics.num_groups(), statistics.feature_dim()].map(|x| x as f64);
    // Up to 1 GiB of weights are kept.
    let kept = (m * m).min((1_u64 << 27) as f64);
    memory::admit(DOUBLE * (m * (VECTORS + 5.0 * d) + kept) + context, "the number of states")
}

/// The report on all states of a context, with the suggestions of the report on a part of them; that report itself where features are so
/// large that products take too long.
pub(super) fn report(
    subject: String,
    context: &Context,
    statistics: ContextStatistics,
    Examination { attention, gamma, config, progress, .. }: Examination<'_>,
    part: Report,
) -> Result<Report, LabError> {
    let watch = Watched { progress, prefix: "certify" };
    let effort = Effort::default();
    let states = statistics.num_groups();
    if states > MAX_COLUMNS
        && AppliedOperator::planned_route(&statistics, attention, &effort, &watch)? == Route::Columns
    {
        return Ok(part);
    }
    let mut operator = AppliedOperator::new(statistics, attention, gamma, &effort, &watch)?;
    let certificate = config.certificate.certify_applied(&mut operator)?;
    let examined = Examined {
        states,
        route: operator.route(),
        reason: operator.reason().to_owned(),
        suggestions_from: part.subsample,
    };
    let never_left = Some(certificate.contraction.never_left_states).filter(|&states| states > 0);
    let tried = examined.part_in_words();
    Ok(Report {
        judgement: match certificate.status {
            Status::Certified => Level::Trust,
            Status::Estimated => Level::Caution,
            Status::Refused | Status::Undecided => Level::Refuse,
        },
        subject,
        subsample: None,
        examined: Some(examined),
        n_transitions: Some(context.num_transitions()),
        n_episodes: Some(context.episodes().count()),
        coverage: CoverageJson {
            states_seen: operator.statistics().num_source_groups(),
            min_kernel_ess: None,
        },
        error_at_depth: relative_error(&certificate),
        suggestion: advice(&certificate, operator.statistics().largest_reward(), config, &part.suggestions),
        suggestions_note: tried.iter().fold(part.suggestions_note, |note, tried| format!("{note}; {tried}")),
        data_warnings: never_left.map(never_left_warning).into_iter().chain(tried.clone()).collect(),
        certificate,
        ..part
    })
}

/// What to do: whether the layers asked for are enough, how many are by the rate or by proof, or what to change; mean rewards by state are
/// up to `rewards`.
fn advice(
    certificate: &Certificate,
    rewards: f64,
    config: &LayerConfig,
    suggestions: &[SuggestionJson],
) -> String {
    let num_layers = config.certificate.num_layers;
    if !certificate.status.converges() {
        return instead(num_layers, suggestions, true);
    }
    if relative_error(certificate).is_some_and(|error| error <= NEAR) {
        return format!(
            "{num_layers} layers are enough: all values are within 1 % of the largest of their limit"
        );
    }
    let near = "bring all values within 1 % of the largest of their limit";
    if let Some(enough) = layers_by_rate(certificate) {
        return format!("about {:.1e} layers, by the rate, {near}", enough as f64);
    }
    let scale = certificate.fixed_point.as_ref().map(|found| NEAR * found.largest_value);
    let proved = scale
        .and_then(|error| certificate.contraction.layers_by_td_errors(certificate.step_size, rewards, error));
    proved.map_or_else(
        || FAR.into(),
        |enough| format!("{}, by the proved rate of the TD errors, {near}", config.depth(enough)),
    )
}
