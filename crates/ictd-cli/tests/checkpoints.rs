//! Checkpoints describe themselves, and those of format 1 are still read.
//!
//! `data/format1` was written by version 0.1.0 before checkpoints described themselves: a configuration of 4 epochs, its
//! checkpoint after 2 of them (that of a run of 2 epochs, with the hash of this configuration) and its last one.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{assert_refused, forward, ictd_in, json, judged};
use ictd_lab::files::Tensors;

/// A context of one feature.
const CONTEXT: &str = r#"{"features": [[1.0], [0.5], [-0.25], [0.75]], "rewards": [1.0, 0.0, -0.5]}"#;

fn format_1(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/format1").join(name)
}

fn tensors(path: &Path) -> Tensors {
    Tensors::from_bytes(&fs::read(path).unwrap()).unwrap()
}

/// Trains one seed of the stored configuration in `dir`; returns its last checkpoint.
fn train(dir: &Path, more: &[&str]) -> (PathBuf, String) {
    fs::copy(format_1("config.toml"), dir.join("old.toml")).unwrap();
    let output = ictd_in(dir, &[&["pretrain", "old.toml", "--seeds", "3..4", "--json"], more].concat());
    json(&output);
    let runs = dir.join("runs/old");
    let files = fs::read_dir(runs).unwrap().map(|e| e.unwrap().path().join("seed_0003"));
    let written = files.filter(|p| p.join("result.json").is_file()).collect::<Vec<_>>();
    assert_eq!(written.len(), 1);
    (written[0].join("ckpt/step_00000008.safetensors"), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn last_value(result: &serde_json::Value) -> f64 {
    let values = result["values"].as_array().unwrap();
    values[values.len() - 1][3].as_f64().unwrap()
}

/// The same numbers as before the format changed, on CPUs with fused multiply-add.
#[test]
fn old_configurations_train_to_the_old_tensors_and_old_checkpoints_resume_to_them() {
    let fused = std::env::consts::ARCH == "aarch64" || ictd::pretrain::SimdLevel::Avx2.is_available();
    let expected = tensors(&format_1("step_00000008.safetensors"));
    let whole = tempfile::tempdir().unwrap();
    let (path, _) = train(whole.path(), &[]);
    let found = tensors(&path);
    if fused {
        assert!(found.tensors == expected.tensors);
    }
    assert_eq!(found.metadata["schema_version"], "3");
    for (key, value) in [
        ("block", "tsm"),
        ("kernel", "softmax"),
        ("temperature", "0.7"),
        ("gamma", "0.8"),
        ("layers", "2"),
        ("step_size", "1.0"),
        ("mask", "full"),
        ("tied", "true"),
        ("features", "1"),
        ("diagonal_mix", "0.0"),
        ("query", "next"),
        ("query_mix", "mixed"),
        ("score_scale", "1.0"),
        ("feature_map", "raw"),
    ] {
        assert_eq!(found.metadata[key], value, "{key}");
    }

    // Resuming the old run: under its old hash there is a checkpoint after 2 of 4 epochs.
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("runs/old/b76b4676/seed_0003");
    fs::create_dir_all(old.join("ckpt")).unwrap();
    fs::copy(format_1("config.toml"), old.join("config.toml")).unwrap();
    let half = old.join("ckpt/step_00000004.safetensors");
    fs::copy(format_1("step_00000004.safetensors"), &half).unwrap();
    let (resumed, messages) = train(dir.path(), &["--resume"]);
    assert!(messages.contains("warning") && messages.contains("step_00000004"), "{messages}");
    if fused {
        assert!(tensors(&resumed).tensors == expected.tensors);
    }
    assert_eq!(fs::read(half).unwrap(), fs::read(format_1("step_00000004.safetensors")).unwrap());
}

#[test]
fn forward_takes_what_the_checkpoint_says_and_refuses_what_contradicts_it() {
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = train(dir.path(), &["--set", "kernel=relu", "--set", "block=dual"]);
    let path = path.to_str().unwrap();
    let own = json(&forward(CONTEXT, &["--json", "--params", path]));
    let flags =
        ["--kernel", "relu", "--block", "dual", "--gamma", "0.8", "--layers", "2", "--temperature", "0.7"];
    let same = forward(CONTEXT, &[&["--json", "--params", path], &flags[..]].concat());
    assert_eq!(json(&same)["values"], own["values"]);
    assert_eq!(own["values"].as_array().unwrap().len(), 3);
    // Content and not the name says what a file is.
    let (renamed, text) = (dir.path().join("last.ckpt"), dir.path().join("text.safetensors"));
    fs::copy(path, &renamed).unwrap();
    let same = forward(CONTEXT, &["--json", "--params", renamed.to_str().unwrap()]);
    assert_eq!(json(&same)["values"], own["values"]);
    let zeros = [[0.0; 4]; 4];
    fs::write(&text, serde_json::json!({ "V": zeros, "A": zeros }).to_string()).unwrap();
    judged(&forward(CONTEXT, &["--json", "--params", text.to_str().unwrap()]));
    fs::write(&renamed, &fs::read(path).unwrap()[..100]).unwrap();
    assert_refused(&forward(CONTEXT, &["--params", renamed.to_str().unwrap()]), "cut short");
    for (flag, value, field) in [
        ("--kernel", "softmax", "kernel is softmax, expected relu as the checkpoint was trained with"),
        ("--block", "tsm", "block is tsm"),
        ("--gamma", "0.9", "gamma is 0.9"),
        ("--layers", "3", "layers is 3"),
        ("--temperature", "1", "temperature is 1"),
        ("--step-size", "0.5", "step size is 0.5"),
        ("--diagonal-mix", "0.1", "diagonal mix is 0.1"),
    ] {
        assert_refused(&forward(CONTEXT, &["--params", path, flag, value]), field);
    }
}

#[test]
fn neu_takes_kernel_depth_and_length_from_the_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let estimate = |kernel: &str, more: &[&str]| {
        let dir = dir.path().join(kernel);
        fs::create_dir_all(&dir).unwrap();
        let (path, _) = train(&dir, &["--set", &format!("kernel={kernel}")]);
        let fixed = ["neu", "--samples", "4", "--json", "--params", path.to_str().unwrap()];
        ictd_in(&dir, &[&fixed, more].concat())
    };
    let tasks = ["--states", "8", "--features", "1", "--gamma", "0.8"];
    let [relu, softmax] = ["relu", "softmax"].map(|kernel| json(&estimate(kernel, &tasks)));
    for points in [&relu, &softmax] {
        assert_eq!((&points[0]["theta"], &points[0]["layers"]), (&"theta_*".into(), &2.into()));
    }
    // The same tasks and trajectories at theta_*: only the kernel differs.
    assert_ne!(relu[0]["neu"], softmax[0]["neu"]);
    assert_refused(
        &estimate("relu", &[&tasks[..4], &["--gamma", "0.9"]].concat()),
        "gamma is 0.9, expected 0.8",
    );
    assert_refused(&estimate("relu", &[&tasks[..], &["--layers", "3"]].concat()), "layers is 3, expected 2");
}

/// Other columns than a context has: the query a source, or its column unmixed where the others are mixed.
#[test]
fn parameters_trained_on_other_columns_are_refused() {
    let refused = |changes: &[&str], field: &str| {
        let dir = tempfile::tempdir().unwrap();
        let more: Vec<&str> = changes.iter().flat_map(|change| ["--set", change]).collect();
        let (path, _) = train(dir.path(), &more);
        let path = path.to_str().unwrap();
        let outputs =
            [forward(CONTEXT, &["--params", path]), ictd_in(dir.path(), &["neu", "--params", path])];
        outputs.iter().for_each(|output| assert_refused(output, field));
    };
    refused(&["query=source"], "query in training is source, expected");
    refused(&["rho.query=unmixed", "rho.end=0.5"], "rho.query in training is unmixed, expected");

    // Without mixing there is no difference.
    let dir = tempfile::tempdir().unwrap();
    let (path, _) = train(dir.path(), &["--set", "rho.query=unmixed"]);
    json(&forward(CONTEXT, &["--json", "--params", path.to_str().unwrap()]));
}

/// Parameters of format 1 run as the flags say, with a warning, and give the numbers of the same tensors in format 2.
#[test]
fn checkpoints_of_format_1_are_read_with_a_warning() {
    let path = format_1("step_00000008.safetensors");
    let output = forward(
        CONTEXT,
        &[
            "--json",
            "--params",
            path.to_str().unwrap(),
            "--gamma",
            "0.8",
            "--layers",
            "2",
            "--temperature",
            "0.7",
        ],
    );
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(messages.contains("warning") && messages.contains("format 1"), "{messages}");
    let value = last_value(&json(&output));
    let mut described = tensors(&path);
    let config = ictd_lab::studies::pretrain::Settings::file(&format_1("config.toml"), &[]).unwrap().config;
    described.metadata.extend(ictd_lab::files::Description::of(&config, 0).metadata().unwrap());
    described.metadata.insert("schema_version".into(), "2".into());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("described.safetensors");
    fs::write(&path, described.to_bytes()).unwrap();
    let output = forward(CONTEXT, &["--json", "--params", path.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("format 2 and carries no digest"));
    assert_eq!(last_value(&json(&output)), value);
    // Format 3 has a digest, and nothing to warn of.
    described.metadata.insert("schema_version".into(), "3".into());
    fs::write(&path, described.to_bytes()).unwrap();
    let output = forward(CONTEXT, &["--json", "--params", path.to_str().unwrap()]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("warning"));
    assert_eq!(last_value(&json(&output)), value);
}

/// A list of one layer is no word for all layers: the others may be lost.
/// What would come nearer is told, a depth, and no change or option that is then refused.
#[test]
fn certify_suggests_no_option_that_contradicts_the_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let start = ["init.score_sign=td", "init.value_sign=td", "init.gain=1", "epochs=1"];
    let sets = start.iter().flat_map(|change| ["--set", change]);
    let train: Vec<&str> = ["pretrain", "--seeds", "3..4"].into_iter().chain(sets).collect();
    assert!(ictd_in(dir.path(), &train).status.success());
    let run = fs::read_dir(dir.path().join("runs/paper")).unwrap().next().unwrap().unwrap().path();
    let best = run.join("seed_0003/ckpt/best.safetensors");
    for (task, told) in [
        (&[][..], "the checkpoint is what it is"),
        (&["--states", "6"], " layers (more than the checkpoint has)"),
    ] {
        let certify = [&["certify", "--json", "--params", best.to_str().unwrap()], task].concat();
        let result: serde_json::Value =
            serde_json::from_slice(&ictd_in(dir.path(), &certify).stdout).unwrap();
        let suggestion = result["suggestion"].as_str().unwrap();
        assert!(suggestion.contains(told) && !suggestion.contains("--"), "{suggestion}");
        assert_eq!(result["suggestions"], serde_json::json!([]));
        assert_eq!(result["suggestions_note"], "the parameters are trained: no changes are tried");
    }
}

/// Tasks whose features are made otherwise are refused; who brings features is told what training did to its own.
#[test]
fn a_checkpoint_says_how_its_features_were_made() {
    let dir = tempfile::tempdir().unwrap();
    let sets = ["--set", "task.score_scale=4", "--set", "task.feature_map=unit-norm", "--set", "epochs=1"];
    let train = [
        &["pretrain", "--seeds", "3..4", "--set", "init.score_sign=td", "--set", "init.value_sign=td"],
        &sets[..],
    ]
    .concat();
    assert!(ictd_in(dir.path(), &train).status.success());
    let run = fs::read_dir(dir.path().join("runs/paper")).unwrap().next().unwrap().unwrap().path();
    let best = run.join("seed_0003/ckpt/best.safetensors");
    let best = best.to_str().unwrap();
    let certify = |more: &[&str]| ictd_in(dir.path(), &[&["certify", "--params", best], more].concat());
    assert_refused(&certify(&[]), "score-scale is 1, expected 4 as the checkpoint was trained with");
    assert_refused(&certify(&["--score-scale", "4"]), "features of tasks is raw, expected unit-norm");
    let told = "feature vectors that were divided by their length and multiplied by 2.000000, the root of the score scale 4";
    let same = certify(&["--score-scale", "4", "--unit-norm"]);
    assert!(
        same.status.code() != Some(2) && !String::from_utf8_lossy(&same.stderr).contains("warning"),
        "{same:?}"
    );
    let context = r#"{"features": [[1,0,0,0],[0,1,0,0],[0,0,1,0]], "rewards": [1, 0]}"#;
    let own = forward(context, &["--params", best]);
    assert!(String::from_utf8_lossy(&own.stderr).contains(told), "{own:?}");
    assert_refused(&ictd_in(dir.path(), &["neu", "--params", best, "--samples", "2"]), "score-scale is 1");
}

#[test]
fn parameters_of_too_few_layers_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let zero = "[[0,0,0,0],[0,0,0,0],[0,0,0,0],[0,0,0,0]]";
    let path = dir.path().join("one.json");
    fs::write(&path, format!(r#"{{"layers": [{{"V": {zero}, "A": {zero}}}]}}"#)).unwrap();
    let run =
        |layers: &str| forward(CONTEXT, &["--json", "--layers", layers, "--params", path.to_str().unwrap()]);
    assert_eq!(judged(&run("1"))["judgement"], "refuse", "parameters that do nothing");
    assert_refused(&run("3"), "params: 1 layers given, expected one for each of the 3 layers");

    // A checkpoint without one of its tensors.
    let (checkpoint, _) = train(dir.path(), &["--set", "tied=false"]);
    let mut found = tensors(&checkpoint);
    found.tensors.remove("layers.1.A");
    fs::write(&checkpoint, found.to_bytes()).unwrap();
    let path = checkpoint.to_str().unwrap();
    assert_refused(&forward(CONTEXT, &["--params", path]), "tensor layers.1.A is missing");
}

#[test]
fn unknown_and_absent_simd_levels_are_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let run = |level: &str| {
        std::process::Command::new(assert_cmd::cargo::cargo_bin("ictd"))
            .current_dir(dir.path())
            .env("ICTD_SIMD", level)
            .args(["pretrain", "--set", "epochs=1", "--seeds", "1", "--json"])
            .output()
            .unwrap()
    };
    assert_refused(&run("neon2"), "ICTD_SIMD");
    json(&run("scalar"));
}

/// Levels differ in the last place, so results of one are not taken for those of another.
#[test]
fn what_other_vector_instructions_computed_is_computed_again() {
    if !ictd::pretrain::SimdLevel::Sse2.is_available() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let run = |level: &str, line: &str| {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("ictd"));
        command.current_dir(dir.path()).env("ICTD_SIMD", level).args(line.split(' '));
        let output = command.output().unwrap();
        assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let readings = "readings --seeds 1 --set epochs=1 --set batches=1 --set batch=1 --set n=1 --set states=3";
    for (level, known) in [("scalar", false), ("scalar", true), ("sse2", false)] {
        run(level, "reproduce --only fig4 --quick --out o");
        let timings = fs::read_to_string(dir.path().join("o/timings.json")).unwrap();
        assert_eq!(timings.contains("\"cached\": true"), known, "{level}: {timings}");
        let said = run(level, readings);
        assert_eq!(said.contains("from an earlier search"), known, "{level}: {said}");
    }
}
