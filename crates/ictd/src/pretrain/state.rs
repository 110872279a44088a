//! What a training run carries along.

use super::config::PretrainConfig;
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

/// One entry per gradient step and, for what is measured on fresh tasks, per epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Per step: TD loss of the minibatch.
    pub td_loss: Vec<f32>,
    /// Per step, after the update: V_em.
    pub value: Vec<f32>,
    /// Per step, after the update: A_em.
    pub score: Vec<f32>,
    /// Per step, after the update: signed V_em.
    pub value_signed: Vec<f32>,
    /// Per step, after the update: signed A_em.
    pub score_signed: Vec<f32>,
    /// Per step: kernel diagonal mean d_t on the minibatch, before the update.
    pub diagonal: Vec<f32>,
    /// Per epoch, on a fresh task: d_t.
    pub eval_diagonal: Vec<f32>,
    /// Per epoch, on a fresh task: smallest diagonal weight.
    pub eval_diagonal_min: Vec<f32>,
    /// Per epoch, on a fresh task: mean δ².
    pub eval_td_loss: Vec<f32>,
    /// Per epoch, on a fresh task: mean square error against the exact values of the queries.
    pub eval_msve: Vec<f32>,
}

impl History {
    /// Makes room for a whole run, so that growing does not interrupt it.
    pub(super) fn reserve(&mut self, config: &PretrainConfig) {
        // A mistyped number of epochs must not reserve the machine's memory.
        let epochs = config.epochs.min(100_000) as usize;
        let steps = epochs * config.batches.min(1000);
        for trace in [
            &mut self.td_loss,
            &mut self.value,
            &mut self.score,
            &mut self.value_signed,
            &mut self.score_signed,
            &mut self.diagonal,
        ] {
            trace.reserve(steps.saturating_sub(trace.len()));
        }
        for trace in [
            &mut self.eval_diagonal,
            &mut self.eval_diagonal_min,
            &mut self.eval_td_loss,
            &mut self.eval_msve,
        ] {
            trace.reserve(epochs.saturating_sub(trace.len()));
        }
    }
}
