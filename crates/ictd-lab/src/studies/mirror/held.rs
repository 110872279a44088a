//! Training with A held.

use ictd::pretrain::{PretrainConfig, Trainer, measure, reduced_params};
use serde::Serialize;

use super::path::Point;
use super::statistic;
use crate::studies::{in_parallel, mean};
use crate::{LabError, Progress};

/// Values at which A's diagonal is held.
pub(super) const HELD: [f64; 5] = [-0.8, -0.2, 0.0, 0.2, 0.8];

/// Training with A held at a·I: seeds that end with signs (+, +, −), (−, −, +), (−, +, +) and others, and means at the
/// end.
#[derive(Clone, Debug, Serialize)]
pub struct HeldRow {
    pub a: f64,
    pub seeds: usize,
    pub td: usize,
    pub mirror: usize,
    pub predicted: usize,
    pub other: usize,
    pub p_r: f64,
    pub p_t: f64,
    pub p_v: f64,
    pub td_loss: f64,
    pub td_loss_sem: f64,
}

/// Trains with A put back to a·I after every epoch, so that it moves by the few steps of an epoch at most.
pub fn held(
    config: &PretrainConfig,
    seeds: &[u64],
    num_tasks: u64,
    progress: &Progress,
) -> Result<Vec<HeldRow>, LabError> {
    HELD.into_iter().map(|a| held_at(config, seeds, a, num_tasks, progress)).collect()
}

fn held_at(
    config: &PretrainConfig,
    seeds: &[u64],
    a: f64,
    num_tasks: u64,
    progress: &Progress,
) -> Result<HeldRow, LabError> {
    let shape = config.shape();
    let block = reduced_params(&shape, [0.0; 3], a);
    let scores = shape.score_index(0, 0, 0)..shape.score_index(0, shape.num_rows(), 0);
    let ends = in_parallel(seeds, |&seed| {
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
            progress.step(1)?;
        }
        let td_loss = measure::<f32>(config, seed, &state.params, num_tasks)?.td_loss;
        Ok((Point::of(config, &state.params), td_loss))
    })?;
    let with = |signs: &str| ends.iter().filter(|(p, _)| p.signs() == signs).count();
    let (td, mirror, predicted, seeds) = (with("++−"), with("−−+"), with("−++"), ends.len());
    let other = seeds - td - mirror - predicted;
    let [p_r, p_t, p_v] = [0, 1, 2].map(|k| mean(ends.iter().map(|(p, _)| p.u[k])));
    let (td_loss, td_loss_sem) = statistic(ends.iter().map(|e| e.1))?;
    Ok(HeldRow { a, seeds, td, mirror, predicted, other, p_r, p_t, p_v, td_loss, td_loss_sem })
}
