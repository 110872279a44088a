//! Two processes and one directory: the first is not disturbed, the second says who it is.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{ictd_in, json};

/// A process that goes on until it is killed.
struct Running(Child);

impl Running {
    /// Starts it and waits until the file is there.
    fn until(dir: &Path, arguments: &[&str], file: impl Fn() -> Option<PathBuf>) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("ictd"));
        command.current_dir(dir).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Self(command.spawn().unwrap());
        let start = Instant::now();
        while file().is_none_or(|path| !path.exists()) {
            assert!(running.0.try_wait().unwrap().is_none(), "it ended");
            assert!(start.elapsed() < Duration::from_secs(60), "it did not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn assert_busy(output: &Output, process: u32) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    let holder = format!("in use by process {process} ");
    assert!(message.contains(&holder) && message.contains("since 20"), "{message}");
}

fn seed_dir(dir: &Path) -> Option<PathBuf> {
    Some(fs::read_dir(dir.join("runs/paper")).ok()?.next()?.ok()?.path().join("seed_0000"))
}

fn checkpoint_in(folder: &Path) -> Option<PathBuf> {
    let paths = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    paths.into_iter().find(|path| path.extension().is_some_and(|e| e == "safetensors"))
}

#[test]
fn a_seed_is_trained_by_one_process_and_a_killed_one_is_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let long = ["pretrain", "--set", "epochs=200000", "--checkpoint-every", "50", "--quiet"];
    let with = |more: &[&'static str]| [&long[..], more].concat();
    let checkpoint = || checkpoint_in(&seed_dir(dir.path())?.join("ckpt"));
    let first = Running::until(dir.path(), &with(&["--seeds", "0..2"]), checkpoint);
    let process = first.0.id();
    for second in [&["--seeds", "1"][..], &["--seeds", "1,2"], &["--seeds", "0..1", "--resume"]] {
        assert_busy(&ictd_in(dir.path(), &with(second)), process);
    }
    // So many that they are locked together.
    let output = ictd_in(dir.path(), &with(&["--seeds", "0..200"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("in use by another process"));
    // Its checkpoints go on.
    let before = checkpoint();
    let start = Instant::now();
    while checkpoint().is_none() || checkpoint() == before {
        assert!(start.elapsed() < Duration::from_secs(60), "the first process stands still");
    }
    // Other seeds of the same configuration are free.
    let other = || Some(seed_dir(dir.path())?.with_file_name("seed_0007/ckpt"));
    drop(Running::until(dir.path(), &with(&["--seeds", "7..8"]), other));
    drop(first);
    assert!(seed_dir(dir.path()).unwrap().join(".lock").is_file(), "a killed process leaves its lock");
    drop(Running::until(dir.path(), &with(&["--seeds", "1", "--resume"]), checkpoint));
}

#[test]
fn a_reproduction_has_its_directory_for_itself() {
    let dir = tempfile::tempdir().unwrap();
    let marker = || Some(dir.path().join("o/reproduce.txt"));
    let first =
        Running::until(dir.path(), &["reproduce", "--only", "fig3a", "--seeds", "200", "--out", "o"], marker);
    let second = ["reproduce", "--only", "fig2", "--out", "o", "--quiet"];
    assert_busy(&ictd_in(dir.path(), &second), first.0.id());
    // So do commands that write a few files at their end.
    let output = ictd_in(dir.path(), &["msve", "--tasks", "2", "--lengths", "5,10", "--out", "o", "--quiet"]);
    assert_busy(&output, first.0.id());
    drop(first);
    assert!(ictd_in(dir.path(), &second).status.success());
}

/// Plain commands have their directory from the start of their work to its end, and leave nothing else in it.
#[test]
fn a_directory_is_taken_before_the_work_and_given_back_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let lock = || Some(dir.path().join("o/.lock"));
    let first = Running::until(dir.path(), &["msve", "--tasks", "1000000", "--out", "o"], lock);
    let second = ["msve", "--tasks", "2", "--lengths", "5,10", "--out", "o", "--quiet"];
    assert_busy(&ictd_in(dir.path(), &second), first.0.id());
    // Whoever waits for a process that is stopped, and takes its directory away, makes it again.
    let waiting =
        Command::new(assert_cmd::cargo::cargo_bin("ictd")).current_dir(dir.path()).args(second).spawn();
    std::thread::sleep(Duration::from_secs(1));
    let stopped = Command::new("kill").args(["-TERM", &first.0.id().to_string()]).status().unwrap();
    assert!(stopped.success() && waiting.unwrap().wait().unwrap().success());
    assert!(dir.path().join("o/fig1.csv").is_file() && !lock().unwrap().exists());
}

/// Whoever starts over and is killed has lost nothing that was finished.
#[test]
fn a_killed_rerun_leaves_finished_results_alone() {
    let dir = tempfile::tempdir().unwrap();
    let short = ["pretrain", "--set", "epochs=400", "--checkpoint-every", "20", "--seeds", "1", "--json"];
    json(&ictd_in(dir.path(), &short));
    let seed = seed_dir(dir.path()).unwrap();
    let finished = || {
        let names = [
            "result.json",
            "metrics.csv",
            "provenance.json",
            "ckpt/best.safetensors",
            "ckpt/step_00002000.safetensors",
        ];
        names.map(|name| fs::read(seed.join(name)).unwrap())
    };
    let before = finished();
    let rerun = seed.join("rerun/ckpt");
    let checkpoint = || checkpoint_in(&rerun);
    drop(Running::until(dir.path(), &[&short[..], &["--fresh"]].concat(), checkpoint));
    assert!(finished() == before);
    // Whoever asks for the results gets them, and leaves the work that was begun.
    json(&ictd_in(dir.path(), &short));
    assert!(finished() == before && checkpoint().is_some());
    // It goes on where it was, and its results take the place of the earlier ones.
    json(&ictd_in(dir.path(), &[&short[..], &["--resume"]].concat()));
    let after = finished();
    assert!(before[1] == after[1] && before[3..] == after[3..]);
    assert!(before[2] != after[2], "the times are those of the rerun");
    assert!(!seed.join("rerun").exists());
}
