//! Where training pushes the block's few decisive numbers, at given parameters.

use super::batch::Batch;
use super::config::{ConfigError, Loss, PretrainConfig};
use super::engine::Precision;
use super::shape::Shape;
use super::trainer::{TrainError, named_kernel};

/// The loss and its semi-gradient by (p_r, p_t, p_v), V's entries for reward, target and value in its last
/// row, and by A's diagonal, on one fresh task. Training moves against the gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Derivative by (p_r, p_t, p_v).
    pub value: [f64; 3],
    /// Derivative by A's diagonal, mean over its entries.
    pub score: f64,
    /// Mean δ² at the queries.
    pub td_loss: f64,
    /// Mean square error against the exact values of the queries.
    pub msve: f64,
}

/// The drift at `params` on `num_tasks` fresh tasks of a seed, one entry per task, with ρ as at the end of
/// training. The tasks are those of [`measure`](super::measure), so that both numbers can be set side by side.
///
/// Derivatives are those of the configured loss, `td` or `true-value`; other losses are refused.
pub fn drift<E: Precision>(
    config: &PretrainConfig,
    seed: u64,
    params: &[E],
    num_tasks: u64,
) -> Result<Vec<Drift>, TrainError> {
    if !matches!(config.loss, Loss::Td | Loss::TrueValue) {
        return Err(ConfigError::new("loss", format!("{:?}", config.loss), "td or true-value").into());
    }
    let mut batch = Batch::<E>::new(config, seed, &named_kernel(config)?)?;
    let (d, hyper) = (batch.shape.feature_dim, batch.hyper(config.num_steps()));
    (0..num_tasks)
        .map(|task| {
            batch.sample_fresh(config.epochs + task)?;
            let td_loss = batch.predict(hyper, params, 0);
            batch.backward(hyper, params, 0, config.loss);
            let gradient = batch.gradient();
            let row = gradient.value_row(0);
            Ok(Drift {
                value: [row[d], row[d + 1], row[d + 2]],
                score: gradient.score_diagonal(0).sum::<f64>() / d as f64,
                td_loss,
                msve: batch.msve(),
            })
        })
        .collect()
}

/// The block with A = a·I and V's last row (0, u): the parameters of every pair of a shape.
pub fn reduced_params(shape: &Shape, u: [f64; 3], a: f64) -> Vec<f64> {
    let (d, mut params) = (shape.feature_dim, vec![0.0; shape.num_params()]);
    for pair in 0..shape.num_pairs() {
        for (k, u) in u.into_iter().enumerate() {
            params[shape.value_index(pair, d + 2, d + k)] = u;
        }
        for i in 0..d {
            params[shape.score_index(pair, i, i)] = a;
        }
    }
    params
}
