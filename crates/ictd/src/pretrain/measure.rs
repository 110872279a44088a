//! Measuring parameters without training them.

use super::batch::Batch;
use super::config::{Loss, PretrainConfig};
use super::drift::reduced_params;
use super::engine::Precision;
use super::state::initial_params;
use super::trainer::{TrainError, named_kernel};

/// What parameters do on fresh tasks, averaged over them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// Kernel diagonal mean d_t.
    pub diagonal_mean: f64,
    /// Smallest diagonal weight met.
    pub diagonal_min: f64,
    /// Mean δ² at the queries.
    pub td_loss: f64,
    /// Mean square error against the exact values of the queries.
    pub msve: f64,
    /// The same for theta_* on the same contexts.
    pub msve_theta_star: f64,
    /// Mean square distance of the two predictions.
    pub distance_to_theta_star: f64,
}

/// Measures parameters on `num_tasks` fresh tasks of a seed, with ρ as at the end of training. The tasks
/// follow those that training measures itself on, so they are fresh for every checkpoint of the run.
pub fn measure<E: Precision>(
    config: &PretrainConfig,
    seed: u64,
    params: &[E],
    num_tasks: u64,
) -> Result<Measurement, TrainError> {
    let mut batch = Batch::<E>::new(config, seed, &named_kernel(config)?)?;
    let theta_star = reduced_params(&batch.shape, [1.0, 1.0, -1.0], 1.0);
    let theta_star: Vec<E> = theta_star.into_iter().map(E::of).collect();
    let hyper = batch.hyper(config.num_steps());
    let mut sums = [0.0; 5];
    let mut diagonal_min = f64::INFINITY;
    for task in 0..num_tasks {
        batch.sample_fresh(config.epochs + task)?;
        batch.predict(hyper, &theta_star, 0);
        let reference: Vec<f64> = batch.out[..config.batch].iter().map(|x| x.get()).collect();
        let td_loss = batch.predict(hyper, params, 0);
        let (diagonal, smallest) = batch.diagonal();
        diagonal_min = diagonal_min.min(smallest);
        sums[0] += diagonal;
        sums[1] += td_loss;
        for (t, star) in reference.iter().enumerate() {
            let (own, exact) = (batch.out[t].get(), batch.rollout.value(t));
            let squares = [own - exact, star - exact, own - star].map(|e| e * e / config.batch as f64);
            sums[2..].iter_mut().zip(squares).for_each(|(sum, square)| *sum += square);
        }
    }
    let [diagonal_mean, td_loss, msve, msve_theta_star, distance_to_theta_star] =
        sums.map(|s| s / num_tasks as f64);
    Ok(Measurement { diagonal_mean, diagonal_min, td_loss, msve, msve_theta_star, distance_to_theta_star })
}

/// What decides the sign of the solution: the first gradient and the correlations behind it, one sample per
/// task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FirstGradient {
    /// Derivative of the loss by V's reward entry at the initial parameters.
    pub gradient: Vec<f64>,
    /// Mean over windows of r(query) times the mean reward of the context.
    pub reward_correlation: Vec<f64>,
    /// Mean over windows of v(query) times the mean reward of the context.
    pub value_correlation: Vec<f64>,
}

/// Measures the first gradient of a seed on its first `num_tasks` training tasks, without training.
///
/// At zero parameters attention is uniform and the prediction 0, so the derivative by the reward entry is
/// -2·L·E\[r(query)·mean R\]; at the small initial parameters it is close to that.
pub fn first_gradient(
    config: &PretrainConfig,
    seed: u64,
    num_tasks: u64,
) -> Result<FirstGradient, TrainError> {
    let mut batch = Batch::<f64>::new(config, seed, &named_kernel(config)?)?;
    let (params, hyper, num) = (initial_params(config, seed), batch.hyper(0), config.batch);
    let mut found = FirstGradient::default();
    for epoch in 0..num_tasks {
        batch.sample_epoch(epoch)?;
        batch.predict(hyper, &params, 0);
        let mut sums = [0.0; 2];
        for (t, reward) in batch.rollout.query_rewards(0, num).enumerate() {
            let mean_reward = batch.rollout.mean_reward(t, &batch.shape);
            sums[0] += reward * mean_reward / num as f64;
            sums[1] += batch.rollout.value(t) * mean_reward / num as f64;
        }
        batch.backward(hyper, &params, 0, Loss::Td);
        found.gradient.push(batch.gradient().value_row(0)[batch.shape.feature_dim]);
        found.reward_correlation.push(sums[0]);
        found.value_correlation.push(sums[1]);
    }
    Ok(found)
}
