//! How training walks to the mirror block: first gradients, the path, and training with A held.
//!
//! More than 400 lines, because the records of six tables stand beside what fills them.

use ictd::pretrain::{
    Drift, ParamsView, PretrainConfig, TrainError, Trainer, drift, measure, reduced_params,
};
use ictd::statistics::MeanSem;
use rayon::prelude::*;
use serde::Serialize;

use super::contexts::Contexts;
use super::statistic;
use crate::LabError;

/// p_r at which the first gradients are measured: small, so that what the formulas leave out is 1e-3 of them.
const PROBE: f64 = -1e-3;
/// Values at which A's diagonal is held.
const HELD: [f64; 5] = [-0.8, -0.2, 0.0, 0.2, 0.8];

/// A first gradient, measured at u = (p_r, 0, 0), A = 0, and as the averages C and D predict it.
#[derive(Clone, Debug, Serialize)]
pub struct FirstGradientRow {
    /// p_r, p_t, p_v, or A's mean diagonal; all but the first divided by p_r.
    pub parameter: &'static str,
    /// The formula.
    pub formula: &'static str,
    /// What the formula gives.
    pub predicted: f64,
    /// The engine's gradient, mean over tasks.
    pub measured: f64,
    /// Its standard error.
    pub sem: f64,
}

/// The four numbers of a seed after an epoch: (p_r, p_t, p_v) and A's mean diagonal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// (p_r, p_t, p_v).
    pub u: [f64; 3],
    /// Mean diagonal of A.
    pub a: f64,
}

impl Point {
    /// The point of a parameter vector.
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
    /// The points.
    pub points: Vec<Point>,
    /// Parameters at the end.
    pub params: Vec<f32>,
}

/// When one of the four signs takes its last value.
#[derive(Clone, Debug, Serialize)]
pub struct Settling {
    /// The number.
    pub parameter: &'static str,
    /// Seeds that end with a positive sign.
    pub positive: usize,
    /// Seeds.
    pub seeds: usize,
    /// Epoch after which the sign no longer changes: earliest seed.
    pub first: usize,
    /// The median seed.
    pub median: usize,
    /// The latest seed.
    pub last: usize,
}

/// How long seeds have the signs that the first gradients predict.
#[derive(Clone, Debug, Serialize)]
pub struct PredictedPhase {
    /// Seeds.
    pub seeds: usize,
    /// Seeds that had signs (−, +, +) and a negative mean diagonal after some epoch.
    pub seen: usize,
    /// Median over these seeds of the first epoch with them.
    pub from: usize,
    /// Median over these seeds of the last.
    pub until: usize,
    /// Earliest last epoch.
    pub until_first: usize,
    /// Latest last epoch.
    pub until_last: usize,
    /// Of these seeds, those in which p_t was the first of the four signs to leave the pattern for good.
    pub target_leaves_first: usize,
}

/// The mean path at an epoch, what pulls there and what is still unexplained.
#[derive(Clone, Debug, Serialize)]
pub struct PathRow {
    /// Epochs done.
    pub epoch: usize,
    /// Mean p_r over seeds.
    pub p_r: f64,
    /// Mean p_t.
    pub p_t: f64,
    /// Mean p_v.
    pub p_v: f64,
    /// Mean diagonal of A.
    pub a: f64,
    /// Smallest p_r over seeds.
    pub p_r_low: f64,
    /// Largest p_r.
    pub p_r_high: f64,
    /// Smallest p_t.
    pub p_t_low: f64,
    /// Largest p_t.
    pub p_t_high: f64,
    /// Smallest p_v.
    pub p_v_low: f64,
    /// Largest p_v.
    pub p_v_high: f64,
    /// Smallest mean diagonal.
    pub a_low: f64,
    /// Largest mean diagonal.
    pub a_high: f64,
}

/// What pulls at a point of the mean path, and what is still unexplained there.
#[derive(Clone, Debug, Serialize)]
pub struct PullRow {
    /// Epochs done.
    pub epoch: usize,
    /// Mean p_r over seeds.
    pub p_r: f64,
    /// Mean p_t.
    pub p_t: f64,
    /// Mean p_v.
    pub p_v: f64,
    /// Mean diagonal of A.
    pub a: f64,
    /// Minus the expected semi-gradient by p_r: where training moves it.
    pub pull_r: f64,
    /// By p_t.
    pub pull_t: f64,
    /// By p_v.
    pub pull_v: f64,
    /// By A's diagonal.
    pub pull_a: f64,
    /// Along (γ, 1) of (p_t, p_v), per unit length: the scale of the constant.
    pub pull_scale: f64,
    /// Along (1, −γ), per unit length: successor against state; zero under uniform attention.
    pub pull_split: f64,
    /// Correlation of δ with the mean reward (order 0 in A).
    pub order_0: f64,
    /// With the rest of ⟨x_q, Cov(x, R)⟩ (order 1).
    pub order_1: f64,
    /// With the rest of the bootstrap term (order 2).
    pub order_2: f64,
    /// Mean δ².
    pub td_loss: f64,
    /// Mean square error.
    pub msve: f64,
}

/// Training with A held at a·I.
#[derive(Clone, Debug, Serialize)]
pub struct HeldRow {
    /// a.
    pub a: f64,
    /// Seeds.
    pub seeds: usize,
    /// Seeds that end with signs (+, +, −).
    pub td: usize,
    /// Seeds that end with signs (−, −, +).
    pub mirror: usize,
    /// Seeds that end with signs (−, +, +).
    pub predicted: usize,
    /// Seeds with other signs.
    pub other: usize,
    /// Mean p_r at the end.
    pub p_r: f64,
    /// Mean p_t.
    pub p_t: f64,
    /// Mean p_v.
    pub p_v: f64,
    /// Mean δ² at the end.
    pub td_loss: f64,
    /// Its standard error over seeds.
    pub td_loss_sem: f64,
}

/// The gradients at the start against their formulas.
pub fn first_gradients(
    config: &PretrainConfig,
    seed: u64,
    contexts: &Contexts,
    num_tasks: u64,
) -> Result<Vec<FirstGradientRow>, LabError> {
    let params = reduced_params(&config.shape(), [PROBE, 0.0, 0.0], 0.0);
    let drifts = drift::<f64>(config, seed, &params, num_tasks)?;
    let found = contexts.correlations();
    let (layers, c, d) = (config.num_layers as f64, found.mean_reward, found.reward_covariance);
    let pairs = layers * (layers - 1.0) / 2.0;
    let rows: [(&str, &str, f64, &dyn Fn(&Drift) -> f64); 4] = [
        ("p_r", "−2·L·C", -2.0 * layers * c, &|g| g.value[0]),
        ("p_t", "−L(L−1)·γ·C·p_r", -2.0 * pairs * config.task.gamma * c, &|g| g.value[1] / PROBE),
        ("p_v", "−L(L−1)·C·p_r", -2.0 * pairs * c, &|g| g.value[2] / PROBE),
        ("diag A", "−2·L·D/τ·p_r", -2.0 * layers * d / config.temperature, &|g| g.score / PROBE),
    ];
    rows.into_iter()
        .map(|(parameter, formula, predicted, of)| {
            let MeanSem { mean, sem, .. } = statistic(drifts.iter().map(of).collect())?;
            Ok(FirstGradientRow { parameter, formula, predicted, measured: mean, sem })
        })
        .collect()
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
    at.into_iter()
        .map(|epoch| {
            let of = |k: usize| {
                let all = traces.iter().map(|t| t.points[epoch].numbers()[k]);
                let low = all.clone().fold(f64::INFINITY, f64::min);
                let high = all.clone().fold(f64::NEG_INFINITY, f64::max);
                (all.sum::<f64>() / traces.len() as f64, low, high)
            };
            let [r, t, v, a] = [0, 1, 2, 3].map(of);
            PathRow {
                epoch,
                p_r: r.0,
                p_t: t.0,
                p_v: v.0,
                a: a.0,
                p_r_low: r.1,
                p_r_high: r.2,
                p_t_low: t.1,
                p_t_high: t.2,
                p_v_low: v.1,
                p_v_high: v.2,
                a_low: a.1,
                a_high: a.2,
            }
        })
        .collect()
}

/// Pulls and orders along the mean path.
pub fn pulls(
    config: &PretrainConfig,
    seed: u64,
    contexts: &Contexts,
    num_tasks: u64,
    traces: &[Trace],
) -> Result<Vec<PullRow>, LabError> {
    let shape = config.shape();
    let epochs = [0, 25, 50, 75, 100, 125, 150, 200, 250, 300, 400, 500, 750, 1000, 1500, 2000, 3000];
    let at = epochs.into_iter().filter(|&e| traces.iter().all(|t| e < t.points.len())).collect::<Vec<_>>();
    at.par_iter()
        .map(|&epoch| {
            let mean = [0, 1, 2, 3].map(|k| {
                traces.iter().map(|t| t.points[epoch].numbers()[k]).sum::<f64>() / traces.len() as f64
            });
            let (u, a) = ([mean[0], mean[1], mean[2]], mean[3]);
            let params: Vec<f32> = reduced_params(&shape, u, a).iter().map(|&x| x as f32).collect();
            let drifts = drift::<f32>(config, seed, &params, num_tasks)?;
            let of = |f: &dyn Fn(&Drift) -> f64| drifts.iter().map(f).sum::<f64>() / drifts.len() as f64;
            let [pull_r, pull_t, pull_v] = [0, 1, 2].map(|k| -of(&|d| d.value[k]));
            let (gamma, orders) = (config.task.gamma, contexts.orders(u, a));
            let length = (1.0 + gamma * gamma).sqrt();
            Ok(PullRow {
                epoch,
                p_r: u[0],
                p_t: u[1],
                p_v: u[2],
                a,
                pull_r,
                pull_t,
                pull_v,
                pull_a: -of(&|d| d.score),
                pull_scale: (gamma * pull_t + pull_v) / length,
                pull_split: (pull_t - gamma * pull_v) / length,
                order_0: orders.mean_reward,
                order_1: orders.reward_covariance,
                order_2: orders.bootstrap,
                td_loss: of(&|d| d.td_loss),
                msve: of(&|d| d.msve),
            })
        })
        .collect()
}

/// Trains with A put back to a·I after every epoch, so that it moves by the few steps of an epoch at most.
pub fn held(config: &PretrainConfig, seeds: &[u64], num_tasks: u64) -> Result<Vec<HeldRow>, LabError> {
    HELD.into_iter().map(|a| held_at(config, seeds, a, num_tasks)).collect()
}

fn held_at(config: &PretrainConfig, seeds: &[u64], a: f64, num_tasks: u64) -> Result<HeldRow, LabError> {
    let shape = config.shape();
    let block = reduced_params(&shape, [0.0; 3], a);
    let scores = shape.score_index(0, 0, 0)..shape.score_index(0, shape.num_rows(), 0);
    let train = |&seed: &u64| -> Result<(Point, f64), TrainError> {
        let mut state = Trainer::<f32>::new(config, seed)?.into_state();
        let hold = |params: &mut [f32]| {
            for k in scores.clone() {
                params[k] = block[k] as f32;
            }
        };
        hold(&mut state.params);
        while state.epoch < config.epochs {
            let mut trainer = Trainer::<f32>::resume(config, seed, state)?;
            trainer.epoch_unmeasured()?;
            state = trainer.into_state();
            hold(&mut state.params);
        }
        let td_loss = measure::<f32>(config, seed, &state.params, num_tasks)?.td_loss;
        Ok((Point::of(config, &state.params), td_loss))
    };
    let ends = seeds.par_iter().map(train).collect::<Result<Vec<_>, _>>()?;
    let with = |signs: &str| ends.iter().filter(|(p, _)| p.signs() == signs).count();
    let mean = |k: usize| ends.iter().map(|(p, _)| p.u[k]).sum::<f64>() / ends.len() as f64;
    let (td, mirror, predicted) = (with("++−"), with("−−+"), with("−++"));
    let loss = statistic(ends.iter().map(|e| e.1).collect())?;
    Ok(HeldRow {
        a,
        seeds: ends.len(),
        td,
        mirror,
        predicted,
        other: ends.len() - td - mirror - predicted,
        p_r: mean(0),
        p_t: mean(1),
        p_v: mean(2),
        td_loss: loss.mean,
        td_loss_sem: loss.sem,
    })
}
