//! `ictd pretrain` as a user meets it: results, run directories, interruptions, mistakes.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use ictd_lab::files::Tensors;

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

/// A checkpoint runs on contexts: its output is that of its V and A in layers written out here.
#[test]
fn forward_reads_checkpoints() {
    let dir = tempfile::tempdir().unwrap();
    json(&pretrain(dir.path(), &["--seeds", "0..1", "--set", "features=2"]));
    let (name, bytes) = checkpoints(dir.path()).into_iter().find(|(name, _)| name.contains("step_")).unwrap();
    let path = dir.path().join(name);
    let as_trained = ["--layers", "3", "--gamma", "0.9", "--temperature", "1.2", "--json", "--params"];
    let result = json(&forward(CONTEXT, &[&as_trained[..], &[path.to_str().unwrap()]].concat()));
    let tensors = Tensors::from_bytes(&bytes).unwrap();
    let [value, score] = ["V", "A"].map(|name| tensors.get(name).unwrap());
    // v_j += Σ_i K_ij·(V's last row on x_i, r_i, γ·v_{i+1}, v_i) over the two transitions, K the softmax of x_iᵀ A x_j / 1.2.
    let (x, r) = ([[1.0, 0.5], [0.5, -0.25], [-1.0, 0.75]], [1.0, -0.5]);
    let at = |matrix: &[f32], i: usize, j: usize| f64::from(matrix[5 * i + j]);
    let weight = |i: usize, j: usize| {
        let entry = |a: usize, b: usize| x[i][a] * at(score, a, b) * x[j][b];
        ((entry(0, 0) + entry(0, 1) + entry(1, 0) + entry(1, 1)) / 1.2f64).exp()
    };
    let mut v = [0.0; 3];
    for layer in 0..=3 {
        for (j, v) in v.iter().enumerate() {
            // Three layers of a few sums of numbers of order 1.
            let found = result["values"][layer][j].as_f64().unwrap();
            assert!((found - v).abs() < 1e-14, "layer {layer}, column {j}: {found} {v}");
        }
        let change = |i: usize| {
            let token = [x[i][0], x[i][1], r[i], 0.9 * v[i + 1], v[i]];
            (0..5).map(|k| at(value, 4, k) * token[k]).sum::<f64>()
        };
        let changes = [change(0), change(1)];
        for j in 0..3 {
            let [a, b] = [weight(0, j), weight(1, j)];
            v[j] += (a * changes[0] + b * changes[1]) / (a + b);
        }
    }
    assert!(v.iter().all(|v| v.abs() > 1e-3), "{v:?}");
    let wrong = r#"{"features": [[1], [2]], "rewards": [1]}"#;
    assert_refused(&forward(wrong, &["--params", path.to_str().unwrap()]), "made for 2 features");
}

/// On short contexts and on long ones, which another pass trains.
#[test]
fn thread_counts_give_the_same_checkpoints() {
    for length in ["n=10", "n=200"] {
        let bytes = ["1", "2", "4"].map(|threads| {
            let dir = tempfile::tempdir().unwrap();
            json(&pretrain(dir.path(), &["--seeds", "0..4", "--threads", threads, "--set", length]));
            checkpoints(dir.path())
        });
        assert_eq!(bytes[0].len(), 8);
        assert!(bytes[0] == bytes[1] && bytes[1] == bytes[2], "{length}");
    }
}

/// A training process, killed when the test is done with it.
struct Child(std::process::Child);

impl Child {
    fn spawn(dir: &Path, arguments: &[&str]) -> Self {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("ictd"));
        command.current_dir(dir).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// Waits until something is the case, or the process has ended; returns whether it goes on.
    fn runs_until(&mut self, mut holds: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        loop {
            if self.0.try_wait().unwrap().is_some() {
                return false;
            }
            if holds() {
                return true;
            }
            assert!(start.elapsed() < Duration::from_secs(120), "it did not come to pass");
            std::thread::yield_now();
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Names of the checkpoints of a seed, half-written ones too.
fn checkpoint_names(dir: &Path, seed: u64) -> Vec<String> {
    let runs = fs::read_dir(dir.join("runs/paper")).into_iter().flatten().flatten();
    let folders = runs.map(|run| run.path().join(format!("seed_{seed:04}/ckpt")));
    let entries = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The step of a finished checkpoint.
fn step_of(name: &str) -> Option<u64> {
    name.strip_prefix("step_")?.strip_suffix(".safetensors")?.parse().ok()
}

/// Kill -9 at twenty moments spread over the run, every other one with a checkpoint left half written; each resumed run must
/// end with the checkpoint bytes of an uninterrupted one, and with no half of a file.
#[test]
fn killed_runs_resume_to_the_same_bytes() {
    let whole = tempfile::tempdir().unwrap();
    let arguments = ["--seeds", "0..2", "--set", "epochs=300"];
    json(&pretrain(whole.path(), &arguments));
    let expected = checkpoints(whole.path());
    let mut interrupted = 0;
    for moment in 0..20u64 {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Child::spawn(dir.path(), &[&SHORT[..], &arguments[..]].concat());
        let seed = moment / 2 % 2;
        // Of 1500 steps; at the first moment there is a directory and no checkpoint yet.
        let reached = |step: u64| step >= 70 * moment;
        interrupted += u32::from(child.runs_until(|| match moment {
            0 => dir.path().join("runs/paper").exists(),
            _ => checkpoint_names(dir.path(), seed).iter().filter_map(|n| step_of(n)).any(reached),
        }));
        drop(child);
        let newest = checkpoints(dir.path()).into_iter().rfind(|(name, _)| name.contains("step_"));
        if let (1, Some((name, bytes))) = (moment % 2, newest) {
            let path = dir.path().join(name);
            let half = format!(".{}.1.tmp", path.file_name().unwrap().to_string_lossy());
            fs::write(path.with_file_name(half), &bytes[..bytes.len() / 2]).unwrap();
        }
        json(&pretrain(dir.path(), &[&arguments[..], &["--resume"]].concat()));
        assert!(checkpoints(dir.path()) == expected, "moment {moment}");
        let left = (0..2).flat_map(|seed| checkpoint_names(dir.path(), seed)).find(|n| n.ends_with(".tmp"));
        assert_eq!(left, None, "moment {moment}");
    }
    // Near the end a run may be over before it is killed.
    assert!(interrupted >= 15, "only {interrupted} of 20 runs were killed before they ended");
}

#[cfg(unix)]
#[test]
fn sigterm_writes_a_checkpoint_and_exits_with_124() {
    let dir = tempfile::tempdir().unwrap();
    let long =
        ["pretrain", "--json", "--seeds", "0..1", "--set", "epochs=1000000", "--checkpoint-every", "20"];
    let mut child = Child::spawn(dir.path(), &long);
    // It trains once it has written a checkpoint.
    let mut first = None;
    assert!(child.runs_until(|| {
        first = checkpoint_names(dir.path(), 0).iter().find_map(|n| step_of(n));
        first.is_some()
    }));
    let pid = child.0.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.0.wait().unwrap().code(), Some(124));
    // One checkpoint, of where it was when it stopped.
    let names = checkpoint_names(dir.path(), 0);
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(step_of(&names[0]) >= first, "{names:?} {first:?}");
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
        (&["--set", "kernel=tabular"], "kernel is tabular"),
        (&["--set", "tied=false", "--set", "mask=looped"], "mask is looped"),
        (&["--set", "epochs=4611686018427387904"], "epochs"),
        (&["--set", "layers=1000000000"], "layers"),
        (&["--set", "n=100000", "--set", "rho.end=0.5"], "8 GB"),
        (&["--set", "states=6000"], "states"),
        (&["--set", "query=nobody"], "query"),
        (&["--set", "source.columns=n+2"], "source.columns"),
        (&["--set", "rho.query=nobody"], "rho.query"),
        (&["--set", "target=nobody"], "target"),
        (&["--set", "source.reward=hidden"], "source"),
        (&["--threads", "0"], "threads"),
        (&["--preset", "nobody"], "preset"),
        (&["--seeds", "5..5"], "seeds"),
        (&["--seeds", "0"], "seeds"),
        (&["--seeds", "0..3,2"], "2 is given twice"),
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
    assert!(message.contains("seed 5") && message.contains("1 of 2 seeds done"), "{message}");
    let root = fs::read_dir(dir.path().join("runs/paper")).unwrap().next().unwrap().unwrap().path();
    assert!(root.join("seed_0000/result.json").is_file());
    assert!(!root.join("seed_0005/result.json").exists());
    // Resuming a finished seed changes nothing, not even its times.
    let before = fs::read(root.join("seed_0000/provenance.json")).unwrap();
    let files = || fs::read_dir(root.join("seed_0000")).unwrap().count();
    let count = files();
    let arguments = [&arguments[..1], &["--seeds", "1", "--resume"], &arguments[3..]].concat();
    assert!(ictd_in(dir.path(), &arguments).status.success());
    assert_eq!((fs::read(root.join("seed_0000/provenance.json")).unwrap(), files()), (before, count));
}

/// A map says by its rows and columns what it varies; a name that is no kernel is told those that can be trained.
#[test]
fn maps_keep_what_they_vary_and_kernels_are_those_that_train() {
    let dir = tempfile::tempdir().unwrap();
    for (map, change) in [
        ("settings", "query=source"),
        ("settings", "init.score_sign=td"),
        ("kernels", "kernel=linear"),
        ("kernels", "init.value_sign=mirror"),
    ] {
        let output = ictd_in(dir.path(), &["branches", "--map", map, "--seeds", "1", "--set", change]);
        assert_refused(&output, &format!("'{change}' is what the map varies"));
    }
    let output = ictd_in(dir.path(), &["pretrain", "--set", "kernel=foo"]);
    assert_refused(&output, "kernel is 'foo', expected one of softmax, linear, relu, elu1, rbf");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
