//! `ictd pretrain` as a user meets it: results, run directories, interruptions, mistakes.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;
use std::process::Output;

use common::{CONTEXT, assert_refused, forward, ictd_in, json};

/// A short run: 60 epochs of the paper's setting.
const SHORT: [&str; 6] = ["pretrain", "--set", "epochs=60", "--checkpoint-every", "7", "--json"];

fn pretrain(dir: &Path, more: &[&str]) -> Output {
    ictd_in(dir, &[&SHORT[..], more].concat())
}

/// The bytes of every final checkpoint below a directory, by path.
fn checkpoints(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "safetensors") {
                found.push((path.strip_prefix(dir).unwrap().display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn pretrain_reports_every_seed_and_writes_its_run_directory() {
    let dir = tempfile::tempdir().unwrap();
    let result = json(&pretrain(dir.path(), &["--seeds", "3..5"]));
    assert!(result["train_seconds"].as_f64().unwrap() > 0.0);
    let seeds = result["seeds"].as_array().unwrap();
    assert_eq!(seeds.len(), 2);
    for (seed, number) in seeds.iter().zip([3, 4]) {
        assert_eq!(seed["seed"], number);
        assert_eq!(seed["value_row"].as_array().unwrap().len(), 7);
        assert_eq!(seed["score_diag"].as_array().unwrap().len(), 4);
        for point in [seed, &seed["best"]] {
            for key in
                ["v_em", "a_em", "v_em_signed", "a_em_signed", "diag_mean", "diag_min", "td_loss", "msve"]
            {
                assert!(point[key].is_number(), "{key}");
            }
            assert!(["td", "mirror", "none"].contains(&point["branch"].as_str().unwrap()));
        }
        assert!(seed["best_step"].is_u64());
    }
    let hash = fs::read_dir(dir.path().join("runs/paper")).unwrap().next().unwrap().unwrap().path();
    for file in ["config.toml", "overrides.txt", "provenance.json", "metrics.csv", "result.json"] {
        assert!(hash.join("seed_0003").join(file).exists(), "{file} is missing");
    }
    for file in ["step_00000300.safetensors", "best.safetensors"] {
        assert!(hash.join("seed_0004/ckpt").join(file).exists(), "{file} is missing");
    }
}

/// A checkpoint runs on contexts: its output is the prediction that its training measured.
#[test]
fn forward_reads_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    json(&pretrain(dir.path(), &["--seeds", "0..1", "--set", "features=2"]));
    let (name, _) = checkpoints(dir.path()).into_iter().find(|(name, _)| name.contains("step_")).unwrap();
    let path = dir.path().join(name);
    let result = json(&forward(CONTEXT, &["--layers", "3", "--json", "--params", path.to_str().unwrap()]));
    assert!(result["values"][3][2].as_f64().unwrap() != 0.0);
    let wrong = r#"{"features": [[1], [2]], "rewards": [1]}"#;
    assert_refused(&forward(wrong, &["--params", path.to_str().unwrap()]), "made for 2 features");
}

#[test]
fn thread_counts_give_the_same_checkpoints() {
    let bytes = ["1", "2", "4"].map(|threads| {
        let dir = tempfile::tempdir().unwrap();
        json(&pretrain(dir.path(), &["--seeds", "0..4", "--threads", threads]));
        checkpoints(dir.path())
    });
    assert_eq!(bytes[0].len(), 8);
    assert!(bytes[0] == bytes[1] && bytes[1] == bytes[2]);
}

/// Kill -9 at twenty moments spread over the run; each resumed run must end with the checkpoint bytes of
/// an uninterrupted one.
#[test]
fn killed_runs_resume_to_the_same_bytes() {
    let whole = tempfile::tempdir().unwrap();
    let arguments = ["--seeds", "0..2", "--set", "epochs=300"];
    let start = std::time::Instant::now();
    json(&pretrain(whole.path(), &arguments));
    let duration = start.elapsed();
    let expected = checkpoints(whole.path());
    let binary = assert_cmd::cargo::cargo_bin("ictd");
    let mut interrupted = 0;
    for moment in 1..=20u32 {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new(&binary)
            .current_dir(dir.path())
            .args([&SHORT[..], &arguments[..]].concat())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(duration * moment / 21);
        interrupted += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        json(&pretrain(dir.path(), &[&arguments[..], &["--resume"]].concat()));
        assert!(checkpoints(dir.path()) == expected, "moment {moment}");
    }
    assert!(interrupted >= 10, "only {interrupted} of 20 runs were killed before they ended");
}

#[cfg(unix)]
#[test]
fn sigterm_writes_a_checkpoint_and_exits_with_124() {
    let dir = tempfile::tempdir().unwrap();
    let long = ["--seeds", "0..1", "--set", "epochs=1000000"];
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("ictd"))
        .current_dir(dir.path())
        .args([&["pretrain", "--json"][..], &long[..]].concat())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(400));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(124));
    assert_eq!(checkpoints(dir.path()).len(), 1);
}

#[test]
fn bad_training_settings_are_one_line_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    json(&pretrain(dir.path(), &["--seeds", "0..1"]));
    let before = checkpoints(dir.path());
    for (arguments, field) in [
        (&["--set", "qery=skip"][..], "qery"),
        (&["--set", "n=ten"], "n:"),
        (&["--set", "n=0"], "n is 0"),
        (&["--set", "rho.start=1.5"], "rho.start"),
        (&["--set", "tau=-1"], "temperature"),
        (&["--set", "kernel=rbf"], "kernel is rbf"),
        (&["--set", "epochs=4611686018427387904"], "epochs"),
        (&["--set", "layers=1000000000"], "layers"),
        (&["--set", "n=100000"], "8 GB"),
        (&["--set", "states=6000"], "states"),
        (&["--set", "query=nobody"], "query"),
        (&["--set", "source.columns=n+2"], "source.columns"),
        (&["--set", "rho.query=nobody"], "rho.query"),
        (&["--set", "target=nobody"], "target"),
        (&["--set", "source.reward=hidden"], "source"),
        (&["--threads", "0"], "threads"),
        (&["--preset", "nobody"], "preset"),
        (&["--seeds", "5..5"], "seeds"),
        (&["--seeds", "a..b"], "seeds"),
        (&["--seeds", "1,1"], "seeds"),
        (&["--checkpoint-every", "0"], "checkpoint-every"),
        (&["no-such.toml"], "no-such.toml"),
    ] {
        let output = ictd_in(dir.path(), &[&["pretrain", "--json"][..], arguments].concat());
        assert_refused(&output, field);
    }
    // A checkpoint of another configuration under this one's name.
    let foreign = tempfile::tempdir().unwrap();
    json(&pretrain(foreign.path(), &["--seeds", "0..1", "--set", "n=5"]));
    let seed_dir = |root: &Path| {
        let hash = fs::read_dir(root.join("runs/paper")).unwrap().next().unwrap().unwrap().path();
        hash.join("seed_0000/ckpt/step_00000300.safetensors")
    };
    let own = seed_dir(dir.path());
    fs::copy(seed_dir(foreign.path()), &own).unwrap();
    let output = pretrain(dir.path(), &["--seeds", "0..1", "--resume"]);
    assert_refused(&output, "another configuration");
    assert_eq!(
        fs::read(&own).unwrap(),
        fs::read(seed_dir(foreign.path())).unwrap(),
        "nothing is overwritten"
    );
    fs::write(&own, &before.iter().find(|(name, _)| name.contains("step_")).unwrap().1).unwrap();
    assert!(checkpoints(dir.path()) == before);
}

#[test]
fn a_diverging_run_stops_with_a_message_and_keeps_finite_parameters() {
    let dir = tempfile::tempdir().unwrap();
    let output = ictd_in(dir.path(), &["pretrain", "--seeds", "0..1", "--set", "optimizer.lr=10"]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("diverged at step") && message.contains("optimizer.lr"), "{message}");
    assert!(checkpoints(dir.path()).iter().any(|(name, _)| name.ends_with("diverged.safetensors")));
}

/// Seed 5 diverges at this rate, the others do not: they are finished all the same.
#[test]
fn a_diverging_seed_leaves_the_others_alone() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["pretrain", "--seeds", "0,5", "--set", "optimizer.lr=1", "--set", "epochs=200"];
    let output = ictd_in(dir.path(), &arguments);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("seed 5") && message.contains("1 of 2 seeds are done"), "{message}");
    let root = fs::read_dir(dir.path().join("runs/paper")).unwrap().next().unwrap().unwrap().path();
    assert!(root.join("seed_0000/result.json").is_file());
    assert!(!root.join("seed_0005/result.json").exists());
    // Resuming a finished seed changes nothing, not even its times.
    let before = fs::read(root.join("seed_0000/provenance.json")).unwrap();
    let files = || fs::read_dir(root.join("seed_0000")).unwrap().count();
    let count = files();
    let arguments = [&arguments[..1], &["--seeds", "0", "--resume"], &arguments[3..]].concat();
    assert!(ictd_in(dir.path(), &arguments).status.success());
    assert_eq!((fs::read(root.join("seed_0000/provenance.json")).unwrap(), files()), (before, count));
}
