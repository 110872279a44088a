//! What gradients say: at the start, against formulas, and along the mean path.

use ictd::pretrain::{Drift, PretrainConfig, drift, reduced_params};
use serde::Serialize;

use super::contexts::Contexts;
use super::path::{Trace, mean_point};
use super::statistic;
use crate::LabError;
use crate::studies::{in_parallel, mean};

/// p_r at which the first gradients are measured: small, so that what the formulas leave out is 1e-3 of them.
const PROBE: f64 = -1e-3;

/// A first gradient, measured at u = (p_r, 0, 0), A = 0, and as the averages C and D predict it; all but p_r's are
/// divided by p_r.
#[derive(Clone, Debug, Serialize)]
pub struct FirstGradientRow {
    pub parameter: &'static str,
    pub formula: &'static str,
    pub predicted: f64,
    pub measured: f64,
    pub sem: f64,
}

/// What pulls at a point of the mean path, and what is still unexplained there.
#[derive(Clone, Debug, Serialize)]
pub struct PullRow {
    pub epoch: usize,
    pub p_r: f64,
    pub p_t: f64,
    pub p_v: f64,
    pub a: f64,
    /// Minus the expected semi-gradient: where training moves each.
    pub pull_r: f64,
    pub pull_t: f64,
    pub pull_v: f64,
    pub pull_a: f64,
    /// Along (γ, 1) of (p_t, p_v), per unit length: the scale of the constant.
    pub pull_scale: f64,
    /// Along (1, −γ), per unit length: successor against state; zero under uniform attention.
    pub pull_split: f64,
    /// Correlation of δ with each order's statistic; see [`Contexts::orders`].
    pub order_0: f64,
    pub order_1: f64,
    pub order_2: f64,
    pub td_loss: f64,
    pub msve: f64,
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
    let ([c, d], layers) = (contexts.correlations(), config.num_layers as f64);
    let pairs = layers * (layers - 1.0) / 2.0;
    let rows: [(&str, &str, f64, &dyn Fn(&Drift) -> f64); 4] = [
        ("p_r", "−2·L·C", -2.0 * layers * c, &|g| g.value[0]),
        ("p_t", "−L(L−1)·γ·C·p_r", -2.0 * pairs * config.task.gamma * c, &|g| g.value[1] / PROBE),
        ("p_v", "−L(L−1)·C·p_r", -2.0 * pairs * c, &|g| g.value[2] / PROBE),
        ("diag A", "−2·L·D/τ·p_r", -2.0 * layers * d / config.temperature, &|g| g.score / PROBE),
    ];
    rows.into_iter()
        .map(|(parameter, formula, predicted, of)| {
            let (measured, sem) = statistic(drifts.iter().map(of))?;
            Ok(FirstGradientRow { parameter, formula, predicted, measured, sem })
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
    in_parallel(at, |epoch| {
        let [p_r, p_t, p_v, a] = mean_point(traces, epoch);
        let u = [p_r, p_t, p_v];
        let params: Vec<f32> = reduced_params(&shape, u, a).iter().map(|&x| x as f32).collect();
        let drifts = drift::<f32>(config, seed, &params, num_tasks)?;
        let of = |f: &dyn Fn(&Drift) -> f64| mean(drifts.iter().map(f));
        let [pull_r, pull_t, pull_v] = [0, 1, 2].map(|k| -of(&|d| d.value[k]));
        let gamma = config.task.gamma;
        let length = (1.0 + gamma * gamma).sqrt();
        let [order_0, order_1, order_2] = contexts.orders(u, a);
        Ok(PullRow {
            epoch,
            p_r,
            p_t,
            p_v,
            a,
            pull_r,
            pull_t,
            pull_v,
            pull_a: -of(&|d| d.score),
            pull_scale: (gamma * pull_t + pull_v) / length,
            pull_split: (pull_t - gamma * pull_v) / length,
            order_0,
            order_1,
            order_2,
            td_loss: of(&|d| d.td_loss),
            msve: of(&|d| d.msve),
        })
    })
}
