//! Pretraining runs: many seeds, run directories, checkpoints, results.

mod checkpoint;
mod curves;
mod differs;
mod group;
mod index;
mod kept;
mod load;
mod place;
mod record;
mod result;
mod run_dir;
mod settings;
mod show;
mod stored;
mod training;

pub use curves::Curves;
pub use index::{Runs, index};
pub use load::load;
pub(crate) use result::MEASURED_TASKS;
pub use result::{Point, SeedResult, seed_result, unmeasured_result};
pub(super) use settings::computed_by;
pub use settings::{SIMD_VARIABLE, Settings, simd_level};
pub(crate) use settings::{assignment, full_name};
pub use stored::{Step, Stored};

use std::path::{Path, PathBuf};
use std::time::Duration;

use ictd::pretrain::TrainState;
use serde::Serialize;

use super::in_parallel;
use crate::{LabError, Moment, Progress, counted};
use run_dir::RunDir;
use training::{Trained, Training, train_all};

/// What is taken up of earlier runs of the same seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Earlier {
    /// Results of finished seeds, as they are; others start over.
    #[default]
    Results,
    /// The last checkpoints, of finished seeds too: what is damaged is computed again from them.
    Checkpoints,
    /// Nothing. Finished results stay until there are new ones.
    Nothing,
}

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// What is taken up of earlier runs.
    pub earlier: Earlier,
    /// Epochs between checkpoints; every two seconds when `None`.
    pub checkpoint_every: Option<u64>,
    /// Told what the user should know, one line each.
    pub notice: fn(&str),
}

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    /// Wall time of training, with the measurement after every epoch and checkpoints, without the final measurement and
    /// files; 0 where all seeds were finished.
    pub train_seconds: f64,
    /// One entry per seed, in the order asked for.
    pub seeds: Vec<SeedResult>,
    /// How many of them were trained, and not taken as they were found.
    #[serde(skip)]
    pub trained: usize,
    /// The final states, for figures: in a run directory those of all its finished seeds, in order.
    #[serde(skip)]
    pub states: Vec<TrainState<f32>>,
    /// The seeds of these states.
    #[serde(skip)]
    pub state_seeds: Vec<u64>,
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

/// Trains all seeds, in parallel, each in its own directory under `out`; stopped, it writes checkpoints before it ends.
pub fn run(
    settings: &Settings,
    seeds: &[u64],
    out: &Path,
    options: &RunOptions,
    progress: &Progress,
) -> Result<Ending, LabError> {
    settings.admit(seeds.len(), true)?;
    let sha256 = settings.sha256()?;
    let place = group::run_directory(out, settings, &sha256)?;
    let resume = options.earlier == Earlier::Checkpoints;
    if resume {
        group::refuse_changed_tasks(out, settings, &place, seeds)?;
    }
    // All of them first: where another process has one, nothing is changed in the others.
    let (roots, _shared) = group::lock_seeds(&place, seeds)?;
    let open = |(root, &seed)| RunDir::open(root, out, settings, &sha256, seed, options.earlier);
    let dirs = roots.into_iter().zip(seeds).map(open).collect::<Result<Vec<_>, _>>()?;
    let (taken, open): (Vec<&RunDir>, Vec<&RunDir>) = dirs.iter().partition(|dir| dir.taken().is_some());
    let total = settings.config.epochs.saturating_mul(open.len() as u64);
    progress.begin(format!("training {}", settings.name), "epochs", total)?;
    let start = Moment::now();
    let runs = open.iter().map(|dir| Training::open(settings, dir, options, progress));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let new = open.iter().zip(&runs).filter(|(dir, run)| !dir.is_finished() && run.is_new()).count();
    if resume && new > 0 {
        let seeds = counted(new, "seed");
        (options.notice)(&format!("nothing to resume for {seeds} in {}: from the start", place.display()));
    }
    if !taken.is_empty() {
        let (are, them) = if taken.len() == 1 { ("is", "it") } else { ("are", "them") };
        let seeds = counted(taken.len(), "seed");
        (options.notice)(&format!("{seeds} {are} finished, --fresh trains {them} anew"));
    }
    for warning in dirs.iter().filter_map(RunDir::warning) {
        (options.notice)(&format!("warning: {warning}"));
    }
    let Trained { states, diverged, stopped, trained_in } = train_all(runs, progress, start)?;
    let note_stop = || open.iter().try_for_each(|dir| dir.stopped()).map(|()| Ending::Stopped);
    if stopped {
        return note_stop();
    }
    // Seeds that went well are finished whatever became of the others.
    let (well, states): (Vec<&RunDir>, Vec<TrainState<f32>>) =
        open.iter().copied().zip(states).filter_map(|(dir, state)| Some((dir, state?))).unzip();
    let numbers: Vec<u64> = well.iter().map(|dir| dir.seed).collect();
    let mut result = match conclude(settings, &numbers, states, trained_in, progress) {
        // The last checkpoints are there: a resumed run only measures.
        Err(LabError::Stopped) => return note_stop(),
        other => other?,
    };
    for ((dir, state), seed) in well.iter().zip(&result.states).zip(&result.seeds) {
        dir.finish(settings, state, seed, result.train_seconds)?;
    }
    match diverged.into_iter().next() {
        Some(LabError::Diverged { place, source, note }) if seeds.len() > 1 => {
            let done = taken.len() + well.len();
            let note = format!("{note}; {done} of {} done", counted(seeds.len(), "seed"));
            return Err(LabError::Diverged { place, source, note });
        }
        Some(error) => return Err(error),
        None => {}
    }
    result.seeds.extend(taken.iter().filter_map(|dir| dir.taken().cloned()));
    result.seeds.sort_by_key(|found| seeds.iter().position(|seed| *seed == found.seed));
    let own = numbers.into_iter().zip(result.states).collect();
    let finished = group::finished_states(&place, settings, &sha256, own, options.notice, progress)?;
    (result.state_seeds, result.states) = finished.into_iter().unzip();
    Ok(Ending::Done { result: Box::new(result), figures: place.join("figures") })
}

/// Trains all seeds, in parallel, without files.
pub fn run_in_memory(settings: &Settings, seeds: &[u64], progress: &Progress) -> Result<RunResult, LabError> {
    let total = settings.config.epochs.saturating_mul(seeds.len() as u64);
    progress.begin(format!("training {}", settings.name), "epochs", total)?;
    let Trained { states, diverged, trained_in, .. } = train(settings, seeds, true, progress)?;
    if let Some(error) = diverged.into_iter().next() {
        return Err(error);
    }
    conclude(settings, seeds, states.into_iter().flatten().collect(), trained_in, progress)
}

/// Trains all seeds, in parallel, without files or a final measurement; `measured` says whether every epoch ends with
/// one. A seed that diverges has no state.
pub(super) fn train(
    settings: &Settings,
    seeds: &[u64],
    measured: bool,
    progress: &Progress,
) -> Result<Trained, LabError> {
    settings.admit(seeds.len(), false)?;
    let start = Moment::now();
    let training = |&seed: &u64| Training::in_memory(settings, seed, measured);
    let runs = seeds.iter().map(training).collect::<Result<Vec<_>, LabError>>()?;
    let trained = train_all(runs, progress, start)?;
    if trained.stopped { Err(LabError::Stopped) } else { Ok(trained) }
}

fn conclude(
    settings: &Settings,
    seeds: &[u64],
    states: Vec<TrainState<f32>>,
    trained_in: Duration,
    progress: &Progress,
) -> Result<RunResult, LabError> {
    progress.begin("measuring on fresh tasks", "points", 2 * seeds.len() as u64)?;
    let state_seeds = seeds.to_vec();
    let seeds = in_parallel(states.iter().zip(seeds), |(state, &seed)| {
        let result = seed_result(settings, seed, state);
        progress.step(2)?;
        result
    })?;
    let train_seconds = if seeds.is_empty() { 0.0 } else { trained_in.as_secs_f64() };
    Ok(RunResult {
        train_seconds,
        trained: seeds.len(),
        seeds,
        states,
        state_seeds,
        settings: settings.clone(),
    })
}

/// Writes a result that was found in memory as the run directory that training with files would have made; its path. Results of
/// these seeds that are there give way.
pub fn store(result: &RunResult, out: &Path, progress: &Progress) -> Result<PathBuf, LabError> {
    let settings = &result.settings;
    let sha256 = settings.sha256()?;
    let place = group::run_directory(out, settings, &sha256)?;
    progress.begin("writing runs", "seeds", result.seeds.len() as u64)?;
    let seeds: Vec<u64> = result.seeds.iter().map(|found| found.seed).collect();
    let (roots, _shared) = group::lock_seeds(&place, &seeds)?;
    for (root, found) in roots.into_iter().zip(&result.seeds) {
        let state = result.state(found.seed)?;
        let dir = RunDir::open(root, out, settings, &sha256, found.seed, Earlier::Nothing)?;
        dir.finish(settings, state, found, result.train_seconds)?;
        progress.step(1)?;
    }
    Ok(place)
}

impl RunResult {
    /// The final state of a seed.
    pub fn state(&self, seed: u64) -> Result<&TrainState<f32>, LabError> {
        let known = self.state_seeds.iter().position(|known| *known == seed);
        let unknown = || {
            let known: Vec<String> = self.state_seeds.iter().map(u64::to_string).collect();
            LabError::value("seed", seed, format!("one of those trained: {}", known.join(", ")))
        };
        known.map(|k| &self.states[k]).ok_or_else(unknown)
    }

    /// A step of a seed as the bytes of a checkpoint.
    pub fn checkpoint(&self, seed: u64, step: Step) -> Result<Vec<u8>, LabError> {
        let state = self.state(seed)?;
        checkpoint_bytes(&self.settings, seed, state, step)
    }
}

/// A step of a run as the bytes of a checkpoint.
pub fn checkpoint_bytes(
    settings: &Settings,
    seed: u64,
    state: &TrainState<f32>,
    step: Step,
) -> Result<Vec<u8>, LabError> {
    let tensors = checkpoint::encode(&settings.config, &settings.sha256()?, seed, state, step);
    Ok(tensors.map_err(|e| LabError::internal("checkpoint", e))?.to_bytes())
}
