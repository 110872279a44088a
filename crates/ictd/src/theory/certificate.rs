//! Certificates: whether depth helps on the states at hand, why, and what to change when it does not.

use std::cmp::Ordering;

use crate::kernel::{Attention, Kernel};
use crate::linalg;
use crate::operator::{OperatorError, StateOperator};

use super::stability::{Regime, Stability};

/// Offending states and suggestions that are listed; the count of all is always given.
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
    pub best: Option<super::BestStep>,
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
        let stability = Stability::of(operator)?;
        let contraction = contraction(operator, &stability, alpha);
        let spectrum = &stability.spectrum;
        let steps = Steps {
            largest_stable: spectrum.largest_stable_step(),
            best: spectrum.best_step(),
            smallest_real_part: spectrum.smallest_real_part(),
        };
        let (status, reasons) = judge(&stability, &contraction, &steps, alpha);
        let fixed_point = match status {
            Status::Refused => None,
            _ => fixed_point(operator, &contraction, alpha, num_layers, tolerance),
        };
        Ok(Self { status, reasons, alpha, contraction, stability, steps, fixed_point })
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
        let source = if stability.margin > 0.0 && alpha == 1.0 { ", as Assumption 5.1 implies" } else { "" };
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
        } else {
            format!("the smallest real part {smallest:.1e} is 0 up to rounding: convergence cannot be told")
        });
        return (Status::Refused, reasons);
    }
    if !(rate < 1.0) {
        let limit = steps.largest_stable.unwrap_or(0.0);
        reasons.push(format!("step size {alpha} is too large: layers converge below {limit:.4} only"));
        return (Status::Refused, reasons);
    }
    reasons.push(format!("spectral radius {rate:.6} < 1: errors vanish in the long run"));
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
        let needed = ((tolerance / largest_value).ln() / rate.ln()).ceil();
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
const TEMPERATURES: [f64; 9] = [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];

/// Changes that make layers converge faster or more provably than `certificate`, each verified by a certificate of
/// its own; the best first. `kernel_at` gives the kernel at a temperature.
pub fn suggestions(
    operator: &StateOperator,
    certificate: &Certificate,
    temperature: f64,
    kernel_at: impl Fn(f64) -> Option<std::sync::Arc<dyn Kernel>>,
) -> Result<Vec<Suggestion>, OperatorError> {
    let mut found: Vec<Suggestion> = Vec::new();
    let mut examine = |change: Change, changed: &StateOperator, alpha: f64| -> Result<(), OperatorError> {
        let new = Certificate::new(changed, alpha, 0, 1.0)?;
        let better = (new.status, OrderedRate(new.contraction.rate))
            < (certificate.status, OrderedRate(certificate.contraction.rate));
        if better && new.status != Status::Refused {
            let Contraction { norm_inf, rate, .. } = new.contraction;
            found.push(Suggestion { change, alpha, status: new.status, norm_inf, rate });
        }
        Ok(())
    };
    if let Some(best) = certificate.steps.best {
        examine(Change::StepSize(best.alpha), operator, best.alpha)?;
    }
    if let Some(scaled) = operator.with_steps_by_mass()
        && let Some(best) = super::Spectrum::of(&scaled)?.best_step()
    {
        examine(Change::StepsByMass, &scaled, best.alpha)?;
    }
    let unit = operator.statistics().with_unit_features();
    for (normalised, statistics) in [(false, Some(operator.statistics().clone())), (true, unit)] {
        let Some(statistics) = statistics else { continue };
        for factor in TEMPERATURES {
            let changed_temperature = factor != 1.0;
            if !normalised && !changed_temperature {
                continue;
            }
            let Some(kernel) = kernel_at(factor * temperature) else { continue };
            let Ok(attention) = Attention::new(kernel, 0.0) else { continue };
            let Ok(changed) = StateOperator::of(statistics.clone(), &attention, operator.gamma()) else {
                continue;
            };
            let change = match (normalised, changed_temperature) {
                (false, _) => Change::Temperature(factor * temperature),
                (true, false) => Change::UnitFeatures,
                (true, true) => Change::UnitFeaturesAndTemperature(factor * temperature),
            };
            // Step size 1 where it contracts, else the best one.
            examine(change, &changed, certificate.alpha)?;
            if let Some(best) = super::Spectrum::of(&changed)?.best_step() {
                examine(change, &changed, best.alpha)?;
            }
        }
    }
    found.sort_by(|a, b| (a.status, OrderedRate(a.rate)).cmp(&(b.status, OrderedRate(b.rate))));
    // The best of every kind.
    let mut kinds = Vec::new();
    found.retain(|s| {
        let kind = std::mem::discriminant(&s.change);
        let new = !kinds.contains(&kind);
        kinds.push(kind);
        new
    });
    found.truncate(LISTED);
    Ok(found)
}

/// A rate as a sort key.
#[derive(PartialEq)]
struct OrderedRate(f64);

impl Eq for OrderedRate {}

impl PartialOrd for OrderedRate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedRate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// ‖(M - γP)⁻¹‖∞; `None` when a state was never left or the matrix is singular to working precision.
fn inverse_norm(operator: &StateOperator) -> Option<f64> {
    let statistics = operator.statistics();
    if statistics.num_source_groups() < statistics.num_groups() {
        return None;
    }
    linalg::inverse(&operator.difference_matrix()).ok().map(|inverse| inverse.norm_inf())
}
