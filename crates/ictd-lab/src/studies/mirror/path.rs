//! How training walks to the mirror block.

use ictd::pretrain::{ParamsView, PretrainConfig, Trainer};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::studies::{extent, mean};
use crate::{LabError, Progress};

/// The four numbers of a seed after an epoch: (p_r, p_t, p_v) and A's mean diagonal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub u: [f64; 3],
    pub a: f64,
}

impl Point {
    pub fn of(config: &PretrainConfig, params: &[f32]) -> Self {
        let shape = config.shape();
        let (d, view) = (shape.feature_dim, ParamsView::new(&shape, params));
        let u = [0, 1, 2].map(|k| f64::from(view.value_row(0)[d + k]));
        Self { u, a: view.score_diagonal(0).sum::<f64>() / d as f64 }
    }

    fn numbers(&self) -> [f64; 4] {
        [self.u[0], self.u[1], self.u[2], self.a]
    }

    /// Signs of (p_r, p_t, p_v) as text.
    pub fn signs(&self) -> String {
        self.u.iter().map(|&p| if p > 0.0 { '+' } else { '−' }).collect()
    }
}

/// A seed: its points before the first and after every epoch, and its last parameters.
pub struct Trace {
    pub points: Vec<Point>,
    pub params: Vec<f32>,
}

/// When one of the four signs takes its last value: the epoch after which it no longer changes.
#[derive(Clone, Debug, Serialize)]
pub struct Settling {
    pub parameter: &'static str,
    /// Seeds that end with a positive sign.
    pub positive: usize,
    pub seeds: usize,
    pub first: usize,
    pub median: usize,
    pub last: usize,
}

/// How long seeds have the signs that the first gradients predict.
#[derive(Clone, Debug, Serialize)]
pub struct PredictedPhase {
    pub seeds: usize,
    /// Seeds that had signs (−, +, +) and a negative mean diagonal after some epoch.
    pub seen: usize,
    /// Medians over these seeds of the first and the last epoch with them, and the range of the last.
    pub from: usize,
    pub until: usize,
    pub until_first: usize,
    pub until_last: usize,
    /// Of these seeds, those in which p_t was the first of the four signs to leave the pattern for good.
    pub target_leaves_first: usize,
}

/// (p_r, p_t, p_v) and A's mean diagonal at an epoch: mean over seeds, smallest and largest.
#[derive(Clone, Debug)]
pub struct PathRow {
    pub epoch: usize,
    pub means: [f64; 4],
    pub ranges: [(f64, f64); 4],
}

/// Flat, as CSV wants it.
impl Serialize for PathRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("PathRow", 13)?;
        row.serialize_field("epoch", &self.epoch)?;
        for (name, mean) in ["p_r", "p_t", "p_v", "a"].into_iter().zip(&self.means) {
            row.serialize_field(name, mean)?;
        }
        let ends = self.ranges.iter().flat_map(|(low, high)| [low, high]);
        let names = ["p_r_low", "p_r_high", "p_t_low", "p_t_high", "p_v_low", "p_v_high", "a_low", "a_high"];
        names.into_iter().zip(ends).try_for_each(|(name, end)| row.serialize_field(name, end))?;
        row.end()
    }
}

/// Trains a seed and keeps its points.
pub fn trace(config: &PretrainConfig, seed: u64, progress: &Progress) -> Result<Trace, LabError> {
    let mut trainer = Trainer::<f32>::new(config, seed)?;
    let mut points = vec![Point::of(config, &trainer.state().params)];
    while !trainer.is_done() {
        trainer.epoch_unmeasured()?;
        points.push(Point::of(config, &trainer.state().params));
        progress.step(1)?;
    }
    Ok(Trace { points, params: trainer.into_state().params })
}

/// The mean over seeds of (p_r, p_t, p_v) and A's mean diagonal.
pub fn mean_point(traces: &[Trace], epoch: usize) -> [f64; 4] {
    [0, 1, 2, 3].map(|k| mean(traces.iter().map(|t| t.points[epoch].numbers()[k])))
}

/// The first, the median and the last of epochs; 0 of none.
fn summary(mut epochs: Vec<usize>) -> [usize; 3] {
    epochs.sort_unstable();
    [0, epochs.len() / 2, epochs.len().saturating_sub(1)].map(|k| epochs.get(k).copied().unwrap_or(0))
}

/// When each sign settles.
pub fn settling(traces: &[Trace]) -> Vec<Settling> {
    let row = |(k, parameter): (usize, &'static str)| {
        let is_positive = |p: &Point| p.numbers()[k] > 0.0;
        let end = |t: &Trace| t.points.last().is_some_and(is_positive);
        let settled =
            |t: &Trace| t.points.iter().rposition(|p| is_positive(p) != end(t)).map_or(0, |e| e + 1);
        let [first, median, last] = summary(traces.iter().map(settled).collect());
        let positive = traces.iter().filter(|t| end(t)).count();
        Settling { parameter, positive, seeds: traces.len(), first, median, last }
    };
    ["p_r", "p_t", "p_v", "mean diag A"].into_iter().enumerate().map(row).collect()
}

/// How long the predicted signs last.
pub fn predicted_phase(traces: &[Trace]) -> PredictedPhase {
    let has = |signs: &str, p: &Point| p.signs() == signs && p.a < 0.0;
    let (mut firsts, mut lasts, mut target_leaves_first) = (Vec::new(), Vec::new(), 0);
    for Trace { points, .. } in traces {
        let from = points.iter().position(|p| has("−++", p));
        let until = points.iter().rposition(|p| has("−++", p));
        if let (Some(from), Some(until)) = (from, until) {
            firsts.push(from);
            lasts.push(until);
            target_leaves_first += usize::from(points.get(until + 1).is_some_and(|p| has("−−+", p)));
        }
    }
    let (seeds, seen) = (traces.len(), firsts.len());
    let ([_, from, _], [until_first, until, until_last]) = (summary(firsts), summary(lasts));
    PredictedPhase { seeds, seen, from, until, until_first, until_last, target_leaves_first }
}

/// The mean path, at about a hundred epochs spaced evenly in the logarithm.
pub fn path(traces: &[Trace]) -> Vec<PathRow> {
    let epochs = traces.first().map_or(0, |t| t.points.len() - 1);
    let mut at: Vec<usize> =
        (0..=100).map(|k| (epochs as f64).powf(k as f64 / 100.0).round() as usize).collect();
    at.dedup();
    let row = |epoch: usize| {
        let range = |k: usize| extent(traces.iter().map(|t| t.points[epoch].numbers()[k]));
        PathRow { epoch, means: mean_point(traces, epoch), ranges: [0, 1, 2, 3].map(range) }
    };
    at.into_iter().map(row).collect()
}
