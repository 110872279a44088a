//! Certificates of so many states that no matrix is formed.

use crate::kernel::Normalization;
use crate::linalg::LinalgError;
use crate::operator::{AppliedOperator, OperatorError};
use crate::statistics::largest;

use super::certificate::{
    Certificate, CertificateConfig, Contraction, FixedPoint, LISTED, Offender, Status, Steps, largest_of,
};
use super::form::form_bound;
use super::outer::{Krylov, Outer};
use super::stability::{Regime, Stability};

/// Products that eigenvalues are looked for with, ...
const PRODUCTS: usize = 40;
/// ... and where a rate is proved without them.
const PROVED_PRODUCTS: usize = 20;
/// Layers whose values are computed at most.
const MAX_LAYERS: usize = 1000;

impl Certificate {
    /// The verdict for an operator that is not formed with a step size, by products alone and without looking at the limit.
    ///
    /// Contraction and the form condition are bounded by proof, from the diagonal and the masses. Of the eigenvalues the outermost
    /// are looked for; a verdict rests on them only where they were found, with a residual that is small beside the distance that
    /// decides. What is not found is `None`, and the status `Undecided` where nothing else decides.
    pub fn verdict_applied(
        operator: &mut AppliedOperator<'_>,
        step_size: f64,
    ) -> Result<Self, OperatorError> {
        Ok(examined(operator, step_size)?.0)
    }
}

impl CertificateConfig {
    /// Examines an operator that is not formed, as [`Certificate::verdict_applied`] does, and its limit.
    pub fn certify_applied(&self, operator: &mut AppliedOperator<'_>) -> Result<Certificate, OperatorError> {
        if !(self.tolerance > 0.0 && self.tolerance.is_finite()) {
            return Err(OperatorError::Tolerance(self.tolerance));
        }
        let (mut certificate, proof) = examined(operator, self.step_size)?;
        if certificate.status.converges() || proof.converges() {
            match fixed_point(operator, &certificate.contraction, self)? {
                Ok(found) => certificate.fixed_point = Some(found),
                Err(reason) => {
                    certificate.reasons.push(reason);
                    // Numbers alone, that is: then there should be a limit to compute.
                    if !proof.converges() {
                        certificate.status = Status::Undecided;
                    }
                }
            }
        }
        Ok(certificate)
    }
}

/// The verdict, and what of it is proved.
fn examined(
    operator: &mut AppliedOperator<'_>,
    step_size: f64,
) -> Result<(Certificate, Proof), OperatorError> {
    if !(step_size > 0.0 && step_size.is_finite()) {
        return Err(OperatorError::StepSize(step_size));
    }
    let proof = Proof::of(operator, step_size);
    let most = if proof.has_rate() { PROVED_PRODUCTS } else { PRODUCTS };
    let outer = match Outer::of(operator, step_size, most) {
        Err(OperatorError::Linalg(LinalgError::NoConvergence { .. })) => None,
        other => other?,
    };
    let contraction = contraction(operator, &proof, outer.as_ref())?;
    let stability = stability(operator, &proof, outer.as_ref());
    let (status, reasons) = judge(&proof, &contraction, outer.as_ref(), step_size);
    let certificate = Certificate {
        status,
        reasons,
        step_size,
        contraction,
        stability,
        steps: Steps { largest_stable: None, best: None, best_spectral_radius: None },
        krylov: outer.map(|outer| outer.krylov),
        fixed_point: None,
    };
    Ok((certificate, proof))
}

/// What is proved without eigenvalues.
struct Proof {
    /// ‖J‖∞ on all states that another one's value rests on is at most this.
    norm: Option<f64>,
    /// A layer multiplies TD errors per visit by at most this: the same bound on the states that were left alone. It decides convergence
    /// where a state was reached and never left.
    error_norm: Option<f64>,
    /// min M(s, s) - (1+γ)/2.
    margin: f64,
    /// Assumption 5.1.
    assumption: bool,
    /// 1 less the bound of the form condition.
    form_margin: Option<f64>,
    /// Step sizes below this converge, by the form condition.
    form_step: Option<f64>,
    step_size: f64,
}

impl Proof {
    fn of(operator: &AppliedOperator<'_>, step_size: f64) -> Self {
        let (gamma, error) = (operator.gamma(), operator.weight_error());
        let smallest = operator.self_weights().iter().copied().fold(f64::INFINITY, f64::min);
        let is_stochastic = operator.attention().kernel().normalization() == Normalization::ByColumn;
        let is_closed = operator.never_left().is_empty();
        // Rows of M sum to 1 or, without any similarity, to 0; entries beside the diagonal are taken as if none met one of γP.
        let row = |own: f64| {
            let sum = (1.0 - step_size * own).abs() + step_size * ((1.0 - own).max(0.0) + gamma);
            let rounding = 2.0 * step_size * error + 16.0 * f64::EPSILON * (1.0 + step_size);
            Some(sum + rounding).filter(|norm| is_stochastic && norm.is_finite())
        };
        let rows = || operator.self_weights().iter().map(|&own| row(own));
        let error_norm = rows().try_fold(0.0, |m: f64, norm| Some(m.max(norm?)));
        let norm = if is_closed { error_norm } else { error_norm.zip(row(0.0)).map(|(a, b)| a.max(b)) };
        let masses = operator.log_masses().filter(|_| is_closed);
        let form =
            masses.and_then(|(masses, rounding)| form_bound(operator.statistics(), gamma, masses, rounding));
        let margin = smallest - 0.5 * (1.0 + gamma);
        Self {
            norm,
            error_norm,
            margin,
            assumption: margin > error && is_closed && is_stochastic,
            form_margin: form.map(|bound| 1.0 - bound),
            form_step: form.filter(|bound| *bound < 1.0).map(|bound| 2.0 / (1.0 + bound)),
            step_size,
        }
    }

    /// Whether TD errors shrink by a factor that is proved.
    fn has_rate(&self) -> bool {
        self.error_norm.is_some_and(|norm| norm < 1.0)
    }

    /// Whether layers converge with this step size, however slowly, by the contraction of TD errors or by the form condition.
    fn converges(&self) -> bool {
        self.has_rate() || self.form_step.is_some_and(|a| self.step_size < a)
    }
}

fn contraction(
    operator: &AppliedOperator<'_>,
    proof: &Proof,
    outer: Option<&Outer>,
) -> Result<Contraction, OperatorError> {
    let diagonal = operator.self_weights();
    let required = 0.5 * (1.0 + operator.gamma());
    let mut violating: Vec<usize> = (0..diagonal.len()).filter(|&s| diagonal[s] < required).collect();
    violating.sort_by(|&a, &b| diagonal[a].total_cmp(&diagonal[b]));
    let offenders = violating.iter().take(LISTED).map(|&state| {
        let weights = operator.predecessor_weights(state)?;
        let others = weights.into_iter().enumerate().filter(|&(other, _)| other != state);
        let attraction = others.max_by(|a, b| a.1.total_cmp(&b.1));
        let features = operator.statistics().features(state).to_vec();
        Ok(Offender::new(state, features, diagonal[state], attraction))
    });
    Ok(Contraction {
        norm_inf: proof.norm,
        spectral_radius: outer.and_then(|outer| outer.radius).filter(|radius| radius.is_finite()),
        td_error_rate: proof.error_norm.filter(|norm| *norm < 1.0),
        min_diag: diagonal.iter().copied().fold(f64::INFINITY, f64::min),
        mean_diag: diagonal.iter().sum::<f64>() / diagonal.len() as f64,
        required_diag: required,
        violating_states: violating.len(),
        offenders: offenders.collect::<Result<_, OperatorError>>()?,
        never_left_states: operator.never_left().len(),
    })
}

fn stability(operator: &AppliedOperator<'_>, proof: &Proof, outer: Option<&Outer>) -> Stability {
    let flatness = operator.log_masses().map(|(m, _)| {
        let (low, high) =
            m.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &x| (l.min(x), h.max(x)));
        operator.gamma() * (0.5 * (high - low)).exp()
    });
    let smallest_real_part = outer.and_then(|outer| outer.smallest_real_part);
    let regime = match smallest_real_part {
        _ if proof.assumption => Regime::Assumption,
        _ if proof.form_margin.is_some_and(|m| m > 0.0) => Regime::Provable,
        // |1 - αλ| < 1 says that real parts are positive.
        _ if proof.converges() => Regime::InFact,
        Some(smallest) if smallest > 0.0 => Regime::InFact,
        Some(_) => Regime::Unstable,
        None => Regime::Undecided,
    };
    Stability {
        regime,
        margin: proof.margin,
        assumption: proof.assumption,
        flatness: flatness.filter(|f| f.is_finite()),
        form_margin: proof.form_margin,
        smallest_real_part,
        spectrum: None,
    }
}

fn judge(
    proof: &Proof,
    contraction: &Contraction,
    outer: Option<&Outer>,
    step_size: f64,
) -> (Status, Vec<String>) {
    let Contraction { min_diag, required_diag, never_left_states, .. } = *contraction;
    let mut reasons = Vec::new();
    if let Some(norm) = proof.norm.filter(|&norm| norm < 1.0) {
        let source = if proof.assumption && step_size == 1.0 { ", as Assumption 5.1 implies" } else { "" };
        reasons.push(format!("every layer contracts: norm_inf {norm:.6} < 1{source}"));
        return (Status::Certified, reasons);
    }
    if min_diag < required_diag {
        reasons.push(format!("min_diag {min_diag:.4} < {required_diag:.4}: Assumption 5.1 does not hold"));
    }
    reasons.push(match proof.norm {
        Some(norm) => {
            format!("norm_inf is at most {norm:.4}, which is not below 1: a layer may enlarge errors")
        }
        None => {
            "norm_inf has no bound: rounding of the scores decides weights, or they do not sum to 1".into()
        }
    });
    if never_left_states > 0 {
        reasons.push(format!("{never_left_states} states were reached but never left"));
    }
    if let Some(norm) = proof.error_norm.filter(|&norm| norm < 1.0) {
        reasons.push(format!(
            "TD errors shrink by {norm:.6} at least in every layer, by proof: errors vanish in the long run"
        ));
        return (Status::Estimated, reasons);
    }
    if let (Some(margin), Some(limit)) = (proof.form_margin.filter(|m| *m > 0.0), proof.form_step) {
        if step_size < limit {
            reasons.push(format!(
                "the form condition holds with a margin of {margin:.4}, and with it every step size below {limit:.4} converges: errors vanish in the long run, by proof"
            ));
            // The proof tells no rate: kernels that are wide beside the distances between states leave some errors for ever, in practice.
            let Some(outer) = outer else {
                reasons.push("how slowly could not be found: no eigenvalue of a layer was".into());
                return (Status::Undecided, reasons);
            };
            let found = in_words(&outer.krylov);
            if outer.stands_still() {
                reasons.push(format!("some errors stay for more than 1e12 layers: {found}"));
                return (Status::Refused, reasons);
            }
            if outer.radius.is_none() {
                reasons.push(format!("how slowly could not be found: {found}"));
                return (Status::Undecided, reasons);
            }
            return (Status::Estimated, reasons);
        }
        reasons.push("some smaller step size converges by proof (the form condition holds)".into());
    }
    let Some(outer) = outer else {
        reasons.push("no eigenvalue of a layer could be found: nothing is said".into());
        return (Status::Undecided, reasons);
    };
    if let Some(growth) = outer.growth() {
        let found = in_words(&outer.krylov);
        // That of the eigenvalue that is told, which need not be the smallest.
        let told = (1.0 - outer.krylov.ritz.re) / step_size;
        reasons.push(match outer.smallest_real_part.filter(|re| *re < 0.0).map(|re| if told < 0.0 { told } else { re }) {
            Some(re) => {
                format!("an eigenvalue of M - gamma P has real part {re:.3e} < 0: errors grow with every step size; {found}")
            }
            None => format!("step size {step_size} is too large: {found}"),
        });
        reasons.push(format!("at some depth errors are at least {growth:.0e} times what they were at first"));
        return (Status::Refused, reasons);
    }
    if let (Some(radius), Some(smallest)) = (outer.radius.filter(|r| *r < 1.0), outer.smallest_real_part)
        && smallest > 0.0
    {
        reasons.push(format!(
            "spectral radius 1 - {:.1e}, by {}: errors vanish in the long run",
            1.0 - radius,
            in_words(&outer.krylov)
        ));
        return (Status::Estimated, reasons);
    }
    let is_near = (outer.krylov.ritz.modulus() - 1.0).abs() < 0.1;
    let doubt = if is_near { "eigenvalues near 1 cannot be told from it" } else { "it may be anywhere near" };
    reasons.push(format!(
        "whether the slowest errors vanish could not be found: {}; {doubt}",
        in_words(&outer.krylov)
    ));
    (Status::Undecided, reasons)
}

/// What an iteration found.
fn in_words(krylov: &Krylov) -> String {
    let Krylov { products, residual, ritz, .. } = krylov;
    let modulus = ritz.modulus();
    let size = if (0.9..1.1).contains(&modulus) {
        let sign = if modulus < 1.0 { '-' } else { '+' };
        format!("1 {sign} {:.1e}", (modulus - 1.0).abs())
    } else {
        format!("{modulus:.4}")
    };
    // One outside that was found is enough, and is told; others may lie farther out.
    let which =
        if modulus > 1.0 { "an eigenvalue of a layer" } else { "the outermost eigenvalue of a layer" };
    format!("{which} that {products} products show has size {size} with a residual of {residual:.1e}")
}

/// The values after the layers asked for, against the limit; or why there are none.
fn fixed_point(
    operator: &mut AppliedOperator<'_>,
    contraction: &Contraction,
    config: &CertificateConfig,
) -> Result<Result<FixedPoint, String>, OperatorError> {
    let CertificateConfig { step_size, num_layers, tolerance } = *config;
    if num_layers > MAX_LAYERS {
        return Ok(Err(format!(
            "values after {num_layers} layers are not computed: on so many states at most {MAX_LAYERS} are"
        )));
    }
    let limit = operator.infinite_depth()?;
    let (found, all) = (limit.num_found, limit.values.len());
    if found == 0 {
        return Ok(Err(format!(
            "the limit of infinite depth could not be found: after {} products {:.1e} of the TD errors are left",
            limit.products, limit.residual
        )));
    }
    operator.begin("layers", num_layers + 2)?;
    let mut v = vec![0.0; all];
    for _ in 0..num_layers {
        v = operator.apply(step_size, &v)?;
    }
    let gap = |x: &[f64], y: &[f64]| largest(x[..found].iter().zip(y).map(|(a, b)| (a - b).abs()));
    let equation_residual = gap(&operator.apply(1.0, &limit.values)?, &limit.values);
    let residual = gap(&operator.apply(step_size, &v)?, &v);
    let (error, largest_value) = (gap(&v, &limit.values), largest_of(&limit.values[..found]));
    if ![error, largest_value, equation_residual, residual].iter().all(|x| x.is_finite()) {
        return Ok(Err("values or their limit cannot be computed in double precision".into()));
    }
    let mut notes = vec!["no bound is proved: on so many states none is computed".to_owned()];
    if found < all {
        notes.push(format!("the limit of {} queries could not be found: they are left out", all - found));
    }
    let rate = contraction.spectral_radius.filter(|&radius| radius < 1.0);
    let needed = rate.map(|rate| ((tolerance / largest_value).ln() / rate.ln()).ceil().max(1.0));
    // Beyond 2⁵³ a count of layers is no number.
    let by_rate = needed.filter(|&needed| needed < 9e15).map(|needed| needed as u64);
    let proved =
        || contraction.layers_by_td_errors(step_size, operator.statistics().largest_reward(), tolerance);
    let layers_predicted = if largest_value <= tolerance { Some(0) } else { by_rate.or_else(proved) };
    Ok(Ok(FixedPoint {
        num_layers,
        tolerance,
        largest_value,
        equation_residual,
        residual,
        error,
        error_bound: None,
        layers_predicted,
        layers_sufficient: None,
        notes,
    }))
}
