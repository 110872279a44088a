//! The theory commands as a user meets them.
#![allow(missing_docs)]

mod common;

use std::fs;

use assert_cmd::Command;
use common::{CONTEXT, assert_refused, ictd, ictd_in, json};

#[test]
fn certify_counts_the_known_regimes() {
    let counts = json(&ictd(&[
        "certify",
        "--task",
        "boyan",
        "--states",
        "64",
        "--features",
        "4",
        "--tasks",
        "50",
        "--json",
    ]));
    assert_eq!(counts["tasks"], 50);
    for (key, expected) in [
        ("assumption_holds", 0),
        ("norm_inf_below_one", 0),
        ("spectral_radius_below_one", 50),
        ("unstable", 0),
    ] {
        assert_eq!(counts[key], expected, "{key}");
    }
    let sharp = json(&ictd(&["certify", "--tasks", "50", "--score-scale", "20", "--json"]));
    // About 90 %; fewer than 35 of 50 would have probability 1e-5.
    assert!(sharp["unstable"].as_u64().unwrap() >= 35);
}

#[test]
fn a_refused_task_comes_with_repairs_that_the_command_confirms() {
    let dir = tempfile::tempdir().unwrap();
    let report = json(&ictd_in(dir.path(), &["certify", "--score-scale", "20", "--out", "out", "--json"]));
    assert_eq!((&report["schema"], &report["status"]), (&"ictd.certificate/1".into(), &"refused".into()));
    assert!(!report["reasons"].as_array().unwrap().is_empty());
    assert!(!report["contraction"]["offenders"].as_array().unwrap().is_empty());
    for file in ["certificate.json", "depth.svg", "depth.png", "depth.csv"] {
        assert!(dir.path().join("out").join(file).is_file(), "{file}");
    }
    let best = &report["suggestions"][0];
    let mut arguments = vec!["certify", "--json"];
    arguments.extend(best["options"].as_str().unwrap().split(' '));
    let repaired = json(&ictd(&arguments));
    assert_eq!(repaired["status"], best["status"]);
    // The step size is printed with four decimals.
    let rho = |report: &serde_json::Value| report.as_f64().unwrap();
    assert!((rho(&repaired["contraction"]["rho"]) - rho(&best["rho"])).abs() < 1e-3);
}

#[test]
fn certify_reads_contexts() {
    let certify = |text: &str, more: &[&str]| {
        let arguments = [&["certify", "--input", "-", "--json"], more].concat();
        Command::cargo_bin("ictd").unwrap().args(arguments).write_stdin(text).output().unwrap()
    };
    let report = json(&certify(CONTEXT, &["--gamma", "0.5"]));
    assert_eq!((&report["n_transitions"], &report["n_episodes"]), (&2.into(), &1.into()));
    assert_eq!(report["contraction"]["never_left_states"], 1);
    // One state that stays where it is: the kernel has nothing to weigh.
    let loops = r#"{"features": [[1.0], [1.0], [1.0]], "rewards": [1.0, 1.0]}"#;
    let report = json(&certify(loops, &["--gamma", "0.5"]));
    assert_eq!(report["status"], "certified");
    let zero = r#"{"features": [[0.0], [1.0]], "rewards": [1.0]}"#;
    assert_refused(&certify(zero, &["--unit-norm"]), "unit-norm");
    assert_refused(&certify(CONTEXT, &["--gamma", "1"]), "gamma");
    assert_refused(&certify("{", &[]), "input");
}

#[test]
fn theorem_2_keeps_its_promise_where_its_premises_hold() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "bound",
        "--task",
        "coin",
        "--states",
        "2",
        "--gamma",
        "0.1",
        "--one-hot",
        "--score-scale",
        "0.45",
        "--contexts",
        "20",
        "--lengths",
        "100",
        "--json",
    ];
    let reports = json(&ictd_in(dir.path(), &arguments));
    let report = &reports[0];
    assert!(report["failed_premises"].as_array().unwrap().is_empty());
    let theorem: Vec<_> = report["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["premises"] == true && c["statement"].as_str().unwrap().starts_with("Theorem 2"))
        .collect();
    assert!(!theorem.is_empty());
    for comparison in theorem {
        assert_eq!(comparison["covered"], comparison["contexts"]);
    }
    // The paper's tasks do not satisfy the assumption, and the report says so.
    let reports = json(&ictd_in(
        dir.path(),
        &[
            "bound",
            "--task",
            "boyan",
            "--states",
            "64",
            "--features",
            "4",
            "--gamma",
            "0.9",
            "--score-scale",
            "1",
            "--contexts",
            "2",
            "--lengths",
            "100",
            "--json",
        ],
    ));
    let premises = reports[0]["failed_premises"].as_array().unwrap();
    assert!(premises[0].as_str().unwrap().contains("Assumption 5.1"));
}

#[test]
fn neu_falls_with_length_and_reads_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    let arguments =
        ["neu", "--one-hot", "--lengths", "30,100,300", "--layers", "2,20", "--samples", "500", "--json"];
    let reports = json(&ictd_in(dir.path(), &arguments));
    let point = |n: u64, layers: u64| {
        let points = reports[0]["points"].as_array().unwrap();
        points.iter().find(|p| p["n"] == n && p["layers"] == layers).unwrap()["neu"].as_f64().unwrap()
    };
    assert!(point(300, 20) < point(30, 20) && point(300, 20) < point(300, 2));
    assert!(dir.path().join("out/neu/landscape.svg").is_file());
    let trained = ["pretrain", "--seeds", "0", "--set", "epochs=5", "--json"];
    json(&ictd_in(dir.path(), &trained));
    let root = fs::read_dir(dir.path().join("runs/paper")).unwrap().next().unwrap().unwrap().path();
    let checkpoint = root.join("seed_0000/ckpt/best.safetensors");
    let points = json(&ictd(&["neu", "--params", checkpoint.to_str().unwrap(), "--samples", "50", "--json"]));
    assert_eq!((points.as_array().unwrap().len(), &points[0]["theta"]), (2, &"theta_*".into()));
}

#[test]
fn regimes_and_lemmas_write_their_tables() {
    let dir = tempfile::tempdir().unwrap();
    let map = json(&ictd_in(dir.path(), &["regimes", "--states", "8", "--tasks", "2", "--json"]));
    let cells = map["cells"].as_array().unwrap();
    // Lead (b) of docs/theory.md: a step size per state is stable everywhere.
    assert!(cells.iter().filter(|c| c["repair"] == "step-per-state").all(|c| c["unstable"] == 0));
    assert!(dir.path().join("out/regimes/regimes.svg").is_file());
    let rows = json(&ictd(&["lemmas", "--trials", "50", "--json"]));
    assert!(rows.as_array().unwrap().iter().all(|r| r["ratio"].as_f64().unwrap() <= 1.0 + 1e-12));
}

#[test]
fn bad_theory_arguments_are_one_line() {
    for (arguments, field) in [
        (&["certify", "--states", "2"][..], "states"),
        (&["certify", "--features", "0"], "features"),
        (&["certify", "--gamma", "1"], "gamma"),
        (&["certify", "--score-scale", "0"], "score-scale"),
        (&["certify", "--step-size", "-1"], "step-size"),
        (&["certify", "--temperature", "0"], "temperature"),
        (&["certify", "--tolerance", "nan"], "tolerance"),
        (&["certify", "--tasks", "0"], "tasks"),
        (&["certify", "--n", "0"], "n is 0"),
        (&["certify", "--input", "no-such.json"], "no-such.json"),
        (&["certify", "--task", "nobody"], "nobody"),
        (&["bound", "--contexts", "1"], "contexts"),
        (&["bound", "--delta", "2"], "delta"),
        (&["bound", "--task", "boyan", "--states", "300"], "states"),
        (&["neu", "--samples", "1"], "samples"),
        (&["neu", "--one-hot", "--lengths", "0"], "n is 0"),
        (&["neu", "--params", "no-such.safetensors"], "no-such.safetensors"),
        (&["regimes", "--tasks", "0"], "tasks"),
        (&["lemmas", "--trials", "0"], "trials"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let output = ictd_in(dir.path(), arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        let last = message.trim_end().lines().last().unwrap_or_default();
        assert!(last.starts_with("error: ") && last.contains(field), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty());
    }
}
