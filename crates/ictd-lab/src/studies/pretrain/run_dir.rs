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

use ictd::pretrain::{PretrainConfig, TrainState};
use serde::Serialize;

use super::checkpoint::{HISTORIES, PER_STEP, decode, encode, histories};
use super::{SeedResult, Settings};
use crate::files::{EventFile, OutputDir, Tensors, process};
use crate::{LabError, one_line};

/// Tags of the histories in TensorBoard.
const TAGS: [&str; 10] = [
    "train/mstde",
    "emergence/V_em",
    "emergence/A_em",
    "emergence/V_em_signed",
    "emergence/A_em_signed",
    "train/diag_mean",
    "kernel/diag_mean",
    "kernel/diag_min",
    "eval/mstde",
    "eval/msve",
];

/// The directory of one seed.
#[derive(Clone, Debug)]
pub struct RunDir {
    root: OutputDir,
    checkpoints: OutputDir,
    sha256: String,
    seed: u64,
    started: SystemTime,
}

#[derive(Serialize)]
struct Metric<'a> {
    step: u64,
    metric: &'a str,
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
        let root = out.join(&settings.name).join(&sha256[..8]).join(format!("seed_{seed:04}"));
        let checkpoints = root.join("ckpt");
        if !resume {
            let names = ["result.json", "provenance.json", "metrics.csv", "diverged.safetensors", "ckpt"];
            let events =
                fs::read_dir(&root).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
            let events =
                events.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().contains("tfevents")));
            for path in names.into_iter().map(|name| root.join(name)).chain(events) {
                let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
                match removed {
                    Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                        return Err(LabError::Write { path, source });
                    }
                    _ => {}
                }
            }
        }
        let dir = Self {
            root: OutputDir::create(&root)?,
            checkpoints: OutputDir::create(&checkpoints)?,
            sha256: sha256.to_owned(),
            seed,
            started: SystemTime::now(),
        };
        for path in [dir.root.path(), dir.checkpoints.path()] {
            let entries =
                fs::read_dir(path).map_err(|source| LabError::Read { path: path.to_owned(), source })?;
            for entry in entries.filter_map(Result::ok) {
                if entry.file_name().to_str().is_some_and(is_litter) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
        dir.root.write("config.toml", settings.to_toml()?.as_bytes())?;
        dir.root.write("overrides.txt", (settings.overrides.join("\n") + "\n").as_bytes())?;
        Ok(dir)
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The state of the newest checkpoint, if there is one.
    pub(super) fn latest_checkpoint(
        &self,
        config: &PretrainConfig,
    ) -> Result<Option<TrainState<f32>>, LabError> {
        let Some(path) = self.checkpoint_files()?.pop() else { return Ok(None) };
        let bytes = fs::read(&path).map_err(|source| LabError::Read { path: path.clone(), source })?;
        let state = Tensors::from_bytes(&bytes).and_then(|t| decode(config, &self.sha256, self.seed, &t));
        state.map(Some).map_err(|message| LabError::Parse { path, message: one_line(&message) })
    }

    /// Checkpoints, oldest first.
    fn checkpoint_files(&self) -> Result<Vec<PathBuf>, LabError> {
        let path = self.checkpoints.path();
        let entries =
            fs::read_dir(path).map_err(|source| LabError::Read { path: path.to_owned(), source })?;
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|p| p.file_name().and_then(|n| n.to_str()).is_some_and(is_checkpoint))
            .collect();
        files.sort();
        Ok(files)
    }

    /// Writes the state as the newest checkpoint, then removes older ones.
    pub(super) fn checkpoint(
        &self,
        config: &PretrainConfig,
        state: &TrainState<f32>,
    ) -> Result<(), LabError> {
        let older = self.checkpoint_files()?;
        let name = format!("step_{:08}.safetensors", state.history.td_loss.len());
        self.checkpoints.write(&name, &encode(config, &self.sha256, self.seed, state).to_bytes())?;
        for path in older.into_iter().filter(|p| !p.ends_with(&name)) {
            fs::remove_file(&path).map_err(|source| LabError::Write { path, source })?;
        }
        Ok(())
    }

    /// Where the parameters of a diverged run are kept.
    pub(super) fn diverged_path(&self) -> PathBuf {
        self.root.path().join("diverged.safetensors")
    }

    /// Keeps the last finite parameters of a diverged run, apart from the checkpoints.
    pub(super) fn diverged(&self, config: &PretrainConfig, state: &TrainState<f32>) -> Result<(), LabError> {
        self.root.write("diverged.safetensors", &encode(config, &self.sha256, self.seed, state).to_bytes())
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
        self.checkpoints
            .write("best.safetensors", &encode(config, &self.sha256, self.seed, &best).to_bytes())?;
        let start = self.started.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64();
        let mut events = EventFile::new(start);
        let mut metrics = Vec::new();
        for (k, values) in histories(&state.history).into_iter().enumerate() {
            // Per-epoch numbers were measured after the epoch's last step.
            let every = if k < PER_STEP { 1 } else { config.batches as u64 };
            for (i, &value) in values.iter().enumerate() {
                let step = (i as u64 + 1) * every;
                events.scalar(TAGS[k], step, value);
                metrics.push(Metric { step, metric: HISTORIES[k], value });
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

#[derive(Serialize)]
struct ResultFile<'a> {
    schema_version: u32,
    #[serde(flatten)]
    result: &'a SeedResult,
}

/// Files that a killed process left half-written: they never got their names.
fn is_litter(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(".tmp")
}

fn is_checkpoint(name: &str) -> bool {
    name.starts_with("step_") && name.ends_with(".safetensors")
}
