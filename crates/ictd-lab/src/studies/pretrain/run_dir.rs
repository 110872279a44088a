//! The directory of one seed of a run.
//!
//! ```text
//! OUT/<preset or file>/<what differs>-<hash>/seed_0007/
//!   config.toml  overrides.txt  provenance.json  metrics.csv  events.out.tfevents.…  result.json
//!   ckpt/step_00015000.safetensors  ckpt/best.safetensors
//! ```
//!
//! `result.json` is written last: where it is, everything is. Where there is one, a run that trains anew works in `rerun/`,
//! with the same files, until its own is written; then they take the place of the earlier ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ictd::pretrain::{Metric, PretrainConfig, TrainState};
use serde::Serialize;
use serde_json::Value;

use super::checkpoint::{self, encode};
use super::record::{self, Found, RESULT, Record, has_digest};
use super::{Earlier, SeedResult, Settings, Step, group};
use crate::LabError;
use crate::files::{EventFile, OutputDir, process, read_sealed, sync_directory};
use crate::studies::remove;

/// Where a run that starts over works.
const RERUN: &str = "rerun";
pub(super) const PROVENANCE: &str = "provenance.json";
/// The last finite parameters of a run that diverged.
pub(super) const DIVERGED: &str = "diverged.safetensors";
/// The directory of one seed.
#[derive(Clone, Debug)]
pub struct RunDir {
    /// Where results belong.
    root: OutputDir,
    /// Where this run writes: there, or beside the results that are there.
    work: OutputDir,
    checkpoints: OutputDir,
    sha256: String,
    pub(super) seed: u64,
    started: SystemTime,
    /// Of a finished run that is gone on with, or taken as it is.
    found: Found,
    is_taken: bool,
    /// A checkpoint elsewhere to go on from, and the hash it carries.
    earlier: Option<(PathBuf, String)>,
    /// Files of a finished run that are not as they were written, so that it is trained anew.
    lost: Vec<String>,
}

#[derive(Serialize)]
struct MetricRow {
    step: u64,
    metric: &'static str,
    value: f32,
}

#[derive(Serialize)]
struct Provenance {
    version: &'static str,
    /// The commit it was built from, as far as known when it was built.
    commit: &'static str,
    rustc: &'static str,
    target: String,
    cpu: String,
    threads: usize,
    start_utc: String,
    end_utc: String,
    /// Wall time of training all seeds of the command; absent when it was stopped.
    train_seconds_all_seeds: Option<f64>,
    peak_rss_kib: Option<u64>,
    argv: Vec<String>,
    config_sha256: String,
    rng: &'static str,
    exit_reason: &'static str,
}

impl RunDir {
    /// Opens the directory of a seed. Unless checkpoints are taken up what is there of an unfinished run is removed; finished
    /// results that are not taken as they are stay until there are new ones.
    pub fn open(
        root: OutputDir,
        out: &Path,
        settings: &Settings,
        sha256: &str,
        seed: u64,
        take_up: Earlier,
    ) -> Result<Self, LabError> {
        let path = root.path();
        replace_results(path)?;
        let rerun = path.join(RERUN);
        let has_work = !checkpoint_files(&rerun.join("ckpt")).unwrap_or_default().is_empty();
        let resume = take_up == Earlier::Checkpoints;
        let goes_on = resume && has_work;
        let (found, lost) = if goes_on || take_up == Earlier::Nothing {
            (Found::Nothing, Vec::new())
        } else {
            match Found::examine(path, seed, sha256) {
                Found::Differs(names, _) if !resume => (Found::Nothing, names),
                found => (found, Vec::new()),
            }
        };
        let is_taken = !resume && found.result().is_some();
        let beside = goes_on || !resume && !is_taken && path.join(RESULT).is_file();
        // Whoever takes results as they are leaves an unfinished rerun to --resume.
        if !(goes_on || is_taken && has_work) {
            remove(rerun)?;
        }
        if !resume && !beside && !is_taken {
            let names = [PROVENANCE, "metrics.csv", DIVERGED, "ckpt"].map(|name| path.join(name));
            names.into_iter().chain(event_files(path)?).try_for_each(remove)?;
        }
        if let Found::Intact(record) = &found {
            // A process that was killed while it replaced them may have left earlier events.
            remove_others(path, &record.files.keys().cloned().collect::<Vec<_>>())?;
        }
        let work = if beside { root.below(RERUN)? } else { root.clone() };
        let mut dir = Self {
            checkpoints: work.below("ckpt")?,
            root,
            work,
            sha256: sha256.to_owned(),
            seed,
            started: SystemTime::now(),
            found,
            is_taken,
            earlier: None,
            lost,
        };
        if resume && checkpoint_files(dir.checkpoints.path())?.is_empty() {
            dir.earlier = group::earlier_checkpoint(&out.join(&settings.name), settings, seed);
        }
        if !dir.is_finished() {
            dir.work.write("config.toml", settings.to_toml()?.as_bytes())?;
            dir.work.write("overrides.txt", (settings.overrides.join("\n") + "\n").as_bytes())?;
        }
        Ok(dir)
    }

    /// What the user should know of what was there.
    pub(super) fn warning(&self) -> Option<String> {
        let path = self.root.path().display();
        if !self.lost.is_empty() {
            let names = self.lost.join(", ");
            return Some(format!(
                "{path}: not as written, trained anew, where --resume would go on from the last checkpoint: {names}"
            ));
        }
        match (&self.found, &self.earlier) {
            (Found::Differs(names, _), _) => {
                let names = names.join(", ");
                Some(format!("{path}: not as written, computed again: {names}"))
            }
            (Found::Undigested(_), _) => Some(format!(
                "{path}: {RESULT} is of an earlier format without digests: damage would not be seen"
            )),
            (_, Some((path, _))) => Some(format!("goes on from {}, of an earlier format", path.display())),
            _ => None,
        }
    }

    /// The result of a finished run that is taken as it is.
    pub(super) fn taken(&self) -> Option<&SeedResult> {
        self.found.result().filter(|_| self.is_taken)
    }

    /// The state of the newest checkpoint, if there is one; `notice` hears of what cannot be checked.
    pub(super) fn latest_checkpoint(
        &self,
        config: &PretrainConfig,
        notice: fn(&str),
    ) -> Result<Option<TrainState<f32>>, LabError> {
        let own = checkpoint_files(self.checkpoints.path())?.pop().map(|path| (path, self.sha256.clone()));
        let Some((path, sha256)) = own.or_else(|| self.earlier.clone()) else { return Ok(None) };
        let refused =
            |message| LabError::parse(&path, format!("{message}; without --resume the seed is trained anew"));
        let (state, is_sealed) = checkpoint::read(&path, config, &sha256, self.seed).map_err(refused)?;
        if !is_sealed {
            notice(&format!("warning: {} carries no digest: damage would not be seen", path.display()));
        }
        Ok(Some(state))
    }

    /// Writes the state as the newest checkpoint, then removes older ones.
    pub(super) fn checkpoint(
        &self,
        config: &PretrainConfig,
        state: &TrainState<f32>,
    ) -> Result<(), LabError> {
        let older = checkpoint_files(self.checkpoints.path())?;
        let name = checkpoint_name(state);
        self.checkpoints.write(&name, &self.encoded(config, state, Step::Final)?)?;
        older.into_iter().filter(|p| !p.ends_with(&name)).try_for_each(remove)
    }

    /// Keeps the last finite parameters of a diverged run, apart from the checkpoints; says where.
    pub(super) fn diverged(
        &self,
        config: &PretrainConfig,
        state: &TrainState<f32>,
    ) -> Result<PathBuf, LabError> {
        let name = DIVERGED;
        self.work.write(name, &self.encoded(config, state, Step::Final)?)?;
        Ok(self.work.path().join(name))
    }

    fn encoded(
        &self,
        config: &PretrainConfig,
        state: &TrainState<f32>,
        step: Step,
    ) -> Result<Vec<u8>, LabError> {
        let tensors = encode(config, &self.sha256, self.seed, state, step)
            .map_err(|e| LabError::internal("checkpoint", e))?;
        Ok(tensors.to_bytes())
    }

    /// Writes the best step's parameters, the metrics and, last, the result, unless all of that is there.
    pub(super) fn finish(
        &self,
        settings: &Settings,
        state: &TrainState<f32>,
        result: &SeedResult,
        train_seconds: f64,
    ) -> Result<(), LabError> {
        if self.is_finished() {
            return Ok(());
        }
        let config = &settings.config;
        let last = checkpoint_name(state);
        let repairs = matches!(self.found, Found::Differs(..));
        if repairs || !self.checkpoints.path().join(&last).is_file() {
            self.checkpoint(config, state)?;
        }
        self.checkpoints.write("best.safetensors", &self.encoded(config, state, Step::Best)?)?;
        let start = self.first_start()?;
        let mut events = EventFile::new(start as f64);
        let mut metrics = Vec::new();
        for metric in Metric::ALL {
            // Per-epoch numbers were measured after the epoch's last step.
            let every = if metric.is_per_step() { 1 } else { config.batches as u64 };
            // Errors against values that are not known are not numbers, and no points of a curve.
            for (i, &value) in state.history[metric].iter().enumerate().filter(|(_, value)| !value.is_nan()) {
                let step = (i as u64 + 1) * every;
                events.scalar(metric.tag(), step, value);
                metrics.push(MetricRow { step, metric: metric.name(), value });
            }
        }
        self.work.csv("metrics", metrics)?;
        let events_name = format!("{EVENTS}{start}.ictd.{}", self.seed);
        self.work.write(&events_name, &events.into_bytes())?;
        if !self.provenance_stands() {
            self.provenance(Some(train_seconds), if repairs { "repaired" } else { "done" })?;
        }
        let ckpt = |name: &str| format!("ckpt/{name}");
        let names = ["config.toml".into(), "overrides.txt".into(), PROVENANCE.into(), "metrics.csv".into()];
        let names = [&names[..], &[events_name, ckpt("best.safetensors"), ckpt(&last)]].concat();
        remove_others(self.work.path(), &names)?;
        record::write(&self.work, result, &names)?;
        replace_results(self.root.path())
    }

    /// Whether a result is there, and with it everything else.
    pub(super) fn is_finished(&self) -> bool {
        self.found.result().is_some()
    }

    /// When the run first started, in seconds: a repair repeats the time that its events had.
    fn first_start(&self) -> Result<u64, LabError> {
        let listed = match &self.found {
            Found::Differs(_, Some(record)) => record.files.keys().find_map(|name| start_in(name)),
            Found::Differs(_, None) => {
                event_files(self.work.path())?.iter().find_map(|p| start_in(p.file_name()?.to_str()?))
            }
            _ => None,
        };
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        Ok(listed.unwrap_or(started))
    }

    /// Whether a repair finds the origin of the results undamaged.
    fn provenance_stands(&self) -> bool {
        match &self.found {
            Found::Differs(names, Some(_)) => !names.iter().any(|name| name == PROVENANCE),
            Found::Differs(_, None) => read_sealed::<Value>(&self.work.path().join(PROVENANCE)).is_some(),
            _ => false,
        }
    }

    /// Notes that a run was stopped.
    pub(super) fn stopped(&self) -> Result<(), LabError> {
        if self.is_finished() { Ok(()) } else { self.provenance(None, "stopped") }
    }

    fn provenance(&self, train_seconds: Option<f64>, exit_reason: &'static str) -> Result<(), LabError> {
        let provenance = Provenance {
            version: env!("CARGO_PKG_VERSION"),
            commit: env!("ICTD_COMMIT"),
            rustc: env!("ICTD_RUSTC"),
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            cpu: process::cpu_name(),
            threads: rayon::current_num_threads(),
            start_utc: process::utc(self.started),
            end_utc: process::utc(SystemTime::now()),
            train_seconds_all_seeds: train_seconds,
            peak_rss_kib: process::peak_rss_kib(),
            argv: std::env::args().collect(),
            config_sha256: self.sha256.clone(),
            rng: "ChaCha8, streams by (seed, purpose, epoch)",
            exit_reason,
        };
        self.work.sealed_json("provenance", &provenance)
    }
}

/// Entries of a directory by their names, in order.
pub(super) fn files(path: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, LabError> {
    let entries = fs::read_dir(path).map_err(|source| LabError::Read { path: path.to_owned(), source })?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.file_name().and_then(|n| n.to_str()).is_some_and(&is_wanted))
        .collect();
    files.sort();
    Ok(files)
}

/// Checkpoints in a directory, oldest first.
pub(super) fn checkpoint_files(path: &Path) -> Result<Vec<PathBuf>, LabError> {
    files(path, |name| name.starts_with("step_") && name.ends_with(".safetensors"))
}

fn checkpoint_name(state: &TrainState<f32>) -> String {
    format!("step_{:08}.safetensors", state.steps())
}

/// How names of event files begin; the second they started follows.
const EVENTS: &str = "events.out.tfevents.";

fn event_files(path: &Path) -> Result<Vec<PathBuf>, LabError> {
    files(path, |name| name.starts_with(EVENTS))
}

fn start_in(name: &str) -> Option<u64> {
    name.strip_prefix(EVENTS)?.split('.').next()?.parse().ok()
}

/// Removes what other runs left in a finished directory: events, checkpoints, the end of a diverged run.
fn remove_others(root: &Path, names: &[String]) -> Result<(), LabError> {
    let left = [event_files(root)?, checkpoint_files(&root.join("ckpt"))?].concat();
    let is_listed = |path: &PathBuf| names.iter().any(|name| *path == root.join(name));
    left.into_iter().filter(|p| !is_listed(p)).chain([root.join(DIVERGED)]).try_for_each(remove)
}

/// Puts the results of a finished rerun into the place of earlier ones. Its record moves last: whoever comes after a crash
/// finds it and does the rest.
fn replace_results(root: &Path) -> Result<(), LabError> {
    let rerun = root.join(RERUN);
    let Some(record) = Record::read(&rerun) else { return Ok(()) };
    // What a crash interrupted may have moved already.
    if !record
        .files
        .iter()
        .all(|(name, digest)| [&rerun, root].iter().any(|d| has_digest(&d.join(name), digest)))
    {
        return Ok(());
    }
    let names: Vec<String> = record.files.into_keys().collect();
    let failed = |source| LabError::Write { path: root.to_owned(), source };
    fs::create_dir_all(root.join("ckpt")).map_err(failed)?;
    let synced = || sync_directory(&root.join("ckpt")).and_then(|()| sync_directory(root));
    for name in names.iter().filter(|name| rerun.join(name).is_file()) {
        fs::rename(rerun.join(name), root.join(name)).map_err(failed)?;
    }
    synced().map_err(failed)?;
    fs::rename(rerun.join(RESULT), root.join(RESULT)).and_then(|()| synced()).map_err(failed)?;
    remove_others(root, &names)?;
    remove(rerun)
}
