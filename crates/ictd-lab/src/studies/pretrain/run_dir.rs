//! The directory of one seed of a run.
//!
//! ```text
//! OUT/<name>/<config-hash8>/seed_0007/
//!   config.toml  overrides.txt  provenance.json  metrics.csv  events.out.tfevents.…  result.json
//!   ckpt/step_00015000.safetensors  ckpt/best.safetensors
//! ```
//!
//! `result.json` is written last: where it is, everything is. Where there is one, a run that starts over works in `rerun/`,
//! with the same files, until its own is written; then they take the place of the earlier ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ictd::pretrain::{Metric, PretrainConfig, TrainState};
use serde::Serialize;
use serde_json::Value;

use super::checkpoint::{decode, encode};
use super::record::{self, Found, RESULT, Record, has_digest};
use super::{SeedResult, Settings};
use crate::LabError;
use crate::files::{
    DirLock, EventFile, Mode, OutputDir, Tensors, process, read_sealed, sha256, sync_directory,
};
use crate::studies::remove;

/// Where a run that starts over works.
const RERUN: &str = "rerun";
const PROVENANCE: &str = "provenance.json";
/// Seeds that are locked one by one; a process may not have many more files open. A run with more locks the directory of all.
const LOCKED_SEEDS: usize = 128;

/// The directory of all seeds of a configuration.
pub(super) fn run_directory(out: &Path, settings: &Settings, sha256: &str) -> PathBuf {
    out.join(&settings.name).join(&sha256[..8])
}

/// The directories of seeds, for this process alone, and what else keeps others out.
pub(super) fn lock_seeds(
    run: &Path,
    seeds: &[u64],
) -> Result<(Vec<OutputDir>, Option<Arc<DirLock>>), LabError> {
    let name = |seed: &u64| format!("seed_{seed:04}");
    if seeds.len() > LOCKED_SEEDS {
        let all = OutputDir::locked(run, Duration::ZERO)?;
        return Ok((seeds.iter().map(|seed| all.below(&name(seed))).collect::<Result<_, _>>()?, None));
    }
    OutputDir::create(run)?;
    let shared = DirLock::acquire(run, Mode::Shared, Duration::ZERO)?;
    let own = |seed| OutputDir::locked(&run.join(name(seed)), Duration::ZERO);
    Ok((seeds.iter().map(own).collect::<Result<_, _>>()?, Some(shared)))
}

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
    found: Found,
    /// A checkpoint elsewhere to go on from, and the hash it carries.
    earlier: Option<(PathBuf, String)>,
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
    /// Opens the directory of a seed. With `resume` what is there is gone on with; without it finished results stay until
    /// there are new ones, and unfinished ones are removed.
    pub fn open(
        root: OutputDir,
        out: &Path,
        settings: &Settings,
        sha256: &str,
        seed: u64,
        resume: bool,
    ) -> Result<Self, LabError> {
        let path = root.path();
        replace_results(path)?;
        let rerun = path.join(RERUN);
        let goes_on = resume && !checkpoint_files(&rerun.join("ckpt")).unwrap_or_default().is_empty();
        let beside = goes_on || !resume && path.join(RESULT).is_file();
        if !goes_on {
            remove(rerun)?;
        }
        if !resume && !beside {
            let names =
                [PROVENANCE, "metrics.csv", "diverged.safetensors", "ckpt"].map(|name| path.join(name));
            names.into_iter().chain(event_files(path)?).try_for_each(remove)?;
        }
        let found = if resume && !beside { Found::examine(path)? } else { Found::Nothing };
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
            earlier: None,
        };
        if resume && checkpoint_files(dir.checkpoints.path())?.is_empty() {
            dir.earlier = earlier_checkpoint(&out.join(&settings.name), settings, seed);
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
        match (&self.found, &self.earlier) {
            (Found::Differs(names, _), _) => {
                let names = names.join(", ");
                Some(format!("{path}: not as written, computed again: {names}"))
            }
            (Found::Undigested, _) => Some(format!(
                "{path}: {RESULT} is of an earlier format without digests: damage would not be seen"
            )),
            (_, Some((path, _))) => Some(format!("goes on from {}, of an earlier format", path.display())),
            _ => None,
        }
    }

    /// The state of the newest checkpoint, if there is one; `notice` hears of what cannot be checked.
    pub(super) fn latest_checkpoint(
        &self,
        config: &PretrainConfig,
        notice: fn(&str),
    ) -> Result<Option<TrainState<f32>>, LabError> {
        let own = checkpoint_files(self.checkpoints.path())?.pop().map(|path| (path, self.sha256.clone()));
        let Some((path, sha256)) = own.or_else(|| self.earlier.clone()) else { return Ok(None) };
        let bytes = fs::read(&path).map_err(|source| LabError::Read { path: path.clone(), source })?;
        let refused =
            |message| LabError::parse(&path, format!("{message}; without --resume the seed is trained anew"));
        let tensors = Tensors::from_bytes(&bytes).map_err(refused)?;
        let state = decode(config, &sha256, self.seed, &tensors).map_err(refused)?;
        if !tensors.is_sealed() {
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
        self.checkpoints.write(&name, &self.encoded(config, state)?)?;
        older.into_iter().filter(|p| !p.ends_with(&name)).try_for_each(remove)
    }

    /// Keeps the last finite parameters of a diverged run, apart from the checkpoints; says where.
    pub(super) fn diverged(
        &self,
        config: &PretrainConfig,
        state: &TrainState<f32>,
    ) -> Result<PathBuf, LabError> {
        let name = "diverged.safetensors";
        self.work.write(name, &self.encoded(config, state)?)?;
        Ok(self.work.path().join(name))
    }

    fn encoded(&self, config: &PretrainConfig, state: &TrainState<f32>) -> Result<Vec<u8>, LabError> {
        let tensors = encode(config, &self.sha256, self.seed, state)
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
        let mut best = state.clone();
        best.params.clone_from(&state.best.params);
        self.checkpoints.write("best.safetensors", &self.encoded(config, &best)?)?;
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
        matches!(self.found, Found::Intact(_) | Found::Undigested)
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
fn files(path: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, LabError> {
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
    left.into_iter().filter(|p| !is_listed(p)).chain([root.join("diverged.safetensors")]).try_for_each(remove)
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

/// Refuses to train anew, where a run was to be resumed, because the file that its tasks are read from is another than then.
pub(super) fn refuse_changed_tasks(
    out: &Path,
    settings: &Settings,
    sha256: &str,
    seeds: &[u64],
) -> Result<(), LabError> {
    let Some(own) = &settings.config.own else { return Ok(()) };
    let (runs, current) = (out.join(&settings.name), run_directory(out, settings, sha256));
    let name = |seed: &u64| format!("seed_{seed:04}");
    let others = files(&runs, |_| true).unwrap_or_default();
    for seed in seeds.iter().map(name).filter(|seed| !current.join(seed).is_dir()) {
        for path in others.iter().map(|dir| dir.join(&seed).join("config.toml")) {
            let Some(found) = settings.other_tasks(&path) else { continue };
            let digest = own.sha256.as_deref().unwrap_or_default();
            let problem = format!(
                "{} has SHA-256 {digest}, and had {found} in {}: expected the file of that run, or no --resume to train anew",
                own.name,
                path.display()
            );
            return Err(LabError::refused("resume", problem));
        }
    }
    Ok(())
}

/// The newest checkpoint of a seed under another hash whose `config.toml` means the same, and that file's hash.
fn earlier_checkpoint(runs: &Path, settings: &Settings, seed: u64) -> Option<(PathBuf, String)> {
    files(runs, |_| true).ok()?.into_iter().find_map(|dir| {
        let dir = dir.join(format!("seed_{seed:04}"));
        let path = dir.join("config.toml");
        if Settings::file(&path, &[]).ok()?.config != settings.config {
            return None;
        }
        let checkpoint = checkpoint_files(&dir.join("ckpt")).ok()?.pop()?;
        Some((checkpoint, sha256(&fs::read(&path).ok()?)))
    })
}
