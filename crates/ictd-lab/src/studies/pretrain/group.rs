//! The directory of a configuration, `OUT/<preset or file>/<what differs>-<hash>/`, with one directory per seed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ictd::pretrain::TrainState;

use super::record::Found;
use super::run_dir::{checkpoint_files, files};
use super::{Settings, checkpoint, differs};
use crate::files::{DirLock, Mode, OutputDir, sha256};
use crate::studies::in_parallel;
use crate::{LabError, Progress, counted, memory};

/// Seeds that are locked one by one; a process may not have many more files open. A run with more locks the directory of all.
const LOCKED_SEEDS: usize = 128;
/// Digits of the configuration's hash in a name.
const DIGITS: usize = 8;

/// The name of a seed's directory.
pub(super) fn seed_name(seed: u64) -> String {
    format!("seed_{seed:04}")
}

/// The seed whose directory has this name.
pub(super) fn seed_of(name: &str) -> Option<u64> {
    let seed = name.strip_prefix("seed_")?.parse().ok()?;
    (seed_name(seed) == name).then_some(seed)
}

/// The directory of all seeds of a configuration: the one that is there, whatever its name says besides the hash, or the one
/// to make.
pub(super) fn run_directory(out: &Path, settings: &Settings, sha256: &str) -> Result<PathBuf, LabError> {
    let (runs, hash) = (out.join(&settings.name), &sha256[..DIGITS]);
    let own = files(&runs, |name| name_parts(name).is_some_and(|(_, found)| found == hash));
    if let Some(there) = own.unwrap_or_default().into_iter().find(|path| path.is_dir()) {
        return Ok(there);
    }
    let name = differs::name(&settings.changes()?);
    Ok(runs.join(if name.is_empty() { hash.to_owned() } else { format!("{name}-{hash}") }))
}

/// What the name of such a directory says, and the hash; earlier versions wrote the hash alone.
pub(super) fn name_parts(name: &str) -> Option<(&str, &str)> {
    let (said, hash) = name.rsplit_once('-').unwrap_or(("", name));
    let is_hash = hash.len() == DIGITS && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_hash.then_some((said, hash))
}

/// The directories of seeds, for this process alone, and what else keeps others out.
pub(super) fn lock_seeds(
    run: &Path,
    seeds: &[u64],
) -> Result<(Vec<OutputDir>, Option<Arc<DirLock>>), LabError> {
    if seeds.len() > LOCKED_SEEDS {
        let all = OutputDir::locked(run, Duration::ZERO)?;
        let below = |&seed: &u64| all.below(&seed_name(seed));
        return Ok((seeds.iter().map(below).collect::<Result<_, _>>()?, None));
    }
    OutputDir::create(run)?;
    let shared = DirLock::acquire(run, Mode::Shared, Duration::ZERO)?;
    let own = |&seed: &u64| OutputDir::locked(&run.join(seed_name(seed)), Duration::ZERO);
    Ok((seeds.iter().map(own).collect::<Result<_, _>>()?, Some(shared)))
}

/// Refuses to train anew, where a run was to be resumed, because the file that its tasks are read from is another than then.
pub(super) fn refuse_changed_tasks(
    out: &Path,
    settings: &Settings,
    current: &Path,
    seeds: &[u64],
) -> Result<(), LabError> {
    let Some(own) = &settings.config.own else { return Ok(()) };
    let others = files(&out.join(&settings.name), |_| true).unwrap_or_default();
    for seed in seeds.iter().map(|&seed| seed_name(seed)).filter(|seed| !current.join(seed).is_dir()) {
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
pub(super) fn earlier_checkpoint(runs: &Path, settings: &Settings, seed: u64) -> Option<(PathBuf, String)> {
    files(runs, |_| true).ok()?.into_iter().find_map(|dir| {
        let dir = dir.join(seed_name(seed));
        let path = dir.join("config.toml");
        if Settings::file(&path, &[]).ok()?.config != settings.config {
            return None;
        }
        let checkpoint = checkpoint_files(&dir.join("ckpt")).ok()?.pop()?;
        Some((checkpoint, sha256(&fs::read(&path).ok()?)))
    })
}

/// The final states of all finished seeds of a directory, in order and with their seeds; `own` are at hand, the others are read from their last
/// checkpoints. One that is damaged is left out, and `notice` hears of it.
pub(super) fn finished_states(
    run: &Path,
    settings: &Settings,
    sha256: &str,
    own: Vec<(u64, TrainState<f32>)>,
    notice: fn(&str),
    progress: &Progress,
) -> Result<Vec<(u64, TrainState<f32>)>, LabError> {
    let mut states: BTreeMap<u64, TrainState<f32>> = own.into_iter().collect();
    let others: Vec<(u64, PathBuf)> =
        seeds_in(run)?.into_iter().filter(|(seed, _)| !states.contains_key(seed)).collect();
    let bytes = (states.len() + others.len()) as f64 * settings.config.memory().state;
    if let Err(error) = memory::admit(bytes, "the number of seeds in a directory") {
        notice(&format!("warning: figures leave out {}: {error}", counted(others.len(), "finished seed")));
        return Ok(states.into_iter().collect());
    }
    progress.begin("reading finished seeds", "seeds", others.len() as u64)?;
    let read = in_parallel(&others, |(seed, path)| {
        progress.step(1)?;
        Ok(finished_state(path, settings, sha256, *seed))
    })?;
    for ((seed, path), state) in others.into_iter().zip(read) {
        match state {
            Ok(Some(state)) => drop(states.insert(seed, state)),
            Ok(None) => {}
            Err(problem) => notice(&format!("warning: figures leave out {}: {problem}", path.display())),
        }
    }
    Ok(states.into_iter().collect())
}

/// The seeds that have directories, in order.
pub(super) fn seeds_in(run: &Path) -> Result<Vec<(u64, PathBuf)>, LabError> {
    let seed = |path: PathBuf| Some((seed_of(path.file_name()?.to_str()?)?, path));
    let mut seeds: Vec<_> =
        files(run, |name| seed_of(name).is_some())?.into_iter().filter_map(seed).collect();
    seeds.sort();
    Ok(seeds)
}

/// The final state of a seed; `None` where it is not finished. Says what is damaged.
fn finished_state(
    path: &Path,
    settings: &Settings,
    sha256: &str,
    seed: u64,
) -> Result<Option<TrainState<f32>>, String> {
    match Found::glance(path, seed, sha256) {
        Found::Nothing => return Ok(None),
        Found::Differs(names, _) => return Err(format!("not as written: {}", names.join(", "))),
        Found::Intact(_) | Found::Undigested(_) => {}
    }
    let newest = checkpoint_files(&path.join("ckpt")).ok().and_then(|mut files| files.pop());
    let newest = newest.ok_or("it has no checkpoint")?;
    let (state, _) = checkpoint::read(&newest, &settings.config, sha256, seed)
        .map_err(|problem| format!("{}: {problem}", newest.display()))?;
    if state.epoch < settings.config.epochs {
        return Err(format!(
            "its last checkpoint is of epoch {}, expected {}",
            state.epoch, settings.config.epochs
        ));
    }
    Ok(Some(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories_are_taken_apart() {
        assert_eq!(name_parts("1a2b3c4d"), Some(("", "1a2b3c4d")));
        assert_eq!(name_parts("kernel=linear,n=5-1a2b3c4d"), Some(("kernel=linear,n=5", "1a2b3c4d")));
        assert_eq!(name_parts("task=a-b.json-1a2b3c4d"), Some(("task=a-b.json", "1a2b3c4d")));
        for other in ["figures", "seed_0000", "1a2b3c4", "n=5-1A2B3C4D", "n=5-1a2b3c4g", ""] {
            assert_eq!(name_parts(other), None, "{other}");
        }
        assert_eq!([0, 12345].map(|seed| seed_of(&seed_name(seed))), [Some(0), Some(12345)]);
        assert_eq!(["seed_7", "seed_+007", "seed_", "figures"].map(seed_of), [None; 4]);
    }
}
