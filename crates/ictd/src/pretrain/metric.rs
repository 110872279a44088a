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

/// Name in checkpoints and tables, and tag in TensorBoard, in the order of the metrics.
const NAMES: [(Metric, &str, &str); 10] = [
    (Metric::TdLoss, "td_loss", "train/td_loss"),
    (Metric::Value, "v_em", "emergence/V_em"),
    (Metric::Score, "a_em", "emergence/A_em"),
    (Metric::ValueSigned, "v_em_signed", "emergence/V_em_signed"),
    (Metric::ScoreSigned, "a_em_signed", "emergence/A_em_signed"),
    (Metric::Diagonal, "diag_mean", "train/diag_mean"),
    (Metric::EvalDiagonal, "eval_diag_mean", "kernel/diag_mean"),
    (Metric::EvalDiagonalMin, "eval_diag_min", "kernel/diag_min"),
    (Metric::EvalTdLoss, "eval_td_loss", "eval/td_loss"),
    (Metric::EvalMsve, "eval_msve", "eval/msve"),
];

impl Metric {
    /// All metrics: those of a step, then those of an epoch.
    pub const ALL: [Metric; 10] = {
        let (mut all, mut k) = ([Self::TdLoss; 10], 0);
        while k < 10 {
            all[k] = NAMES[k].0;
            k += 1;
        }
        all
    };

    /// The name in checkpoints and tables.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// The tag in TensorBoard.
    pub fn tag(self) -> &'static str {
        NAMES[self as usize].2
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
