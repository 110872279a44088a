//! Long work says how far it is, and ends within a second when it is told to.
#![cfg(unix)]
#![allow(missing_docs)]

mod common;

use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{assert_refused, ictd_in};

/// Commands that take minutes.
const LONG: [(&str, &[&str]); 21] = [
    ("verify", &["--trials=100000"]),
    ("msve", &["--tasks=1000000"]),
    ("pretrain", &["--set=epochs=1000000"]),
    ("readings", &["--seeds=1000"]),
    ("branches", &["--seeds=1000"]),
    ("branches", &["--task=loop", "--states=5000"]),
    ("sweep", &["quick", "--seeds=10000"]),
    ("mirror", &["--seeds=1000"]),
    ("control", &["--mdps=10000"]),
    ("certify", &["--states=500"]),
    ("certify", &["--states=2000"]),
    ("certify", &["--tasks=1000000"]),
    ("regimes", &["--tasks=10000"]),
    ("bound", &["--contexts=1000000"]),
    ("neu", &["--samples=1000000"]),
    ("lemmas", &["--trials=1000000"]),
    ("forward", &["--input=context.json", "--layers=5000", "--precision=double"]),
    ("forward", &["--input=-"]),
    ("reproduce", &["--seeds=1000", "--only=fig3a"]),
    ("reproduce", &["--stability"]),
    ("task", &["boyan", "--states=3000"]),
];

/// A context of as many distinct states, in which a layer takes a while.
fn write_context(dir: &Path, states: usize) {
    let features: Vec<[f64; 2]> = (0..=states).map(|k| [(k as f64).sin(), (k as f64).cos()]).collect();
    let context = serde_json::json!({ "features": features, "rewards": vec![1.0; states] });
    std::fs::write(dir.join("context.json"), context.to_string()).unwrap();
}

fn spawn(dir: &Path, command: &str, arguments: &[&str]) -> Child {
    let mut process = Command::new(assert_cmd::cargo::cargo_bin("ictd"));
    process.current_dir(dir).arg(command).args(arguments);
    process.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends a signal; returns the exit code, the messages, and how long the end took.
fn stop(mut child: Child, signal: &str) -> (Option<i32>, String, Duration) {
    let pid = child.id().to_string();
    // Waiting would close it, which is an end too.
    let stdin = child.stdin.take();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    let start = Instant::now();
    let code = child.wait().unwrap().code();
    let took = start.elapsed();
    drop(stdin);
    let mut messages = String::new();
    child.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
    (code, messages, took)
}

/// Half-written files below a directory.
fn unfinished(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| match path.is_dir() {
        true => unfinished(&path),
        false => vec![path.display().to_string()],
    });
    found.filter(|name| name.ends_with(".tmp")).collect()
}

#[test]
fn everything_stops_within_a_second_with_124() {
    for (k, (command, arguments)) in LONG.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        write_context(dir.path(), 6000);
        let child = spawn(dir.path(), command, arguments);
        std::thread::sleep(Duration::from_millis(200));
        let (code, messages, took) = stop(child, ["-INT", "-TERM"][k % 2]);
        println!("{command} {arguments:?}: {took:?}");
        assert_eq!(code, Some(124), "{command} {arguments:?}: {messages}");
        assert!(messages.trim_end().ends_with("stopped") || messages.contains("stopped; "), "{messages}");
        // A second, and what a busy machine takes to end a process.
        assert!(took < Duration::from_millis(1300), "{command} {arguments:?}: {took:?}");
        assert_eq!(unfinished(dir.path()), Vec::<String>::new(), "{command} {arguments:?}");
    }
}

#[test]
fn after_two_seconds_work_says_how_far_it_is_and_when_it_will_end() {
    let dir = tempfile::tempdir().unwrap();
    write_context(dir.path(), 6000);
    let cases = [
        ("msve", &["--tasks=1000000"][..], " of 1000000 tasks, "),
        ("forward", &["--input=context.json", "--layers=5000", "--precision=double"], " rounds of blocks, "),
        ("branches", &["--task=loop", "--states=5000"], " of 300 seeds, "),
        ("certify", &["--states=2000"], "certify: "),
        ("msve", &["--tasks=1000000", "--quiet", "--out=quiet"], ""),
    ];
    let children = cases.map(|(command, arguments, _)| spawn(dir.path(), command, arguments));
    std::thread::sleep(Duration::from_millis(3500));
    for (child, (command, arguments, says)) in children.into_iter().zip(cases) {
        let (_, messages, _) = stop(child, "-TERM");
        // On a busy machine the first layer may take longer.
        let ends = |line: &str| line.ends_with(" left") || line.ends_with(" so far");
        let shown = messages.lines().any(|line| line.contains(says) && ends(line));
        assert_eq!(shown, !says.is_empty(), "{command} {arguments:?}: {messages}");
        assert_eq!(messages.is_empty(), says.is_empty(), "{messages}");
    }
}

/// What cannot be done is said before anything is, and leaves no directory behind.
#[test]
fn refusals_come_before_the_work() {
    let dir = tempfile::tempdir().unwrap();
    write_context(dir.path(), 6000);
    let quickly = |arguments: &[&str]| {
        let start = Instant::now();
        let output = ictd_in(dir.path(), arguments);
        // Reading and grouping the states, on a busy machine.
        assert!(start.elapsed() < Duration::from_secs(5), "{arguments:?}: {:?}", start.elapsed());
        output
    };
    let long = ["forward", "--input=context.json", "--layers=5000", "--precision=double"];
    assert_refused(&quickly(&[&long[..], &["--tolerance=2", "--out=new"]].concat()), "tolerance");
    assert!(!dir.path().join("new").exists());
    std::fs::write(dir.path().join("file"), "").unwrap();
    for (command, arguments) in LONG.into_iter().filter(|(_, a)| a[0] != "--input=-") {
        let output = quickly(&[&[command], arguments, &["--out=file"]].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!([Some(1), Some(2)].contains(&output.status.code()), "{command} {arguments:?}: {message}");
        assert!(
            message.lines().count() == 1 && message.contains("file"),
            "{command} {arguments:?}: {message}"
        );
    }
}

/// Bad input makes no directory.
#[test]
fn bad_input_makes_no_directory() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [
        &["verify", "--trials=0"][..],
        &["verify", "--states=0"],
        &["msve", "--lengths=0"],
        &["pretrain", "--set=n=0"],
        &["readings", "--set=n=0"],
        &["branches", "--set=n=0"],
        &["mirror", "--epochs=0"],
        &["certify", "--states=0"],
        &["certify", "--step-size=0"],
        &["certify", "--tasks=0"],
        &["regimes", "--tasks=0"],
        &["bound", "--delta=2"],
        &["neu", "--layers=0"],
        &["lemmas", "--trials=0"],
        &["lemmas", "--states=0"],
        &["task", "boyan", "--states=0"],
        &["reproduce", "--only=nothing"],
        &["reproduce", "--seeds=0"],
    ] {
        let output = ictd_in(dir.path(), &[arguments, &["--out=new"]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert!(left.is_empty(), "{arguments:?}: {left:?}");
    }
}
