//! Parameters of runs: their files, which run each belongs to, and whether they are as they were written.

use std::collections::HashSet;
use std::fs;
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;

use csv::ReaderBuilder;
use ictd::parallel;
use ictd::pretrain::TrainState;

use super::journal::{Index, OpenFiles};
use super::plan::Checkpoints;
use super::results::line;
use super::setting::{Setting, Sweep};
use crate::files::{OutputDir, is_unfinished, is_whole, sha256};
use crate::studies::pretrain::{Step, checkpoint_bytes};
use crate::{LabError, Progress};

/// Where parameters are kept, inside the directory of a sweep. Folders are named by what decides results, not by numbers of
/// settings, which change with the plan.
pub const CHECKPOINTS: &str = "checkpoints";
/// Which file belongs to which run.
pub const LIST: &str = "checkpoints.csv";
/// The columns of the list after the keys that vary.
const COLUMNS: [&str; 4] = ["seed", "checkpoint", "file", "sha256"];

/// The file of a run's parameters, in the folder of its setting.
fn name_of(seed: u64, name: &str) -> String {
    format!("seed_{seed:04}.{name}.safetensors")
}

/// The same from the directory of the sweep.
fn file(key: &str, seed: u64, name: &str) -> String {
    format!("{CHECKPOINTS}/{key}/{}", name_of(seed, name))
}

/// Keeps the parameters that were asked for; their names and digests.
pub fn keep(
    which: Checkpoints,
    setting: &Setting,
    seed: u64,
    state: &TrainState<f32>,
    root: &Path,
) -> Result<Vec<(String, String)>, LabError> {
    if which == Checkpoints::None {
        return Ok(Vec::new());
    }
    let dir = OutputDir::create(&root.join(CHECKPOINTS).join(&setting.key))?;
    let all = [(Checkpoints::Final, "final", Step::Final), (Checkpoints::Best, "best", Step::Best)];
    let mut kept = Vec::new();
    for (own, name, step) in all {
        if which != own && which != Checkpoints::All {
            continue;
        }
        let bytes = checkpoint_bytes(&setting.settings, seed, state, step)?;
        dir.write(&name_of(seed, name), &bytes)?;
        kept.push((name.to_owned(), sha256(&bytes)));
    }
    Ok(kept)
}

/// Which of these runs are left to compute, in order: those without a record, or without parameters that it speaks of. Settings
/// that are the same share their runs, which belong to the first of them.
pub fn left(
    sweep: &Sweep,
    root: &Path,
    index: &Index,
    runs: &Range<usize>,
    progress: &Progress,
) -> Result<Vec<usize>, LabError> {
    let own: Vec<usize> = runs.clone().filter(|&run| sweep.first(run) == run).collect();
    if sweep.plan.checkpoints == Checkpoints::None {
        return Ok(own.into_iter().filter(|&run| !index.has(run)).collect());
    }
    progress.begin("looking at checkpoints", "runs", own.len() as u64)?;
    let is_left = parallel::try_map(own.len(), |k| {
        progress.step(1)?;
        if !index.has(own[k]) {
            return Ok::<_, LabError>(true);
        }
        let record = index.record(&mut OpenFiles::default(), own[k])?;
        let is_there = |(name, digest): &(String, String)| {
            is_whole(&root.join(file(&record.key, record.seed, name)), digest)
        };
        Ok(!record.kept.iter().all(is_there))
    })?;
    Ok(own.into_iter().zip(is_left).filter(|(_, is_left)| *is_left).map(|(run, _)| run).collect())
}

/// Writes which file belongs to which run; the digest of the list, or nothing where no parameters are kept.
pub fn list(sweep: &Sweep, out: &OutputDir, index: &Index) -> Result<String, LabError> {
    if sweep.plan.checkpoints == Checkpoints::None {
        out.clear(LIST)?;
        return Ok(String::new());
    }
    let mut open = OpenFiles::default();
    out.write_with(LIST, |text| {
        let failed = |e| out.failed(LIST, e);
        let columns = COLUMNS.map(String::from).to_vec();
        writeln!(text, "{}", line(&[sweep.varied.clone(), columns].concat())).map_err(failed)?;
        for run in 0..sweep.num_runs() {
            let (setting, _) = sweep.run(run);
            let record = index.record(&mut open, run)?;
            for (name, digest) in record.kept {
                let path = file(&record.key, record.seed, &name);
                let own = vec![record.seed.to_string(), name, path, digest];
                writeln!(text, "{}", line(&[setting.values.clone(), own].concat())).map_err(failed)?;
            }
        }
        Ok(())
    })
}

/// Whether the list is the one of this digest, and all files in it are as they were written.
pub fn are_whole(root: &Path, digest: &str) -> bool {
    let path = root.join(LIST);
    if digest.is_empty() {
        return true;
    }
    if !is_whole(&path, digest) {
        return false;
    }
    let Ok(mut reader) = ReaderBuilder::new().from_path(&path) else { return false };
    // Settings that are the same have the same files.
    let mut files = HashSet::new();
    for row in reader.records() {
        let Ok(row) = row else { return false };
        let cell = |from_end: usize| row.len().checked_sub(from_end).and_then(|k| row.get(k));
        let (Some(file), Some(digest)) = (cell(2), cell(1)) else { return false };
        files.insert((file.to_owned(), digest.to_owned()));
    }
    let files: Vec<(String, String)> = files.into_iter().collect();
    let whole = parallel::map(files.len(), |k| is_whole(&root.join(&files[k].0), &files[k].1));
    whole.into_iter().all(|is_whole| is_whole)
}

/// Removes what killed workers left half-written among the parameters. Nobody reads such files: one that cannot be removed is
/// as good as gone.
pub fn remove_unfinished(root: &Path) {
    let folders = fs::read_dir(root.join(CHECKPOINTS)).into_iter().flatten().flatten();
    for entry in folders.flat_map(|folder| fs::read_dir(folder.path())).flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_unfinished) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
