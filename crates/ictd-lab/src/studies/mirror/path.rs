//! How training walks to the mirror block.

use ictd::pretrain::{ParamsView, PretrainConfig, TrainError, Trainer};
use serde::Serialize;

use crate::studies::{extent, mean};

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

/// The path at an epoch: mean over seeds, smallest and largest.
#[derive(Clone, Debug, Serialize)]
pub struct PathRow {
    pub epoch: usize,
    pub p_r: f64,
    pub p_t: f64,
    pub p_v: f64,
    pub a: f64,
    pub p_r_low: f64,
    pub p_r_high: f64,
    pub p_t_low: f64,
    pub p_t_high: f64,
    pub p_v_low: f64,
    pub p_v_high: f64,
    pub a_low: f64,
    pub a_high: f64,
}

/// Trains a seed and keeps its points.
pub fn trace(config: &PretrainConfig, seed: u64) -> Result<Trace, TrainError> {
    let mut trainer = Trainer::<f32>::new(config, seed)?;
    let mut points = vec![Point::of(config, &trainer.state().params)];
    while !trainer.is_done() {
        trainer.epoch_unmeasured()?;
        points.push(Point::of(config, &trainer.state().params));
    }
    Ok(Trace { points, params: trainer.into_state().params })
}

/// The mean over seeds of (p_r, p_t, p_v) and A's mean diagonal.
pub fn mean_point(traces: &[Trace], epoch: usize) -> [f64; 4] {
    [0, 1, 2, 3].map(|k| mean(traces.iter().map(|t| t.points[epoch].numbers()[k])))
}

fn middle(sorted: &[usize]) -> usize {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// When each sign settles.
pub fn settling(traces: &[Trace]) -> Vec<Settling> {
    ["p_r", "p_t", "p_v", "mean diag A"]
        .into_iter()
        .enumerate()
        .map(|(k, parameter)| {
            let positive = |p: &Point| p.numbers()[k] > 0.0;
            let end = |t: &Trace| t.points.last().is_some_and(positive);
            let mut epochs: Vec<usize> = traces
                .iter()
                .map(|t| t.points.iter().rposition(|p| positive(p) != end(t)).map_or(0, |e| e + 1))
                .collect();
            epochs.sort_unstable();
            Settling {
                parameter,
                positive: traces.iter().filter(|t| end(t)).count(),
                seeds: traces.len(),
                first: epochs.first().copied().unwrap_or(0),
                median: middle(&epochs),
                last: epochs.last().copied().unwrap_or(0),
            }
        })
        .collect()
}

/// How long the predicted signs last.
pub fn predicted_phase(traces: &[Trace]) -> PredictedPhase {
    let pattern = |p: &Point| p.signs() == "−++" && p.a < 0.0;
    let mut spans = Vec::new();
    let mut target_leaves_first = 0;
    for trace in traces {
        let from = trace.points.iter().position(pattern);
        let until = trace.points.iter().rposition(pattern);
        if let (Some(from), Some(until)) = (from, until) {
            spans.push((from, until));
            let after = trace.points.get(until + 1);
            target_leaves_first += usize::from(after.is_some_and(|p| p.signs() == "−−+" && p.a < 0.0));
        }
    }
    let sorted = |of: &dyn Fn(&(usize, usize)) -> usize| {
        let mut all: Vec<usize> = spans.iter().map(of).collect();
        all.sort_unstable();
        all
    };
    let (from, until) = (sorted(&|s| s.0), sorted(&|s| s.1));
    PredictedPhase {
        seeds: traces.len(),
        seen: spans.len(),
        from: middle(&from),
        until: middle(&until),
        until_first: until.first().copied().unwrap_or(0),
        until_last: until.last().copied().unwrap_or(0),
        target_leaves_first,
    }
}

/// The mean path, at about a hundred epochs spaced evenly in the logarithm.
pub fn path(traces: &[Trace]) -> Vec<PathRow> {
    let epochs = traces.first().map_or(0, |t| t.points.len() - 1);
    let mut at: Vec<usize> =
        (0..=100).map(|k| (epochs as f64).powf(k as f64 / 100.0).round() as usize).collect();
    at.dedup();
    let row = |epoch: usize| {
        let [p_r, p_t, p_v, a] = mean_point(traces, epoch);
        let [(p_r_low, p_r_high), (p_t_low, p_t_high), (p_v_low, p_v_high), (a_low, a_high)] =
            [0, 1, 2, 3].map(|k| extent(traces.iter().map(|t| t.points[epoch].numbers()[k])));
        PathRow {
            epoch,
            p_r,
            p_t,
            p_v,
            a,
            p_r_low,
            p_r_high,
            p_t_low,
            p_t_high,
            p_v_low,
            p_v_high,
            a_low,
            a_high,
        }
    };
    at.into_iter().map(row).collect()
}
