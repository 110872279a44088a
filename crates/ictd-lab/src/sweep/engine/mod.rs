//! Engines: what starts workers elsewhere, and waits for them.
//!
//! A sweep is cut into units of consecutive runs; a worker of a unit is `ictd sweep DIR --index A..B`. The journal alone says what
//! is done: an engine says at most that nothing of a job is under way any more. Whatever has no record then, or not the parameters
//! that its record speaks of, is submitted again, as long as rounds bring something.

mod hyperqueue;
mod slurm;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::estimate::Estimate;
use super::{Counter, Finished, Opened, Outlook};
use crate::files::{DirLock, OutputDir, process, read_sealed};
use crate::{LabError, Moment, Progress, counted};
use hyperqueue::HyperQueue;
use slurm::Slurm;

/// Where an engine keeps what it submits, inside the directory of a sweep.
pub(super) const FOLDER: &str = "engine";
/// What was submitted last.
const JOB: &str = "job.json";
/// Between two looks at the journal and the engine.
const LOOK: Duration = Duration::from_secs(2);
/// Looks in a row that find nothing under way before that is believed: an element may be between two nodes.
const QUIET: u32 = 2;
/// Rounds without a single run more before the sweep gives up.
const ROUNDS: u32 = 3;
/// Work of a unit that is aimed at where nobody says its size: schedulers take seconds to start one.
const UNIT_SECONDS: f64 = 600.0;
/// Units that are aimed at where there is work for them: more are a burden for schedulers.
const UNITS: usize = 200;

/// An engine by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

    /// Whether work that it was given goes on where the command that gave it ends.
    pub fn goes_on(self) -> bool {
        match self {
            Self::Local => false,
            Self::Slurm => true,
            Self::HyperQueue => hyperqueue::has_server(),
        }
    }

    fn engine(self) -> Box<dyn Engine> {
        match self {
            Self::HyperQueue => Box::new(HyperQueue::default()),
            _ => Box::new(Slurm),
        }
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
        for (option, number) in [("chunk", self.chunk), ("array-limit", self.limit)] {
            if number == Some(0) {
                return Err(LabError::value(option, 0, "at least 1"));
            }
        }
        if self.engine == EngineName::Slurm
            && let Some(option) = self.extra.iter().find(|option| slurm::is_own(option))
        {
            let problem = format!("'{option}' is what the sweep says itself, expected other options");
            return Err(LabError::refused("job-option", problem));
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
    engine: EngineName,
    /// The name it was given: numbers are given out again by some engines.
    name: String,
    /// The number it was given; `None` where that was lost in a crash.
    id: Option<String>,
    /// The cluster that has it, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    /// Runs per unit.
    chunk: usize,
    /// Its units.
    units: Vec<usize>,
}

impl Job {
    /// The one that was noted last in the directory of a sweep.
    fn noted(root: &Path) -> Option<Self> {
        read_sealed(&root.join(FOLDER).join(JOB))
    }

    fn note(&self, folder: &OutputDir) -> Result<(), LabError> {
        folder.sealed_json(JOB.trim_end_matches(".json"), self)
    }

    /// Its number, or its name where that was lost.
    fn number(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.name)
    }

    /// How it is, by whoever asks without having submitted it.
    fn state(&self) -> Result<State, LabError> {
        self.engine.engine().state(self)
    }
}

/// Whether an engine has a job of a sweep under way, or does not say in this moment.
pub(super) fn is_at_work(root: &Path) -> bool {
    Job::noted(root).is_some_and(|job| matches!(job.state(), Ok(State::Active | State::Unknown(_))))
}

/// Forgets the job of a sweep whose runs are all done.
pub(super) fn forget(root: &Path) {
    // One that stays is asked about once more, and found to be over.
    let _ = std::fs::remove_file(root.join(FOLDER).join(JOB));
}

/// Refuses to forget the job of a sweep that its engine may have under way still: its runs would be done twice.
pub(super) fn refuse_to_forget(root: &Path) -> Result<(), LabError> {
    let Some(job) = Job::noted(root) else { return Ok(()) };
    let how = match job.state() {
        Ok(State::Gone) => return Ok(()),
        Ok(State::Active) => "is under way".to_owned(),
        Ok(State::Stuck(why)) => format!("will not go on by itself: {why}"),
        Ok(State::Unknown(why)) => format!("does not say how it is: {why}"),
        Err(error) => format!("cannot be asked: {error}"),
    };
    let problem = format!(
        "{} has job {}, which {how}, expected it to end or to be cancelled, or no {} where that is known",
        job.engine.as_str(),
        job.number(),
        root.join(FOLDER).join(JOB).display()
    );
    Err(LabError::refused("engine", problem))
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
    /// Submits what was written down, and says in the job where that is.
    fn submit(&mut self, work: &Work<'_>, job: &mut Job) -> Result<(), LabError>;
    /// How a job is.
    fn state(&mut self, job: &Job) -> Result<State, LabError>;
}

/// Has the runs of a sweep done elsewhere and writes the table; `tell` hears of every submission. What is left of all runs is in
/// the outlook, with a trial.
pub fn run(
    opened: &Opened,
    options: &Options,
    outlook: &Outlook,
    progress: &Arc<Progress>,
    tell: fn(&str),
) -> Result<Option<Finished>, LabError> {
    let folder = opened.root().join(FOLDER);
    let folder = OutputDir::locked(&folder, Duration::ZERO)?;
    let Some(estimate) = outlook.estimate else {
        folder.clear(JOB)?;
        return opened.finish(progress, tell).map(Some);
    };
    let mut job = Job::noted(opened.root());
    if job.as_ref().is_some_and(|job| job.engine != options.engine) {
        refuse_to_forget(opened.root())?;
        job = None;
    }
    let mut engine = options.engine.engine();
    let all = 0..opened.sweep.num_runs();
    let largest = engine.largest_unit()?;
    let chunk = match (options.chunk, &job) {
        (Some(chunk), _) => chunk.min(all.len()),
        // Units that are under way keep their size.
        (None, Some(job)) => job.chunk,
        (None, None) => chunk(&estimate, all.len(), options.threads, largest),
    };
    if (all.len() - 1) / chunk > largest {
        let found = format!("{chunk}, which makes {} units", all.len().div_ceil(chunk));
        return Err(LabError::value("chunk", found, format!("at least {}", all.len().div_ceil(largest + 1))));
    }
    let root = opened
        .root()
        .canonicalize()
        .map_err(|source| LabError::Read { path: opened.root().into(), source })?;
    let program = std::env::current_exe().map_err(|e| LabError::internal("program", e))?;
    let (mut idle, mut number) = (0, 0);
    loop {
        // What is written and not submitted waits for nothing.
        if let Some(job) = job.as_ref().filter(|_| !options.write_only) {
            wait(opened, engine.as_mut(), job, progress, tell)?;
        }
        let (_, left) = opened.left(&all, progress)?;
        if left.is_empty() {
            break;
        }
        let mut units: Vec<usize> = left.iter().map(|run| run / chunk).collect();
        units.dedup();
        idle = if job.is_some() && left.len() == number { idle + 1 } else { 0 };
        number = left.len();
        if idle >= ROUNDS {
            // Its engine is done with the last one.
            folder.clear(JOB)?;
            let problem = format!(
                "{number} of {} left after {ROUNDS} submissions in a row that brought none; the last words of a worker: {}",
                counted(opened.sweep.num_computed(), "run"),
                last_words(&folder).unwrap_or_else(|| "none".into())
            );
            return Err(LabError::refused("engine", problem));
        }
        let largest_runs = chunk.min(all.len()) as f64;
        let work = Work {
            root: root.clone(),
            program: program.clone(),
            name: format!(
                "ictd-{}-{:08x}",
                word(&opened.sweep.plan.name),
                crc32fast::hash(process::moment().as_bytes())
            ),
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
        // Noted before and after: Slurm finds a job whose number was lost in a crash by its name. HyperQueue does not, whose units
        // wait for one another then.
        let mut next = Job {
            engine: options.engine,
            name: work.name.clone(),
            id: None,
            cluster: None,
            chunk,
            units: units.clone(),
        };
        next.note(&folder)?;
        let submitted = engine.submit(&work, &mut next);
        // Nothing is waited for that was not taken, or that nobody is there to take.
        if submitted.is_err() && matches!(engine.state(&next), Ok(State::Gone) | Err(_)) {
            folder.clear(JOB)?;
        }
        submitted?;
        next.note(&folder)?;
        tell(&format!(
            "{} has job {}: {} of {} each",
            options.engine.as_str(),
            next.number(),
            counted(units.len(), "unit"),
            counted(chunk, "run")
        ));
        job = Some(next);
    }
    folder.clear(JOB)?;
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
    let name = format!("{} job {}", job.engine.as_str(), job.number());
    progress.begin(name.as_str(), "runs", (total - seen) as u64)?;
    let (mut quiet, mut told, mut is_remade) = (0, String::new(), false);
    loop {
        let now = counter.count(opened.root())?.min(total);
        progress.advance((now - seen) as u64);
        seen = now;
        if seen == total && !is_remade {
            let (_, left) = opened.left(&(0..opened.sweep.num_runs()), progress)?;
            if left.is_empty() {
                return Ok(());
            }
            // Runs that have a record are done again for their parameters: the engine says when that is over.
            is_remade = true;
            progress.begin(name.as_str(), "", 0)?;
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

/// Runs per unit: some minutes of work each, but not more units than schedulers like or take, and not fewer than there is work for.
fn chunk(estimate: &Estimate, runs: usize, threads: usize, largest_unit: usize) -> usize {
    let by_time = (UNIT_SECONDS * threads as f64 / estimate.run.max(1e-9)).min(runs as f64) as usize;
    // Four units at least, so that a few nodes have something to do.
    by_time.min(runs.div_ceil(4)).max(runs.div_ceil(UNITS.min(largest_unit + 1))).max(1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_as_many_as_an_engine_takes() {
        let estimate = |run: f64| Estimate { run, longest: run, bytes: 0.0 };
        // Ten minutes each, where there is that much work; four units at least, and two hundred at most.
        assert_eq!(chunk(&estimate(60.0), 1000, 1, 1000), 10);
        assert_eq!(chunk(&estimate(1e-3), 1000, 1, 1000), 250);
        assert_eq!(chunk(&estimate(1e4), 1000, 1, 1000), 5);
        // Numbers up to 49 are fifty units.
        assert_eq!(chunk(&estimate(1e4), 1000, 1, 49), 20);
        assert_eq!(chunk(&estimate(1e4), 1000, 1, 0), 1000);
        assert_eq!(chunk(&estimate(1e4), 1000, 1, usize::MAX - 1), 5);
    }
}
