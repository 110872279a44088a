//! The directory of one seed of a run.
//!
//! ```text
//! OUT/<name>/<config-hash8>/seed_0007/
//!   config.toml  overrides.txt  provenance.json  metrics.csv  events.out.tfevents.…  result.json
//!   ckpt/step_00015000.safetensors  ckpt/best.safetensors
//! ```
//!
//! `result.json` is written last: where it is, everything is.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ictd::pretrain::{Metric, PretrainConfig, TrainState};
use serde::Serialize;

use super::checkpoint::{decode, encode};
use super::{SeedResult, Settings};
use crate::LabError;
use crate::files::{EventFile, OutputDir, Tensors, process, sha256};
use crate::studies::remove;

/// The directory of all seeds of a configuration.
pub(super) fn run_directory(out: &Path, settings: &Settings, sha256: &str) -> PathBuf {
    out.join(&settings.name).join(&sha256[..8])
}

/// The directory of one seed.
#[derive(Clone, Debug)]
pub struct RunDir {
    root: OutputDir,
    checkpoints: OutputDir,
    sha256: String,
    pub(super) seed: u64,
    started: SystemTime,
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
    /// Opens the directory of a seed. Without `resume` earlier results of the same configuration and seed
    /// are removed; with it they are kept.
    pub fn open(
        out: &Path,
        settings: &Settings,
        sha256: &str,
        seed: u64,
        resume: bool,
    ) -> Result<Self, LabError> {
        let root = run_directory(out, settings, sha256).join(format!("seed_{seed:04}"));
        let checkpoints = root.join("ckpt");
        if !resume {
            let names = ["result.json", "provenance.json", "metrics.csv", "diverged.safetensors", "ckpt"];
            let events = files(&root, |name| name.contains("tfevents")).unwrap_or_default();
            names.into_iter().map(|name| root.join(name)).chain(events).try_for_each(remove)?;
        }
        let mut dir = Self {
            root: OutputDir::create(&root)?,
            checkpoints: OutputDir::create(&checkpoints)?,
            sha256: sha256.to_owned(),
            seed,
            started: SystemTime::now(),
            earlier: None,
        };
        if resume && checkpoint_files(dir.checkpoints.path())?.is_empty() {
            dir.earlier = earlier_checkpoint(&out.join(&settings.name), settings, seed);
        }
        for path in [dir.root.path(), dir.checkpoints.path()] {
            for unfinished in files(path, is_unfinished)? {
                let _ = fs::remove_file(unfinished);
            }
        }
        dir.root.write("config.toml", settings.to_toml()?.as_bytes())?;
        dir.root.write("overrides.txt", (settings.overrides.join("\n") + "\n").as_bytes())?;
        Ok(dir)
    }

    /// The state of the newest checkpoint, if there is one.
    pub(super) fn latest_checkpoint(
        &self,
        config: &PretrainConfig,
    ) -> Result<Option<TrainState<f32>>, LabError> {
        let own = checkpoint_files(self.checkpoints.path())?.pop().map(|path| (path, self.sha256.clone()));
        let Some((path, sha256)) = own.or_else(|| self.earlier.clone()) else { return Ok(None) };
        let bytes = fs::read(&path).map_err(|source| LabError::Read { path: path.clone(), source })?;
        let state = Tensors::from_bytes(&bytes).and_then(|t| decode(config, &sha256, self.seed, &t));
        state.map(Some).map_err(|message| LabError::parse(&path, message))
    }

    /// The checkpoint in another directory that this run goes on from: one whose configuration is the same but was
    /// written by an earlier version, so that its hash is another.
    pub fn continues(&self) -> Option<&Path> {
        self.earlier.as_ref().map(|(path, _)| path.as_path())
    }

    /// Writes the state as the newest checkpoint, then removes older ones.
    pub(super) fn checkpoint(
        &self,
        config: &PretrainConfig,
        state: &TrainState<f32>,
    ) -> Result<(), LabError> {
        let older = checkpoint_files(self.checkpoints.path())?;
        let name = format!("step_{:08}.safetensors", state.steps());
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
        self.root.write(name, &self.encoded(config, state)?)?;
        Ok(self.root.path().join(name))
    }

    fn encoded(&self, config: &PretrainConfig, state: &TrainState<f32>) -> Result<Vec<u8>, LabError> {
        let tensors = encode(config, &self.sha256, self.seed, state)
            .map_err(|e| LabError::internal("checkpoint", e))?;
        Ok(tensors.to_bytes())
    }

    /// Writes the best step's parameters, the metrics and, last, the result; the final checkpoint is there.
    pub(super) fn finish(
        &self,
        settings: &Settings,
        state: &TrainState<f32>,
        result: &SeedResult,
        train_seconds: f64,
    ) -> Result<(), LabError> {
        let config = &settings.config;
        let mut best = state.clone();
        best.params.clone_from(&state.best.params);
        self.checkpoints.write("best.safetensors", &self.encoded(config, &best)?)?;
        let start = self.started.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64();
        let mut events = EventFile::new(start);
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
        self.root.csv("metrics", metrics)?;
        self.root.write(
            &format!("events.out.tfevents.{}.ictd.{}", start as u64, self.seed),
            &events.into_bytes(),
        )?;
        self.provenance(Some(train_seconds), "done")?;
        self.root.json("result", &ResultFile { schema_version: 1, result })
    }

    /// Whether a result is there, and with it everything else.
    pub(super) fn is_finished(&self) -> bool {
        self.root.path().join("result.json").is_file()
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
        self.root.json("provenance", &provenance)
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
fn checkpoint_files(path: &Path) -> Result<Vec<PathBuf>, LabError> {
    files(path, |name| name.starts_with("step_") && name.ends_with(".safetensors"))
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

#[derive(Serialize)]
struct ResultFile<'a> {
    schema_version: u32,
    #[serde(flatten)]
    result: &'a SeedResult,
}

/// Files that a killed process left half-written: they never got their names.
fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}
