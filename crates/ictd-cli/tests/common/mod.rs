//! Running the binary and looking at what it says.
#![allow(dead_code, missing_docs)]

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

pub fn ictd(arguments: &[&str]) -> Output {
    Command::cargo_bin("ictd").unwrap().args(arguments).output().unwrap()
}

pub fn ictd_in(dir: &Path, arguments: &[&str]) -> Output {
    Command::cargo_bin("ictd").unwrap().current_dir(dir).args(arguments).output().unwrap()
}

pub fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The JSON of a result that says itself whether to use it: exit code 3 where not.
pub fn judged(output: &Output) -> Value {
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = if result["judgement"] == "refuse" { 3 } else { 0 };
    assert_eq!(output.status.code(), Some(expected), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!result["reasons"].as_array().unwrap().is_empty());
    result
}

pub const CONTEXT: &str = r#"{"features": [[1.0, 0.5], [0.5, -0.25], [-1.0, 0.75]], "rewards": [1.0, -0.5]}"#;

/// Runs `forward` on a context given as text.
pub fn forward(context: &str, more: &[&str]) -> Output {
    let mut arguments = vec!["forward", "--input", "-"];
    arguments.extend(more);
    Command::cargo_bin("ictd").unwrap().args(arguments).write_stdin(context).output().unwrap()
}

pub fn assert_refused(output: &Output, field: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(message.starts_with("error: ") && message.contains(field), "'{field}' is not named: {message}");
    assert!(output.stdout.is_empty());
}
