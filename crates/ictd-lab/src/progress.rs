//! Long work: what it is at, how much of it is done, and whether it shall stop.

use std::fmt::{Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::files::OutputDir;
use crate::{LabError, Moment};

/// How long another process that has the directory is waited for: many are done by then.
const PATIENCE: Duration = Duration::from_secs(5);

/// What others see of work while it goes on, and how they stop it. Studies count what they have done and ask between
/// items whether to go on; results do not depend on it. One that nobody looks at is [`Progress::default`].
#[derive(Debug)]
pub struct Progress {
    stop: Arc<AtomicBool>,
    done: AtomicU64,
    work: Mutex<Work>,
    /// Where results will be written.
    out: Mutex<Option<PathBuf>>,
    /// Directories that were made for them, the deepest first.
    made: Mutex<Vec<PathBuf>>,
    /// The directory for them, as long as others are kept out.
    held: Mutex<Option<OutputDir>>,
}

#[derive(Debug)]
struct Work {
    name: String,
    unit: &'static str,
    total: u64,
    since: Moment,
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
        let work = Mutex::new(Work { name: name.into(), unit: "", total: 0, since: Moment::now() });
        let (out, made, held) = Default::default();
        Self { stop, done: AtomicU64::new(0), work, out, made, held }
    }

    /// Work that is a part of this one: it ends with this one, and nobody sees it.
    pub fn quiet(&self) -> Self {
        Self::new("", self.stop.clone())
    }

    /// Says where results will be written, so that a directory that cannot be written to is found before the work and not
    /// after it.
    pub fn will_write(&self, out: PathBuf) {
        *lock(&self.out) = Some(out);
    }

    /// Begins work of so many units. All input has been checked by now: the directory for results is created, for this process
    /// alone, and refused if nothing can be written to it or another process works on it.
    pub fn begin(&self, name: impl Into<String>, unit: &'static str, total: u64) -> Result<(), LabError> {
        self.check()?;
        if let Some(out) = lock(&self.out).take() {
            let is_new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
            *lock(&self.made) = out.ancestors().take_while(is_new).map(Path::to_owned).collect();
            let dir = OutputDir::locked(&out, PATIENCE)?;
            dir.probe()?;
            *lock(&self.held) = Some(dir);
        }
        let mut work = lock(&self.work);
        self.done.store(0, Ordering::Relaxed);
        *work = Work { name: name.into(), unit, total, since: Moment::now() };
        Ok(())
    }

    /// Lets others have the directory for results: for work that is done.
    pub fn release(&self) {
        *lock(&self.held) = None;
    }

    /// Takes back directories that were made for results, as far as there are none in them: for work that failed.
    pub fn clean_up(&self) {
        self.release();
        for path in lock(&self.made).drain(..) {
            // One with files in it stays.
            let _ = fs::remove_dir(path);
        }
    }

    /// Says what is at hand now, of the same work.
    pub fn rename(&self, name: impl Into<String>) {
        lock(&self.work).name = name.into();
    }

    /// Takes units off the total that need not be done.
    pub fn skip(&self, units: u64) {
        let mut work = lock(&self.work);
        work.total = work.total.saturating_sub(units);
    }

    /// Adds units to the total that turned up later.
    pub fn expect(&self, units: u64) {
        let mut work = lock(&self.work);
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

    /// What stops the work when it is set.
    pub fn stop(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Whether the work shall stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// How far the work is.
    pub fn standing(&self) -> Standing {
        let work = lock(&self.work);
        Standing {
            name: work.name.clone(),
            unit: work.unit,
            done: self.done.load(Ordering::Relaxed),
            total: work.total,
            elapsed: work.since.elapsed(),
        }
    }
}

/// A thread that panicked while holding a lock left a whole value behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

/// `40 kB`, `1.2 MB`.
pub(crate) fn bytes_in_words(bytes: f64) -> String {
    match bytes {
        b if b < 1e6 => format!("{:.0} kB", (b / 1e3).ceil()),
        b if b < 1e9 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} GB", b / 1e9),
    }
}

/// `12 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn in_words(duration: Duration) -> String {
    match duration.as_secs_f64().ceil() as u64 {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds @ 100..6000 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::LOCK;

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
        assert!(new.join(LOCK).is_file());
        progress.clean_up();
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
        // What is in use, or was there before, stays.
        progress.will_write(new.clone());
        progress.begin("", "", 1).unwrap();
        std::fs::write(dir.path().join("a/file"), "").unwrap();
        progress.clean_up();
        assert!(!new.exists() && dir.path().join("a/file").exists());
        // Done: others may have it, and nothing of the lock stays.
        progress.will_write(new.clone());
        progress.begin("", "", 1).unwrap();
        progress.release();
        assert!(std::fs::read_dir(&new).unwrap().next().is_none());
        std::fs::write(&file, "").unwrap();
        progress.will_write(file);
        assert!(matches!(progress.begin("", "", 1), Err(LabError::Write { .. })));
    }
}
