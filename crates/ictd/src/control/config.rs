//! Softmax TD on pairs: what it is made of, and what can be wrong with it.

use super::backup::Backup;
use super::context::{PairContext, PairContextError};
use crate::kernel::{Attention, AttentionError, KernelError, KernelName};
use crate::operator::OperatorError;
use crate::task::{MdpError, is_discount};

/// What softmax TD on pairs is made of, unchecked; [`check`](Self::check) makes it run.
///
/// | field | purpose | range |
/// |---|---|---|
/// | `backup` | what a TD error bootstraps from | β ≥ 0, finite; laws over actions |
/// | `temperature` | τ that scores are divided by | > 0, finite |
/// | `gamma` | discount γ | [0, 1) |
/// | `step_sizes` | α, one per layer | finite |
#[derive(Clone, Debug, PartialEq)]
pub struct ControlConfig {
    /// What a TD error bootstraps from.
    pub backup: Backup,
    /// Temperature τ of the scores ⟨x, x'⟩/τ.
    pub temperature: f64,
    /// Discount γ.
    pub gamma: f64,
    /// Step sizes α, one per layer.
    pub step_sizes: Vec<f64>,
}

/// Why softmax TD on pairs has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum ControlError {
    /// γ must be in [0, 1).
    #[error("gamma is {0:?}, expected 0 <= gamma < 1")]
    Gamma(f64),
    /// β must be at least 0 and finite.
    #[error("beta is {0:?}, expected a finite number >= 0")]
    Beta(f64),
    /// ε must be a probability.
    #[error("epsilon is {0:?}, expected 0 <= epsilon <= 1")]
    Epsilon(f64),
    /// Step sizes must be finite.
    #[error("step size {layer} is {value}, expected a finite number")]
    StepSize { layer: usize, value: f64 },
    /// The temperature must be one.
    #[error(transparent)]
    Temperature(#[from] KernelError),
    /// There must be one value per pair to start from.
    #[error("initial values: {found} given, expected one for each of the {expected} pairs")]
    InitialLength { found: usize, expected: usize },
    /// Values to start from must be finite.
    #[error("initial values: that of pair {pair} is {value}, expected a finite number")]
    InitialValue { pair: usize, value: f64 },
    /// Exact expectations need features of every pair.
    #[error("features have {found} rows, expected one for each of the {expected} pairs")]
    FeatureRows { found: usize, expected: usize },
    /// Exact expectations have no sampled actions.
    #[error("backup is sarsa, expected expected sarsa or boltzmann: exact expectations have no next action")]
    NoActions,
    /// A certificate is about Boltzmann's backup.
    #[error("backup is {0}, expected boltzmann: the others are linear and have certificates of their own")]
    NotBoltzmann(&'static str),
    /// A linear operator is what the other backups have.
    #[error("backup is boltzmann, expected sarsa or expected sarsa: its layers are not linear")]
    NotLinear,
    /// The policy or the decision process is refused.
    #[error(transparent)]
    Mdp(#[from] MdpError),
    /// The context is refused.
    #[error(transparent)]
    Context(#[from] PairContextError),
    /// Weights could not be computed.
    #[error(transparent)]
    Attention(#[from] AttentionError),
    /// The operator has no answer.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// Values must stay finite; `layer` is the first where one does not.
    #[error("values overflow in layer {layer}: the iteration diverges; lower the step size or the depth")]
    Diverged { layer: usize },
}

/// Softmax TD on pairs that can be run.
#[derive(Clone, Debug)]
pub struct SoftmaxControl {
    config: ControlConfig,
    attention: Attention,
}

impl ControlConfig {
    /// Checks every field.
    pub fn check(self) -> Result<SoftmaxControl, ControlError> {
        self.backup.check()?;
        if !is_discount(self.gamma) {
            return Err(ControlError::Gamma(self.gamma));
        }
        if let Some(layer) = self.step_sizes.iter().position(|a| !a.is_finite()) {
            return Err(ControlError::StepSize { layer, value: self.step_sizes[layer] });
        }
        let attention = Attention::new(KernelName::Softmax.at(self.temperature)?, 0.0)?;
        Ok(SoftmaxControl { config: self, attention })
    }
}

impl SoftmaxControl {
    /// What it is made of.
    pub fn config(&self) -> &ControlConfig {
        &self.config
    }

    /// The softmax attention of the TD head.
    pub fn attention(&self) -> &Attention {
        &self.attention
    }

    /// Refuses a policy of other states or actions, and values to start from that are none.
    pub(super) fn check_context(&self, context: &PairContext, initial: &[f64]) -> Result<(), ControlError> {
        self.config.backup.check_sizes(context.num_states(), context.num_actions())?;
        check_initial(initial, context.num_pairs())
    }
}

/// Refuses values to start from that are not one finite number per pair.
pub(super) fn check_initial(initial: &[f64], expected: usize) -> Result<(), ControlError> {
    if initial.len() != expected {
        return Err(ControlError::InitialLength { found: initial.len(), expected });
    }
    match initial.iter().position(|q| !q.is_finite()) {
        Some(pair) => Err(ControlError::InitialValue { pair, value: initial[pair] }),
        None => Ok(()),
    }
}

/// Refuses values of which one is not finite.
pub(super) fn finite(q: Vec<f64>, layer: usize) -> Result<Vec<f64>, ControlError> {
    if q.iter().all(|q| q.is_finite()) { Ok(q) } else { Err(ControlError::Diverged { layer }) }
}
