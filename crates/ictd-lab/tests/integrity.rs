//! Nothing damaged is believed: bits are flipped in every kind of file that is read back.
#![allow(missing_docs)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ictd_lab::LabError;
use ictd_lab::Progress;
use ictd_lab::files::{Tensors, read_params};
use ictd_lab::studies::pretrain::{self, Earlier, Ending, RunOptions, Settings};
use ictd_lab::studies::readings::{self, Search};
use ictd_lab::studies::reproduce;
use ictd_lab::studies::{Paper, Plan};

/// A directory in memory where there is one: every file is synced.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

const SMALL: [&str; 7] = ["epochs=4", "batches=2", "batch=2", "n=2", "states=4", "features=1", "layers=2"];

fn settings(more: &[&str]) -> Settings {
    let changes: Vec<String> = SMALL.iter().chain(more).map(|s| s.to_string()).collect();
    Settings::preset("paper", &changes).unwrap()
}

thread_local! {
    /// What runs of this test said; each test has a thread of its own.
    static HEARD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn hear(line: &str) {
    HEARD.with_borrow_mut(|heard| heard.push(line.to_owned()));
}

/// What was said since this was last asked.
fn heard() -> Vec<String> {
    HEARD.take()
}

fn train(settings: &Settings, out: &Path, earlier: Earlier) -> Result<PathBuf, LabError> {
    let options = RunOptions { earlier, checkpoint_every: None, notice: hear };
    let ending = pretrain::run(settings, &[0], out, &options, &Progress::default())?;
    let Ending::Done { figures, .. } = ending else { panic!("nobody stopped it") };
    Ok(figures.with_file_name("seed_0000"))
}

/// All files below a directory, by name.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// The bytes with one bit turned, another one at every place.
fn flipped(bytes: &[u8], place: usize) -> Vec<u8> {
    let mut damaged = bytes.to_vec();
    damaged[place] ^= 1 << (place % 8);
    damaged
}

#[test]
fn no_flipped_bit_of_a_checkpoint_goes_unseen() {
    for tied in ["tied=true", "tied=false"] {
        let dir = scratch();
        let seed = train(&settings(&[tied]), dir.path(), Earlier::Results).unwrap();
        let path = seed.join("ckpt/step_00000008.safetensors");
        let bytes = fs::read(&path).unwrap();
        assert!(read_params(&path).unwrap().warning.is_none());
        for place in 0..bytes.len() {
            assert!(Tensors::from_bytes(&flipped(&bytes, place)).is_err(), "byte {place}");
        }
        for (k, byte) in (0..bytes.len()).step_by(7).zip(0u8..=255) {
            assert!(Tensors::from_bytes(&bytes[..k]).is_err(), "cut at {k}");
            assert!(Tensors::from_bytes(&[&bytes[..], &[byte]].concat()).is_err(), "{byte} added");
        }
        // Whoever reads one checks it.
        fs::write(&path, flipped(&bytes, bytes.len() - 3)).unwrap();
        assert!(read_params(&path).unwrap_err().to_string().contains("SHA-256"));
        let message = train(&settings(&[tied]), dir.path(), Earlier::Checkpoints).unwrap_err().to_string();
        assert!(message.contains("SHA-256") && message.contains("without --resume"), "{message}");
    }
}

/// Files whose digest is right, or that have none: what they say must fit together all the same.
#[test]
fn checkpoints_that_contradict_themselves_are_refused() {
    let dir = scratch();
    let own = settings(&["tied=false"]);
    let seed = train(&own, dir.path(), Earlier::Results).unwrap();
    let path = seed.join("ckpt/step_00000008.safetensors");
    let good = Tensors::from_bytes(&fs::read(&path).unwrap()).unwrap();
    let refusals = |change: &dyn Fn(&mut Tensors)| {
        ["2", "3"].map(|format| {
            let mut changed = good.clone();
            changed.metadata.insert("schema_version".into(), format.into());
            change(&mut changed);
            fs::write(&path, changed.to_bytes()).unwrap();
            // Only what it was trained to is checked on the way back to training.
            let _ = fs::remove_file(seed.join("result.json"));
            let message = |e: LabError| e.to_string();
            (
                read_params(&path).map(|_| ()).map_err(message),
                train(&own, dir.path(), Earlier::Checkpoints).map(|_| ()).map_err(message),
            )
        })
    };
    let both = |change: &dyn Fn(&mut Tensors), expected: &str| {
        for (params, resumed) in refusals(change) {
            for message in [params.unwrap_err(), resumed.unwrap_err()] {
                assert!(
                    message.contains(expected) || message.contains("another Transformer"),
                    "{expected}: {message}"
                );
            }
        }
    };
    for (_, resumed) in refusals(&|_| {}) {
        resumed.unwrap();
    }
    both(&|t| drop(t.tensors.remove("layers.1.A")), "layers.1.A is missing");
    both(&|t| drop(t.tensors.remove("layers.0.V")), "layers.0.V is missing");
    both(&|t| t.tensors.get_mut("layers.1.V").unwrap().1[0] = 1.0, "entry (0, 0) is 1, expected 0");
    both(&|t| t.tensors.get_mut("layers.1.A").unwrap().1[0] = f32::NAN, "expected a finite number");
    both(&|t| drop(t.metadata.insert("layers".into(), "3".into())), "layers is 3, expected 2");
    both(&|t| drop(t.metadata.insert("tied".into(), "true".into())), "tied is true, expected false");
    both(&|t| drop(t.metadata.insert("features".into(), "2".into())), "features is 2, expected 1");
    let resumed = |change: &dyn Fn(&mut Tensors), expected: &str| {
        for (_, resumed) in refusals(change) {
            let message = resumed.unwrap_err();
            assert!(message.contains(expected), "{expected}: {message}");
        }
    };
    resumed(
        &|t| t.tensors.get_mut("opt.v.layers.0.A").unwrap().1[0] = f32::INFINITY,
        "opt.v.layers.0.A: entry (0, 0)",
    );
    resumed(&|t| t.tensors.get_mut("best.layers.0.A").unwrap().1[3] = -1.0, "best.layers.0.A: entry (0, 3)");
    resumed(&|t| t.tensors.get_mut("history.td_loss").unwrap().1[5] = f32::NAN, "history.td_loss: entry 5");
    resumed(&|t| t.tensors.get_mut("mask.layers.0.A").unwrap().1[0] = 0.0, "the mask");
    resumed(&|t| drop(t.metadata.insert("step".into(), "6".into())), "step is 6, expected 8");
    resumed(&|t| drop(t.metadata.insert("epoch".into(), "5".into())), "epoch is 5, expected at most 4");
    resumed(
        &|t| drop(t.metadata.insert("best_joint_bits".into(), "7ff8000000000000".into())),
        "expected a finite number",
    );
}

/// A hole, an overlap or bytes that belong to no tensor.
#[test]
fn bytes_that_no_tensor_owns_are_refused() {
    let file = |ranges: [[usize; 2]; 2], length: usize| {
        let [a, b] = ranges.map(|r| {
            format!(r#"{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}}"#, (r[1] - r[0]) / 4, r[0], r[1])
        });
        let header = format!(r#"{{"a":{a},"b":{b}}}"#);
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; length]].concat()
    };
    let read = |ranges, length| Tensors::from_bytes(&file(ranges, length));
    assert!(read([[0, 4], [4, 12]], 12).is_ok());
    assert!(read([[8, 12], [0, 8]], 12).is_ok(), "in another order");
    assert!(read([[0, 4], [8, 12]], 12).unwrap_err().contains("starts at byte 8"));
    assert!(read([[0, 8], [4, 12]], 12).unwrap_err().contains("starts at byte 4"));
    assert!(read([[0, 4], [4, 8]], 12).unwrap_err().contains("12 bytes, expected 8"));
}

/// Flips of every file of a finished run: each is noticed, and what follows from the checkpoint is the same again.
#[test]
fn every_damage_to_a_finished_run_is_repaired_or_refused() {
    let dir = scratch();
    let own = settings(&[]);
    let seed = train(&own, dir.path(), Earlier::Results).unwrap();
    let whole = files(&seed);
    assert_eq!(whole.len(), 8, "{:?}", whole.keys());
    train(&own, dir.path(), Earlier::Checkpoints).unwrap();
    assert!(files(&seed) == whole && heard().is_empty(), "an undamaged run is left alone");
    for (name, bytes) in &whole {
        let path = seed.join(name);
        for place in (0..bytes.len()).step_by(bytes.len().div_ceil(FLIPS)) {
            fs::write(&path, flipped(bytes, place)).unwrap();
            let resumed = train(&own, dir.path(), Earlier::Checkpoints);
            let said = heard();
            let refused = |e: &LabError| e.to_string().contains(name.as_str());
            if name.contains("step_") {
                assert!(resumed.as_ref().is_err_and(refused), "{name}, byte {place}: {resumed:?}");
                fs::write(&path, bytes).unwrap();
            } else {
                resumed.unwrap();
                assert!(
                    said.iter().any(|line| line.contains(name.as_str())),
                    "{name}, byte {place}: {said:?}"
                );
            }
            if name == "provenance.json" {
                // Where results came from cannot be computed again: the file says that they were repaired.
                assert!(fs::read_to_string(&path).unwrap().contains("\"repaired\""), "byte {place}");
                train(&own, dir.path(), Earlier::Checkpoints).unwrap();
                assert!(heard().is_empty(), "byte {place}");
                whole.iter().for_each(|(name, bytes)| fs::write(seed.join(name), bytes).unwrap());
            }
            assert!(files(&seed) == whole, "{name}, byte {place}");
        }
        // Without a result a run is not finished, without its last checkpoint it has to be trained again.
        if name != "result.json" && !name.contains("step_") {
            fs::remove_file(&path).unwrap();
            train(&own, dir.path(), Earlier::Checkpoints).unwrap();
            assert!(heard().iter().any(|line| line.contains(name.as_str())), "{name} removed");
            whole.iter().for_each(|(name, bytes)| fs::write(seed.join(name), bytes).unwrap());
        }
    }
    fs::remove_file(seed.join("ckpt/step_00000008.safetensors")).unwrap();
    train(&own, dir.path(), Earlier::Checkpoints).unwrap();
    assert!(heard().iter().any(|line| line.contains("step_")));
    assert!(files(&seed) == whole);
}

/// Places tried in each file.
const FLIPS: usize = 100;

/// Finished results stay until the new ones are complete; a crash while they change places is survived.
#[test]
fn a_rerun_takes_the_place_of_earlier_results_at_its_end() {
    let dir = scratch();
    let own = settings(&[]);
    let seed = train(&own, dir.path(), Earlier::Results).unwrap();
    let first = files(&seed);
    train(&own, dir.path(), Earlier::Nothing).unwrap();
    let stable = |files: &BTreeMap<String, Vec<u8>>| -> Vec<(String, Vec<u8>)> {
        let kept = |name: &str| name.starts_with("ckpt") || name == "metrics.csv" || name == "config.toml";
        files.iter().filter(|(n, _)| kept(n)).map(|(n, b)| (n.clone(), b.clone())).collect()
    };
    let second = files(&seed);
    assert_eq!(second.len(), 8, "{:?}", second.keys());
    assert!(stable(&first) == stable(&second));
    // A finished rerun of which some files have moved.
    for moved in 0..8 {
        for (k, (name, bytes)) in second.iter().enumerate() {
            fs::create_dir_all(seed.join("rerun/ckpt")).unwrap();
            let to = if k < moved && name != "result.json" {
                seed.join(name)
            } else {
                seed.join("rerun").join(name)
            };
            fs::write(to, bytes).unwrap();
        }
        fs::write(seed.join("result.json"), &first["result.json"]).unwrap();
        // The sixth file, not moved yet.
        if moved <= 5 {
            fs::write(seed.join("overrides.txt"), "an earlier one").unwrap();
        }
        train(&own, dir.path(), Earlier::Checkpoints).unwrap();
        assert!(files(&seed) == second && heard().is_empty(), "{moved} moved");
    }
    // A rerun that was interrupted before its first checkpoint leaves things as they were.
    fs::create_dir_all(seed.join("rerun/ckpt")).unwrap();
    fs::write(seed.join("rerun/config.toml"), "").unwrap();
    train(&own, dir.path(), Earlier::Checkpoints).unwrap();
    assert!(files(&seed) == second && heard().is_empty());
}

/// A damaged entry of the cache is computed again, to the same bytes; nothing of it reaches the claims.
#[test]
fn damaged_entries_of_the_cache_are_computed_again() {
    let dir = scratch();
    let plan = Plan { seed: 0, seeds: "1".parse().ok(), quick: true };
    let run = || {
        let studies = reproduce::select(Paper::Main, &["fig4".into()]).unwrap();
        let found = reproduce::run(&studies, &plan, dir.path(), false, |_, _| Ok(())).unwrap();
        found.timings[0].cached
    };
    assert!(!run());
    assert!(run());
    let path = dir.path().join("cache/fig4.json");
    let (entry, claims) = (fs::read(&path).unwrap(), fs::read(dir.path().join("claims.json")).unwrap());
    let about = String::from_utf8_lossy(&entry).find("\"claims\"").unwrap();
    let places = (0..entry.len()).step_by(entry.len().div_ceil(20)).chain((about..about + 400).step_by(40));
    for place in places.chain(entry.len() - 10..entry.len()) {
        fs::write(&path, flipped(&entry, place)).unwrap();
        assert!(!run(), "byte {place}");
        assert!(fs::read(&path).unwrap() == entry, "byte {place}");
        assert!(fs::read(dir.path().join("claims.json")).unwrap() == claims, "byte {place}");
    }
    assert!(run());
}

#[test]
fn damaged_entries_of_the_journal_are_trained_again() {
    let dir = scratch();
    let changes = ["epochs=1", "batches=1", "batch=1", "n=1", "states=3", "features=1", "layers=1"];
    let search =
        Search { seeds: "0..1".parse().unwrap(), changes: changes.map(str::to_owned).to_vec(), fresh: false };
    let run = || {
        let mut known = 0;
        readings::run(&search, dir.path(), &Progress::default(), |line: &str| {
            known += usize::from(line.contains("earlier search"))
        })
        .unwrap();
        known
    };
    assert_eq!(run(), 0);
    let all = run();
    let path = dir.path().join("journal/paper-masked-nplus1-hidden-shifted.json");
    let entry = fs::read(&path).unwrap();
    for place in (0..entry.len()).step_by(entry.len().div_ceil(40)) {
        fs::write(&path, flipped(&entry, place)).unwrap();
        assert_eq!(run(), all - 1, "byte {place}");
        assert!(fs::read(&path).unwrap() == entry, "byte {place}");
    }
}

/// Only what has the name of a half-written file goes.
#[test]
fn half_written_files_of_killed_runs_are_removed() {
    let dir = scratch();
    let own = settings(&[]);
    let seed = train(&own, dir.path(), Earlier::Results).unwrap();
    let whole = files(&seed);
    for name in [".metrics.csv.77.tmp", "ckpt/.best.safetensors.77.tmp", "ckpt/.mine.tmp"] {
        fs::write(seed.join(name), "half").unwrap();
    }
    // So is the lock of a process that is no more.
    fs::write(seed.join(".lock"), "process 77").unwrap();
    train(&own, dir.path(), Earlier::Checkpoints).unwrap();
    fs::remove_file(seed.join("ckpt/.mine.tmp")).unwrap();
    assert!(files(&seed) == whole);

    let plan = Plan { seed: 0, seeds: "1".parse().ok(), quick: true };
    let out = dir.path().join("reproduction");
    fs::create_dir_all(&out).unwrap();
    fs::write(out.join(".fig4.svg.77.tmp"), "half").unwrap();
    let studies = reproduce::select(Paper::Main, &["fig4".into()]).unwrap();
    reproduce::run(&studies, &plan, &out, false, |_, _| Ok(())).unwrap();
    fs::write(out.join("cache/.fig4.json.77.tmp"), "half").unwrap();
    reproduce::run(&studies, &plan, &out, false, |_, _| Ok(())).unwrap();
    assert!(files(&out).keys().all(|name| !name.ends_with(".tmp") && !name.contains(".lock")));
}
