//! `ictd control` as a user meets it: tables, files, verdicts, threads, mistakes.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use common::{assert_refused, ictd_in, json};
use serde_json::Value;

/// Small enough for a test: every part of the study, few samples.
const SMALL: [&str; 12] = [
    "control",
    "--mdps=2",
    "--updates=6",
    "--transitions=30",
    "--exact-mdps=2",
    "--sweeps=40",
    "--trials=3",
    "--seed=1",
    "--json",
    "--quiet",
    "--out",
    "found",
];

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

fn numbers(rows: &Value, field: &str) -> Vec<f64> {
    rows.as_array().unwrap().iter().map(|row| row[field].as_f64().unwrap()).collect()
}

/// Without the experiments there is one claim, and it holds to rounding for every update.
#[test]
fn attention_is_the_algorithms() {
    let dir = tempfile::tempdir().unwrap();
    let found = json(&ictd_in(dir.path(), &["control", "--verify", "--trials", "10", "--json"]));
    assert_eq!(found["verification"].as_array().unwrap().len(), 3);
    for field in ["attention", "pairs"] {
        assert!(numbers(&found["verification"], field).iter().all(|x| *x < 1e-12));
    }
    assert!(found["verification"][0]["transformer"].as_f64().unwrap() < 1e-12);
    assert!(found["verification"][1]["transformer"].is_null());
    let claims = found["claims"].as_array().unwrap();
    assert_eq!((claims.len(), claims[0]["verdict"].as_str()), (1, Some("reproduced")));
    assert!(dir.path().join("out/control/verification.csv").is_file());
}

/// Of one process nothing is known about others: no standard error is 0, and no mean agrees with one.
#[test]
fn one_process_has_no_standard_errors() {
    let dir = tempfile::tempdir().unwrap();
    let one =
        SMALL.map(|word| if word.contains("mdps=2") { word.replace("=2", "=1") } else { word.to_owned() });
    let output = ictd_in(dir.path(), &one.iter().map(String::as_str).collect::<Vec<_>>());
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (table, fields) in
        [("learning", &["start_sem", "end_sem"][..]), ("gap", &["gap_sem"]), ("curves", &["sem"])]
    {
        for field in fields {
            assert!(
                found[table].as_array().unwrap().iter().all(|row| row[field].is_null()),
                "{table}: {field}"
            );
        }
    }
    let table = fs::read_to_string(dir.path().join("found/learning.csv")).unwrap();
    let header: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let column = header.iter().position(|name| *name == "start_sem").unwrap();
    assert_eq!(table.lines().nth(1).unwrap().split(',').nth(column), Some(""));
    assert_eq!(found["claims"][1]["uncertainty"], "one process has no standard errors");
}

/// What must hold on any number of processes does; the reference's means are not those of two short runs, and that is exit code 1.
#[test]
fn a_criterion_that_is_not_met_is_exit_code_1() {
    let dir = tempfile::tempdir().unwrap();
    let output = ictd_in(dir.path(), &SMALL);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verdicts: Vec<&str> =
        found["claims"].as_array().unwrap().iter().map(|c| c["verdict"].as_str().unwrap()).collect();
    assert_eq!([verdicts[0], verdicts[2], verdicts[3]], ["reproduced"; 3]);
    assert!(["partly", "not reproduced"].contains(&verdicts[1]));
    assert!(found["claims"].as_array().unwrap().iter().all(|c| c["scope"] == "past-the-paper"));
    let (gap, bound) = (numbers(&found["gap"], "largest_gap"), numbers(&found["gap"], "bound"));
    assert!(gap.len() == 8 && gap.windows(2).all(|w| w[1] < w[0]));
    assert!(gap.iter().zip(bound).all(|(gap, bound)| *gap <= bound));
    // Nothing earns more than the best policy, nor does that with ε.
    for row in found["learning"].as_array().unwrap() {
        let [end, best, with_epsilon] =
            ["end", "optimum", "epsilon_optimum"].map(|k| row[k].as_f64().unwrap());
        assert!(end < best && with_epsilon < best, "{row}");
    }
    let written = files(&dir.path().join("found"));
    for name in
        ["control.svg", "control.pdf", "control.json", "gap.csv", "learning.csv", "learning_curves.csv"]
    {
        assert!(written.iter().any(|(n, bytes)| n == name && !bytes.is_empty()), "{name} is missing");
    }
}

#[test]
fn thread_counts_give_the_same_bytes() {
    let runs = ["1", "2"].map(|threads| {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::cargo_bin("ictd").unwrap();
        command.current_dir(dir.path()).env("RAYON_NUM_THREADS", threads).args(SMALL);
        let output = command.output().unwrap();
        (output.status.code(), output.stdout, files(&dir.path().join("found")))
    });
    assert!(!runs[0].1.is_empty() && runs[0] == runs[1]);
}

#[test]
fn numbers_out_of_range_are_refused_and_write_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for option in ["mdps", "updates", "transitions", "exact-mdps", "sweeps", "trials"] {
        let output = ictd_in(dir.path(), &["control", &format!("--{option}"), "0"]);
        assert_refused(&output, &format!("{option} is 0"));
    }
    // What the comparison does not use is no option beside it.
    assert_refused(&ictd_in(dir.path(), &["control", "--verify", "--mdps", "3"]), "--mdps");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
