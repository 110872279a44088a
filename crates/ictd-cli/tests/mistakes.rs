//! Every option of every command with values that are no values: one line that says what is wrong, quickly.
#![allow(missing_docs)]

mod common;

use std::path::Path;
use std::process::Output;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use common::ictd;

/// What is asked of a command beside the mistake, so that one that is none takes no time.
const SMALL: [(&str, &[&str]); 18] = [
    ("reproduce", &["--only=tsm-cost"]),
    ("verify", &["--trials=1", "--layers=1"]),
    ("msve", &["--tasks=2", "--lengths=1,2", "--layers=1"]),
    ("pretrain", &["--set=epochs=1", "--seeds=0..1"]),
    ("readings", &["--set=epochs=1", "--seeds=1"]),
    ("branches", &["--set=epochs=1", "--seeds=1"]),
    ("sweep", &["quick", "--set=epochs=1", "--seeds=1"]),
    ("mirror", &["--epochs=1", "--seeds=1", "--tasks=1"]),
    ("control", &["--verify", "--trials=1"]),
    ("certify", &["--states=4"]),
    ("regimes", &["--tasks=1", "--states=2"]),
    ("bound", &["--task=coin", "--lengths=10", "--contexts=2"]),
    ("neu", &["--task=coin", "--lengths=5", "--layers=1", "--samples=4"]),
    ("lemmas", &["--trials=1", "--task=coin"]),
    ("forward", &["--input=context.json"]),
    ("circuit", &["td"]),
    ("task", &["coin"]),
    ("completions", &["bash"]),
];

/// Options whose value is a name that is good whatever it is.
const NAMES: [&str; 1] = ["--out"];

/// The options of a command as its help lists them, and whether each takes a value.
fn options(command: &str) -> Vec<(String, bool)> {
    let text = String::from_utf8(ictd(&[command, "--help"]).stdout).unwrap();
    // What is said about options stands further to the right.
    let is_entry = |line: &&str| line.starts_with("      --") || line.starts_with("  -");
    let entries = text.lines().filter(is_entry);
    let option = |line: &str| {
        let start = line.find("--")?;
        let name = line[start..].split([' ', '=']).next()?.to_owned();
        Some((name.clone(), line[start + name.len()..].starts_with(" <")))
    };
    entries.filter_map(option).filter(|(name, _)| name != "--help").collect()
}

/// How a command with a mistake ended, and how long it took.
fn tried(dir: &Path, arguments: &[String]) -> (Output, Duration) {
    let start = Instant::now();
    let mut command = Command::cargo_bin("ictd").unwrap();
    let output = command.current_dir(dir).args(arguments).timeout(Duration::from_secs(60)).output().unwrap();
    (output, start.elapsed())
}

#[test]
fn every_mistake_is_one_line_that_names_the_option() {
    let long = "x".repeat(100_000);
    let values = ["", "-1", "NaN", "inf", "1e999", "abc", &long, "a\nb", "a\n\nb", "-", "--"];
    let mut cases = Vec::new();
    for (command, small) in SMALL {
        let with = |mistake: &[String], option: &str| {
            let same = |argument: &&&str| argument.split('=').next() != Some(option);
            let others = small.iter().filter(same).map(|a| a.to_string());
            let all: Vec<String> =
                [command.to_owned()].into_iter().chain(others).chain(mistake.iter().cloned()).collect();
            (option.to_owned(), all)
        };
        for (option, takes_value) in options(command) {
            if !takes_value {
                cases.extend(values.map(|value| with(&[format!("{option}={value}")], &option)));
                continue;
            }
            cases.push(with(std::slice::from_ref(&option), &option));
            let good = NAMES.contains(&option.as_str());
            for value in values.iter().filter(|value| !good || value.is_empty()) {
                cases.push(with(&[option.clone(), value.to_string()], &option));
                cases.push(with(&[format!("{option}={value}")], &option));
            }
        }
        cases.extend(values.map(|value| with(&[value.to_owned()], "")));
        cases.push(with(&["--no-such".to_owned()], "--no-such"));
    }
    assert!(cases.len() > 2000, "{} cases", cases.len());
    let (next, failures) = (Mutex::new(cases.iter()), Mutex::new(Vec::new()));
    let failed = |text: String| failures.lock().unwrap().push(text);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                let dir = tempfile::tempdir().unwrap();
                std::fs::write(dir.path().join("context.json"), common::CONTEXT).unwrap();
                loop {
                    let Some((option, arguments)) = next.lock().unwrap().next() else { return };
                    let (output, took) = tried(dir.path(), arguments);
                    let message = String::from_utf8_lossy(&output.stderr);
                    let shown: Vec<String> = arguments.iter().map(|a| a.chars().take(20).collect()).collect();
                    let shown = format!("{shown:?}, {:?}: {message}", output.status.code());
                    if took > Duration::from_secs(10) {
                        failed(format!("{took:?} {shown}"));
                    }
                    // What should not be used is a result all the same.
                    if matches!(output.status.code(), Some(0 | 3)) {
                        continue;
                    }
                    let one_line = message.lines().count() == 1 && message.chars().count() < 1300;
                    // A file is named by its path.
                    let is_file = message.starts_with("error: input ");
                    let named = option.trim_start_matches('-').replace('-', " ");
                    let is_named = message.replace(['-', '_'], " ").contains(&named);
                    if output.status.code() != Some(2)
                        || !one_line
                        || !message.starts_with("error: ")
                        || !(is_named || is_file)
                        || !output.stdout.is_empty()
                    {
                        failed(shown);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(
        failures.is_empty(),
        "{} of {} cases:\n{}",
        failures.len(),
        cases.len(),
        failures[..failures.len().min(200)].join("\n")
    );
}
