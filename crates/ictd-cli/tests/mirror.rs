//! `ictd mirror` as a user meets it: tables, files, threads, mistakes.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use common::{assert_refused, ictd_in, json};

/// Small enough for a test: every part of the study, few samples.
const SMALL: [&str; 8] = ["mirror", "--seeds", "2", "--epochs", "12", "--tasks", "3", "--json"];

/// The bytes of every file of a directory, by name.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .map(|p| (p.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&p).unwrap()))
        .collect();
    found.sort();
    found
}

#[test]
fn first_gradients_follow_their_formulas_and_the_block_is_td_on_reflections() {
    let dir = tempfile::tempdir().unwrap();
    let found = json(&ictd_in(dir.path(), &SMALL));
    let gradients = found["first_gradients"].as_array().unwrap();
    assert_eq!(gradients.len(), 4);
    for row in gradients {
        let [predicted, measured] = ["predicted", "measured"].map(|k| row[k].as_f64().unwrap());
        // What the formulas leave out is of order p_r = 1e-3, times numbers of order 1 to 10.
        assert!((predicted - measured).abs() < 1e-2 * predicted.abs(), "{row}");
    }
    // Ten layers of sums of ten terms of order 1.
    assert!(found["estimator"]["discrepancy"].as_f64().unwrap() < 1e-14);
    let slope = found["estimator"]["rest_slope"]["slope"].as_f64().unwrap();
    assert!((slope + 2.0).abs() < 0.1, "{slope}");
    assert_eq!(found["ends"].as_array().unwrap().len(), 5);
    let written = files(&dir.path().join("out/mirror"));
    for name in ["mirror.svg", "mirror.png", "path.csv", "pulls.csv", "ends.csv", "held.csv"] {
        assert!(written.iter().any(|(n, bytes)| n == name && !bytes.is_empty()), "{name} is missing");
    }
}

#[test]
fn thread_counts_give_the_same_bytes() {
    let runs = ["1", "3"].map(|threads| {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::cargo_bin("ictd").unwrap();
        command.current_dir(dir.path()).env("RAYON_NUM_THREADS", threads).args(SMALL);
        let output = command.output().unwrap();
        assert!(output.status.success());
        (output.stdout, files(&dir.path().join("out/mirror")))
    });
    assert!(!runs[0].0.is_empty() && runs[0] == runs[1]);
}

#[test]
fn numbers_out_of_range_are_refused_and_write_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, field) in [
        (["--seeds", "0"], "seeds"),
        (["--seeds", "-1"], "seeds"),
        (["--epochs", "0"], "epochs"),
        (["--tasks", "0"], "tasks"),
        (["--seeds", "0..200000"], "seeds is 200000"),
        (["--seed", "1"], "--seeds"),
    ] {
        let output = ictd_in(dir.path(), &[&["mirror"][..], &arguments[..]].concat());
        assert_refused(&output, field);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_refused(&ictd_in(dir.path(), &["mirror", "--seeds", "0", "--json"]), "seeds is '0' (empty)");
}
