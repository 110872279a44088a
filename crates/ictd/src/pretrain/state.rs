//! What a training run carries along.

use super::metric::History;
use super::optimizer::Moments;

/// Everything a run carries from one epoch to the next: with the config and the seed it determines the
/// rest of the run, to the last bit.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainState<E> {
    /// Epochs done.
    pub epoch: u64,
    /// Parameters, per pair V row by row, then A row by row.
    pub params: Vec<E>,
    /// The optimiser's moments.
    pub moments: Moments<E>,
    /// What was measured so far.
    pub history: History,
    /// The best step so far and its parameters.
    pub best: Best<E>,
}

/// The step with the largest min(V_em, A_em); ties go to the largest sign-aware joint score.
#[derive(Clone, Debug, PartialEq)]
pub struct Best<E> {
    /// The step (0 is the initial point).
    pub step: u64,
    /// min(V_em, A_em) there, and the sign-aware version.
    pub joint: [f64; 2],
    /// Parameters there.
    pub params: Vec<E>,
}

impl<E> TrainState<E> {
    /// Gradient steps done.
    pub fn steps(&self) -> u64 {
        self.history.steps()
    }
}
