//! The journal of a sweep: a record per finished run, in files that workers add to on their own.
//!
//! Workers share nothing but the directory. Each begins a file of its own, named by the runs it was given and by itself, and adds a
//! line per run in one write: checksum, key of the setting, seed, cells of the row, points of the curves, what is to be said.
//! A line that a killed worker left half-written fails its checksum and counts as not there, so a record is whole or missing.
//! Two workers may have done the same run, where an engine took one for dead; their records are the same, or the sweep says so.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::setting::Sweep;
use crate::files::{DirLock, process};
use crate::{LabError, Moment};

/// Where journals are, inside the directory of a sweep.
pub(super) const FOLDER: &str = "journal";
const ENDING: &str = "log";
/// Between what is forced to the disk, as long as records are added: a killed process loses none of them, a power failure those that
/// came after.
const SYNC: Duration = Duration::from_secs(5);
/// Bytes after which a worker begins another file.
const FULL: u64 = 16 << 20;

/// A finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The key of its setting.
    pub key: String,
    /// Its seed.
    pub seed: u64,
    /// The cells of its row, as CSV.
    pub cells: String,
    /// The points of its curves, as CSV.
    pub curve: Vec<String>,
    /// Why it has no numbers, where it diverged; empty otherwise.
    pub note: String,
    /// The parameters that were kept of it, each with its SHA-256: `final` and `best`, as far as they were asked for.
    pub kept: Vec<(String, String)>,
}

impl Record {
    fn to_line(&self) -> String {
        let Self { key, seed, cells, curve, note, kept } = self;
        let kept: Vec<String> = kept.iter().map(|(name, digest)| format!("{name}:{digest}")).collect();
        let content = format!("{key}\t{seed}\t{cells}\t{}\t{note}\t{}", curve.join(";"), kept.join(";"));
        format!("{:08x}\t{content}\n", crc32fast::hash(content.as_bytes()))
    }

    fn from_line(line: &str) -> Option<Self> {
        let content = checked(line)?;
        let mut fields = content.split('\t');
        let mut field = || fields.next();
        let (key, seed, cells, curve) = (field()?, field()?, field()?, field()?);
        let (note, kept) = (field()?, field()?);
        let list = |text: &str| -> Vec<String> {
            if text.is_empty() { Vec::new() } else { text.split(';').map(String::from).collect() }
        };
        let pair = |text: String| text.split_once(':').map(|(name, digest)| (name.into(), digest.into()));
        let kept = list(kept).into_iter().map(pair).collect::<Option<_>>()?;
        let [key, cells, note] = [key, cells, note].map(String::from);
        Some(Self { key, seed: seed.parse().ok()?, cells, curve: list(curve), note, kept })
    }
}

/// What a line says behind its checksum, if that fits.
fn checked(line: &str) -> Option<&str> {
    let (sum, content) = line.split_once('\t')?;
    let sum = u32::from_str_radix(sum, 16).ok()?;
    (crc32fast::hash(content.as_bytes()) == sum).then_some(content)
}

/// What one worker adds to.
#[derive(Debug)]
pub struct Writer {
    /// The path of its files, but for their numbers.
    stem: PathBuf,
    files: u32,
    path: PathBuf,
    file: File,
    bytes: u64,
    synced: Moment,
}

impl Writer {
    /// Begins a file for some of a sweep's runs.
    pub fn begin(root: &Path, sweep: &Sweep, runs: &Range<usize>) -> Result<Self, LabError> {
        let folder = root.join(FOLDER);
        let worker = process::moment();
        let digest = &sweep.digest()[..8];
        let stem = folder.join(format!("{digest}-{:07}-{:07}-{worker}", runs.start, runs.end));
        fs::create_dir_all(&folder).map_err(|source| LabError::Write { path: folder, source })?;
        let (path, file) = create(&stem, 0)?;
        Ok(Self { stem, files: 1, path, file, bytes: 0, synced: Moment::now() })
    }

    /// Adds the record of a run; whole, or the sweep ends with an error.
    pub fn add(&mut self, line: &[u8]) -> Result<(), LabError> {
        if self.bytes >= FULL {
            self.sync()?;
            (self.path, self.file) = create(&self.stem, self.files)?;
            (self.files, self.bytes) = (self.files + 1, 0);
        }
        let failed = |source| LabError::Write { path: self.path.clone(), source };
        self.file.write_all(line).map_err(failed)?;
        self.bytes += line.len() as u64;
        if self.synced.elapsed() >= SYNC {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LabError> {
        self.synced = Moment::now();
        self.file.sync_data().map_err(|source| LabError::Write { path: self.path.clone(), source })
    }

    /// Forces what was added to the disk; a file that nothing was added to goes.
    pub fn finish(mut self) -> Result<(), LabError> {
        self.sync()?;
        if self.bytes == 0 { crate::studies::remove(self.path) } else { Ok(()) }
    }
}

/// The file of a number that a worker adds to.
fn create(stem: &Path, number: u32) -> Result<(PathBuf, File), LabError> {
    let path = PathBuf::from(format!("{}-{number}.{ENDING}", stem.display()));
    match File::options().append(true).create_new(true).open(&path) {
        Ok(file) => Ok((path, file)),
        Err(source) => Err(LabError::Write { path, source }),
    }
}

/// The line of a record.
pub fn line(record: &Record) -> Vec<u8> {
    record.to_line().into_bytes()
}

/// Where records are.
#[derive(Debug, Default)]
pub struct Index {
    files: Vec<PathBuf>,
    /// By run: the run that stands for it.
    firsts: Vec<usize>,
    /// By run that stands for itself: the file, the first byte and the length of the line.
    places: Vec<Option<(u32, u64, u32)>>,
    /// Runs that more than one record was found of.
    pub repeated: usize,
    /// Lines that are not whole.
    pub damaged: usize,
}

impl Index {
    /// Of a sweep of which nothing is done.
    pub fn empty(sweep: &Sweep) -> Self {
        let firsts = (0..sweep.num_runs()).map(|run| sweep.first(run)).collect();
        Self { places: vec![None; sweep.num_runs()], firsts, ..Self::default() }
    }

    /// Of a sweep of which all is done.
    pub fn full(sweep: &Sweep) -> Self {
        let places = vec![Some((0, 0, 0)); sweep.num_runs()];
        Self { places, ..Self::empty(sweep) }
    }

    /// Looks up which of some runs of a sweep are done. Files whose names say that they were begun for other runs of the same
    /// sweep are not read.
    pub fn read(root: &Path, sweep: &Sweep, runs: &Range<usize>) -> Result<Self, LabError> {
        let digest = sweep.digest();
        // Of settings that are the same the first.
        let numbers: HashMap<&str, usize> =
            sweep.settings.iter().enumerate().rev().map(|(k, s)| (s.key.as_str(), k)).collect();
        let seeds = &sweep.plan.seeds;
        let positions: HashMap<u64, usize> = seeds.iter().enumerate().map(|(k, &seed)| (seed, k)).collect();
        let mut index = Self::empty(sweep);
        for path in files(root)? {
            if span(&path, &digest[..8]).is_some_and(|own| own.end <= runs.start || runs.end <= own.start) {
                continue;
            }
            let number = index.files.len() as u32;
            let failed = |source| LabError::Read { path: path.clone(), source };
            let mut file = BufReader::new(File::open(&path).map_err(failed)?);
            let (mut first, mut bytes) = (0, Vec::new());
            loop {
                bytes.clear();
                let (at, length) = (first, file.read_until(b'\n', &mut bytes).map_err(failed)?);
                if length == 0 {
                    break;
                }
                first += length as u64;
                // Bytes that are no text fit no checksum.
                let line = std::str::from_utf8(&bytes).unwrap_or_default();
                let run = line.strip_suffix('\n').and_then(checked).and_then(|content| {
                    let (key, rest) = content.split_once('\t')?;
                    let seed = rest.split_once('\t')?.0.parse().ok()?;
                    Some(numbers.get(key).zip(positions.get(&seed)).map(|(s, k)| s * seeds.len() + k))
                });
                match run {
                    None => index.damaged += 1,
                    // Of an earlier plan, which had other settings or seeds.
                    Some(None) => {}
                    Some(Some(run)) if index.places[run].is_none() => {
                        index.places[run] = Some((number, at, length as u32));
                    }
                    Some(Some(run)) => {
                        index.repeated += 1;
                        index.same(run, &path, line)?;
                    }
                }
            }
            index.files.push(path);
        }
        Ok(index)
    }

    /// Whether a run is done.
    pub fn has(&self, run: usize) -> bool {
        self.places[self.firsts[run]].is_some()
    }

    /// How many records there are, each run once.
    pub fn found(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// The records of runs, in their order; `open` files are kept by whoever asks for many.
    pub fn record(&self, open: &mut OpenFiles, run: usize) -> Result<Record, LabError> {
        let missing = || LabError::internal("journal", format!("run {run} has no record"));
        let (number, first, length) = self.places[self.firsts[run]].ok_or_else(missing)?;
        let path = &self.files[number as usize];
        let text = open.read(path, first, length)?;
        // Checked when the index was made; a file that changed since is damage.
        let changed = || LabError::parse(path, "changed while it was read, expected no other process");
        Record::from_line(text.trim_end_matches('\n')).ok_or_else(changed)
    }

    /// Refuses a second record of a run that says something else than the first.
    fn same(&self, run: usize, path: &Path, line: &str) -> Result<(), LabError> {
        let (number, first, length) = self.places[run].unwrap_or_default();
        // Otherwise it is in the file that is being read.
        let file = self.files.get(number as usize).map_or(path, PathBuf::as_path);
        if OpenFiles::default().read(file, first, length)? == line {
            return Ok(());
        }
        let problem = format!("run {run} was done twice with different results, expected the same");
        Err(LabError::parse(path, problem))
    }
}

/// Files that are read from here and there, the last one kept open.
#[derive(Debug, Default)]
pub struct OpenFiles(Option<(PathBuf, File)>);

impl OpenFiles {
    fn read(&mut self, path: &Path, first: u64, length: u32) -> Result<String, LabError> {
        let failed = |source| LabError::Read { path: path.to_owned(), source };
        if self.0.as_ref().is_none_or(|(known, _)| known != path) {
            self.0 = Some((path.to_owned(), File::open(path).map_err(failed)?));
        }
        let mut bytes = vec![0; length as usize];
        if let Some((_, file)) = &mut self.0 {
            file.seek(SeekFrom::Start(first)).and_then(|_| file.read_exact(&mut bytes)).map_err(failed)?;
        }
        String::from_utf8(bytes).map_err(|_| LabError::parse(path, "no text, expected records of runs"))
    }
}

/// Counts the records in the journals of a directory, time and again, reading only what was added since.
#[derive(Debug, Default)]
pub struct Counter {
    /// What is counted: the keys of these settings and these seeds, or whatever is there.
    counted: Option<(HashSet<String>, HashSet<u64>)>,
    read: HashMap<PathBuf, u64>,
    found: HashSet<(String, u64)>,
}

impl Counter {
    /// Of the runs of a sweep: an earlier plan may have left others.
    pub fn of(sweep: &Sweep) -> Self {
        let keys = sweep.settings.iter().map(|setting| setting.key.clone()).collect();
        Self { counted: Some((keys, sweep.plan.seeds.iter().copied().collect())), ..Self::default() }
    }

    /// How many runs have a record by now.
    pub fn count(&mut self, root: &Path) -> Result<usize, LabError> {
        for path in files(root)? {
            let failed = |source| LabError::Read { path: path.clone(), source };
            let first = self.read.entry(path.clone()).or_default();
            let mut added = Vec::new();
            let mut file = File::open(&path).map_err(failed)?;
            file.seek(SeekFrom::Start(*first)).and_then(|_| file.read_to_end(&mut added)).map_err(failed)?;
            // A line that is being written is looked at again.
            let whole = added.iter().rposition(|b| *b == b'\n').map_or(0, |k| k + 1);
            *first += whole as u64;
            let text = String::from_utf8_lossy(&added[..whole]);
            let records = text.lines().filter_map(Record::from_line);
            let is_counted = |record: &Record| {
                self.counted.as_ref().is_none_or(|(k, s)| k.contains(&record.key) && s.contains(&record.seed))
            };
            self.found.extend(records.filter(is_counted).map(|record| (record.key, record.seed)));
        }
        Ok(self.found.len())
    }
}

/// Removes the locks of units that killed workers left.
pub fn remove_locks(root: &Path) {
    let folder = root.join(FOLDER);
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        if let Some(name) = entry.file_name().to_str().filter(|name| name.ends_with(".lock")) {
            // One that nobody holds goes when it is let go.
            let _ = DirLock::try_part(&folder, name);
        }
    }
}

/// The files of all workers, in the order of their names.
fn files(root: &Path) -> Result<Vec<PathBuf>, LabError> {
    let folder = root.join(FOLDER);
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(&folder).map_err(|source| LabError::Read { path: folder, source })?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    files.sort();
    Ok(files)
}

/// The runs of the sweep of this digest that a file was begun for.
fn span(path: &Path, digest: &str) -> Option<Range<usize>> {
    let mut parts = path.file_name()?.to_str()?.strip_prefix(digest)?.strip_prefix('-')?.split('-');
    let mut number = || parts.next()?.parse().ok();
    Some(number()?..number()?)
}
