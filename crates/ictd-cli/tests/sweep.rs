//! Sweeps as commands: what they print, how they end, and whose directories they touch.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;

use common::{assert_refused, ictd_in, json};
use serde_json::Value;

const PLAN: &str = "seeds = 2\n[set]\nepochs = 30\nbatch = 8\n[grid]\n\"optimizer.lr\" = [1e-3, 1e6]\n";

fn with_plan(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("plan.toml"), text).unwrap();
    dir
}

/// Every file below a directory with its bytes.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(files(&entry));
        } else {
            found.push((entry.display().to_string(), fs::read(&entry).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_second_call_changes_nothing_and_ends_with_0() {
    let dir = with_plan(PLAN);
    let sweep = ["sweep", "plan.toml", "--out", "my out"];
    let first = ictd_in(dir.path(), &sweep);
    let message = String::from_utf8_lossy(&first.stderr);
    assert_eq!(first.status.code(), Some(1), "{message}");
    assert!(
        message.contains("2 of 4 runs diverged") && message.contains("ictd sweep show 'my out'"),
        "{message}"
    );
    let before = files(dir.path());
    let second = ictd_in(dir.path(), &sweep);
    let message = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(0), "{message}");
    assert!(message.contains("finished before") && message.contains("2 of 4 runs diverged"), "{message}");
    assert_eq!(files(dir.path()), before);
    let shown = ictd_in(dir.path(), &["sweep", "show", "my out"]);
    assert_eq!(shown.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("2 runs diverged and have no numbers"));
}

#[test]
fn what_is_asked_for_as_json_is_json() {
    let dir = with_plan(&PLAN.replace(", 1e6", ", 2e-3"));
    let sweep = ["sweep", "plan.toml", "--out", "out", "--json"];
    let told = |more: &[&str]| -> Value { json(&ictd_in(dir.path(), &[&sweep, more].concat())) };
    let before = told(&["--dry-run"]);
    assert_eq!((&before["runs"], &before["done"], &before["left"]), (&4.into(), &0.into(), &4.into()));
    assert!(before["seconds"].as_f64().unwrap() > 0.0 && !dir.path().join("out").exists());
    let part = told(&["--index", "1..3"]);
    assert_eq!((&part["first"], &part["end"], &part["done"]), (&1.into(), &3.into(), &2.into()));
    assert_eq!(told(&["--dry-run"])["done"], 2);
    assert_eq!(told(&[])["runs"], 4);
    let after = told(&["--dry-run"]);
    assert_eq!((&after["done"], &after["seconds"]), (&4.into(), &Value::Null));
}

#[test]
fn times_are_those_of_the_engine() {
    let dir = with_plan(PLAN);
    for (engine, time) in
        [("slurm", "banana"), ("slurm", "1h"), ("hyperqueue", "90"), ("hyperqueue", "banana")]
    {
        let output = ictd_in(dir.path(), &["sweep", "plan.toml", "--engine", engine, "--time", time]);
        assert_refused(&output, &format!("time is '{time}', expected"));
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    // A path with signs that mean something to Slurm or to a shell.
    let out = "50% of it's";
    let sweep = ["sweep", "plan.toml", "--out", out, "--engine", "slurm", "--write-job", "--time", "1-12"];
    assert!(ictd_in(dir.path(), &sweep).status.success());
    let script = fs::read_to_string(dir.path().join(out).join("engine/job.sh")).unwrap();
    assert!(
        script.contains("#SBATCH --time=1-12\n")
            && script.contains(r"50%%\ of\ it\'s/engine/logs/unit_%a.log")
    );
    assert!(script.contains(r"50% of it'\''s' --index"), "{script}");
}

/// What is typed may be what a case of the map says: both have a row.
#[test]
fn maps_take_changes_that_their_cases_have() {
    let dir = tempfile::tempdir().unwrap();
    let map = ["branches", "--seeds", "1", "--set", "epochs=1", "--set", "batch=2", "--json", "--fresh"];
    for change in [&["--states", "16"][..], &["--set", "n=5"], &["--set", "tau=0.6"]] {
        let found = json(&ictd_in(dir.path(), &[&map, change].concat()));
        let counts = found["counts"].as_array().unwrap();
        assert_eq!((counts.len(), &counts[0]["change"]), (33, &"as given".into()), "{change:?}");
    }
}

/// A map is gone on with or shown; another one in its place has to be asked for.
#[test]
fn maps_are_not_replaced_without_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let map = ["branches", "--set", "epochs=1", "--set", "batch=2", "--out", "map", "--seeds"];
    let made = |more: &[&str]| ictd_in(dir.path(), &[&map, more].concat());
    assert!(made(&["1"]).status.success());
    let before = files(&dir.path().join("map"));
    for more in [&["2"][..], &["1", "--map", "kernels"]] {
        assert_refused(&made(more), "--extend");
        assert_eq!(files(&dir.path().join("map")), before);
    }
    assert!(made(&["1"]).status.success());
    assert_eq!(files(&dir.path().join("map")), before);
    assert!(made(&["2", "--extend"]).status.success());
    fs::write(dir.path().join("map/sweep.json"), "{").unwrap();
    assert_refused(&made(&["2"]), "--fresh starts over");
    assert!(made(&["1", "--map", "kernels", "--fresh"]).status.success());
    // A table of somebody else's.
    fs::create_dir(dir.path().join("foo")).unwrap();
    fs::write(dir.path().join("foo/results.csv"), "mine").unwrap();
    let foreign = ["branches", "--seeds", "1", "--set", "epochs=1", "--out", "foo", "--fresh"];
    assert_refused(&ictd_in(dir.path(), &foreign), "has no sweep.json but 'results.csv'");
    assert_eq!(fs::read(dir.path().join("foo/results.csv")).unwrap(), b"mine");
}
