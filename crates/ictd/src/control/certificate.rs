//! What is known about depth under Boltzmann's backup, whose layers are not linear.

use serde::Serialize;

use super::Backup;
use super::boltzmann::{boltzmann_lipschitz, boltzmann_lipschitz_within};
use super::config::ControlError;
use super::operator::PairOperator;
use crate::operator::{OperatorError, StateOperator};
use crate::statistics::largest;

/// Whether layers of Boltzmann's backup converge, by contraction in the maximum norm (`docs/constructions/control.md` has the proof).
///
/// With κ₀ = ‖I - αM‖∞ and a Lipschitz constant Λ of the backup, a layer contracts by κ₀ + αγΛ. Λ is that of values within the bound
/// α·max|r|/(1 - κ₀ - αγ), which layers from Q = 0 do not leave.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BoltzmannCertificate {
    /// Whether every layer contracts by proof; where not, nothing is said about convergence.
    pub certified: bool,
    /// Why, or why not.
    pub reasons: Vec<String>,
    /// Step size α.
    pub step_size: f64,
    /// β.
    pub beta: f64,
    /// ‖I - αM‖∞ over the pairs that were left or reached, rounded up; `None` where it has no finite bound.
    pub norm_inf: Option<f64>,
    /// No value exceeds it in any layer from Q = 0; `None` where there is no such bound.
    pub value_bound: Option<f64>,
    /// The Lipschitz constant of the backup over values within that bound, over all values where there is none.
    pub lipschitz: f64,
    /// κ: two lists of values differ by at most κ times as much after a layer; `None` where κ₀ has no bound.
    pub rate: Option<f64>,
    /// No value of the limit is further from the optimum of the counted process than γ·log|A|/(β(1-γ)); `None` without a limit, for β
    /// = 0 and where a pair of a reached state was never left.
    pub gap_bound: Option<f64>,
}

impl BoltzmannCertificate {
    /// Examines layers with step size α.
    pub fn of(operator: &PairOperator, step_size: f64) -> Result<Self, ControlError> {
        let config = operator.control().config();
        let Backup::Boltzmann(beta) = config.backup else {
            return Err(ControlError::NotBoltzmann(config.backup.as_str()));
        };
        if !(step_size > 0.0 && step_size.is_finite()) {
            return Err(OperatorError::StepSize(step_size).into());
        }
        let (gamma, actions) = (config.gamma, operator.num_actions());
        let weights = operator.weights();
        let statistics = weights.statistics();
        // Without a discount the Jacobian is I - αM.
        let still = StateOperator::of(statistics.clone(), operator.control().attention(), 0.0)?;
        let norm = still.jacobian_norm(step_size);
        // Rows of M sum to 1 up to the rounding of weights.
        let mass = 1.0 + largest(weights.weight_errors()).max(1e-12);
        let carried = step_size * gamma * mass;
        let value_bound = Some(step_size * mass * statistics.largest_reward() / (1.0 - norm - carried))
            .filter(|bound| norm + carried < 1.0 && bound.is_finite());
        let lipschitz = match value_bound {
            Some(bound) => boltzmann_lipschitz_within(actions, beta, 2.0 * bound),
            None => boltzmann_lipschitz(actions),
        };
        let rate = Some(norm + carried * lipschitz).filter(|rate| rate.is_finite());
        let certified = rate.is_some_and(|rate| rate < 1.0);
        let never_left = weights.never_left().len();
        let gap = gamma * (actions as f64).ln() / (beta * (1.0 - gamma));
        let gap_bound = Some(gap).filter(|gap| certified && never_left == 0 && gap.is_finite());
        let mut reasons = Vec::new();
        match rate {
            Some(rate) if certified => {
                reasons.push(format!("every layer contracts: {norm:.6} + {carried:.6}·{lipschitz:.6} = {rate:.6} < 1"));
            }
            Some(rate) => reasons.push(format!(
                "not certified: {norm:.4} + {carried:.4}·{lipschitz:.4} = {rate:.4} >= 1: a layer may enlarge differences"
            )),
            None => reasons.push(
                "not certified: scores are so large that their rounding decides weights".into(),
            ),
        }
        if never_left > 0 {
            reasons.push(format!("{never_left} pairs were reached but never left"));
        }
        let norm_inf = Some(norm).filter(|norm| norm.is_finite());
        Ok(Self { certified, reasons, step_size, beta, norm_inf, value_bound, lipschitz, rate, gap_bound })
    }
}
