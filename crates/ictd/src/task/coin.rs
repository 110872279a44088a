//! States drawn independently and uniformly.

use super::finite::{FiniteTask, TaskError};
use super::{Kind, Mrp};
use crate::matrix::Matrix;
use crate::random::Stream;

/// States drawn independently and uniformly: the chain that mixes fastest, on which the paper's constants
/// are smallest.
///
/// # Description
/// Every step forgets the last.
/// # States
/// 0, …, m - 1.
/// # Transitions
/// 1/m to every state.
/// # Rewards
/// r ~ U(-1, 1)^m.
/// # Features
/// x(s) ~ U(-1, 1)^d.
/// # Start
/// Uniform.
/// # Stationary law
/// Uniform.
/// # Arguments
/// Number of states m ≥ 1, feature dimension d ≥ 1, discount γ.
/// # References
/// None.
/// # Version history
/// 1: draws in the order features, r.
#[derive(Clone, Debug, PartialEq)]
pub struct Coin {
    /// Number of states m, at least 1.
    pub num_states: usize,
    /// Feature dimension d, at least 1.
    pub feature_dim: usize,
    /// Discount γ.
    pub gamma: f64,
}

impl Coin {
    /// Draws a task.
    pub fn generate(&self, stream: &mut Stream) -> Result<FiniteTask, TaskError> {
        let (m, d) = (self.num_states, self.feature_dim);
        Kind::Coin.check_sizes(m, d)?;
        let features = Matrix::from_fn(m, d, |_, _| stream.uniform_in(-1.0, 1.0));
        let rewards = stream.uniform_vec(m, -1.0, 1.0);
        let share = 1.0 / m as f64;
        let p = Matrix::from_fn(m, m, |_, _| share);
        FiniteTask::new(Mrp::new(p, rewards, self.gamma, vec![share; m])?, features)
    }
}
