//! `ictd runs`: the index of run directories.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{assert_refused, ictd_in, json};
use ictd::statistics::wilson;
use serde_json::{Value, json as value};

fn train(dir: &Path, more: &[&str]) -> Value {
    let small = ["pretrain", "--json", "--set", "epochs=6", "--set", "batch=4"];
    json(&ictd_in(dir, &[&small[..], more].concat()))
}

fn runs(dir: &Path, more: &[&str]) -> Vec<Value> {
    json(&ictd_in(dir, &[&["runs", "--json"], more].concat())).as_array().unwrap().clone()
}

fn size(path: &Path) -> u64 {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|p| if p.is_dir() { size(&p) } else { fs::metadata(&p).unwrap().len() }).sum()
}

#[test]
fn the_index_says_what_was_trained_and_what_came_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let first = train(dir.path(), &["--seeds", "3"]);
    train(dir.path(), &["--seeds", "1", "--set", "n=5", "--out", "runs/more"]);
    train(dir.path(), &["--seeds", "1", "--task", "cartpole", "--states", "16"]);
    let found = runs(dir.path(), &[]);
    // By path: more/paper/…, paper/batch…, …
    assert_eq!(found.len(), 3);
    let directories: Vec<&str> = found.iter().map(|run| run["directory"].as_str().unwrap()).collect();
    assert!(directories.is_sorted(), "{directories:?}");
    assert!(directories[0].starts_with("runs/more/paper/batch=4,epochs=6,n=5-"));
    assert_eq!(found[0]["changes"], value!({"batch": "4", "epochs": "6", "n": "5"}));
    let three = found.iter().find(|run| run["finished"] == 3).unwrap();
    assert_eq!(three["name"], "paper");
    assert_eq!(three["changes"], value!({"batch": "4", "epochs": "6"}));
    for key in ["unfinished", "diverged", "damaged"] {
        assert_eq!(three[key], 0, "{key}");
    }
    let seeds = first["seeds"].as_array().unwrap();
    for branch in ["td", "mirror", "none"] {
        let count = seeds.iter().filter(|seed| seed["branch"] == branch).count() as u64;
        let (low, high) = wilson(count, 3);
        assert_eq!(three[branch], value!({"seeds": count, "low": low, "high": high}), "{branch}");
    }
    for key in ["td_loss", "msve"] {
        let mean = seeds.iter().map(|seed| seed[key].as_f64().unwrap()).sum::<f64>() / 3.0;
        assert_eq!(three[key].as_f64().unwrap(), mean, "{key}");
    }
    let place = dir.path().join(three["directory"].as_str().unwrap());
    assert_eq!(three["bytes"], size(&place));
    assert!(place.to_str().unwrap().ends_with(three["hash"].as_str().unwrap()));
    let provenance: Value =
        serde_json::from_slice(&fs::read(place.join("seed_0002/provenance.json")).unwrap()).unwrap();
    assert!(three["when"].as_str() >= provenance["end_utc"].as_str());
    // Values of a cart-pole are not known.
    let unknown = found.iter().find(|run| run["changes"]["task.kind"] == "cartpole").unwrap();
    assert!(unknown["msve"].is_null() && unknown["td_loss"].is_number());
    let text = String::from_utf8(ictd_in(dir.path(), &["runs"]).stdout).unwrap();
    for word in ["batch=4", "n=5", "3 finished", "unknown", "3 settings of 5 seeds"] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // One directory is enough, and so is standing in it.
    assert_eq!(runs(dir.path(), &[three["directory"].as_str().unwrap()])[0]["finished"], 3);
    let inside = runs(&place, &["."]);
    assert_eq!((&inside[0]["name"], &inside[0]["finished"]), (&value!("paper"), &value!(3)));
}

/// Seeds that did not come to an end, and files that are not as they were written.
#[test]
fn seeds_are_counted_by_how_far_they_are() {
    let dir = tempfile::tempdir().unwrap();
    train(dir.path(), &["--seeds", "5"]);
    let run = fs::read_dir(dir.path().join("runs/paper")).unwrap().next().unwrap().unwrap().path();
    let seed = |number: u64| -> PathBuf { run.join(format!("seed_{number:04}")) };
    let counts = |more: &[&str]| {
        let found = runs(dir.path(), more);
        ["finished", "unfinished", "diverged", "damaged"].map(|key| found[0][key].as_u64().unwrap())
    };
    assert_eq!(counts(&["--verify"]), [5, 0, 0, 0]);
    fs::remove_file(seed(0).join("result.json")).unwrap();
    fs::remove_file(seed(1).join("result.json")).unwrap();
    fs::write(seed(1).join("diverged.safetensors"), "").unwrap();
    let turned = |path: PathBuf| {
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    turned(seed(2).join("result.json"));
    assert_eq!(counts(&[]), [2, 1, 1, 1]);
    // Checkpoints are read only where that is asked for.
    turned(seed(3).join("ckpt/step_00000030.safetensors"));
    assert_eq!(counts(&[]), [2, 1, 1, 1]);
    assert_eq!(counts(&["--verify"]), [1, 1, 1, 2]);
    // The numbers are those of finished seeds.
    let result: Value = serde_json::from_slice(&fs::read(seed(4).join("result.json")).unwrap()).unwrap();
    assert_eq!(runs(dir.path(), &["--verify"])[0]["td_loss"], result["td_loss"]);
    // Without a readable configuration the name of the directory says what differs; nothing is changed by looking.
    (0..5).for_each(|k| fs::remove_file(seed(k).join("config.toml")).unwrap());
    let before = size(&run);
    assert_eq!(runs(dir.path(), &[])[0]["changes"], value!({"batch": "4", "epochs": "6"}));
    assert_eq!(size(&run), before);
}

#[test]
fn no_runs_are_one_line() {
    let dir = tempfile::tempdir().unwrap();
    assert_refused(&ictd_in(dir.path(), &["runs"]), "input runs");
    assert_refused(&ictd_in(dir.path(), &["runs", "nowhere"]), "input nowhere");
    // Directories of others are none of ours.
    fs::create_dir_all(dir.path().join("runs/found/seed_1000")).unwrap();
    fs::create_dir_all(dir.path().join("runs/paper/1a2b3c4d")).unwrap();
    let output = ictd_in(dir.path(), &["runs", "--json"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains("no runs in runs"), "{message}");
    assert_eq!(json(&output), value!([]));
    assert!(ictd_in(dir.path(), &["runs"]).stdout.is_empty());
    fs::write(dir.path().join("file"), "").unwrap();
    assert_refused(&ictd_in(dir.path(), &["runs", "file"]), "input file");
}
