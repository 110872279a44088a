//! An index of run directories: what was trained, how far it is, and what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ictd::statistics::wilson;
use serde::Serialize;
use serde_json::Value;

use super::differs::Change;
use super::group::{name_parts, seeds_in};
use super::record::Found;
use super::run_dir::{DIVERGED, PROVENANCE};
use super::{SeedResult, Settings};
use crate::report::{Report, Table};
use crate::studies::{in_parallel, mean};
use crate::{LabError, Progress, counted};

/// The run directories below a directory, ordered by path; as JSON a list.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Runs(Vec<Run>);

/// The seeds of a configuration.
#[derive(Clone, Debug, Serialize)]
struct Run {
    directory: PathBuf,
    /// Name of the preset or file.
    name: String,
    /// The keys that differ from the preset, or from the paper's setting.
    changes: BTreeMap<String, String>,
    /// The first digits of the configuration's SHA-256.
    hash: String,
    /// Seeds with a result.
    finished: usize,
    /// Seeds without one.
    unfinished: usize,
    /// Seeds whose parameters left the range of numbers.
    diverged: usize,
    /// Seeds whose result, or any file where all were looked at, is not as it was written.
    damaged: usize,
    td: Share,
    mirror: Share,
    none: Share,
    /// Mean δ² of finished seeds on fresh tasks; NaN, `null` in JSON, without any.
    td_loss: f64,
    /// Mean error against exact values; NaN where they are not known.
    msve: f64,
    /// When a process last ended its work here, as far as it said so.
    when: Option<String>,
    /// Of all files.
    bytes: u64,
}

/// Finished seeds that ended in a branch, and the 95 % interval of their share (Wilson).
#[derive(Clone, Copy, Debug, Serialize)]
struct Share {
    seeds: u64,
    low: f64,
    high: f64,
}

impl Share {
    fn of(branch: &str, results: &[SeedResult]) -> Self {
        let seeds = results.iter().filter(|found| found.last.branch == branch).count() as u64;
        let (low, high) = wilson(seeds, results.len() as u64);
        Self { seeds, low, high }
    }

    /// `5 (57–100 %)`; the count alone where nothing is known of the share.
    fn text(self, total: usize) -> String {
        if total == 0 {
            return self.seeds.to_string();
        }
        format!("{} ({:.0}–{:.0} %)", self.seeds, 100.0 * self.low, 100.0 * self.high)
    }
}

/// What there is of a seed.
enum Standing {
    Finished(Box<SeedResult>),
    Unfinished,
    Diverged,
    Damaged,
}

/// What one seed adds to its run.
struct Seed {
    standing: Standing,
    ended: Option<String>,
}

/// Reads the results of all runs in a directory and below; with `verify` every file of a finished seed is compared with its
/// digest. Links are not followed.
pub fn index(dir: &Path, verify: bool, progress: &Progress) -> Result<Runs, LabError> {
    progress.begin("looking for runs", "", 0)?;
    let mut places = Vec::new();
    find(dir, &mut places)?;
    places.sort();
    let seeds = places.iter().map(|place| seeds_in(place)).collect::<Result<Vec<_>, _>>()?;
    progress.begin("reading runs", "seeds", seeds.iter().map(Vec::len).sum::<usize>() as u64)?;
    let runs = places.iter().zip(&seeds).map(|(place, seeds)| run(place, seeds, verify, progress));
    runs.collect::<Result<_, _>>().map(Runs)
}

/// Directories of configurations: their names end with a hash, and they have seeds.
pub(super) fn find(dir: &Path, places: &mut Vec<PathBuf>) -> Result<(), LabError> {
    let failed = |source| LabError::Read { path: dir.to_owned(), source };
    if full_name(dir).is_some_and(|(_, name)| name_parts(&name).is_some()) && !seeds_in(dir)?.is_empty() {
        places.push(dir.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            find(&entry.path(), places)?;
        }
    }
    Ok(())
}

/// The names of the directory around a directory and of itself, also where the path does not say them.
pub(super) fn full_name(dir: &Path) -> Option<(String, String)> {
    let full = dir.canonicalize().ok()?;
    let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    Some((name(full.parent()?).unwrap_or_default(), name(&full)?))
}

fn run(place: &Path, seeds: &[(u64, PathBuf)], verify: bool, progress: &Progress) -> Result<Run, LabError> {
    let (name, own) = full_name(place).unwrap_or_default();
    let (said, hash) = name_parts(&own).unwrap_or_default();
    let found = in_parallel(seeds, |(number, path)| {
        progress.step(1)?;
        Ok(seed(path, *number, hash, verify))
    })?;
    let when = found.iter().filter_map(|seed| seed.ended.clone()).max();
    let (mut results, mut unfinished, mut diverged, mut damaged) = (Vec::new(), 0, 0, 0);
    for seed in found {
        match seed.standing {
            Standing::Finished(result) => results.push(*result),
            Standing::Unfinished => unfinished += 1,
            Standing::Diverged => diverged += 1,
            Standing::Damaged => damaged += 1,
        }
    }
    let changes = seeds.iter().find_map(|(_, path)| Settings::changes_of(&path.join("config.toml"), &name));
    // Without a readable configuration the name of the directory has to do.
    let changes = changes.unwrap_or_else(|| said.split(',').filter_map(change).collect());
    let share = |branch| Share::of(branch, &results);
    Ok(Run {
        directory: place.to_owned(),
        changes: changes.into_iter().collect(),
        hash: hash.to_owned(),
        finished: results.len(),
        unfinished,
        diverged,
        damaged,
        td: share("td"),
        mirror: share("mirror"),
        none: share("none"),
        td_loss: mean(results.iter().map(|found| found.last.td_loss)),
        msve: mean(results.iter().map(|found| found.last.msve)),
        when,
        bytes: bytes(place),
        name,
    })
}

fn change(text: &str) -> Option<Change> {
    text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))
}

fn seed(path: &Path, number: u64, hash: &str, verify: bool) -> Seed {
    let found = if verify { Found::examine(path, number, hash) } else { Found::glance(path, number, hash) };
    let standing = match (found.result(), &found) {
        (Some(result), _) => Standing::Finished(Box::new(result.clone())),
        (None, Found::Differs(..)) => Standing::Damaged,
        (None, _) if path.join(DIVERGED).is_file() => Standing::Diverged,
        (None, _) => Standing::Unfinished,
    };
    let provenance = fs::read(path.join(PROVENANCE)).ok();
    let provenance = provenance.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    let ended = provenance.and_then(|value| value["end_utc"].as_str().map(str::to_owned));
    Seed { standing, ended }
}

/// The sizes of all files of a directory and below; what cannot be read counts nothing.
fn bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |file| file.len()),
        _ => 0,
    };
    entries.map(of).sum()
}

impl Runs {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Run {
    fn row(&self) -> Vec<String> {
        let changes: Vec<String> = self.changes.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let counts = [
            (self.finished, "finished"),
            (self.unfinished, "unfinished"),
            (self.diverged, "diverged"),
            (self.damaged, "damaged"),
        ];
        let seeds =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let number = |x: f64| if x.is_nan() { "unknown".to_owned() } else { format!("{x:.3}") };
        let share = |share: Share| share.text(self.finished);
        vec![
            self.hash.clone(),
            self.name.clone(),
            changes.join(" "),
            seeds.collect::<Vec<_>>().join(", "),
            share(self.td),
            share(self.mirror),
            share(self.none),
            number(self.td_loss),
            number(self.msve),
            self.when.clone().unwrap_or_default(),
            megabytes(self.bytes),
        ]
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

impl Report for Runs {
    fn text(&self, width: usize) -> String {
        if self.is_empty() {
            return String::new();
        }
        let header =
            ["hash", "setting", "changes", "seeds", "td", "mirror", "none", "TD loss", "MSVE", "last", "MB"];
        let all = |of: fn(&Run) -> usize| self.0.iter().map(of).sum::<usize>();
        let seeds = all(|run| run.finished + run.unfinished + run.diverged + run.damaged);
        let bytes = self.0.iter().map(|run| run.bytes).sum();
        let total = format!(
            "{} of {}, {} MB; in brackets 95 % intervals of the share\n",
            counted(self.0.len(), "setting"),
            counted(seeds, "seed"),
            megabytes(bytes)
        );
        Table::new(&header, self.0.iter().map(Run::row)).words([1, 2, 3, 4, 5, 6, 9]).text(width)
            + "\n"
            + &total
    }
}
