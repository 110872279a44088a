//! Engines: what starts workers elsewhere, and waits for them.
//!
//! A sweep is cut into units of consecutive runs; a worker of a unit is `ictd sweep DIR --index A..B`. The journal alone says what
//! is done: an engine says at most that nothing of a job is under way any more. Whatever has no record then is submitted again, as
//! long as rounds bring something.

mod hyperqueue;
mod slurm;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::estimate::Estimate;
use super::{Counter, Finished, Index, Opened};
use crate::files::{DirLock, OutputDir, read_sealed};
use crate::{LabError, Moment, Progress, counted};
use hyperqueue::HyperQueue;
use slurm::Slurm;

/// Where an engine keeps what it submits, inside the directory of a sweep.
pub(super) const FOLDER: &str = "engine";
/// What was submitted last.
pub(super) const JOB: &str = "job";
/// Between two looks at the journal and the engine.
const LOOK: Duration = Duration::from_secs(2);
/// Looks in a row that find nothing under way before that is believed: an element may be between two nodes.
const QUIET: u32 = 2;
/// Rounds without a single new record before the sweep gives up.
const ROUNDS: u32 = 3;
/// Work of a unit that is aimed at where nobody says its size: schedulers take seconds to start one.
const UNIT_SECONDS: f64 = 600.0;
/// Units that are aimed at where there is work for them: more are a burden for schedulers.
const UNITS: usize = 200;

/// An engine by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineName {
    /// Threads of this process.
    Local,
    /// An array job of Slurm's.
    Slurm,
    /// A job of HyperQueue's.
    HyperQueue,
}

impl EngineName {
    /// All engines, by name.
    pub const ALL: [(&'static str, Self); 3] =
        [("local", Self::Local), ("slurm", Self::Slurm), ("hyperqueue", Self::HyperQueue)];

    /// The name.
    pub fn as_str(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// How workers are started elsewhere.
#[derive(Clone, Debug)]
pub struct Options {
    /// By what.
    pub engine: EngineName,
    /// Runs per unit; as many as take some minutes when `None`.
    pub chunk: Option<usize>,
    /// Threads of a worker.
    pub threads: usize,
    /// Units at once, where the engine can be told.
    pub limit: Option<usize>,
    /// The time limit of a unit, as the engine writes it; from a trial when `None`.
    pub time: Option<String>,
    /// Further options of the engine's own command.
    pub extra: Vec<String>,
    /// Write what would be submitted, and submit nothing.
    pub write_only: bool,
}

impl Options {
    /// Refuses options that the engine has no use for.
    pub fn check(&self) -> Result<(), LabError> {
        let given = [
            ("chunk", self.chunk.is_some(), true),
            ("array-limit", self.limit.is_some(), self.engine == EngineName::Slurm),
            ("time", self.time.is_some(), true),
            ("job-option", !self.extra.is_empty(), true),
            ("write-job", self.write_only, true),
        ];
        for (option, is_given, is_known) in given {
            if is_given && (self.engine == EngineName::Local || !is_known) {
                let problem =
                    format!("--engine {} has no use for it, expected it left out", self.engine.as_str());
                return Err(LabError::refused(option, problem));
            }
        }
        if self.chunk == Some(0) {
            return Err(LabError::value("chunk", 0, "at least 1"));
        }
        // A scheduler would say so of every unit, or take it for something else.
        let (is_time, expected): (fn(&str) -> bool, _) = match self.engine {
            EngineName::HyperQueue => (hyperqueue::is_time, "hours:minutes:seconds, or 1h 30m for instance"),
            _ => (slurm::is_time, "minutes, hours:minutes:seconds or days-hours:minutes:seconds"),
        };
        match &self.time {
            Some(time) if !is_time(time) => Err(LabError::value("time", format!("'{time}'"), expected)),
            _ => Ok(()),
        }
    }
}

/// A job that was submitted, as it is noted, so that whoever comes after a crash waits for it instead of submitting again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Job {
    engine: String,
    /// The name it was given: numbers are given out again by some engines.
    name: String,
    /// The number it was given; `None` where that was lost in a crash.
    id: Option<String>,
    /// Runs per unit.
    chunk: usize,
    /// Its units.
    units: Vec<usize>,
}

/// What an engine says of a job.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// Something is under way or will be.
    Active,
    /// It will not go on by itself, for this reason.
    Stuck(String),
    /// Nothing is under way, or the engine does not know the job.
    Gone,
    /// The engine does not answer: no conclusion.
    Unknown(String),
}

/// What is submitted: everything that an engine needs to write it down.
#[derive(Debug)]
struct Work<'a> {
    /// The directory of the sweep, from the root.
    root: PathBuf,
    /// Where the engine's own files are.
    folder: OutputDir,
    /// This program.
    program: PathBuf,
    name: String,
    runs: usize,
    chunk: usize,
    units: &'a [usize],
    /// Seconds that a unit takes at most, by a trial.
    seconds: f64,
    options: &'a Options,
}

impl Work<'_> {
    /// The runs of a unit.
    fn range(&self, unit: usize) -> Range<usize> {
        unit * self.chunk..((unit + 1) * self.chunk).min(self.runs)
    }
}

/// An engine.
trait Engine {
    /// The largest number of a unit.
    fn largest_unit(&self) -> Result<usize, LabError>;
    /// Writes down what is to be submitted.
    fn write(&self, work: &Work<'_>) -> Result<PathBuf, LabError>;
    /// Submits what was written down; the number of the job.
    fn submit(&mut self, work: &Work<'_>) -> Result<String, LabError>;
    /// How a job is.
    fn state(&mut self, job: &Job) -> Result<State, LabError>;
}

/// Has the runs of a sweep done elsewhere and writes the table; `tell` hears of every submission.
pub fn run(
    opened: &Opened,
    options: &Options,
    progress: &Arc<Progress>,
    tell: fn(&str),
) -> Result<Option<Finished>, LabError> {
    let folder = opened.root().join(FOLDER);
    let folder = OutputDir::locked(&folder, Duration::ZERO)?;
    let mut engine: Box<dyn Engine> = match options.engine {
        EngineName::HyperQueue => Box::new(HyperQueue::default()),
        _ => Box::new(Slurm),
    };
    let all = 0..opened.sweep.num_runs();
    let known: Option<Job> = read_sealed(&folder.path().join(format!("{JOB}.json")))
        .filter(|job: &Job| job.engine == options.engine.as_str());
    let estimate = Estimate::of(&opened.sweep, &all, progress)?;
    let chunk = match (options.chunk, &known) {
        (Some(chunk), _) => chunk.min(all.len()),
        // Units that are under way keep their size.
        (None, Some(job)) => job.chunk,
        (None, None) => chunk(&estimate, all.len(), options.threads),
    };
    let largest = engine.largest_unit()?;
    if (all.len() - 1) / chunk > largest {
        let found = format!("{chunk}, which makes {} units", all.len().div_ceil(chunk));
        return Err(LabError::value("chunk", found, format!("at least {}", all.len().div_ceil(largest + 1))));
    }
    let root = opened
        .root()
        .canonicalize()
        .map_err(|source| LabError::Read { path: opened.root().into(), source })?;
    let program = std::env::current_exe().map_err(|e| LabError::internal("program", e))?;
    let mut job = known;
    let (mut idle, mut number) = (0, 0);
    loop {
        if let Some(job) = &job {
            wait(opened, engine.as_mut(), job, progress, tell)?;
        }
        let index = Index::read(opened.root(), &opened.sweep, &all)?;
        let missing = |unit: &usize| {
            let end = ((unit + 1) * chunk).min(all.end);
            (unit * chunk..end).any(|run| opened.sweep.first(run) == run && !index.has(run))
        };
        let units: Vec<usize> = (0..all.len().div_ceil(chunk)).filter(missing).collect();
        if units.is_empty() {
            break;
        }
        let before = index.found();
        idle = if job.is_some() && before == number { idle + 1 } else { 0 };
        number = before;
        if idle >= ROUNDS {
            let problem = format!(
                "{} of {} have no record after {ROUNDS} submissions in a row brought none; the last words of a worker: {}",
                opened.sweep.num_computed() - before,
                counted(opened.sweep.num_computed(), "run"),
                last_words(&folder).unwrap_or_else(|| "none".into())
            );
            return Err(LabError::refused("engine", problem));
        }
        let largest_runs = chunk.min(all.len()) as f64;
        let work = Work {
            root: root.clone(),
            program: program.clone(),
            name: format!("ictd-{}-{:08x}", word(&opened.sweep.plan.name), process_word()),
            runs: all.len(),
            chunk,
            units: &units,
            seconds: estimate.longest * largest_runs / options.threads as f64,
            options,
            folder: folder.clone(),
        };
        let file = engine.write(&work)?;
        if options.write_only {
            tell(&format!("written, not submitted: {}", file.display()));
            return Ok(None);
        }
        // Noted before and after: a job whose number was lost is found by its name.
        let mut next = Job {
            engine: options.engine.as_str().into(),
            name: work.name.clone(),
            id: None,
            chunk,
            units: units.clone(),
        };
        folder.sealed_json(JOB, &next)?;
        let id = engine.submit(&work)?;
        tell(&format!(
            "{} has job {id}: {} of {} each",
            options.engine.as_str(),
            counted(units.len(), "unit"),
            counted(chunk, "run")
        ));
        next.id = Some(id);
        folder.sealed_json(JOB, &next)?;
        job = Some(next);
    }
    folder.clear(&format!("{JOB}.json"))?;
    opened.finish(progress, tell).map(Some)
}

/// Waits until nothing of a job is under way, and shows how many runs have a record.
fn wait(
    opened: &Opened,
    engine: &mut dyn Engine,
    job: &Job,
    progress: &Progress,
    tell: fn(&str),
) -> Result<(), LabError> {
    let total = opened.sweep.num_computed();
    let mut counter = Counter::of(&opened.sweep);
    let mut seen = counter.count(opened.root())?.min(total);
    progress.begin(
        format!("{} job {}", job.engine, job.id.as_deref().unwrap_or(&job.name)),
        "runs",
        (total - seen) as u64,
    )?;
    let (mut quiet, mut told) = (0, String::new());
    loop {
        let now = counter.count(opened.root())?.min(total);
        progress.advance((now - seen) as u64);
        seen = now;
        if seen == total {
            return Ok(());
        }
        let said = match engine.state(job)? {
            State::Active => {
                quiet = 0;
                String::new()
            }
            State::Gone => {
                quiet += 1;
                if quiet >= QUIET {
                    return Ok(());
                }
                String::new()
            }
            State::Stuck(why) => format!("job {} will not go on by itself: {why}", job.name),
            State::Unknown(why) => format!("no answer: {why}"),
        };
        if !said.is_empty() && said != told {
            tell(&said);
        }
        told = said;
        pause(progress)?;
    }
}

/// Waits for the next look, or for the end of the work.
fn pause(progress: &Progress) -> Result<(), LabError> {
    let start = Moment::now();
    while start.elapsed() < LOOK {
        progress.check()?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Runs per unit: some minutes of work each, but not more units than schedulers like and not fewer than there is work for.
fn chunk(estimate: &Estimate, runs: usize, threads: usize) -> usize {
    let by_time = (UNIT_SECONDS * threads as f64 / estimate.run.max(1e-9)).min(runs as f64) as usize;
    // Four units at least, so that a few nodes have something to do.
    by_time.min(runs.div_ceil(4)).max(runs.div_ceil(UNITS)).max(1)
}

/// Keeps two workers of the same unit apart, where an engine took one for dead that lives: the second waits for the first.
pub(super) fn lock_unit(root: &Path, runs: &Range<usize>, progress: &Progress) -> Result<DirLock, LabError> {
    let folder = root.join(super::journal::FOLDER);
    std::fs::create_dir_all(&folder).map_err(|source| LabError::Write { path: folder.clone(), source })?;
    let name = format!(".{:07}-{:07}.lock", runs.start, runs.end);
    loop {
        progress.check()?;
        if let Some(lock) = DirLock::try_part(&folder, &name)? {
            return Ok(lock);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// What the worker that wrote last said last.
fn last_words(folder: &OutputDir) -> Option<String> {
    let logs = std::fs::read_dir(folder.path().join("logs")).ok()?;
    let newest = logs.flatten().filter(|f| f.metadata().is_ok_and(|m| m.len() > 0));
    let newest = newest.max_by_key(|file| file.metadata().and_then(|m| m.modified()).ok())?;
    let text = std::fs::read_to_string(newest.path()).ok()?;
    Some(text.lines().rfind(|line| !line.trim().is_empty())?.to_owned())
}

/// A command of an engine's, run to its end; `None` where there is no such program.
fn called(command: &mut Command) -> Result<Option<Output>, LabError> {
    match command.output() {
        Ok(output) => Ok(Some(output)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(LabError::internal("engine", e)),
    }
}

/// What a command said on stderr, on one line.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    crate::one_line(text.trim())
}

/// Letters and digits of a name, as every scheduler takes them.
fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(40).collect()
}

/// Tells the submissions of different moments apart.
fn process_word() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    crc32fast::hash(format!("{} {}", std::process::id(), now.as_nanos()).as_bytes())
}
