//! The finished seeds of a run directory, to be looked at again.

use std::fs;
use std::path::{Path, PathBuf};

use super::group::{finished_states, seeds_in};
use super::index::{find, full_name};
use super::record::Found;
use super::{RunResult, Settings};
use crate::files::sha256;
use crate::{LabError, Progress};

/// Reads the finished seeds of the only run directory in `dir` and below, and says where it is. Nothing is trained or written, and
/// nothing of the tasks is needed. One whose last checkpoint is damaged is left out, and `notice` hears of it.
pub fn load(dir: &Path, notice: fn(&str), progress: &Progress) -> Result<(RunResult, PathBuf), LabError> {
    let refused = |problem: String| LabError::refused(dir.display().to_string(), problem);
    progress.begin("looking for runs", "", 0)?;
    let mut places = Vec::new();
    find(dir, &mut places)?;
    places.sort();
    let place = match places.as_slice() {
        [place] => place,
        [] => return Err(refused("no run directory, expected one, as pretrain makes them".into())),
        [first, second, ..] => {
            let (count, first, second) = (places.len(), first.display(), second.display());
            return Err(refused(format!(
                "{count} run directories, expected one, {first} or {second} for instance"
            )));
        }
    };
    let seeds = seeds_in(place)?;
    let unfinished = || refused("no seed is finished, expected one at least".into());
    let (_, first) =
        seeds.iter().find(|(_, path)| path.join("config.toml").is_file()).ok_or_else(unfinished)?;
    let path = first.join("config.toml");
    let text = fs::read_to_string(&path).map_err(|source| LabError::Read { path, source })?;
    let typed = fs::read_to_string(first.join("overrides.txt")).unwrap_or_default();
    let overrides = typed.lines().filter(|line| !line.is_empty()).map(String::from).collect();
    let (name, _) = full_name(place).unwrap_or_default();
    let settings = Settings::recorded(&name, &text, overrides)?;
    let digest = sha256(text.as_bytes());
    let states = finished_states(place, &settings, &digest, Vec::new(), notice, progress)?;
    let of_seed = |seed: u64| seeds.iter().find(|(known, _)| *known == seed).map(|(_, path)| path);
    let result = |seed: u64| Found::glance(of_seed(seed)?, seed, &digest).result().cloned();
    let (state_seeds, states): (Vec<u64>, Vec<_>) = states.into_iter().unzip();
    let results: Vec<_> = state_seeds.iter().filter_map(|seed| result(*seed)).collect();
    if results.is_empty() {
        return Err(unfinished());
    }
    let found = RunResult { train_seconds: 0.0, seeds: results, trained: 0, states, state_seeds, settings };
    Ok((found, place.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::to_json_17;
    use crate::studies::pretrain::{run_in_memory, store};

    /// What is stored is what training with files leaves, and is read as it was found.
    #[test]
    fn runs_are_stored_and_loaded() {
        let out = tempfile::tempdir().unwrap();
        let small = ["kernel=linear", "epochs=3", "batch=4"].map(String::from);
        let progress = Progress::default();
        let settings = Settings::preset("paper", &small).unwrap();
        let result = run_in_memory(&settings, &[1, 3], &progress).unwrap();
        let place = store(&result, out.path(), &progress).unwrap();
        let (loaded, there) = load(out.path(), |_| {}, &progress).unwrap();
        assert_eq!(there, place);
        assert_eq!((&loaded.states, &loaded.state_seeds), (&result.states, &vec![1, 3]));
        assert_eq!(to_json_17(&loaded.seeds).unwrap(), to_json_17(&result.seeds).unwrap());
        assert_eq!(loaded.settings.overrides, small);
        let other = Settings::preset("paper", &small[1..]).unwrap();
        store(&run_in_memory(&other, &[1], &progress).unwrap(), out.path(), &progress).unwrap();
        let error = load(out.path(), |_| {}, &progress).unwrap_err().to_string();
        assert!(error.contains("2 run directories, expected one"), "{error}");
        let empty = tempfile::tempdir().unwrap();
        let error = load(empty.path(), |_| {}, &progress).unwrap_err().to_string();
        assert!(error.contains("no run directory"), "{error}");
    }
}
