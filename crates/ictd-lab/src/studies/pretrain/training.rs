//! Training of many seeds, whose threads share them in turns, with checkpoints on the way.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ictd::pretrain::{TrainError, TrainState, Trainer};

use super::run_dir::RunDir;
use super::{RunOptions, Settings};
use crate::{LabError, Moment, Progress};

/// Time between checkpoints: a lost run costs at most this much again.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(2);

/// Epochs a thread trains a seed before it takes up the next: long enough that hand-overs cost nothing,
/// short enough that no thread is left alone with a whole seed at the end.
const TURN: u64 = 50;

/// A seed in training, and where it keeps its checkpoints.
pub(super) struct Training<'a> {
    trainer: Trainer<f32>,
    measured: bool,
    files: Option<Files<'a>>,
}

struct Files<'a> {
    settings: &'a Settings,
    dir: &'a RunDir,
    every: Option<u64>,
    saved: u64,
    saved_at: Moment,
}

impl<'a> Training<'a> {
    /// One without files, from the start; `measured` says whether every epoch ends with a measurement.
    pub(super) fn in_memory(settings: &Settings, seed: u64, measured: bool) -> Result<Self, LabError> {
        Ok(Self { trainer: Trainer::new(&settings.config, seed)?, measured, files: None })
    }

    /// Whether nothing has been trained yet.
    pub(super) fn is_new(&self) -> bool {
        self.trainer.state().epoch == 0
    }

    /// One that keeps checkpoints, from the newest that is there.
    pub(super) fn open(
        settings: &'a Settings,
        dir: &'a RunDir,
        options: &RunOptions,
        progress: &Progress,
    ) -> Result<Self, LabError> {
        let config = &settings.config;
        let trainer = match dir.latest_checkpoint(config, options.notice)? {
            Some(state) => Trainer::resume(config, dir.seed, state),
            None => Trainer::new(config, dir.seed),
        }?;
        let saved = trainer.state().epoch;
        progress.skip(saved);
        let files = Files { settings, dir, every: options.checkpoint_every, saved, saved_at: Moment::now() };
        Ok(Self { trainer, measured: true, files: Some(files) })
    }

    /// Trains for a turn, or until the end, or until stopped.
    fn turn(&mut self, progress: &Progress) -> Result<(), LabError> {
        for _ in 0..TURN {
            if self.trainer.is_done() || progress.is_stopped() {
                return Ok(());
            }
            let result = if self.measured { self.trainer.epoch() } else { self.trainer.epoch_unmeasured() };
            let Some(files) = &mut self.files else {
                result?;
                progress.advance(1);
                continue;
            };
            match result {
                Err(error @ TrainError::Diverged { .. }) => {
                    return Err(files.diverged(self.trainer.state(), error));
                }
                other => other?,
            }
            progress.advance(1);
            files.checkpoint_if_due(&self.trainer)?;
        }
        Ok(())
    }
}

impl Files<'_> {
    fn checkpoint_if_due(&mut self, trainer: &Trainer<f32>) -> Result<(), LabError> {
        let epoch = trainer.state().epoch;
        let due = match self.every {
            Some(epochs) => epoch - self.saved >= epochs,
            None => self.saved_at.elapsed() >= CHECKPOINT_INTERVAL,
        };
        if due && !trainer.is_done() { self.checkpoint(trainer) } else { Ok(()) }
    }

    fn checkpoint(&mut self, trainer: &Trainer<f32>) -> Result<(), LabError> {
        let epoch = trainer.state().epoch;
        if epoch > self.saved {
            self.dir.checkpoint(&self.settings.config, trainer.state())?;
            (self.saved, self.saved_at) = (epoch, Moment::now());
        }
        Ok(())
    }

    /// Keeps the last finite state, in the middle of an epoch: good to look at, not to resume from.
    fn diverged(&self, state: &TrainState<f32>, error: TrainError) -> LabError {
        match self.dir.diverged(&self.settings.config, state) {
            Ok(path) => LabError::Diverged {
                place: format!("seed {}: ", self.dir.seed),
                source: error.into(),
                note: format!("; the last finite parameters are in {}", path.display()),
            },
            Err(error) => error,
        }
    }
}

/// How training ended.
pub(in crate::studies) struct Trained {
    /// By run; `None` where it diverged or was stopped.
    pub(in crate::studies) states: Vec<Option<TrainState<f32>>>,
    /// What the diverged runs say.
    pub(super) diverged: Vec<LabError>,
    /// Whether it was stopped before the end; checkpoints are then written.
    pub(super) stopped: bool,
    /// Wall time, without the last checkpoints.
    pub(super) trained_in: Duration,
}

/// Trains all runs to their end: threads take the run that has waited longest, train it for a turn and put
/// it back, so that five seeds keep two threads busy to the last. A run that diverges leaves the others alone;
/// any other error ends them all, checkpoints written.
pub(super) fn train_all(
    runs: Vec<Training<'_>>,
    progress: &Progress,
    start: Moment,
) -> Result<Trained, LabError> {
    let num_runs = runs.len();
    let waiting = Mutex::new(runs.into_iter().enumerate().collect::<VecDeque<_>>());
    let ended = Mutex::new(Vec::with_capacity(num_runs));
    let diverged = Mutex::new(Vec::new());
    let failure = Mutex::new(None);
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(num_runs) {
            scope.spawn(|_| {
                while lock(&failure).is_none() {
                    let Some((index, mut run)) = lock(&waiting).pop_front() else { return };
                    match run.turn(progress) {
                        Err(error @ LabError::Diverged { .. }) => lock(&diverged).push((index, error)),
                        Err(error) => {
                            lock(&failure).get_or_insert(error);
                            lock(&ended).push((index, run));
                        }
                        Ok(()) if run.trainer.is_done() || progress.is_stopped() => {
                            lock(&ended).push((index, run));
                        }
                        Ok(()) => lock(&waiting).push_back((index, run)),
                    }
                }
            });
        }
    });
    let trained_in = start.elapsed();
    let mut runs = std::mem::take(&mut *lock(&ended));
    runs.extend(std::mem::take(&mut *lock(&waiting)));
    // Before the final measurement too, so that a signal during it costs nothing.
    for (_, run) in &mut runs {
        if let Some(files) = &mut run.files {
            let saved = files.checkpoint(&run.trainer);
            if lock(&failure).is_none() {
                saved?;
            }
        }
    }
    if let Some(error) = lock(&failure).take() {
        return Err(error);
    }
    let stopped = runs.iter().any(|(_, run)| !run.trainer.is_done());
    let mut states = vec![None; num_runs];
    for (index, run) in runs {
        states[index] = Some(run.trainer.into_state());
    }
    let mut diverged = std::mem::take(&mut *lock(&diverged));
    diverged.sort_by_key(|(index, _)| *index);
    let diverged = diverged.into_iter().map(|(_, error)| error).collect();
    Ok(Trained { states, diverged, stopped, trained_in })
}

/// A thread that panicked while holding a lock has already ended the run.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
