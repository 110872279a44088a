//! What to change when depth does not help: changes that were tried, and what each of them does.

use std::sync::Arc;

use serde::Serialize;

use crate::kernel::{Attention, Kernel, Tabular};
use crate::linalg::LinalgError;
use crate::operator::{OperatorError, StateOperator};
use crate::parallel;
use crate::statistics::largest;

use super::certificate::{Certificate, Contraction, Status, largest_of};
use super::stability::Stability;

/// A change that may repair a context.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// Another step size.
    StepSize(f64),
    /// Another temperature, with the best step size there.
    Temperature(f64),
    /// Feature vectors of length 1.
    UnitFeatures,
    /// Feature vectors of length 1 and another temperature.
    UnitFeaturesAndTemperature(f64),
    /// A step size per state, proportional to the mass that normalisation divides by.
    StepsByMass,
    /// The tabular kernel: every state for itself. Tried where nothing else converges.
    Tabular,
}

/// A change, recomputed.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Suggestion {
    /// What to change.
    #[serde(rename = "kind")]
    pub change: Change,
    /// The step size to use with it.
    pub step_size: f64,
    /// The status then.
    pub status: Status,
    /// ‖J‖∞ then; `None` as for a certificate.
    pub norm_inf: Option<f64>,
    /// The spectral radius then.
    pub spectral_radius: f64,
    /// The error at the depth asked for, as for [`Suggestions::error_at_depth`]; `None` when there is no limit.
    pub error_at_depth: Option<f64>,
    /// How far the limit of the states that were left moves, as a share of the largest value: 0 up to rounding for step
    /// sizes.
    pub limit_change: Option<f64>,
    /// When it helps.
    pub helps: Helps,
}

/// When a change helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Helps {
    /// It lowers the error at the depth asked for.
    #[serde(rename = "at this depth")]
    AtThisDepth,
    /// Layers converge, converge provably, or converge faster; what that does at the depth asked for its error says.
    #[serde(rename = "in the long run")]
    InTheLongRun,
}

/// What was tried.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Suggestions {
    /// The error at the depth asked for as it is, a share of the largest value: the distance to the limit as it is on
    /// states that were left, and to their own limit on all others. `None` when there is no limit.
    ///
    /// On states that were left the limit solves the context's own TD equations, whatever the kernel, as long as every
    /// state that is reached was left: it is what all changes should come near to. Values elsewhere are
    /// what the kernel in use makes of them.
    pub error_at_depth: Option<f64>,
    /// The best of every kind: first those that help at this depth, the smallest error first, then those that help in
    /// the long run, the best status and spectral radius first.
    pub found: Vec<Suggestion>,
    /// Trials that could not be examined.
    pub dropped: usize,
}

/// Temperatures that are tried, as multiples of the one in use.
const TEMPERATURES: [f64; 8] = [0.05, 0.1, 0.2, 0.5, 2.0, 5.0, 10.0, 20.0];
/// Above this many states every second temperature is tried: each costs an eigenvalue problem.
const MANY_STATES: usize = 300;
/// Step sizes that are tried, as shares of the largest stable one.
const STEPS: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];
/// Kernels are narrowed down to a temperature 4 to this power times lower.
const NARROWEST: i32 = 12;
/// A hundredth less is no reason to change anything.
const WORTH_IT: f64 = 0.99;

/// A kernel by temperature; `None` where it has none or refuses it.
pub type KernelAt<'a> = &'a (dyn Fn(f64) -> Option<Arc<dyn Kernel>> + Sync);

/// What changes are looked for: the depth that should profit, and the kernel that may be changed.
#[derive(Clone, Copy)]
pub struct SuggestionConfig<'a> {
    /// Depth L.
    pub num_layers: usize,
    /// Temperature τ in use.
    pub temperature: f64,
    /// The kernel at other temperatures.
    pub kernel_at: KernelAt<'a>,
}

impl Change {
    /// The operator after the change; `None` where it cannot be made. A step size does not change the operator.
    pub fn apply(
        self,
        operator: &StateOperator,
        config: &SuggestionConfig<'_>,
    ) -> Result<Option<StateOperator>, OperatorError> {
        let statistics = operator.statistics();
        let (statistics, temperature) = match self {
            Self::StepSize(_) => return Ok(Some(operator.clone())),
            Self::StepsByMass => return Ok(operator.with_steps_by_mass()),
            Self::Tabular => {
                let tabular = Attention::new(Arc::new(Tabular), 0.0)?;
                return StateOperator::of(statistics.clone(), &tabular, operator.gamma()).map(Some);
            }
            Self::Temperature(t) => (Some(statistics.clone()), t),
            Self::UnitFeatures => (statistics.with_unit_features(), config.temperature),
            Self::UnitFeaturesAndTemperature(t) => (statistics.with_unit_features(), t),
        };
        let (Some(statistics), Some(kernel)) = (statistics, (config.kernel_at)(temperature)) else {
            return Ok(None);
        };
        StateOperator::of(statistics, &Attention::new(kernel, 0.0)?, operator.gamma()).map(Some)
    }
}

impl SuggestionConfig<'_> {
    /// Changes that lower the error after the depth asked for, or make layers converge faster or more provably than
    /// `certificate`, each verified by a certificate of its own. A trial that cannot be examined is dropped.
    pub fn suggest(&self, operator: &StateOperator, certificate: &Certificate) -> Suggestions {
        self.suggest_among(operator, certificate, &self.changes(operator, certificate), &|| {})
    }

    /// What is tried: each costs an eigenvalue problem.
    pub fn changes(&self, operator: &StateOperator, certificate: &Certificate) -> Vec<Change> {
        let statistics = operator.statistics();
        let every = if statistics.num_groups() > MANY_STATES { 2 } else { 1 };
        let others = TEMPERATURES.into_iter().step_by(every).map(|f| f * self.temperature);
        let mut changes = vec![Change::StepSize(certificate.step_size), Change::StepsByMass];
        changes.extend(others.clone().map(Change::Temperature));
        // Where all lengths are 1 already, up to rounding, there is nothing to divide by.
        let is_unit =
            |s: usize| (statistics.features(s).iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-12;
        let all_unit = (0..statistics.num_groups()).all(is_unit);
        if !all_unit {
            changes.push(Change::UnitFeatures);
            changes.extend(others.map(Change::UnitFeaturesAndTemperature));
        }
        // What is certified needs no narrower kernel, and a state that was never left is not certified at any width.
        if certificate.status != Status::Certified && operator.never_left().is_empty() {
            let step_size = certificate.step_size.min(1.0);
            let kinds: [fn(f64) -> Change; 2] = [Change::Temperature, Change::UnitFeaturesAndTemperature];
            let kinds = kinds.into_iter().take(if all_unit { 1 } else { 2 });
            changes.extend({ kinds }.find_map(|kind| self.narrow(operator, step_size, kind)));
        }
        changes
    }

    /// The widest of the narrower kernels of a kind with which every layer contracts, up to a factor of 1.2.
    fn narrow(
        &self,
        operator: &StateOperator,
        step_size: f64,
        kind: impl Fn(f64) -> Change,
    ) -> Option<Change> {
        let contracts = |exponent: f64| {
            let changed = kind(round_down(self.temperature * exponent.exp2())).apply(operator, self);
            matches!(changed, Ok(Some(changed)) if changed.jacobian_norm(step_size) < 1.0)
        };
        let mut low = (1..=NARROWEST).map(|k| f64::from(-2 * k)).find(|&exponent| contracts(exponent))?;
        let mut high = low + 2.0;
        for _ in 0..3 {
            let middle = 0.5 * (low + high);
            if contracts(middle) { low = middle } else { high = middle }
        }
        Some(kind(round_down(self.temperature * low.exp2())))
    }

    /// As [`suggest`](Self::suggest) among the [`changes`](Self::changes), or some of them; `examined` is called after each. Among none
    /// nothing is tried.
    pub fn suggest_among(
        &self,
        operator: &StateOperator,
        certificate: &Certificate,
        changes: &[Change],
        examined: &(dyn Fn() + Sync),
    ) -> Suggestions {
        let num_groups = operator.statistics().num_groups();
        let trial = Trial {
            config: self,
            operator,
            certificate,
            limit: operator.infinite_depth().ok(),
            same: (0..num_groups).collect(),
            merged: operator.statistics().unit_features().map(|(_, group_of)| group_of),
        };
        let as_it_is = trial.measure(operator, &trial.same);
        let error_at_depth = as_it_is.and_then(|m| m.error(certificate.step_size, self.num_layers));
        let examine = |change| {
            let found = trial.examine(change, error_at_depth);
            examined();
            found
        };
        let mut tried: Vec<Result<Vec<Suggestion>, OperatorError>> =
            parallel::map(changes.len(), |k| examine(changes[k]));
        let none = tried.iter().all(|found| found.as_ref().map_or(true, Vec::is_empty));
        if none && !changes.is_empty() && !certificate.status.converges() {
            tried.push(trial.examine(Change::Tabular, error_at_depth));
        }
        let dropped = tried.iter().filter(|t| t.is_err()).count();
        let tried: Vec<Suggestion> = tried.into_iter().flatten().flatten().collect();
        let (mut now, mut later): (Vec<_>, Vec<_>) =
            tried.into_iter().partition(|s| s.helps == Helps::AtThisDepth);
        let error = |s: &Suggestion| s.error_at_depth.unwrap_or(f64::INFINITY);
        now.sort_by(|a, b| error(a).total_cmp(&error(b)));
        let (now, rest) = best_of_every_kind(now);
        // One that is not the best at this depth may still be what makes layers converge, or provably so.
        let better = rest.into_iter().filter(|s| s.status < certificate.status);
        later.extend(better.map(|s| Suggestion { helps: Helps::InTheLongRun, ..s }));
        later.sort_by(|a, b| a.status.cmp(&b.status).then(a.spectral_radius.total_cmp(&b.spectral_radius)));
        let found = now.into_iter().chain(best_of_every_kind(later).0).collect();
        Suggestions { error_at_depth, found, dropped }
    }
}

/// The first of every kind, and the others.
fn best_of_every_kind(sorted: Vec<Suggestion>) -> (Vec<Suggestion>, Vec<Suggestion>) {
    let mut kinds = Vec::new();
    sorted.into_iter().partition(|s| {
        let kind = std::mem::discriminant(&s.change);
        let new = !kinds.contains(&kind);
        kinds.push(kind);
        new
    })
}

/// What changes are compared with.
struct Trial<'a> {
    config: &'a SuggestionConfig<'a>,
    operator: &'a StateOperator,
    certificate: &'a Certificate,
    /// The limit as it is.
    limit: Option<Vec<f64>>,
    /// Where every state goes: where it was, or when features are divided by their lengths.
    same: Vec<usize>,
    merged: Option<Vec<usize>>,
}

/// Errors of a changed operator, state by state of the one as it is.
struct Measure<'a> {
    operator: &'a StateOperator,
    group_of: &'a [usize],
    /// What the values of every state should come near to.
    target: Vec<f64>,
    scale: f64,
    limit_change: f64,
}

impl Measure<'_> {
    /// The largest error after `num_layers` layers; `None` where values overflow.
    fn error(&self, step_size: f64, num_layers: usize) -> Option<f64> {
        let v = self.operator.values_after(step_size, num_layers);
        let errors = self.group_of.iter().zip(&self.target).map(|(&group, target)| (v[group] - target).abs());
        let error = largest(errors);
        // Without rewards every value is 0 from the start.
        let share = if error == 0.0 { 0.0 } else { error / self.scale };
        share.is_finite().then_some(share)
    }
}

impl Trial<'_> {
    /// `None` where the changed operator has no limit.
    fn measure<'b>(&self, changed: &'b StateOperator, group_of: &'b [usize]) -> Option<Measure<'b>> {
        let own = changed.infinite_depth().ok()?;
        let mut target: Vec<f64> = group_of.iter().map(|&group| own[group]).collect();
        let sources = self.operator.statistics().num_source_groups();
        let (mut scale, mut moved) = (largest_of(&target), 0.0);
        if let Some(limit) = &self.limit {
            scale = largest_of(limit);
            let pairs = target.iter_mut().zip(limit).take(sources);
            for (target, &limit) in pairs {
                moved = largest([moved, (*target - limit).abs()]);
                *target = limit;
            }
        }
        let limit_change = if moved == 0.0 { 0.0 } else { moved / scale };
        Some(Measure { operator: changed, group_of, target, scale, limit_change })
    }

    /// What a change does at its best step size for this depth, and at its best in the long run.
    fn examine(&self, change: Change, error_as_it_is: Option<f64>) -> Result<Vec<Suggestion>, OperatorError> {
        let as_it_is = self.certificate;
        let Some(changed) = change.apply(self.operator, self.config)? else {
            return Ok(Vec::new());
        };
        let group_of = match (&change, &self.merged) {
            (Change::UnitFeatures | Change::UnitFeaturesAndTemperature(_), Some(merged)) => merged,
            _ => &self.same,
        };
        let stability = Stability::of(&changed)?;
        let Some(spectrum) = stability.spectrum.as_ref() else {
            return Err(LinalgError::NoConvergence { size: changed.statistics().num_groups() }.into());
        };
        let Some(limit) = spectrum.largest_stable_step() else { return Ok(Vec::new()) };
        let measure = self.measure(&changed, group_of);
        let error =
            |step_size: f64| measure.as_ref().and_then(|m| m.error(step_size, self.config.num_layers));
        let best = spectrum.best_step().map(|best| round_down(best.step_size));
        let mut steps: Vec<f64> = STEPS.iter().map(|share| round_down(share * limit)).collect();
        steps.extend(best);
        steps.push(as_it_is.step_size);
        steps.retain(|&step_size| spectrum.spectral_radius(step_size) < 1.0);
        let at_depth = steps
            .into_iter()
            .filter_map(|step_size| Some((step_size, error(step_size)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|(_, error)| error_as_it_is.is_none_or(|now| *error < WORTH_IT * now));
        let mut found = Vec::new();
        // The best at this depth; the step size in use where it does in the long run, else 1, with which narrow kernels
        // contract, or the best one there.
        let depth = at_depth.map(|(step_size, _)| (step_size, Helps::AtThisDepth));
        let one = (as_it_is.step_size > 1.0).then_some(1.0);
        let long = [Some(as_it_is.step_size), one, best].map(|a| a.map(|a| (a, Helps::InTheLongRun)));
        for (step_size, helps) in [depth].into_iter().chain(long).flatten() {
            let new = Certificate::from_stability(&changed, stability.clone(), step_size);
            let Contraction { norm_inf, spectral_radius: Some(spectral_radius), .. } = new.contraction else {
                continue;
            };
            let now = as_it_is.contraction.spectral_radius;
            let faster = now.is_none_or(|now| WORTH_IT * spectral_radius.ln() < now.ln());
            let better = new.status < as_it_is.status || (new.status == as_it_is.status && faster);
            let known = found.iter().any(|s: &Suggestion| s.step_size == step_size);
            if !new.status.converges() || known || (helps == Helps::InTheLongRun && !better) {
                continue;
            }
            found.push(Suggestion {
                change: if let Change::StepSize(_) = change { Change::StepSize(step_size) } else { change },
                step_size,
                status: new.status,
                norm_inf,
                spectral_radius,
                error_at_depth: error(step_size),
                limit_change: measure.as_ref().map(|m| m.limit_change).filter(|change| change.is_finite()),
                helps,
            });
        }
        Ok(found)
    }
}

/// Four significant digits, downwards: the best step size is often just below the largest stable one.
fn round_down(x: f64) -> f64 {
    // Through the decimal form, so that what is printed is what was examined.
    let text = format!("{x:.3e}");
    let nearest: f64 = text.parse().unwrap_or(x);
    if nearest <= x {
        return nearest;
    }
    let unit = 10f64.powf(x.log10().floor() - 3.0);
    format!("{:.3e}", nearest - unit).parse().unwrap_or(x)
}
