//! What is measured during training, and the record of it.

use std::ops::Index;

use super::config::PretrainConfig;

/// A number that training measures, after every gradient step or after every epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Metric {
    /// Per step: mean δ² of the minibatch.
    TdLoss,
    /// Per step, after the update: V_em.
    Value,
    /// Per step, after the update: A_em.
    Score,
    /// Per step, after the update: signed V_em.
    ValueSigned,
    /// Per step, after the update: signed A_em.
    ScoreSigned,
    /// Per step: kernel diagonal mean d_t on the minibatch, before the update.
    Diagonal,
    /// Per epoch, on a fresh task: d_t.
    EvalDiagonal,
    /// Per epoch, on a fresh task: smallest diagonal weight.
    EvalDiagonalMin,
    /// Per epoch, on a fresh task: mean δ².
    EvalTdLoss,
    /// Per epoch, on a fresh task: mean square error against the exact values of the queries.
    EvalMsve,
}

impl Metric {
    /// All metrics: those of a step, then those of an epoch.
    pub const ALL: [Metric; 10] = [
        Self::TdLoss,
        Self::Value,
        Self::Score,
        Self::ValueSigned,
        Self::ScoreSigned,
        Self::Diagonal,
        Self::EvalDiagonal,
        Self::EvalDiagonalMin,
        Self::EvalTdLoss,
        Self::EvalMsve,
    ];

    /// Name in checkpoints and tables, and tag in TensorBoard.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::TdLoss => ("td_loss", "train/td_loss"),
            Self::Value => ("v_em", "emergence/V_em"),
            Self::Score => ("a_em", "emergence/A_em"),
            Self::ValueSigned => ("v_em_signed", "emergence/V_em_signed"),
            Self::ScoreSigned => ("a_em_signed", "emergence/A_em_signed"),
            Self::Diagonal => ("diag_mean", "train/diag_mean"),
            Self::EvalDiagonal => ("eval_diag_mean", "kernel/diag_mean"),
            Self::EvalDiagonalMin => ("eval_diag_min", "kernel/diag_min"),
            Self::EvalTdLoss => ("eval_td_loss", "eval/td_loss"),
            Self::EvalMsve => ("eval_msve", "eval/msve"),
        }
    }

    /// The name in checkpoints and tables.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// The tag in TensorBoard.
    pub fn tag(self) -> &'static str {
        self.names().1
    }

    /// Whether there is one entry per gradient step; otherwise there is one per epoch.
    pub fn is_per_step(self) -> bool {
        (self as usize) < Self::EvalDiagonal as usize
    }
}

/// The metrics of a run so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    traces: [Vec<f32>; 10],
}

impl Index<Metric> for History {
    type Output = Vec<f32>;
    fn index(&self, metric: Metric) -> &Vec<f32> {
        &self.traces[metric as usize]
    }
}

impl History {
    /// A history read from somewhere: what `trace` finds of each metric.
    pub fn try_from_fn<X>(mut trace: impl FnMut(Metric) -> Result<Vec<f32>, X>) -> Result<Self, X> {
        let mut history = Self::default();
        for metric in Metric::ALL {
            history.traces[metric as usize] = trace(metric)?;
        }
        Ok(history)
    }

    /// Gradient steps done.
    pub fn steps(&self) -> u64 {
        self[Metric::TdLoss].len() as u64
    }

    /// Adds entries.
    pub(super) fn push<const N: usize>(&mut self, entries: [(Metric, f64); N]) {
        for (metric, value) in entries {
            self.traces[metric as usize].push(value as f32);
        }
    }

    /// Makes room for a whole run, so that growing does not interrupt it.
    pub(super) fn reserve(&mut self, config: &PretrainConfig) {
        // A mistyped number of epochs must not reserve the machine's memory.
        let epochs = config.epochs.min(100_000) as usize;
        for metric in Metric::ALL {
            let entries = epochs * if metric.is_per_step() { config.batches.min(1000) } else { 1 };
            let trace = &mut self.traces[metric as usize];
            trace.reserve(entries.saturating_sub(trace.len()));
        }
    }
}
