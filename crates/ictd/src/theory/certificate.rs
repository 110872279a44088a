//! Certificates: whether depth helps on the states at hand, why, and what to change when it does not.

use std::sync::Arc;

use rayon::prelude::*;

use crate::kernel::{Attention, Kernel};
use crate::linalg;
use crate::operator::{OperatorError, StateOperator};

use super::spectrum::BestStep;
use super::stability::{Regime, Stability};

/// Offending states that are listed; the count of all is always given.
const LISTED: usize = 5;

/// How far a certificate goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Every layer contracts, ‖J‖∞ < 1: convergence at a known rate, by an inequality that was evaluated.
    Certified,
    /// The spectral radius is below 1: errors vanish in the long run, by the numbers; they may grow first.
    Estimated,
    /// Depth does not converge, or the numbers cannot tell.
    Refused,
}

impl Status {
    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Certified => "certified",
            Self::Estimated => "estimated",
            Self::Refused => "refused",
        }
    }
}

/// A state whose own visits weigh too little for Assumption 5.1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offender {
    /// The state, as numbered by the operator's statistics.
    pub state: usize,
    /// M(s, s).
    pub self_weight: f64,
    /// The other state that weighs most for it, and M(s, other).
    pub attracted_by: Option<(usize, f64)>,
}

/// The numbers behind contraction.
#[derive(Clone, Debug, PartialEq)]
pub struct Contraction {
    /// ‖J‖∞ with J = I - α(M - γP), on all states of the context.
    pub norm_inf: f64,
    /// The spectral radius of J on TD errors: the rate in the long run.
    pub rate: f64,
    /// The smallest M(s, s) of the states that were left.
    pub min_diag: f64,
    /// Their mean.
    pub mean_diag: f64,
    /// (1+γ)/2, what Assumption 5.1 requires at least.
    pub required_diag: f64,
    /// How many states are below it.
    pub violating_states: usize,
    /// The worst of them.
    pub offenders: Vec<Offender>,
    /// States that occur as successors but were never left: nothing is known about what follows them.
    pub never_left: usize,
}

/// What step sizes do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    /// Layers converge for every smaller step size; `None` when no step size converges.
    pub largest_stable: Option<f64>,
    /// The fastest step size.
    pub best: Option<BestStep>,
    /// The smallest real part of the eigenvalues of M - γP; when negative no step size converges.
    pub smallest_real_part: f64,
}

/// The values after the layers asked for, against the limit of infinite depth.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedPoint {
    /// ‖v_∞‖∞.
    pub largest_value: f64,
    /// ‖(M - γP) v_∞ - M r‖∞: how well the limit solves its equation.
    pub equation_residual: f64,
    /// ‖T(v_L) - v_L‖∞ after L layers.
    pub residual: f64,
    /// ‖v_L - v_∞‖∞, from the closed form.
    pub error: f64,
    /// A bound on it from the residual alone: residual·‖(αX)⁻¹‖∞, or residual/(1 - ‖J‖∞) where that is smaller.
    pub error_bound: Option<f64>,
    /// Layers until the error is below the tolerance, predicted from the rate.
    pub layers_predicted: Option<u64>,
    /// Layers that are enough by contraction, where ‖J‖∞ < 1.
    pub layers_sufficient: Option<u64>,
}

/// Whether to trust depth on a context or a task.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The verdict.
    pub status: Status,
    /// Why it is not better, or what it rests on.
    pub reasons: Vec<String>,
    /// Step size α.
    pub alpha: f64,
    /// Contraction.
    pub contraction: Contraction,
    /// Conditions without diagonal dominance.
    pub stability: Stability,
    /// Step sizes.
    pub steps: Steps,
    /// Depth; `None` when the limit does not exist.
    pub fixed_point: Option<FixedPoint>,
}

impl Certificate {
    /// Examines an operator with step size `alpha`, after `num_layers` layers, for the absolute tolerance
    /// `tolerance`.
    pub fn new(
        operator: &StateOperator,
        alpha: f64,
        num_layers: usize,
        tolerance: f64,
    ) -> Result<Self, OperatorError> {
        let mut certificate = Self::from_stability(operator, Stability::of(operator)?, alpha);
        if certificate.status != Status::Refused {
            certificate.fixed_point =
                fixed_point(operator, &certificate.contraction, alpha, num_layers, tolerance);
        }
        Ok(certificate)
    }

    /// The verdict for a step size, without looking at the limit.
    fn from_stability(operator: &StateOperator, stability: Stability, alpha: f64) -> Self {
        let contraction = contraction(operator, &stability, alpha);
        let spectrum = &stability.spectrum;
        let steps = Steps {
            largest_stable: spectrum.largest_stable_step(),
            best: spectrum.best_step(),
            smallest_real_part: spectrum.smallest_real_part(),
        };
        let (status, reasons) = judge(&stability, &contraction, &steps, alpha);
        Self { status, reasons, alpha, contraction, stability, steps, fixed_point: None }
    }
}

fn contraction(operator: &StateOperator, stability: &Stability, alpha: f64) -> Contraction {
    let statistics = operator.statistics();
    let diagonal = operator.self_weights();
    let required = 0.5 * (1.0 + operator.gamma());
    let mut violating: Vec<usize> = (0..diagonal.len()).filter(|&s| diagonal[s] < required).collect();
    violating.sort_by(|&a, &b| diagonal[a].total_cmp(&diagonal[b]));
    let offenders = violating.iter().take(LISTED).map(|&state| Offender {
        state,
        self_weight: diagonal[state],
        attracted_by: operator
            .predecessor_weights(state)
            .enumerate()
            .filter(|&(other, _)| other != state)
            .max_by(|a, b| a.1.total_cmp(&b.1)),
    });
    // Queries are rows that no other row refers to: they converge with the rest.
    let mut reached = vec![false; statistics.num_groups()];
    for s in 0..diagonal.len() {
        statistics.successors(s).for_each(|(next, _)| reached[next] = true);
    }
    let never_left = (diagonal.len()..statistics.num_groups()).filter(|&s| reached[s]).count();
    Contraction {
        norm_inf: operator.jacobian_norm(alpha, |s| s < diagonal.len() || reached[s]),
        rate: stability.spectrum.rate(alpha),
        min_diag: diagonal.iter().copied().fold(f64::INFINITY, f64::min),
        mean_diag: diagonal.iter().sum::<f64>() / diagonal.len() as f64,
        required_diag: required,
        violating_states: violating.len(),
        offenders: offenders.collect(),
        never_left,
    }
}

fn judge(
    stability: &Stability,
    contraction: &Contraction,
    steps: &Steps,
    alpha: f64,
) -> (Status, Vec<String>) {
    let Contraction { norm_inf, rate, min_diag, required_diag, never_left, .. } = *contraction;
    let mut reasons = Vec::new();
    if norm_inf < 1.0 {
        let source = if stability.assumption && alpha == 1.0 { ", as Assumption 5.1 implies" } else { "" };
        reasons.push(format!("every layer contracts: norm_inf {norm_inf:.6} < 1{source}"));
        return (Status::Certified, reasons);
    }
    if min_diag < required_diag {
        reasons.push(format!("min_diag {min_diag:.4} < {required_diag:.4}: Assumption 5.1 does not hold"));
    }
    reasons.push(format!("norm_inf {norm_inf:.4} >= 1: a layer may enlarge errors"));
    if never_left > 0 {
        reasons.push(format!("{never_left} states were reached but never left"));
    }
    if steps.largest_stable.is_none() {
        let smallest = steps.smallest_real_part;
        reasons.push(if stability.spectrum.is_unstable() {
            format!("an eigenvalue of M - gamma P has real part {smallest:.3e} < 0: no step size converges")
        } else if stability.regime() == Regime::Provable {
            format!("the smallest real part {smallest:.1e} is positive by proof but too small to tell: some errors stay for more than 1e12 layers")
        } else {
            format!("the smallest real part {smallest:.1e} is 0 up to rounding: convergence cannot be told")
        });
        return (Status::Refused, reasons);
    }
    if !(rate < 1.0) {
        let limit = steps.largest_stable.unwrap_or(0.0);
        reasons.push(if alpha < limit {
            format!("step size {alpha:e} is too small: layers change nothing up to rounding")
        } else {
            format!("step size {alpha} is too large: layers converge below {limit:.4e} only")
        });
        return (Status::Refused, reasons);
    }
    reasons.push(format!("spectral radius 1 - {:.1e}: errors vanish in the long run", 1.0 - rate));
    if stability.regime() == Regime::Provable {
        reasons.push("some step size converges by proof (the form condition holds)".into());
    }
    (Status::Estimated, reasons)
}

fn fixed_point(
    operator: &StateOperator,
    contraction: &Contraction,
    alpha: f64,
    num_layers: usize,
    tolerance: f64,
) -> Option<FixedPoint> {
    let limit = operator.infinite_depth().ok()?;
    let mut v = vec![0.0; limit.len()];
    for _ in 0..num_layers {
        v = operator.apply(alpha, &v);
    }
    let largest = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let largest_value = limit.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let residual = largest(&operator.apply(alpha, &v), &v);
    let by_norm = (contraction.norm_inf < 1.0).then(|| residual / (1.0 - contraction.norm_inf));
    let by_inverse = inverse_norm(operator).map(|norm| residual * norm / alpha);
    let error_bound = [by_norm, by_inverse].into_iter().flatten().min_by(f64::total_cmp);
    let layers = |rate: f64| {
        let needed = ((tolerance / largest_value).ln() / rate.ln()).ceil().max(1.0);
        if largest_value <= tolerance { Some(0) } else { (rate < 1.0).then_some(needed as u64) }
    };
    Some(FixedPoint {
        equation_residual: largest(&operator.apply(1.0, &limit), &limit),
        residual,
        error: largest(&v, &limit),
        error_bound,
        layers_predicted: layers(contraction.rate),
        layers_sufficient: layers(contraction.norm_inf),
        largest_value,
    })
}

/// A change that may repair a context.
#[derive(Clone, Copy, Debug, PartialEq)]
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
}

/// A change, recomputed.
#[derive(Clone, Debug)]
pub struct Suggestion {
    /// What to change.
    pub change: Change,
    /// The step size to use with it.
    pub alpha: f64,
    /// The status then.
    pub status: Status,
    /// ‖J‖∞ then.
    pub norm_inf: f64,
    /// The spectral radius then.
    pub rate: f64,
}

/// Temperatures that are tried, as multiples of the one in use.
const TEMPERATURES: [f64; 8] = [0.05, 0.1, 0.2, 0.5, 2.0, 5.0, 10.0, 20.0];
/// Above this many states every second temperature is tried: each costs an eigenvalue problem.
const MANY_STATES: usize = 300;

/// A kernel by temperature; `None` where it has none or refuses it.
pub type KernelAt<'a> = &'a (dyn Fn(f64) -> Option<Arc<dyn Kernel>> + Sync);

impl Change {
    /// The operator after the change; `None` where it cannot be made. A step size does not change the operator.
    pub fn apply(
        self,
        operator: &StateOperator,
        temperature: f64,
        kernel_at: KernelAt<'_>,
    ) -> Result<Option<StateOperator>, OperatorError> {
        let statistics = operator.statistics();
        let (statistics, temperature) = match self {
            Self::StepSize(_) => return Ok(Some(operator.clone())),
            Self::StepsByMass => return Ok(operator.with_steps_by_mass()),
            Self::Temperature(t) => (Some(statistics.clone()), t),
            Self::UnitFeatures => (statistics.with_unit_features(), temperature),
            Self::UnitFeaturesAndTemperature(t) => (statistics.with_unit_features(), t),
        };
        let (Some(statistics), Some(kernel)) = (statistics, kernel_at(temperature)) else { return Ok(None) };
        StateOperator::of(statistics, &Attention::new(kernel, 0.0)?, operator.gamma()).map(Some)
    }
}

/// Changes that make layers converge faster or more provably than `certificate`, each verified by a certificate of
/// its own; the best of every kind, the best first.
pub fn suggestions(
    operator: &StateOperator,
    certificate: &Certificate,
    temperature: f64,
    kernel_at: KernelAt<'_>,
) -> Result<Vec<Suggestion>, OperatorError> {
    let every = if operator.statistics().num_groups() > MANY_STATES { 2 } else { 1 };
    let others = TEMPERATURES.into_iter().step_by(every).map(|f| f * temperature);
    let mut changes = vec![Change::StepSize(1.0), Change::StepsByMass, Change::UnitFeatures];
    changes.extend(others.clone().map(Change::Temperature));
    changes.extend(others.map(Change::UnitFeaturesAndTemperature));
    let examine = |change: Change| -> Result<Vec<Suggestion>, OperatorError> {
        let Some(changed) = change.apply(operator, temperature, kernel_at)? else { return Ok(Vec::new()) };
        let stability = Stability::of(&changed)?;
        let best = stability.spectrum.best_step();
        let mut found = Vec::new();
        // The step size in use where it does, else the best one.
        for alpha in [Some(certificate.alpha), best.map(|b| round_down(b.alpha))].into_iter().flatten() {
            let change = match change {
                Change::StepSize(_) => Change::StepSize(alpha),
                other => other,
            };
            let new = Certificate::from_stability(&changed, stability.clone(), alpha);
            let Contraction { norm_inf, rate, .. } = new.contraction;
            // A hundredth fewer layers is no reason to change anything.
            let faster = rate.ln() < 1.01 * certificate.contraction.rate.ln();
            let better = new.status < certificate.status || (new.status == certificate.status && faster);
            if better && new.status != Status::Refused {
                found.push(Suggestion { change, alpha, status: new.status, norm_inf, rate });
            }
        }
        Ok(found)
    };
    let found = changes.into_par_iter().map(examine).collect::<Result<Vec<_>, _>>()?;
    let mut found: Vec<Suggestion> = found.into_iter().flatten().collect();
    found.sort_by(|a, b| a.status.cmp(&b.status).then(a.rate.total_cmp(&b.rate)));
    let mut kinds = Vec::new();
    found.retain(|s| {
        let kind = std::mem::discriminant(&s.change);
        let new = !kinds.contains(&kind);
        kinds.push(kind);
        new
    });
    Ok(found)
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

/// ‖(M - γP)⁻¹‖∞; `None` when a state was never left or the matrix is singular to working precision.
fn inverse_norm(operator: &StateOperator) -> Option<f64> {
    let statistics = operator.statistics();
    if statistics.num_source_groups() < statistics.num_groups() {
        return None;
    }
    linalg::inverse(&operator.difference_matrix()).ok().map(|inverse| inverse.norm_inf())
}
