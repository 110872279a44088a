//! Pretraining runs: many seeds, run directories, checkpoints, results.

mod checkpoint;
mod emergence;
mod run_dir;
mod settings;

pub use emergence::{EmergenceFigures, figure_6, write_figure_6};
pub use run_dir::RunDir;
pub use settings::Settings;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ictd::pretrain::{Measurement, TrainError, TrainState, Trainer, emergence_of, measure};
use rayon::prelude::*;
use serde::Serialize;

use crate::LabError;

/// Fresh tasks that the final numbers of a seed are measured on.
const MEASURED_TASKS: u64 = 300;

/// Time between checkpoints: a lost run costs at most this much again.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(2);

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Continue from the last checkpoints instead of starting over.
    pub resume: bool,
    /// Epochs between checkpoints; every two seconds when `None`.
    pub checkpoint_every: Option<u64>,
}

/// What others see of a run while it goes on.
#[derive(Debug, Default)]
pub struct Monitor {
    /// Epochs done, all seeds together.
    pub epochs: AtomicU64,
    /// Set from outside to stop after the current epochs, checkpoints written.
    pub stop: AtomicBool,
}

/// The numbers of a point of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// `td`, `mirror` or `none`.
    pub branch: &'static str,
    /// V_em.
    pub v_em: f64,
    /// A_em.
    pub a_em: f64,
    /// V_em with the branch's sign.
    pub v_em_signed: f64,
    /// A_em with the diagonal's sign.
    pub a_em_signed: f64,
    /// V's last row, d + 3 numbers.
    pub value_row: Vec<f64>,
    /// A's diagonal, d numbers.
    pub score_diag: Vec<f64>,
    /// d_t on fresh tasks.
    pub diag_mean: f64,
    /// Smallest diagonal weight on fresh tasks.
    pub diag_min: f64,
    /// Mean δ² on fresh tasks.
    pub td_loss: f64,
    /// Mean square error against exact values on fresh tasks.
    pub msve: f64,
    /// The same for theta_*.
    pub msve_theta_star: f64,
}

/// The result of a seed: its final step, and its best.
#[derive(Clone, Debug, Serialize)]
pub struct SeedResult {
    /// The seed.
    pub seed: u64,
    /// At the final step.
    #[serde(flatten)]
    pub last: Point,
    /// The step with the largest min(V_em, A_em); ties by the sign-aware score.
    pub best_step: u64,
    /// There.
    pub best: Point,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// Wall time of training all seeds, measurements included, files not.
    pub train_seconds: f64,
    /// One entry per seed, in the order asked for.
    pub seeds: Vec<SeedResult>,
    /// The final states, for figures.
    #[serde(skip)]
    pub states: Vec<TrainState<f32>>,
}

/// How a run ended.
#[derive(Debug)]
pub enum Ending {
    /// All seeds are done.
    Done(RunResult),
    /// It was stopped; checkpoints are written.
    Stopped,
}

/// Trains all seeds, in parallel, each in its own directory under `out`.
pub fn run(
    settings: &Settings,
    seeds: &[u64],
    out: &Path,
    options: &RunOptions,
    monitor: &Monitor,
) -> Result<Ending, LabError> {
    let sha256 = settings.sha256()?;
    let dirs = seeds
        .iter()
        .map(|&seed| RunDir::open(out, settings, &sha256, seed, options.resume))
        .collect::<Result<Vec<_>, _>>()?;
    let start = Instant::now();
    // Collected in the order of the seeds, whatever order they finish in.
    let trained = dirs
        .par_iter()
        .map(|dir| train(settings, dir, options, monitor))
        .collect::<Result<Vec<Option<TrainState<f32>>>, LabError>>()?;
    let Some(states) = trained.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(Ending::Stopped);
    };
    let result = conclude(settings, seeds, states, start)?;
    for ((dir, state), seed) in dirs.iter().zip(&result.states).zip(&result.seeds) {
        dir.finish(settings, state, seed, result.train_seconds)?;
    }
    Ok(Ending::Done(result))
}

/// Trains all seeds, in parallel, without files.
pub fn run_in_memory(settings: &Settings, seeds: &[u64]) -> Result<RunResult, LabError> {
    let start = Instant::now();
    let train = |&seed: &u64| {
        let mut trainer = Trainer::<f32>::new(&settings.config, seed)?;
        while !trainer.is_done() {
            trainer.epoch()?;
        }
        Ok(trainer.into_state())
    };
    let states = seeds.par_iter().map(train).collect::<Result<Vec<_>, TrainError>>().map_err(train_error)?;
    conclude(settings, seeds, states, start)
}

fn conclude(
    settings: &Settings,
    seeds: &[u64],
    states: Vec<TrainState<f32>>,
    start: Instant,
) -> Result<RunResult, LabError> {
    let results = states
        .par_iter()
        .zip(seeds)
        .map(|(state, &seed)| summarise(settings, seed, state))
        .collect::<Result<Vec<_>, LabError>>()?;
    Ok(RunResult { train_seconds: start.elapsed().as_secs_f64(), seeds: results, states })
}

/// Trains one seed; `None` when stopped.
fn train(
    settings: &Settings,
    dir: &RunDir,
    options: &RunOptions,
    monitor: &Monitor,
) -> Result<Option<TrainState<f32>>, LabError> {
    let config = &settings.config;
    let mut trainer = match dir.latest_checkpoint(config)? {
        Some(state) => Trainer::resume(config, dir.seed(), state),
        None => Trainer::new(config, dir.seed()),
    }
    .map_err(train_error)?;
    monitor.epochs.fetch_add(trainer.state().epoch, Ordering::Relaxed);
    let (mut saved, mut saved_at) = (trainer.state().epoch, Instant::now());
    while !trainer.is_done() {
        let before = trainer.state().epoch;
        if monitor.stop.load(Ordering::Relaxed) {
            if before > saved {
                dir.checkpoint(config, trainer.state())?;
            }
            return Ok(None);
        }
        if let Err(error) = trainer.epoch() {
            // The state is that of the last finite step, in the middle of an epoch: good to look at, not
            // to resume from.
            dir.diverged(config, trainer.state())?;
            return Err(match train_error(error) {
                LabError::Failed(text) => LabError::Failed(format!(
                    "seed {}: {text}; the last finite parameters are in {}",
                    dir.seed(),
                    dir.diverged_path().display()
                )),
                other => other,
            });
        }
        monitor.epochs.fetch_add(1, Ordering::Relaxed);
        let epoch = trainer.state().epoch;
        let due = match options.checkpoint_every {
            Some(epochs) => epoch - saved >= epochs,
            None => saved_at.elapsed() >= CHECKPOINT_INTERVAL,
        };
        if due && !trainer.is_done() {
            dir.checkpoint(config, trainer.state())?;
            (saved, saved_at) = (epoch, Instant::now());
        }
    }
    Ok(Some(trainer.into_state()))
}

fn train_error(error: TrainError) -> LabError {
    match error {
        TrainError::Config(e) => LabError::Invalid(e.to_string()),
        TrainError::Task(e) => e.into(),
        TrainError::Diverged { .. } => LabError::Failed(error.to_string()),
    }
}

fn summarise(settings: &Settings, seed: u64, state: &TrainState<f32>) -> Result<SeedResult, LabError> {
    Ok(SeedResult {
        seed,
        last: point(settings, seed, &state.params)?,
        best_step: state.best.step,
        best: point(settings, seed, &state.best.params)?,
    })
}

fn point(settings: &Settings, seed: u64, params: &[f32]) -> Result<Point, LabError> {
    let shape = settings.config.shape();
    let (rows, d) = (shape.num_rows(), shape.feature_dim);
    let emergence = emergence_of(&shape, params);
    let Measurement { diagonal_mean, diagonal_min, td_loss, msve, msve_theta_star, .. } =
        measure::<f32>(&settings.config, seed, params, MEASURED_TASKS).map_err(train_error)?;
    Ok(Point {
        branch: emergence.branch.as_str(),
        v_em: emergence.value,
        a_em: emergence.score,
        v_em_signed: emergence.value_signed,
        a_em_signed: emergence.score_signed,
        value_row: params[(rows - 1) * rows..rows * rows].iter().map(|&x| f64::from(x)).collect(),
        score_diag: (0..d).map(|i| f64::from(params[rows * rows + i * rows + i])).collect(),
        diag_mean: diagonal_mean,
        diag_min: diagonal_min,
        td_loss,
        msve,
        msve_theta_star,
    })
}
