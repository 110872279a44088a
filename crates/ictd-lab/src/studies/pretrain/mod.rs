//! Pretraining runs: many seeds, whose threads share them in turns, run directories, checkpoints, results.

mod checkpoint;
mod place;
mod record;
mod run_dir;
mod settings;
mod show;

use run_dir::RunDir;
pub(super) use settings::computed_by;
pub use settings::{SIMD_VARIABLE, Settings, simd_level};

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ictd::pretrain::{Measurement, ParamsView, TrainError, TrainState, Trainer, measure};
use serde::Serialize;

use super::in_parallel;
use crate::{LabError, Moment, Progress, counted};

/// Fresh tasks that the final numbers of a seed are measured on.
pub(crate) const MEASURED_TASKS: u64 = 300;

/// Time between checkpoints: a lost run costs at most this much again.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(2);

/// Epochs a thread trains a seed before it takes up the next: long enough that hand-overs cost nothing,
/// short enough that no thread is left alone with a whole seed at the end.
const TURN: u64 = 50;

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
    if options.resume {
        run_dir::refuse_changed_tasks(out, settings, &sha256, seeds)?;
    }
    // All of them first: where another process has one, nothing is changed in the others.
    let (roots, _shared) = run_dir::lock_seeds(&run_dir::run_directory(out, settings, &sha256), seeds)?;
    let open = |(root, &seed)| RunDir::open(root, out, settings, &sha256, seed, options.resume);
    let dirs = roots.into_iter().zip(seeds).map(open).collect::<Result<Vec<_>, _>>()?;
    begin(settings, seeds, progress)?;
    let start = Moment::now();
    let runs = dirs.iter().map(|dir| Training::open(settings, dir, options, progress));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let new =
        dirs.iter().zip(&runs).filter(|(dir, run)| !dir.is_finished() && run.trainer.state().epoch == 0);
    let new = new.count();
    if options.resume && new > 0 {
        let place = run_dir::run_directory(out, settings, &sha256);
        let seeds = counted(new, "seed");
        (options.notice)(&format!("nothing to resume for {seeds} in {}: from the start", place.display()));
    }
    for warning in dirs.iter().filter_map(RunDir::warning) {
        (options.notice)(&format!("warning: {warning}"));
    }
    let Trained { states, diverged, stopped, trained_in } = train_all(runs, progress, start)?;
    let note_stop = || dirs.iter().try_for_each(RunDir::stopped).map(|()| Ending::Stopped);
    if stopped {
        return note_stop();
    }
    // Seeds that went well are finished whatever became of the others.
    let healthy: Vec<usize> = (0..dirs.len()).filter(|&k| states[k].is_some()).collect();
    let well: Vec<u64> = healthy.iter().map(|&k| seeds[k]).collect();
    let states = states.into_iter().flatten().collect();
    let result = match conclude(settings, &well, states, trained_in, progress) {
        // The last checkpoints are there: a resumed run only measures.
        Err(LabError::Stopped) => return note_stop(),
        other => other?,
    };
    for ((&k, state), seed) in healthy.iter().zip(&result.states).zip(&result.seeds) {
        dirs[k].finish(settings, state, seed, result.train_seconds)?;
    }
    match diverged.into_iter().next() {
        Some(LabError::Diverged { place, source, note }) if seeds.len() > 1 => {
            let note = format!("{note}; {} of {} done", well.len(), counted(seeds.len(), "seed"));
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
    let progress = Progress::default();
    let Trained { states, diverged, trained_in, .. } = train(settings, seeds, true, &progress)?;
    if let Some(error) = diverged.into_iter().next() {
        return Err(error);
    }
    conclude(settings, seeds, states.into_iter().flatten().collect(), trained_in, &progress)
}

/// Begins the training of all seeds.
fn begin(settings: &Settings, seeds: &[u64], progress: &Progress) -> Result<(), LabError> {
    let total = settings.config.epochs.saturating_mul(seeds.len() as u64);
    progress.begin(format!("training {}", settings.name), "epochs", total)
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
    let training =
        |&seed: &u64| Ok(Training { trainer: Trainer::new(&settings.config, seed)?, measured, files: None });
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
    let seeds = in_parallel(states.iter().zip(seeds), |(state, &seed)| {
        let result = seed_result(settings, seed, state);
        progress.step(2)?;
        result
    })?;
    Ok(RunResult { train_seconds: trained_in.as_secs_f64(), seeds, states, settings: settings.clone() })
}

/// The result of a seed in this state: its parameters and its best, measured on fresh tasks.
pub fn seed_result(settings: &Settings, seed: u64, state: &TrainState<f32>) -> Result<SeedResult, LabError> {
    let last = point(settings, seed, &state.params)?;
    let best = point(settings, seed, &state.best.params)?;
    Ok(SeedResult { seed, last, best_step: state.best.step, best })
}

/// The same without fresh tasks: what they would tell is not a number.
pub fn unmeasured_result(settings: &Settings, seed: u64, state: &TrainState<f32>) -> SeedResult {
    let unknown = Measurement {
        diagonal_mean: f64::NAN,
        diagonal_min: f64::NAN,
        td_loss: f64::NAN,
        msve: f64::NAN,
        msve_theta_star: f64::NAN,
        distance_to_theta_star: f64::NAN,
    };
    let point = |params: &[f32]| point_of(settings, params, unknown);
    SeedResult {
        seed,
        last: point(&state.params),
        best_step: state.best.step,
        best: point(&state.best.params),
    }
}

fn point(settings: &Settings, seed: u64, params: &[f32]) -> Result<Point, LabError> {
    Ok(point_of(settings, params, measure::<f32>(&settings.config, seed, params, MEASURED_TASKS)?))
}

fn point_of(settings: &Settings, params: &[f32], measured: Measurement) -> Point {
    let shape = settings.config.shape();
    let view = ParamsView::new(&shape, params);
    let emergence = view.emergence();
    let Measurement { diagonal_mean, diagonal_min, td_loss, msve, msve_theta_star, .. } = measured;
    Point {
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
    }
}

/// A state of a run as the bytes of a checkpoint.
pub fn checkpoint_bytes(
    settings: &Settings,
    seed: u64,
    state: &TrainState<f32>,
) -> Result<Vec<u8>, LabError> {
    let tensors = checkpoint::encode(&settings.config, &settings.sha256()?, seed, state);
    Ok(tensors.map_err(|e| LabError::internal("checkpoint", e))?.to_bytes())
}

/// A seed in training, and where it keeps its checkpoints.
struct Training<'a> {
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
    fn open(
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
pub(super) struct Trained {
    /// By run; `None` where it diverged or was stopped.
    pub(super) states: Vec<Option<TrainState<f32>>>,
    /// What the diverged runs say.
    diverged: Vec<LabError>,
    /// Whether it was stopped before the end; checkpoints are then written.
    stopped: bool,
    /// Wall time, without the last checkpoints.
    trained_in: Duration,
}

/// Trains all runs to their end: threads take the run that has waited longest, train it for a turn and put
/// it back, so that five seeds keep two threads busy to the last. A run that diverges leaves the others alone;
/// any other error ends them all, checkpoints written.
fn train_all(runs: Vec<Training<'_>>, progress: &Progress, start: Moment) -> Result<Trained, LabError> {
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
