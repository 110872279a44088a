//! Output directories whose files appear whole or not at all.

use std::fs::{self, File};
use std::io::{BufWriter, Error, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::lock::{DirLock, Mode};
use super::process;
use super::seal::sealed_json;
use crate::figure::{Scene, to_pdf, to_png, to_svg};
use crate::report::Records;
use crate::{LabError, Progress};

/// A directory that results are written to. Files of other names in it are left alone.
#[derive(Clone, Debug)]
pub struct OutputDir {
    root: PathBuf,
    /// What was written so far, shared by clones.
    written: Arc<Mutex<Written>>,
    /// Keeps other processes out, where it is held.
    lock: Option<Arc<DirLock>>,
    progress: Arc<Progress>,
    /// Whether files that have their bytes already are left alone.
    keeps: bool,
}

/// Files per figure: SVG, PDF and PNG.
const FIGURE_FILES: usize = 3;

/// What was written to a directory.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Names of the files.
    pub files: Vec<String>,
    /// Names of the figures and their SVG.
    pub figures: Vec<(String, String)>,
}

impl OutputDir {
    /// Opens the directory, creating it if needed.
    pub fn create(root: &Path) -> Result<Self, LabError> {
        fs::create_dir_all(root).map_err(|source| LabError::Write { path: root.to_owned(), source })?;
        let (written, progress) = (Arc::default(), Arc::default());
        Ok(Self { root: root.to_owned(), written, lock: None, progress, keeps: false })
    }

    /// Opens the directory, creating it if needed, for this process alone until all clones are gone; waits at most
    /// `patience` for another process that has it. What killed processes left half-written is removed.
    pub fn locked(root: &Path, patience: Duration) -> Result<Self, LabError> {
        let start = Instant::now();
        loop {
            let dir = Self::create(root)?;
            match DirLock::acquire(root, Mode::Exclusive, patience.saturating_sub(start.elapsed())) {
                // Whoever had it may have taken the directory away that it had made.
                Err(LabError::Write { source, .. })
                    if source.kind() == ErrorKind::NotFound && start.elapsed() <= patience => {}
                lock => {
                    let lock = Some(lock?);
                    remove_unfinished(root);
                    return Ok(Self { lock, ..dir });
                }
            }
        }
    }

    /// Opens a directory inside, under the same lock.
    pub fn below(&self, name: &str) -> Result<Self, LabError> {
        let dir = Self::create(&self.root.join(name))?;
        if self.lock.is_some() {
            remove_unfinished(dir.path());
        }
        Ok(Self { lock: self.lock.clone(), ..dir })
    }

    /// The same directory, its files counted as they are written.
    #[must_use]
    pub fn watched(self, progress: &Arc<Progress>) -> Self {
        Self { progress: progress.clone(), ..self }
    }

    /// The same directory; files that have their bytes already are left alone, with their times.
    #[must_use]
    pub fn keeping(self) -> Self {
        Self { keeps: true, ..self }
    }

    /// Says that so many tables, figures and other files will be written.
    pub fn expect(&self, tables: usize, figures: usize, others: usize) {
        self.progress.expect((tables + FIGURE_FILES * figures + others) as u64);
    }

    /// Refuses a directory that no file can be written to.
    pub fn probe(&self) -> Result<(), LabError> {
        let path = self.root.join(unfinished("probe"));
        let removed = |_| match fs::remove_file(&path) {
            // By another process that tidied up.
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        File::create(&path)
            .and_then(removed)
            .map_err(|source| LabError::Write { path: self.root.clone(), source })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Writes a file: to a temporary name, synced, then renamed, so that readers and crashes never
    /// see half of it; the directory is synced too, so that the name is there after a power failure.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), LabError> {
        if self.keeps && fs::read(self.root.join(name)).is_ok_and(|there| there == bytes) {
            return self.wrote(name);
        }
        self.put(name, |file| file.write_all(bytes).map_err(|e| self.failed(name, e)))
    }

    /// The same for what is too large to be held in memory; its SHA-256.
    pub fn write_with(
        &self,
        name: &str,
        fill: impl FnOnce(&mut Hashing<'_>) -> Result<(), LabError>,
    ) -> Result<String, LabError> {
        let mut digest = String::new();
        self.put(name, |file| {
            let mut hashing = Hashing::new(file);
            fill(&mut hashing)?;
            digest = hashing.finish().map_err(|e| self.failed(name, e))?;
            Ok(())
        })?;
        Ok(digest)
    }

    fn put(&self, name: &str, fill: impl FnOnce(&mut File) -> Result<(), LabError>) -> Result<(), LabError> {
        self.progress.check()?;
        let path = self.root.join(name);
        let temporary = self.root.join(unfinished(name));
        let _writing = Writing::begin();
        let failed = |e| self.failed(name, e);
        let written = File::create(&temporary).map_err(failed).and_then(|mut file| {
            fill(&mut file)?;
            file.sync_all()
                .and_then(|()| fs::rename(&temporary, &path))
                .and_then(|()| sync_directory(&self.root))
                .map_err(failed)
        });
        // The cause is what matters; a leftover that cannot be removed either changes nothing.
        written.inspect_err(|_| drop(fs::remove_file(&temporary)))?;
        self.wrote(name)
    }

    fn wrote(&self, name: &str) -> Result<(), LabError> {
        self.remember(|written| written.files.push(name.to_owned()));
        self.progress.advance(1);
        Ok(())
    }

    /// That a file in the directory could not be written.
    pub(crate) fn failed(&self, name: &str, source: Error) -> LabError {
        LabError::Write { path: self.root.join(name), source }
    }

    fn remember<T>(&self, change: impl FnOnce(&mut Written) -> T) -> T {
        change(&mut self.written.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Removes a file that an earlier run may have left under a name that this one does not write.
    pub fn clear(&self, name: &str) -> Result<(), LabError> {
        let path = self.root.join(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => Err(LabError::Write { path, source }),
            _ => Ok(()),
        }
    }

    /// What was written since this was last asked.
    pub fn take_written(&self) -> Written {
        self.remember(std::mem::take)
    }

    /// Writes a figure as SVG, PDF and PNG.
    pub fn figure(&self, name: &str, scene: &Scene) -> Result<(), LabError> {
        let svg = to_svg(scene);
        self.write(&format!("{name}.svg"), svg.as_bytes())?;
        self.remember(|written| written.figures.push((name.to_owned(), svg)));
        self.write(&format!("{name}.pdf"), &to_pdf(scene))?;
        let png = to_png(scene).ok_or_else(|| {
            let source = Error::new(ErrorKind::InvalidData, "the figure is too large for an image");
            LabError::Write { path: self.root.join(format!("{name}.png")), source }
        })?;
        self.write(&format!("{name}.png"), &png)
    }

    /// Writes a table as CSV, one record per row, numbers in their shortest exact form.
    pub fn csv<R: Serialize>(&self, name: &str, rows: impl IntoIterator<Item = R>) -> Result<(), LabError> {
        self.records(&Records::of(name, rows)?)
    }

    /// Writes records as CSV under their name.
    pub fn records(&self, records: &Records) -> Result<(), LabError> {
        self.write(&format!("{}.csv", records.name()), records.csv().as_bytes())
    }

    /// Writes a value as indented JSON.
    pub fn json(&self, name: &str, value: &impl Serialize) -> Result<(), LabError> {
        self.json_text(name, serde_json::to_string_pretty(value).map(|text| text + "\n"))
    }

    /// Writes a value with fields as indented JSON with a digest, for [`read_sealed`](super::read_sealed).
    pub(crate) fn sealed_json(&self, name: &str, value: &impl Serialize) -> Result<(), LabError> {
        self.json_text(name, sealed_json(value))
    }

    fn json_text(&self, name: &str, text: serde_json::Result<String>) -> Result<(), LabError> {
        let file = format!("{name}.json");
        let text =
            text.map_err(|e| LabError::Write { path: self.root.join(&file), source: Error::other(e) })?;
        self.write(&file, text.as_bytes())
    }
}

/// A file that is written in parts, and the SHA-256 of all of them.
#[derive(Debug)]
pub struct Hashing<'a> {
    file: BufWriter<&'a mut File>,
    digest: Sha256,
}

impl<'a> Hashing<'a> {
    fn new(file: &'a mut File) -> Self {
        Self { file: BufWriter::with_capacity(1 << 16, file), digest: Sha256::new() }
    }

    fn finish(mut self) -> Result<String, Error> {
        self.file.flush()?;
        Ok(super::hex(&self.digest.finalize()))
    }
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.flush()
    }
}

/// Files that are being written by this process.
static WRITING: AtomicUsize = AtomicUsize::new(0);

/// Whether a file of this process has its temporary name: who ends the process waits for that.
pub fn is_writing() -> bool {
    WRITING.load(Ordering::SeqCst) > 0
}

/// A file that is being written.
struct Writing;

impl Writing {
    fn begin() -> Self {
        WRITING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        WRITING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The name that [`OutputDir::write`] gives to a file until it is whole: `.NAME.MOMENT.tmp`.
fn unfinished(name: &str) -> String {
    format!(".{name}.{}.tmp", process::moment())
}

/// Whether a name is such a one; earlier versions had the number of the process alone.
pub(crate) fn is_unfinished(name: &str) -> bool {
    let moment = name.strip_prefix('.').and_then(|n| n.strip_suffix(".tmp")?.rsplit_once('.'));
    moment.is_some_and(|(_, word)| process::is_moment(word) || word.parse::<u32>().is_ok())
}

/// Removes what killed processes left half-written, in a directory whose lock is held. Nobody reads such files: one that
/// cannot be removed is as good as gone.
fn remove_unfinished(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_unfinished) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Makes renames in a directory last.
#[cfg(unix)]
pub(crate) fn sync_directory(root: &Path) -> std::io::Result<()> {
    match File::open(root)?.sync_all() {
        // Some file systems cannot do this for directories, and do not need it.
        Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

/// Elsewhere directories cannot be opened as files.
#[cfg(not(unix))]
pub(crate) fn sync_directory(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two machines may have processes of one number: their half-written files have names of their own, which are known as such.
    #[test]
    fn unfinished_files_have_names_of_their_own() {
        let name = unfinished("results.csv");
        assert!(is_unfinished(&name) && is_unfinished(".results.csv.77.tmp"), "{name}");
        assert!(name.starts_with(".results.csv.") && name.contains(&std::process::id().to_string()));
        for other in ["results.csv", ".mine.tmp", ".results.csv.host.tmp", ".results.csv.a_b-1-2.tmp"] {
            assert!(!is_unfinished(other), "{other}");
        }
    }
}
