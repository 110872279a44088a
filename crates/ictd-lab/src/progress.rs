//! Long work: what it is at, how much of it is done, and whether it shall stop.

use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::LabError;
use crate::files::OutputDir;

/// What others see of work while it goes on, and how they stop it. Studies count what they have done and ask between
/// items whether to go on; results do not depend on it. One that nobody looks at is [`Progress::default`].
#[derive(Debug)]
pub struct Progress {
    stop: Arc<AtomicBool>,
    done: AtomicU64,
    work: Mutex<Work>,
}

#[derive(Debug)]
struct Work {
    name: String,
    unit: &'static str,
    total: u64,
    since: Instant,
    out: Option<PathBuf>,
}

/// How far work is.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// What is being done.
    pub name: String,
    /// What is counted.
    pub unit: &'static str,
    /// How much is done.
    pub done: u64,
    /// Of how much; 0 where nobody knows.
    pub total: u64,
    /// Since when.
    pub elapsed: Duration,
}

impl Default for Progress {
    fn default() -> Self {
        Self::new("", Arc::default())
    }
}

impl Progress {
    /// Work of a name that ends when `stop` is set, by a signal handler for instance.
    pub fn new(name: &str, stop: Arc<AtomicBool>) -> Self {
        let work = Work { name: name.into(), unit: "", total: 0, since: Instant::now(), out: None };
        Self { stop, done: AtomicU64::new(0), work: Mutex::new(work) }
    }

    /// Says where results will be written, so that a directory that cannot be written to is found before the work and not
    /// after it.
    pub fn will_write(&self, out: PathBuf) {
        self.work().out = Some(out);
    }

    /// Begins work of so many units. All input has been checked by now: the directory for results is created, and refused if
    /// nothing can be written to it.
    pub fn begin(&self, name: impl Into<String>, unit: &'static str, total: u64) -> Result<(), LabError> {
        self.check()?;
        let mut work = self.work();
        if let Some(out) = work.out.take() {
            OutputDir::create(&out)?.probe()?;
        }
        self.done.store(0, Ordering::Relaxed);
        *work = Work { name: name.into(), unit, total, since: Instant::now(), out: None };
        Ok(())
    }

    /// Says what is at hand now, of the same work.
    pub fn rename(&self, name: impl Into<String>) {
        self.work().name = name.into();
    }

    /// Takes units off the total that need not be done.
    pub fn skip(&self, units: u64) {
        let mut work = self.work();
        work.total = work.total.saturating_sub(units);
    }

    /// Adds units to the total that turned up later.
    pub fn expect(&self, units: u64) {
        let mut work = self.work();
        work.total = work.total.saturating_add(units);
    }

    /// Counts units as done.
    pub fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    /// Counts units as done, and says whether to go on: an error when the work shall stop.
    pub fn step(&self, units: u64) -> Result<(), LabError> {
        self.advance(units);
        self.check()
    }

    /// An error when the work shall stop.
    pub fn check(&self) -> Result<(), LabError> {
        if self.is_stopped() { Err(LabError::Stopped) } else { Ok(()) }
    }

    /// Whether the work shall stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How far the work is.
    pub fn standing(&self) -> Standing {
        let work = self.work();
        Standing {
            name: work.name.clone(),
            unit: work.unit,
            done: self.done.load(Ordering::Relaxed),
            total: work.total,
            elapsed: work.since.elapsed(),
        }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standing {
    /// How long the rest will take if it goes on as before; `None` where nothing can be said.
    pub fn left(&self) -> Option<Duration> {
        let rest = self.total.checked_sub(self.done)?;
        let seconds = self.elapsed.as_secs_f64() * rest as f64 / self.done as f64;
        Duration::try_from_secs_f64(seconds).ok()
    }
}

/// A line for a person: what is done, how much of it, how long it will take.
impl Display for Standing {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { name, unit, done, total, elapsed } = self;
        match self.left().filter(|_| *total > 0) {
            Some(left) => write!(f, "{name}: {done} of {total} {unit}, {} left", in_words(left)),
            None if *total > 0 => {
                write!(f, "{name}: {done} of {total} {unit}, {} so far", in_words(*elapsed))
            }
            None => write!(f, "{name}: {} so far", in_words(*elapsed)),
        }
    }
}

/// `12 s`, `3 min 20 s`, `2 h 5 min`.
fn in_words(duration: Duration) -> String {
    match duration.as_secs_f64().ceil() as u64 {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds @ 100..6000 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(done: u64, total: u64, seconds: u64) -> Standing {
        Standing { name: "work".into(), unit: "tasks", done, total, elapsed: Duration::from_secs(seconds) }
    }

    #[test]
    fn what_is_left_is_told_where_it_can_be() {
        for (standing, line) in [
            (standing(0, 0, 3), "work: 3 s so far"),
            (standing(0, 8, 3), "work: 0 of 8 tasks, 3 s so far"),
            (standing(2, 8, 4), "work: 2 of 8 tasks, 12 s left"),
            (standing(1, 101, 2), "work: 1 of 101 tasks, 3 min 20 s left"),
            (standing(1, 3751, 2), "work: 1 of 3751 tasks, 2 h 5 min left"),
            // More was done than was known of.
            (standing(9, 8, 4), "work: 9 of 8 tasks, 4 s so far"),
        ] {
            assert_eq!(standing.to_string(), line);
        }
    }

    #[test]
    fn work_is_counted_and_stopped() {
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Progress::new("first", stop.clone());
        progress.begin("second", "tasks", 10).unwrap();
        progress.step(3).unwrap();
        progress.skip(4);
        let found = progress.standing();
        assert_eq!((found.name.as_str(), found.done, found.total), ("second", 3, 6));
        stop.store(true, Ordering::Relaxed);
        for stopped in [progress.step(1), progress.check(), progress.begin("third", "tasks", 1)] {
            assert_eq!(stopped.unwrap_err().exit_code(), 124);
        }
    }

    #[test]
    fn the_directory_is_made_when_work_begins() {
        let dir = tempfile::tempdir().unwrap();
        let (new, file) = (dir.path().join("a/b"), dir.path().join("file"));
        let progress = Progress::default();
        progress.will_write(new.clone());
        assert!(!new.exists());
        progress.begin("", "", 1).unwrap();
        assert!(new.is_dir() && std::fs::read_dir(&new).unwrap().next().is_none());
        std::fs::write(&file, "").unwrap();
        progress.will_write(file);
        assert!(matches!(progress.begin("", "", 1), Err(LabError::Write { .. })));
    }
}
