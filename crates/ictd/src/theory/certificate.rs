//! Certificates: whether depth helps on the states at hand, and why.

use serde::Serialize;

use crate::operator::{OperatorError, StateOperator};
use crate::statistics::largest;

use super::depth::Descent;
use super::outer::Krylov;
use super::spectrum::Spectrum;
use super::stability::{Regime, Stability};

/// Offending states that are listed; the count of all is always given.
pub(super) const LISTED: usize = 5;

/// How far a certificate goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Every layer contracts, ‖J‖∞ < 1: convergence at a known rate, by an inequality that was evaluated.
    Certified,
    /// The spectral radius is below 1: errors vanish in the long run, by the numbers; they may grow first.
    Estimated,
    /// Depth does not converge, or the numbers cannot tell.
    Refused,
    /// The eigenvalues could not be found: nothing is said.
    Undecided,
}

impl Status {
    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Certified => "certified",
            Self::Estimated => "estimated",
            Self::Refused => "refused",
            Self::Undecided => "undecided",
        }
    }

    /// Whether layers converge, by proof or by the numbers.
    pub fn converges(self) -> bool {
        matches!(self, Self::Certified | Self::Estimated)
    }
}

/// A state whose own visits weigh too little for Assumption 5.1.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Offender {
    /// The state, as numbered by the operator's statistics.
    pub state: usize,
    /// Its features.
    pub features: Vec<f64>,
    /// M(s, s).
    pub self_weight: f64,
    /// The other state that weighs most for it.
    pub attracted_by: Option<usize>,
    /// M(s, that state).
    pub attracting_weight: Option<f64>,
}

impl Offender {
    /// A state, its features and M(s, s), and the state that weighs most beside it.
    pub(super) fn new(
        state: usize,
        features: Vec<f64>,
        self_weight: f64,
        attraction: Option<(usize, f64)>,
    ) -> Self {
        let (attracted_by, attracting_weight) = (attraction.map(|a| a.0), attraction.map(|a| a.1));
        Self { state, features, self_weight, attracted_by, attracting_weight }
    }
}

/// The numbers behind contraction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Contraction {
    /// ‖J‖∞ with J = I - α(M - γP), rounded up, on all states of the context that another state's value rests on:
    /// those that were left or reached. `None` where no finite number is above it by proof: scores so large that their
    /// rounding decides what is attended to.
    pub norm_inf: Option<f64>,
    /// The spectral radius of J on TD errors: what a layer multiplies errors by in the long run. `None` where the eigenvalues
    /// could not be found, or the number overflows.
    pub spectral_radius: Option<f64>,
    /// What a layer multiplies the largest TD error per visit by at most, by proof and below 1, where layers were applied and no matrix
    /// was formed; else `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub td_error_rate: Option<f64>,
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
    pub never_left_states: usize,
}

impl Contraction {
    /// The number of layers after which no value, of queries neither, is further from the limit than `error`, by the proved rate κ of the
    /// TD errors; rounding of layers is not counted. Layers add α times an average of TD errors, whose first are the mean `rewards` by
    /// state, so that α·κ^L/(1 - κ)·max |rewards| is left after L of them.
    pub fn layers_by_td_errors(&self, step_size: f64, rewards: f64, error: f64) -> Option<u64> {
        let rate = self.td_error_rate?;
        let needed = (error * (1.0 - rate) / (step_size * rewards)).ln() / rate.ln();
        // Beyond 2⁵³ a count of layers is no number.
        Some(needed.ceil().max(0.0)).filter(|needed| *needed < 9e15).map(|needed| needed as u64)
    }
}

/// What step sizes do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Steps {
    /// Layers converge for every smaller step size; `None` when no step size converges.
    pub largest_stable: Option<f64>,
    /// The fastest step size.
    pub best: Option<f64>,
    /// The spectral radius there.
    pub best_spectral_radius: Option<f64>,
}

/// The values after the layers asked for, against the limit of infinite depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FixedPoint {
    /// The depth L asked for.
    #[serde(rename = "iterations")]
    pub num_layers: usize,
    /// The tolerance asked for.
    pub tolerance: f64,
    /// ‖v_∞‖∞.
    pub largest_value: f64,
    /// ‖(M - γP) v_∞ - M r‖∞: how well the limit solves its equation.
    #[serde(rename = "equation_residual_inf")]
    pub equation_residual: f64,
    /// ‖T(v_L) - v_L‖∞ after L layers.
    #[serde(rename = "residual_inf")]
    pub residual: f64,
    /// ‖v_L - v_∞‖∞ over all states, queries included, from the closed form.
    #[serde(rename = "error_to_empirical_fixed_point_inf")]
    pub error: f64,
    /// A proved bound on it, rounding included: what the TD errors after L layers say through U K⁻¹
    /// (`docs/proofs.md`). `None` when nothing is proved.
    #[serde(rename = "error_bound_inf")]
    pub error_bound: Option<f64>,
    /// Layers until the error is below the tolerance, predicted from the spectral radius.
    pub layers_predicted: Option<u64>,
    /// Layers after which every state, queries included, is within the tolerance, by proof: where ‖J‖∞ < 1 and
    /// rounding leaves room.
    pub layers_sufficient: Option<u64>,
    /// Why a bound or a number of layers is missing.
    pub notes: Vec<String>,
}

/// Whether to trust depth on a context or a task.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Certificate {
    /// The verdict.
    pub status: Status,
    /// Why it is not better, or what it rests on.
    pub reasons: Vec<String>,
    /// Step size α.
    pub step_size: f64,
    /// Contraction.
    pub contraction: Contraction,
    /// Conditions without diagonal dominance.
    pub stability: Stability,
    /// Step sizes.
    pub steps: Steps,
    /// How the eigenvalues were looked for where they are too many to be found all; what `None` means for the numbers above is then
    /// that they were not found.
    #[serde(rename = "spectrum", skip_serializing_if = "Option::is_none")]
    pub krylov: Option<Krylov>,
    /// Depth; `None` when the limit does not exist.
    pub fixed_point: Option<FixedPoint>,
}

/// What a certificate is asked about; [`certify`](Self::certify) answers.
///
/// | field | default | purpose | range |
/// |---|---|---|---|
/// | `step_size` | 1 | α of every layer | > 0, finite |
/// | `num_layers` | 15 | depth whose error is reported | |
/// | `tolerance` | 1e-3 | absolute error for the number of layers needed | > 0, finite |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CertificateConfig {
    /// Step size α.
    pub step_size: f64,
    /// Depth L whose error is reported.
    pub num_layers: usize,
    /// Absolute tolerance for the number of layers needed.
    pub tolerance: f64,
}

impl Default for CertificateConfig {
    fn default() -> Self {
        Self { step_size: 1.0, num_layers: 15, tolerance: 1e-3 }
    }
}

impl CertificateConfig {
    /// Examines an operator.
    pub fn certify(&self, operator: &StateOperator) -> Result<Certificate, OperatorError> {
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            return Err(OperatorError::Tolerance(self.tolerance));
        }
        let mut certificate = Certificate::verdict(operator, self.step_size)?;
        if certificate.status.converges() {
            certificate.fixed_point = fixed_point(operator, &certificate.contraction, self);
            if certificate.fixed_point.is_none() {
                certificate.status = Status::Refused;
                certificate
                    .reasons
                    .push("values or their limit cannot be computed in double precision".into());
            }
        }
        Ok(certificate)
    }
}

impl Certificate {
    /// The verdict for an operator with a step size, without looking at the limit.
    pub fn verdict(operator: &StateOperator, step_size: f64) -> Result<Self, OperatorError> {
        if !(step_size > 0.0 && step_size.is_finite()) {
            return Err(OperatorError::StepSize(step_size));
        }
        Ok(Self::from_stability(operator, Stability::of(operator)?, step_size))
    }

    /// The verdict for a step size, without looking at the limit.
    pub(super) fn from_stability(operator: &StateOperator, stability: Stability, step_size: f64) -> Self {
        let contraction = contraction(operator, &stability, step_size);
        let spectrum = stability.spectrum.as_ref();
        let best = spectrum.and_then(Spectrum::best_step);
        let steps = Steps {
            largest_stable: spectrum.and_then(Spectrum::largest_stable_step),
            best: best.map(|b| b.step_size),
            best_spectral_radius: best.map(|b| b.spectral_radius),
        };
        let (status, reasons) = judge(&stability, &contraction, &steps, step_size);
        Self { status, reasons, step_size, contraction, stability, steps, krylov: None, fixed_point: None }
    }
}

fn contraction(operator: &StateOperator, stability: &Stability, step_size: f64) -> Contraction {
    let diagonal = operator.self_weights();
    let required = 0.5 * (1.0 + operator.gamma());
    let mut violating: Vec<usize> = (0..diagonal.len()).filter(|&s| diagonal[s] < required).collect();
    violating.sort_by(|&a, &b| diagonal[a].total_cmp(&diagonal[b]));
    let offenders = violating.iter().take(LISTED).map(|&state| {
        let others = operator.predecessor_weights(state).enumerate().filter(|&(other, _)| other != state);
        let attraction = others.max_by(|a, b| a.1.total_cmp(&b.1));
        Offender::new(state, operator.statistics().features(state).to_vec(), diagonal[state], attraction)
    });
    Contraction {
        norm_inf: Some(operator.jacobian_norm(step_size)).filter(|norm| norm.is_finite()),
        spectral_radius: stability
            .spectrum
            .as_ref()
            .map(|spectrum| spectrum.spectral_radius(step_size))
            .filter(|radius| radius.is_finite()),
        td_error_rate: None,
        min_diag: diagonal.iter().copied().fold(f64::INFINITY, f64::min),
        mean_diag: diagonal.iter().sum::<f64>() / diagonal.len() as f64,
        required_diag: required,
        violating_states: violating.len(),
        offenders: offenders.collect(),
        never_left_states: operator.never_left().len(),
    }
}

fn judge(
    stability: &Stability,
    contraction: &Contraction,
    steps: &Steps,
    step_size: f64,
) -> (Status, Vec<String>) {
    let Contraction { norm_inf, spectral_radius, min_diag, required_diag, .. } = *contraction;
    let never_left = contraction.never_left_states;
    let mut reasons = Vec::new();
    if let Some(norm_inf) = norm_inf.filter(|&norm| norm < 1.0) {
        let source =
            if stability.assumption && step_size == 1.0 { ", as Assumption 5.1 implies" } else { "" };
        reasons.push(format!("every layer contracts: norm_inf {norm_inf:.6} < 1{source}"));
        return (Status::Certified, reasons);
    }
    if min_diag < required_diag {
        reasons.push(format!("min_diag {min_diag:.4} < {required_diag:.4}: Assumption 5.1 does not hold"));
    }
    reasons.push(match norm_inf {
        Some(norm) => format!("norm_inf {norm:.4} >= 1: a layer may enlarge errors"),
        None => {
            "norm_inf has no finite bound: scores are so large that their rounding decides weights".into()
        }
    });
    if never_left > 0 {
        reasons.push(format!("{never_left} states were reached but never left"));
    }
    let (Some(spectrum), Some(smallest)) = (&stability.spectrum, stability.smallest_real_part) else {
        reasons.push("the eigenvalues of M - gamma P could not be found: nothing is said".into());
        return (Status::Undecided, reasons);
    };
    if steps.largest_stable.is_none() {
        reasons.push(if spectrum.is_unstable() {
            format!("an eigenvalue of M - gamma P has real part {smallest:.3e} < 0: no step size converges")
        } else if stability.regime == Regime::Provable {
            format!("the smallest real part {smallest:.1e} is positive by proof but too small to tell: some errors stay for more than 1e12 layers")
        } else {
            format!("the smallest real part {smallest:.1e} is 0 up to rounding: convergence cannot be told")
        });
        return (Status::Refused, reasons);
    }
    let Some(spectral_radius) = spectral_radius.filter(|&radius| radius < 1.0) else {
        let limit = steps.largest_stable.unwrap_or(0.0);
        reasons.push(if step_size < limit {
            format!("step size {step_size:e} is too small: layers change nothing up to rounding")
        } else {
            format!("step size {step_size} is too large: layers converge below {limit:.4e} only")
        });
        return (Status::Refused, reasons);
    };
    reasons.push(format!("spectral radius 1 - {:.1e}: errors vanish in the long run", 1.0 - spectral_radius));
    if stability.regime == Regime::Provable {
        reasons.push("some step size converges by proof (the form condition holds)".into());
    }
    (Status::Estimated, reasons)
}

fn fixed_point(
    operator: &StateOperator,
    contraction: &Contraction,
    config: &CertificateConfig,
) -> Option<FixedPoint> {
    let CertificateConfig { step_size, num_layers, tolerance } = *config;
    let mut descent = Descent::new(operator, step_size)?;
    (0..num_layers).for_each(|_| descent.layer());
    let (error, error_bound) = descent.distance();
    let Descent { enclosure, limit, values, .. } = descent;
    let largest_value = largest_of(&limit);
    let gap = |x: &[f64], y: &[f64]| largest(x.iter().zip(y).map(|(a, b)| (a - b).abs()));
    let mut notes = Vec::new();
    if enclosure.is_none() {
        notes.push(
            "no bound is proved: in double precision the equations cannot be told from singular ones".into(),
        );
    }
    if enclosure.is_some() && error_bound.is_none() {
        notes.push(
            "no bound is proved: rounding decides what some state attends to, or values overflow".into(),
        );
    }
    let norm = contraction.norm_inf.filter(|&norm| norm < 1.0 && error_bound.is_some());
    let layers_sufficient = enclosure
        .zip(norm)
        .and_then(|(enclosure, norm)| enclosure.sufficient_layers(step_size, norm, tolerance));
    if norm.is_some() && layers_sufficient.is_none() {
        notes.push(format!("no number of layers is proved: rounding may exceed the tolerance {tolerance:e}"));
    }
    let equation_residual = gap(&operator.apply(1.0, &limit), &limit);
    let residual = gap(&operator.apply(step_size, &values), &values);
    if ![error, largest_value, equation_residual, residual].iter().all(|x| x.is_finite()) {
        return None;
    }
    let rate = contraction.spectral_radius.filter(|&radius| radius < 1.0);
    let needed = rate.map(|rate| ((tolerance / largest_value).ln() / rate.ln()).ceil().max(1.0));
    // Beyond 2⁵³ a count of layers is no number.
    let layers_predicted = match largest_value <= tolerance {
        true => Some(0),
        false => needed.filter(|&needed| needed < 9e15).map(|needed| needed as u64),
    };
    Some(FixedPoint {
        num_layers,
        tolerance,
        equation_residual,
        residual,
        error,
        error_bound,
        layers_predicted,
        layers_sufficient,
        largest_value,
        notes,
    })
}

/// The largest absolute value.
pub(super) fn largest_of(values: &[f64]) -> f64 {
    largest(values.iter().map(|x| x.abs()))
}
