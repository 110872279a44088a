//! One process at a time writes to a directory.
//!
//! The lock is the system's advisory lock on the file `.lock`, which says who holds it. It ends with the process, however
//! that ends, so a file that a killed process left is no obstacle.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use super::process;
use crate::LabError;

/// The file in a locked directory.
pub(crate) const LOCK: &str = ".lock";

/// A lock that is held as long as this lives.
#[derive(Debug)]
pub(crate) struct DirLock {
    root: PathBuf,
    /// The file that is locked.
    path: PathBuf,
    mode: Mode,
    /// Open as long as the lock is held.
    file: File,
}

/// Who else may hold a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nobody.
    Exclusive,
    /// Those who share it.
    Shared,
}

/// Exclusive locks of this process: whoever writes to a directory twice in a row may hold on to it.
static HELD: Mutex<Vec<Weak<DirLock>>> = Mutex::new(Vec::new());

impl DirLock {
    /// Locks a directory that is there; waits at most `patience` for another process to give it up.
    pub(crate) fn acquire(root: &Path, mode: Mode, patience: Duration) -> Result<Arc<Self>, LabError> {
        let failed = |source| LabError::Write { path: root.to_owned(), source };
        let place = root.canonicalize().map_err(failed)?;
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|lock| lock.strong_count() > 0);
        if let Some(own) = held.iter().filter_map(Weak::upgrade).find(|lock| lock.root == place) {
            return Ok(own);
        }
        let start = Instant::now();
        loop {
            if let Some(file) = try_lock(&place.join(LOCK), mode).map_err(failed)? {
                let lock = Arc::new(Self { path: place.join(LOCK), root: place, mode, file });
                if mode == Mode::Exclusive {
                    held.push(Arc::downgrade(&lock));
                }
                return Ok(lock);
            }
            if start.elapsed() >= patience {
                let who = fs::read_to_string(place.join(LOCK)).unwrap_or_default();
                let who = if who.trim().is_empty() { "another process" } else { who.trim() };
                let message = format!(
                    "in use by {who}, expected no other process: wait for it or choose another directory"
                );
                return Err(failed(io::Error::other(message)));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether somebody holds the lock of a directory, shared or not. Nobody is kept out meanwhile but for a moment, where a
    /// killed process left its file.
    pub(crate) fn is_held(root: &Path) -> bool {
        match File::options().read(true).write(true).open(root.join(LOCK)) {
            // On a file system without locks the file is all there is.
            Ok(file) => file.try_lock().is_err(),
            Err(e) => e.kind() != ErrorKind::NotFound,
        }
    }

    /// Locks a part of a directory that a file of this name stands for, against other processes; `None` where one has it.
    pub(crate) fn try_part(root: &Path, name: &str) -> Result<Option<Self>, LabError> {
        let path = root.join(name);
        match try_lock(&path, Mode::Exclusive) {
            Ok(file) => {
                Ok(file.map(|file| Self { root: root.to_owned(), path, mode: Mode::Exclusive, file }))
            }
            Err(source) => Err(LabError::Write { path, source }),
        }
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // Who shares a lock removes the file where nobody else has it.
        let is_last = self.mode == Mode::Exclusive || self.file.try_lock().is_ok();
        if is_last && is_at(&self.file, &self.path) {
            // A file that stays behind is no obstacle to anybody.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file, locked; `None` where another process holds it.
fn try_lock(path: &Path, mode: Mode) -> io::Result<Option<File>> {
    loop {
        let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let locked = match mode {
            Mode::Exclusive => file.try_lock(),
            Mode::Shared => file.try_lock_shared(),
        };
        match locked {
            Err(TryLockError::WouldBlock) => return Ok(None),
            // A file system without locks: as good as it gets.
            Err(TryLockError::Error(e)) if e.kind() != ErrorKind::Unsupported => return Err(e),
            _ => {}
        }
        // Whoever held it may have removed it between opening and locking: then this lock guards nothing.
        if is_at(&file, path) {
            let host = process::host_name().map_or_else(String::new, |name| format!(" on {name}"));
            let (id, since) = (std::process::id(), process::utc(SystemTime::now()));
            let who = match mode {
                Mode::Exclusive => format!("process {id}{host} since {since}\n"),
                // Whoever came last need not be the one who stays.
                Mode::Shared => String::new(),
            };
            // For people; a lock that does not say whose it is works as well.
            let _ = file.set_len(0).and_then(|()| file.write_all(who.as_bytes()));
            return Ok(Some(file));
        }
    }
}

/// Whether a path leads to this very file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let same = |(a, b): (fs::Metadata, fs::Metadata)| a.dev() == b.dev() && a.ino() == b.ino();
    file.metadata().ok().zip(fs::metadata(path).ok()).is_some_and(same)
}

/// Elsewhere open files are not removed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}
