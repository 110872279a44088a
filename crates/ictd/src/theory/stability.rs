//! Conditions under which depth converges, with and without diagonal dominance.
//!
//! A layer at theta_* with a positive definite kernel k has X = M - γMP with M = diag(w)⁻¹ E diag(μ),
//! E(s, u) = k(s, u), w(s) = Σ_u μ(u) k(s, u). Three conditions, from the paper's to weaker ones
//! (proofs in `docs/proofs.md`):
//!
//! 1. Assumption 5.1: every M(s, s) ≥ (1+γ)/2 + C, rows of M summing to 1. Then ‖I - X‖∞ ≤ 1 - 2C: contraction at
//!    step size 1.
//! 2. The form condition: λ_max of the symmetric part of γ·D^½ P D^-½, D = diag(μ w), is below 1. Then every
//!    eigenvalue of X has a positive real part and every small enough step size converges. With μ stationary for P, as
//!    in the population, it holds when γ·√(max w / min w) < 1: the flat-kernel regime, opposite to the first.
//! 3. All eigenvalues of X have positive real parts, found numerically.

use serde::Serialize;

use crate::linalg::{self, LinalgError};
use crate::matrix::Matrix;
use crate::operator::{OperatorError, StateOperator};

use super::spectrum::Spectrum;

/// The strongest of the conditions that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Regime {
    /// Assumption 5.1.
    Assumption,
    /// The form condition: a small enough step size converges, by proof.
    Provable,
    /// All real parts are positive: a small enough step size converges, by the numbers.
    #[serde(rename = "in fact")]
    InFact,
    /// Real parts are 0 up to rounding: the numbers cannot tell.
    Marginal,
    /// Some real part is negative: no step size converges.
    Unstable,
    /// The eigenvalues could not be found: nothing is known.
    Undecided,
}

impl Regime {
    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Assumption => "assumption",
            Self::Provable => "provable",
            Self::InFact => "in fact",
            Self::Marginal => "marginal",
            Self::Unstable => "unstable",
            Self::Undecided => "undecided",
        }
    }
}

/// What the conditions say about an operator.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Stability {
    /// The strongest condition that holds.
    pub regime: Regime,
    /// min_s M(s, s) - (1+γ)/2: Assumption 5.1 (ass:diagonal-margin) holds with any smaller C > 0.
    pub margin: f64,
    /// Whether Assumption 5.1 holds and says something: the margin is positive, rows of M sum to 1, and every
    /// state that was reached was left.
    pub assumption: bool,
    /// γ·√(max w / min w), for positive definite kernels; `None` where it overflows too.
    pub flatness: Option<f64>,
    /// 1 - λ_max of the symmetric part of γ·D^½ P D^-½: positive means provably stable. For positive
    /// definite kernels on states of which none was reached and never left.
    pub form_margin: Option<f64>,
    /// The smallest real part of the eigenvalues; when negative no step size converges. `None` where they could not be found.
    pub smallest_real_part: Option<f64>,
    /// The eigenvalues; left out of files, being as many as states. `None` where they could not be found.
    #[serde(skip)]
    pub spectrum: Option<Spectrum>,
}

impl Stability {
    /// Evaluates all conditions.
    pub fn of(operator: &StateOperator) -> Result<Self, OperatorError> {
        match Spectrum::of(operator) {
            Ok(spectrum) => Ok(Self::with_spectrum(operator, Some(spectrum))),
            Err(OperatorError::Linalg(LinalgError::NoConvergence { .. })) => {
                Ok(Self::with_spectrum(operator, None))
            }
            Err(error) => Err(error),
        }
    }

    /// What the conditions say beside a spectrum, or without one.
    pub(super) fn with_spectrum(operator: &StateOperator, spectrum: Option<Spectrum>) -> Self {
        let sources = operator.statistics().num_source_groups();
        let diagonal = operator.self_weights();
        let margin = diagonal.iter().copied().fold(f64::INFINITY, f64::min) - 0.5 * (1.0 + operator.gamma());
        let masses = operator.log_masses();
        let flatness = masses.map(|m| {
            let (low, high) =
                m.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &x| (l.min(x), h.max(x)));
            operator.gamma() * (0.5 * (high - low)).exp()
        });
        let flatness = flatness.filter(|f| f.is_finite());
        // Queries that nothing leads to are no part of the map on the states that were left.
        let closed = operator.never_left().is_empty();
        let form_margin = masses.filter(|_| closed).and_then(|masses| form_margin(operator, masses));
        // Rows are sums of up to a few thousand rounded weights.
        let is_stochastic = |u: usize| (operator.predecessor_weights(u).sum::<f64>() - 1.0).abs() < 1e-9;
        let assumption = margin > 0.0 && closed && (0..sources).all(is_stochastic);
        let regime = match &spectrum {
            _ if assumption => Regime::Assumption,
            _ if form_margin.is_some_and(|m| m > 0.0) => Regime::Provable,
            None => Regime::Undecided,
            Some(spectrum) if spectrum.is_stable() => Regime::InFact,
            Some(spectrum) if spectrum.is_unstable() => Regime::Unstable,
            Some(_) => Regime::Marginal,
        };
        let smallest_real_part = spectrum.as_ref().map(Spectrum::smallest_real_part);
        Self { regime, margin, assumption, flatness, form_margin, smallest_real_part, spectrum }
    }
}

/// 1 - γ·λ_max(sym(D^½ P D^-½)) with D = diag(visits·w). `None` when masses are too far apart to form it or to find its
/// eigenvalues, or a state has no visits.
fn form_margin(operator: &StateOperator, masses: &[f64]) -> Option<f64> {
    // Without a future the form is the identity.
    if operator.gamma() == 0.0 {
        return Some(1.0);
    }
    let statistics = operator.statistics();
    let visits = statistics.visits();
    let log_weight = |s: usize| visits[s].ln() + masses[s];
    let m = masses.len();
    let mut g = Matrix::zeros(m, m);
    for s in 0..m {
        for (next, count) in statistics.successors(s) {
            g[(s, next)] += count / visits[s] * (0.5 * (log_weight(s) - log_weight(next))).exp();
        }
    }
    let symmetric = Matrix::from_fn(m, m, |i, j| 0.5 * operator.gamma() * (g[(i, j)] + g[(j, i)]));
    let values = linalg::symmetric_eigenvalues(&symmetric).ok()?;
    values.last().map(|largest| 1.0 - largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theory::{Certificate, Status};
    use crate::{Attention, Family, KernelName, Purpose, Stream, TaskSource as _};

    /// Without a spectrum nothing is said that rests on one, and what does not stands.
    #[test]
    fn a_spectrum_that_is_not_found_decides_nothing() {
        let attention = Attention::new(KernelName::Softmax.at(1.0).unwrap(), 0.0).unwrap();
        let of = |family: Family| {
            let task = family.draw(&mut Stream::new(0, Purpose::Task, 0)).unwrap();
            let operator = StateOperator::population(&task, &attention).unwrap();
            let unknown = Stability::with_spectrum(&operator, None);
            assert_eq!((unknown.smallest_real_part, unknown.spectrum.is_none()), (None, true));
            let certificate = Certificate::from_stability(&operator, unknown.clone(), 1.0);
            (unknown.regime, certificate)
        };
        let (regime, certificate) = of(Family { score_scale: 1000.0, ..Family::paper() });
        assert_eq!((regime, certificate.status), (Regime::Undecided, Status::Undecided));
        assert!(!certificate.status.converges() && certificate.contraction.spectral_radius.is_none());
        assert!(certificate.steps.largest_stable.is_none());
        assert!(certificate.reasons.last().unwrap().contains("could not be found"));
        let (regime, certificate) = of(Family::certified());
        assert_eq!((regime, certificate.status), (Regime::Assumption, Status::Certified));
        assert_eq!(of(Family::paper()).0, Regime::Provable);
    }

    /// Sharp layers, on which the library gives up on some processors: each search leads to the same verdict, and none to none.
    #[test]
    fn searches_that_fail_do_not_change_a_verdict() {
        let attention = Attention::new(KernelName::Softmax.at(1.0).unwrap(), 0.0).unwrap();
        let family = Family { num_states: 8, score_scale: 1000.0, ..Family::paper() };
        let mut undecided = 0;
        for index in 0..6 {
            let task = family.draw(&mut Stream::new(0, Purpose::Task, index)).unwrap();
            let operator = StateOperator::population(&task, &attention).unwrap();
            let after = |failed| linalg::testing::with_failed(failed, || Stability::of(&operator)).unwrap();
            let first = after(0);
            assert_ne!(first.regime, Regime::Undecided);
            for failed in 1..6 {
                assert_eq!(after(failed).regime, first.regime, "task {index}, search {failed}");
            }
            let none = after(usize::MAX);
            assert_eq!(none.smallest_real_part, None);
            // What is proved without a spectrum stands.
            if first.regime > Regime::Provable {
                undecided += 1;
                assert_eq!(none.regime, Regime::Undecided);
                assert_eq!(Certificate::from_stability(&operator, none, 1.0).status, Status::Undecided);
            } else {
                assert_eq!(none.regime, first.regime);
            }
        }
        assert!(undecided > 0);
    }
}
