//! Pretraining runs: many seeds, run directories, checkpoints, results.

mod checkpoint;
mod run_dir;
mod settings;
mod show;
mod training;

use run_dir::RunDir;
pub use settings::{SIMD_VARIABLE, Settings, simd_level};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use ictd::pretrain::{Measurement, ParamsView, TrainState, Trainer, measure};
use rayon::prelude::*;
use serde::Serialize;

use super::in_parallel;
use crate::LabError;
use training::{Trained, Training, train_all};

/// Fresh tasks that the final numbers of a seed are measured on.
const MEASURED_TASKS: u64 = 300;

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Continue from the last checkpoints instead of starting over.
    pub resume: bool,
    /// Epochs between checkpoints; every two seconds when `None`.
    pub checkpoint_every: Option<u64>,
    /// Told what the user should know, one line each.
    pub notice: fn(&str),
}

/// What others see of a run while it goes on.
#[derive(Debug, Default)]
pub struct Monitor {
    /// Epochs done, all seeds together.
    pub epochs: AtomicU64,
    /// Set from outside, by a signal handler for instance, to stop after the current epochs, checkpoints
    /// written.
    pub stop: Arc<AtomicBool>,
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
    /// Mean square error against exact values on fresh tasks; NaN, `null` in JSON, where they are not known.
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
    /// Wall time of training all seeds, with the measurement after every epoch and checkpoints, without the
    /// final measurement and files.
    pub train_seconds: f64,
    /// One entry per seed, in the order asked for.
    pub seeds: Vec<SeedResult>,
    /// The final states, for figures.
    #[serde(skip)]
    pub states: Vec<TrainState<f32>>,
    /// What was trained.
    #[serde(skip)]
    pub settings: Settings,
}

/// How a run ended.
#[derive(Debug)]
pub enum Ending {
    /// All seeds are done.
    Done {
        /// What was found.
        result: Box<RunResult>,
        /// Where figures of all seeds belong.
        figures: PathBuf,
    },
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
    let open = |&seed: &u64| RunDir::open(out, settings, &sha256, seed, options.resume);
    let dirs = seeds.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    for path in dirs.iter().filter_map(RunDir::continues) {
        (options.notice)(&format!("warning: goes on from {}, of an earlier format", path.display()));
    }
    let start = Instant::now();
    let runs = dirs.iter().map(|dir| Training::open(settings, dir, options, monitor));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let Trained { states, diverged, stopped, trained_in } = train_all(runs, monitor, start)?;
    if stopped {
        dirs.iter().try_for_each(RunDir::stopped)?;
        return Ok(Ending::Stopped);
    }
    // Seeds that went well are finished whatever became of the others.
    let healthy: Vec<usize> = (0..dirs.len()).filter(|&k| states[k].is_some()).collect();
    let well: Vec<u64> = healthy.iter().map(|&k| seeds[k]).collect();
    let result = conclude(settings, &well, states.into_iter().flatten().collect(), trained_in)?;
    for ((&k, state), seed) in healthy.iter().zip(&result.states).zip(&result.seeds) {
        if !dirs[k].is_finished() {
            dirs[k].finish(settings, state, seed, result.train_seconds)?;
        }
    }
    match diverged.into_iter().next() {
        Some(LabError::Diverged { place, source, note }) if seeds.len() > 1 => {
            let note = format!("{note}; {} of {} seeds are done", well.len(), seeds.len());
            Err(LabError::Diverged { place, source, note })
        }
        Some(error) => Err(error),
        None => {
            let figures = run_dir::run_directory(out, settings, &sha256).join("figures");
            Ok(Ending::Done { result: Box::new(result), figures })
        }
    }
}

/// Trains all seeds, in parallel, without files.
pub fn run_in_memory(settings: &Settings, seeds: &[u64]) -> Result<RunResult, LabError> {
    let Trained { states, diverged, trained_in, .. } = train(settings, seeds, true)?;
    if let Some(error) = diverged.into_iter().next() {
        return Err(error);
    }
    conclude(settings, seeds, states.into_iter().flatten().collect(), trained_in)
}

/// Trains all seeds, in parallel, without files or a final measurement; `measured` says whether every epoch ends with
/// one. A seed that diverges has no state.
pub(super) fn train(settings: &Settings, seeds: &[u64], measured: bool) -> Result<Trained, LabError> {
    let start = Instant::now();
    let training =
        |&seed: &u64| Ok(Training { trainer: Trainer::new(&settings.config, seed)?, measured, files: None });
    let runs = seeds.iter().map(training).collect::<Result<Vec<_>, LabError>>()?;
    // Nobody can stop it.
    train_all(runs, &Monitor::default(), start)
}

fn conclude(
    settings: &Settings,
    seeds: &[u64],
    states: Vec<TrainState<f32>>,
    trained_in: Duration,
) -> Result<RunResult, LabError> {
    let seeds = in_parallel(states.par_iter().zip(seeds), |(state, &seed)| {
        let last = point(settings, seed, &state.params)?;
        let best = point(settings, seed, &state.best.params)?;
        Ok(SeedResult { seed, last, best_step: state.best.step, best })
    })?;
    Ok(RunResult { train_seconds: trained_in.as_secs_f64(), seeds, states, settings: settings.clone() })
}

fn point(settings: &Settings, seed: u64, params: &[f32]) -> Result<Point, LabError> {
    let shape = settings.config.shape();
    let view = ParamsView::new(&shape, params);
    let emergence = view.emergence();
    let Measurement { diagonal_mean, diagonal_min, td_loss, msve, msve_theta_star, .. } =
        measure::<f32>(&settings.config, seed, params, MEASURED_TASKS)?;
    Ok(Point {
        branch: emergence.branch.as_str(),
        v_em: emergence.value,
        a_em: emergence.score,
        v_em_signed: emergence.value_signed,
        a_em_signed: emergence.score_signed,
        value_row: view.value_row(0).iter().map(|&x| f64::from(x)).collect(),
        score_diag: view.score_diagonal(0).collect(),
        diag_mean: diagonal_mean,
        diag_min: diagonal_min,
        td_loss,
        msve,
        msve_theta_star,
    })
}
