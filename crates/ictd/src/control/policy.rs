//! Policies made of values.

use super::config::ControlError;
use crate::matrix::Matrix;

/// With probability 1-ε an action of the largest value, else any: entry (s, a) is π(a | s), from the values Q(s, a) row by row. Actions
/// with equal values share their probability, so that no action is favoured by its number.
pub fn epsilon_greedy(q: &[f64], num_actions: usize, epsilon: f64) -> Result<Matrix, ControlError> {
    // A range test, so that NaN is refused.
    if !(0.0..=1.0).contains(&epsilon) {
        return Err(ControlError::Epsilon(epsilon));
    }
    let mut policy = Matrix::zeros(q.len() / num_actions.max(1), num_actions);
    for (s, values) in q.chunks_exact(num_actions.max(1)).enumerate() {
        let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let ties = values.iter().filter(|q| **q == best).count() as f64;
        for (p, q) in policy.row_mut(s).iter_mut().zip(values) {
            *p = epsilon / num_actions as f64 + if *q == best { (1.0 - epsilon) / ties } else { 0.0 };
        }
    }
    Ok(policy)
}

/// Every action alike.
pub fn uniform_policy(num_states: usize, num_actions: usize) -> Matrix {
    Matrix::from_fn(num_states, num_actions, |_, _| 1.0 / num_actions as f64)
}
