//! What `ictd pretrain` does with run directories that are there: names, finished seeds, figures of all of them.
#![allow(missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::SystemTime;

use common::{assert_refused, ictd_in, json};

const SMALL: [&str; 7] = ["pretrain", "--json", "--set", "epochs=8", "--set", "batch=4", "--seeds"];

fn pretrain(dir: &Path, more: &[&str]) -> Output {
    ictd_in(dir, &[&SMALL[..], more].concat())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The only directory of a configuration below `runs/paper`.
fn run_directory(dir: &Path) -> PathBuf {
    let found: Vec<PathBuf> =
        fs::read_dir(dir.join("runs/paper")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

/// All files below a directory with their bytes and times, by name.
fn files(root: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                let modified = fs::metadata(&path).unwrap().modified().unwrap();
                found.insert(name, (fs::read(&path).unwrap(), modified));
            }
        }
    }
    found
}

#[test]
fn directories_are_named_by_what_differs_and_earlier_names_are_taken_up() {
    let dir = tempfile::tempdir().unwrap();
    json(&pretrain(dir.path(), &["1", "--set", "n=5", "--set", "kernel=linear"]));
    let own = run_directory(dir.path());
    let name = own.file_name().unwrap().to_str().unwrap();
    let hash = name.strip_prefix("kernel=linear,batch=4,epochs=8,n=5-").unwrap();
    assert!(hash.len() == 8 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{name}");
    // The order in which changes are typed is none of theirs, nor what changes nothing.
    let same = ["--set", "kernel=linear", "--set", "layers=3", "--set", "n=5"];
    let output = pretrain(dir.path(), &[&["1"][..], &same].concat());
    assert!(said(&output).contains("1 seed is finished"), "{}", said(&output));
    // A directory of the old form, or with another word before the hash.
    for other in [hash.to_owned(), format!("what-i-called-it-{hash}")] {
        fs::rename(run_directory(dir.path()), own.with_file_name(&other)).unwrap();
        for more in [&["2"][..], &["2", "--resume"], &["2", "--fresh"]] {
            json(&pretrain(dir.path(), &[more, &same].concat()));
            assert_eq!(run_directory(dir.path()), own.with_file_name(&other));
        }
    }
    // The preset as it is needs no more than its hash.
    let dir = tempfile::tempdir().unwrap();
    let plain = ["pretrain", "--preset", "mask-full", "--set", "epochs=900", "--print-config"];
    fs::write(dir.path().join("mine.toml"), ictd_in(dir.path(), &plain).stdout).unwrap();
    let small =
        ["pretrain", "mine.toml", "--set", "epochs=2", "--set", "rho.steps=0", "--set", "rho.end=0.0"];
    json(&ictd_in(dir.path(), &[&small[..], &["--set", "rho.start=0.0", "--seeds", "1", "--json"]].concat()));
    let found = fs::read_dir(dir.path().join("runs/mine")).unwrap().next().unwrap().unwrap().file_name();
    // Of a file, what differs from the paper's setting.
    assert!(found.to_str().unwrap().starts_with("batches=10,epochs=2-"), "{found:?}");
}

#[test]
fn finished_seeds_are_taken_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let first = json(&pretrain(dir.path(), &["3"]));
    assert!(first["train_seconds"].as_f64().unwrap() > 0.0);
    let before = files(&dir.path().join("runs"));
    let output = pretrain(dir.path(), &["3"]);
    assert!(said(&output).contains("3 seeds are finished, --fresh trains them anew"), "{}", said(&output));
    let second = json(&output);
    assert_eq!(second["seeds"], first["seeds"]);
    assert_eq!(second["train_seconds"], 0.0);
    assert!(files(&dir.path().join("runs")) == before, "not even the times have changed");
    // Others are trained beside them, in the order asked for.
    let output = pretrain(dir.path(), &["5,1,4"]);
    assert!(said(&output).contains("1 seed is finished, --fresh trains it anew"), "{}", said(&output));
    let third = json(&output);
    let numbers: Vec<_> =
        third["seeds"].as_array().unwrap().iter().map(|seed| seed["seed"].clone()).collect();
    assert_eq!(numbers, [5, 1, 4]);
    assert_eq!(third["seeds"][1], first["seeds"][1]);
    let after = files(&dir.path().join("runs"));
    assert!(
        before.iter().filter(|(name, _)| name.contains("seed_")).all(|(name, file)| after[name] == *file)
    );
    // The text says what was trained.
    let text = ictd_in(dir.path(), &[&SMALL[..1], &SMALL[2..], &["3"]].concat()).stdout;
    assert!(String::from_utf8_lossy(&text).ends_with("\n3 seeds, 3 finished before\n"));
    // Anew, and the same.
    let fresh = pretrain(dir.path(), &["3", "--fresh"]);
    assert!(!said(&fresh).contains("finished"), "{}", said(&fresh));
    assert_eq!(json(&fresh)["seeds"], first["seeds"]);
    let anew = files(&run_directory(dir.path()));
    assert!(anew["seed_0000/result.json"].1 > before.values().map(|file| file.1).max().unwrap());
    assert_refused(&pretrain(dir.path(), &["3", "--fresh", "--resume"]), "'--fresh'");
}

/// Only results that are as they were written, of this seed and this configuration, are taken.
#[test]
fn results_that_are_not_as_they_were_written_are_trained_anew() {
    let dir = tempfile::tempdir().unwrap();
    let first = json(&pretrain(dir.path(), &["2"]));
    let run = run_directory(dir.path());
    let whole = files(&run);
    let checkpoint = "ckpt/step_00000040.safetensors";
    for name in ["result.json", "metrics.csv", "provenance.json", checkpoint] {
        let path = run.join("seed_0000").join(name);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
        let output = pretrain(dir.path(), &["2"]);
        assert!(said(&output).contains("1 seed is finished"), "{}", said(&output));
        assert!(said(&output).contains("trained anew") && said(&output).contains(name), "{}", said(&output));
        assert_eq!(json(&output)["seeds"], first["seeds"], "{name}");
        assert!(
            files(&run)[&format!("seed_0000/{checkpoint}")].0 == whole[&format!("seed_0000/{checkpoint}")].0
        );
    }
    // The directory of another seed under this one's name.
    fs::remove_dir_all(run.join("seed_0001")).unwrap();
    fs::rename(run.join("seed_0000"), run.join("seed_0001")).unwrap();
    let output = pretrain(dir.path(), &["1..2"]);
    assert!(said(&output).contains("trained anew"), "{}", said(&output));
    assert_eq!(json(&output)["seeds"][0], first["seeds"][1]);
    // An unfinished one starts over without a word.
    fs::remove_file(run.join("seed_0001/result.json")).unwrap();
    let output = pretrain(dir.path(), &["1..2"]);
    assert_eq!(json(&output)["seeds"][0], first["seeds"][1]);
    assert!(!said(&output).contains("finished") && !said(&output).contains("warning"), "{}", said(&output));
}

/// Figures of a directory are those of all seeds in it, whoever trained them and when.
#[test]
fn figures_are_made_from_all_finished_seeds() {
    let figures = |dir: &Path| -> Vec<(String, Vec<u8>)> {
        let all = files(&run_directory(dir).join("figures"));
        assert!(all.contains_key("fig3.svg") && all.contains_key("fig5.csv"), "{:?}", all.keys());
        all.into_iter().map(|(name, (bytes, _))| (name, bytes)).collect()
    };
    let [together, apart] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    json(&pretrain(together.path(), &["4"]));
    let expected = figures(together.path());
    for seeds in ["2..4", "0..1"] {
        json(&pretrain(apart.path(), &[seeds]));
        assert!(figures(apart.path()) != expected);
    }
    let output = pretrain(apart.path(), &["1..2"]);
    assert!(figures(apart.path()) == expected);
    // What is printed is about the seeds asked for.
    assert_eq!(json(&output)["seeds"].as_array().unwrap().len(), 1);
    // A damaged one is left out, and said.
    let damaged = run_directory(apart.path()).join("seed_0003/ckpt/step_00000040.safetensors");
    let whole = fs::read(&damaged).unwrap();
    fs::write(&damaged, &whole[..whole.len() - 4]).unwrap();
    let output = pretrain(apart.path(), &["1"]);
    assert!(said(&output).contains("warning: figures leave out"), "{}", said(&output));
    assert!(said(&output).contains("seed_0003"), "{}", said(&output));
    let three = figures(apart.path());
    let only = tempfile::tempdir().unwrap();
    json(&pretrain(only.path(), &["3"]));
    assert!(three != expected && three == figures(only.path()));
    // So is one that is not finished, without a word.
    fs::write(&damaged, whole).unwrap();
    fs::remove_file(run_directory(apart.path()).join("seed_0003/result.json")).unwrap();
    let output = pretrain(apart.path(), &["1"]);
    assert!(!said(&output).contains("warning") && figures(apart.path()) == three, "{}", said(&output));
}
