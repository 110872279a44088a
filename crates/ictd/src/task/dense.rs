//! Random dense reward processes.

use super::boyan::normalised;
use super::finite::{FiniteTask, TaskError};
use super::{Kind, Representation, assemble};
use crate::matrix::Matrix;
use crate::random::Stream;

/// Random process in which every state reaches every state in one step.
///
/// # Description
/// The simplest ergodic family: no structure, fast mixing.
/// # States
/// 0, …, m - 1.
/// # Transitions
/// Rows ∝ U(0, 1)^m.
/// # Rewards
/// As for [`Boyan`](super::Boyan).
/// # Features
/// x(s) ~ U(-1, 1)^d.
/// # Start
/// p₀ ∝ U(0, 1)^m.
/// # Stationary law
/// Positive everywhere, close to uniform.
/// # Arguments
/// Number of states m ≥ 1, feature dimension d ≥ 1, discount γ, representation.
/// # References
/// None: a common choice.
/// # Version history
/// 1: draws in the order weight, features, p₀, rows of P (then r when not representable).
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// Number of states m, at least 1.
    pub num_states: usize,
    /// Feature dimension d, at least 1.
    pub feature_dim: usize,
    /// Discount γ.
    pub gamma: f64,
    /// Whether values are linear in the features.
    pub representation: Representation,
}

impl Dense {
    /// Draws a task.
    pub fn generate(&self, stream: &mut Stream) -> Result<FiniteTask, TaskError> {
        let (m, d) = (self.num_states, self.feature_dim);
        Kind::Dense.check_sizes(m, d)?;
        let weight = match self.representation {
            Representation::Linear => Some(stream.uniform_vec(d, -1.0, 1.0)),
            Representation::Free => None,
        };
        let features = Matrix::from_fn(m, d, |_, _| stream.uniform_in(-1.0, 1.0));
        let initial = normalised(stream.uniform_vec(m, 0.0, 1.0));
        let mut p = Matrix::zeros(m, m);
        for s in 0..m {
            p.row_mut(s).copy_from_slice(&normalised(stream.uniform_vec(m, 0.0, 1.0)));
        }
        assemble(p, features, initial, weight, self.gamma, stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn every_transition_is_possible() {
        let family =
            Dense { num_states: 7, feature_dim: 3, gamma: 0.8, representation: Representation::Linear };
        let task = family.generate(&mut Stream::new(1, Purpose::Task, 0)).unwrap();
        assert!(task.mrp().transitions().matrix().as_slice().iter().all(|&p| p > 0.0));
        assert_eq!(task.features().num_cols(), 3);
    }
}
