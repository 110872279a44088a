//! Random directed graphs around a loop.

use super::boyan::normalised;
use super::finite::{FiniteTask, TaskError};
use super::{Kind, Representation, TransitionError, TransitionKernel, assemble};
use crate::matrix::Matrix;
use crate::random::Stream;

/// Graphs drawn before giving up: with threshold 0.9 and 5 states one in five draws is periodic.
const MAX_DRAWS: usize = 10_000;

/// Random graph around a directed loop (the predecessor's "Loop", used for its Figure 1).
///
/// # Description
/// A loop through all states with random shortcuts.
/// # States
/// 0, …, m - 1.
/// # Transitions
/// Edge i → i + 1 (mod m) always, i → i never, every other edge with probability 1 - threshold;
/// weights U(0.01, 0.99) on the edges, rows normalised. Draws without a shortcut that breaks the
/// loop's period are repeated: the paper assumes ergodic chains, the predecessor does not check.
/// # Rewards
/// As for [`Boyan`](super::Boyan), but the weight is w ~ N(0, I) as in the predecessor.
/// # Features
/// x(s) ~ U(-1, 1)^d.
/// # Start
/// p₀ ∝ U(0.01, 0.99)^m.
/// # Stationary law
/// Positive everywhere because the loop visits every state.
/// # Arguments
/// Number of states m ≥ 3, feature dimension d ≥ 1, threshold in [0, 1), discount γ, representation.
/// # References
/// arXiv 2405.13861 (InContextTD), demonstration of in-context TD.
/// # Version history
/// 1: draws in the order weight, features, graph and its weights, p₀ (then r when not representable).
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Number of states m, at least 3.
    pub num_states: usize,
    /// Feature dimension d, at least 1.
    pub feature_dim: usize,
    /// Probability of leaving out an edge.
    pub threshold: f64,
    /// Discount γ.
    pub gamma: f64,
    /// Whether values are linear in the features.
    pub representation: Representation,
}

impl Loop {
    /// Draws a task.
    pub fn generate(&self, stream: &mut Stream) -> Result<FiniteTask, TaskError> {
        let (m, d) = (self.num_states, self.feature_dim);
        Kind::Loop.check_sizes(m, d)?;
        if !(0.0..1.0).contains(&self.threshold) {
            let found = self.threshold.to_string();
            return Err(TaskError::Size { field: "threshold", expected: "0 <= threshold < 1", found });
        }
        let weight = match self.representation {
            Representation::Linear => Some((0..d).map(|_| stream.normal()).collect()),
            Representation::Free => None,
        };
        let features = Matrix::from_fn(m, d, |_, _| stream.uniform_in(-1.0, 1.0));
        let p = self.draw_graph(stream)?;
        let initial = normalised(stream.uniform_vec(m, 0.01, 0.99));
        assemble(p, features, initial, weight, self.gamma, stream)
    }

    fn draw_graph(&self, stream: &mut Stream) -> Result<Matrix, TaskError> {
        let m = self.num_states;
        for _ in 0..MAX_DRAWS {
            let mut p = Matrix::zeros(m, m);
            for i in 0..m {
                for j in 0..m {
                    // Drawn for every pair, so that the stream's use does not depend on the outcome.
                    let (keep, weight) = (stream.uniform() > self.threshold, stream.uniform_in(0.01, 0.99));
                    if j == (i + 1) % m || (keep && i != j) {
                        p[(i, j)] = weight;
                    }
                }
                let row = normalised(p.row(i).to_vec());
                p.row_mut(i).copy_from_slice(&row);
            }
            match TransitionKernel::new(p) {
                Ok(kernel) => return Ok(kernel.matrix().clone()),
                Err(TransitionError::Periodic { .. }) => {}
                Err(other) => return Err(super::MrpError::from(other).into()),
            }
        }
        Err(TaskError::NoErgodicDraw { attempts: MAX_DRAWS, num_states: m, threshold: self.threshold })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;
    use crate::task::{Family, TaskSource as _};

    #[test]
    fn the_loop_is_there_and_self_loops_are_not() {
        for index in 0..50 {
            let family = Family::of(Kind::Figure1);
            let task = family.draw(&mut Stream::new(4, Purpose::Task, index)).unwrap();
            let m = task.mrp().num_states();
            assert!((5..=15).contains(&m));
            let p = task.mrp().transitions().matrix();
            for i in 0..m {
                assert_eq!(p[(i, i)], 0.0);
                assert!(p[(i, (i + 1) % m)] > 0.0);
            }
        }
    }

    /// The share of kept edges over 200 tasks of 10 states: 16 000 candidate edges, five standard errors.
    #[test]
    fn edges_are_kept_with_one_minus_threshold() {
        let family = Loop {
            num_states: 10,
            feature_dim: 2,
            threshold: 0.3,
            gamma: 0.9,
            representation: Representation::Free,
        };
        let mut kept = 0;
        for index in 0..200 {
            let task = family.generate(&mut Stream::new(8, Purpose::Task, index)).unwrap();
            let p = task.mrp().transitions().matrix();
            kept += p.as_slice().iter().filter(|&&x| x > 0.0).count() - 10;
        }
        let share = kept as f64 / 16_000.0;
        assert!((share - 0.7).abs() < 5.0 * (0.21f64 / 16_000.0).sqrt(), "{share}");
    }

    #[test]
    fn impossible_graphs_are_refused() {
        let mut stream = Stream::new(0, Purpose::Task, 0);
        let base = Loop {
            num_states: 5,
            feature_dim: 2,
            threshold: 0.5,
            gamma: 0.9,
            representation: Representation::Free,
        };
        for threshold in [1.0, -0.1, f64::NAN] {
            let family = Loop { threshold, ..base.clone() };
            assert!(matches!(family.generate(&mut stream), Err(TaskError::Size { field: "threshold", .. })));
        }
        // So few edges that every draw is the bare loop, which has period 5.
        let sparse = Loop { threshold: 1.0 - 1e-12, ..base };
        assert!(matches!(sparse.generate(&mut stream), Err(TaskError::NoErgodicDraw { .. })));
    }
}
