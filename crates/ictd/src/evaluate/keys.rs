//! Landmarks among many states.

use rayon::prelude::*;

use super::log::Log;
use crate::kernel::Similarity;
use crate::matrix::Matrix;

/// Some of the states of a log as landmarks, and the nearest one of every state.
///
/// Attention over landmarks costs as much as there are of them, while values and TD errors stay those of the states: a TD error
/// is only attributed to the landmark nearest to its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Keys {
    states: Vec<usize>,
    features: Matrix,
    key_of: Vec<u32>,
    radius: f64,
}

impl Keys {
    /// At most `max_keys` landmarks among the states that were left, by farthest-point choice: the first is the state nearest to
    /// the mean, each next one the state farthest from all before (the first in order, of equals). So no state is left alone.
    ///
    /// # Panics
    /// When `max_keys` is 0.
    pub fn of(log: &Log, max_keys: usize) -> Self {
        assert!(max_keys > 0, "Keys::of: at least one key expected");
        let (x, visits) = (log.features(), log.whole().visits().to_vec());
        let left: Vec<usize> = (0..log.num_states()).filter(|&s| visits[s] > 0.0).collect();
        let mean: Vec<f64> = (0..x.num_cols())
            .map(|a| left.iter().map(|&s| x[(s, a)] / left.len() as f64).sum::<f64>())
            .collect();
        let squared = |s: usize, y: &[f64]| Similarity::SquaredDistance.of(x.row(s), y);
        let mut next = left
            .iter()
            .copied()
            .min_by(|&s, &t| squared(s, &mean).total_cmp(&squared(t, &mean)))
            .unwrap_or(0);
        let (mut states, mut nearest) = (Vec::new(), vec![(f64::INFINITY, 0u32); log.num_states()]);
        while states.len() < max_keys {
            let (key, y) = (states.len() as u32, x.row(next));
            states.push(next);
            nearest.par_iter_mut().with_min_len(4096).enumerate().for_each(|(s, near)| {
                let distance = squared(s, y);
                if distance < near.0 {
                    *near = (distance, key);
                }
            });
            // The first of the farthest: `max_by` would give the last.
            let farthest =
                left.iter().copied().reduce(|s, t| if nearest[t].0 > nearest[s].0 { t } else { s });
            match farthest.filter(|&s| nearest[s].0 > 0.0) {
                Some(state) => next = state,
                None => break,
            }
        }
        let total: f64 = visits.iter().sum();
        let mean = left.iter().map(|&s| visits[s] / total * nearest[s].0).sum::<f64>();
        Self {
            features: Matrix::from_fn(states.len(), x.num_cols(), |k, a| x[(states[k], a)]),
            states,
            key_of: nearest.into_iter().map(|near| near.1).collect(),
            radius: mean.sqrt(),
        }
    }

    /// The states that are landmarks.
    pub fn states(&self) -> &[usize] {
        &self.states
    }

    /// Features of the landmarks.
    pub fn features(&self) -> &Matrix {
        &self.features
    }

    /// The landmark nearest to every state of the log, the first of equally near.
    pub fn key_of(&self) -> &[u32] {
        &self.key_of
    }

    /// Root mean square distance of a visit's state from its landmark: small against the width of a kernel (√τ for the Gaussian
    /// one) when nothing is lost.
    pub fn radius(&self) -> f64 {
        self.radius
    }
}
