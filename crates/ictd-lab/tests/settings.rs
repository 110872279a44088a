//! Training configurations: files, `--set`, and what is refused.
#![allow(missing_docs)]

use std::fs;

use ictd::pretrain::{Key, Mask, PretrainConfig, QueryPosition};
use ictd_lab::LabError;
use ictd_lab::studies::pretrain::Settings;

fn with(overrides: &[&str]) -> Result<PretrainConfig, String> {
    let overrides: Vec<String> = overrides.iter().map(|s| s.to_string()).collect();
    Settings::preset("paper", &overrides).map(|s| s.config).map_err(|e| e.to_string())
}
#[test]
fn overrides_reach_every_level() {
    let config =
        with(&["query=skip", "mask=\"relaxed\"", "optimizer.lr=3e-4", "tau=2", "rho.end=0.5"]).unwrap();
    assert_eq!((config.query, config.mask), (QueryPosition::Skip, Mask::Relaxed));
    assert_eq!((config.optimizer.lr, config.temperature, config.rho.end), (3e-4, 2.0, 0.5));
    assert_eq!(with(&["temperature=2"]).unwrap().temperature, 2.0);
    // A ramp, and a constant.
    assert_eq!(with(&["rho.start=0.3", "rho.steps=10"]).unwrap().rho.start, 0.3);
    assert_eq!(with(&["rho.start=0.3", "rho.end=0.3"]).unwrap().rho.start, 0.3);
}

#[test]
fn mistakes_name_the_key_and_the_range() {
    for (text, parts) in [
        ("qery=skip", ["qery is no key", "did you mean 'query'?"]),
        ("lr=1", ["lr is no key", "did you mean 'optimizer.lr'?"]),
        ("mask=relxed", ["mask", "did you mean 'relaxed'?"]),
        ("states_=16", ["states_", "did you mean 'states'?"]),
        ("query=never", ["query", "skip"]),
        ("n=0", ["n is 0", "1 to 100000"]),
        ("n=ten", ["n:", "whole number"]),
        ("n=2.5", ["n:", "2.5"]),
        ("rho.start=1.5", ["rho.start", "0 <= rho <= 1"]),
        ("rho.start=0.3", ["rho.start is 0.3, expected rho.steps of 1 or more", "rho.end, 0.0"]),
        ("rho.strat=0.5", ["rho.strat", "did you mean 'start'?"]),
        ("rho=0.5", ["rho", "start"]),
        ("tau=0", ["temperature", "> 0"]),
        ("kernel=tabular", ["kernel is tabular", "softmax, linear"]),
        ("kernel=nobody", ["kernel is 'nobody', expected one of softmax", "elu1"]),
        ("tau", ["tau", "key=value"]),
    ] {
        let message = with(&[text]).unwrap_err();
        assert!(parts.iter().all(|part| message.contains(part)), "{text}: {message}");
    }
}

#[test]
fn files_stand_on_the_paper_s_setting() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.toml");
    fs::write(&path, "epochs = 7\n[optimizer]\nlr = 1\n").unwrap();
    let settings = Settings::file(&path, &["epochs=8".into()]).unwrap();
    assert_eq!(
        (settings.name.as_str(), settings.config.epochs, settings.config.optimizer.lr),
        ("mine", 8, 1.0)
    );
    fs::write(&path, "epoch = 7").unwrap();
    assert!(Settings::file(&path, &[]).unwrap_err().to_string().contains("epoch is no key"));
    fs::write(&path, "epochs = ").unwrap();
    assert!(matches!(Settings::file(&path, &[]), Err(LabError::Parse { .. })));
}

#[test]
fn mistakes_in_files_have_their_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.toml");
    for (text, found) in [
        (
            "n = 3\nstates = \"a\"\n",
            "line 2: task.states: invalid type: string \"a\", expected a whole number",
        ),
        ("\n[task]\nstates = 2.5\n", "line 3: task.states: invalid type"),
        ("n = 3\n\n[optimizer]\nlr = -1.0\n", "line 4: optimizer.lr is -1"),
        ("n = 3\nepoch = 7\n", "line 2: epoch is no key"),
        ("n = 3\n\nn = 4\n", "line 3: duplicate key"),
        ("n = 3\nquery = \"nobody\"\n", "line 2: query is 'nobody', expected one of next"),
    ] {
        fs::write(&path, text).unwrap();
        let error = Settings::file(&path, &[]).unwrap_err();
        let expected = format!("input {}: {found}", path.display());
        assert!(error.to_string().starts_with(&expected), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
    // What was typed is no mistake of the file.
    fs::write(&path, "n = 3").unwrap();
    let error = Settings::file(&path, &["n=0".into()]).unwrap_err();
    assert!(error.to_string().starts_with("n is 0"), "{error}");
}

#[test]
fn a_resolved_file_reads_back_as_itself_and_hashes_differ() {
    let settings = Settings::preset("mask-relaxed", &[]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    let commented = settings.to_commented_toml().unwrap();
    for text in [settings.to_toml().unwrap(), commented.clone()] {
        fs::write(&path, text).unwrap();
        assert_eq!(Settings::file(&path, &[]).unwrap().config, settings.config);
    }
    // Every line that sets a key stands below one that explains it, and every key explained is there.
    let lines: Vec<&str> = commented.lines().collect();
    let set: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].contains(" = ")).collect();
    assert!(set.iter().all(|&i| lines[i - 1].starts_with("# ")), "{commented}");
    assert_eq!(set.len(), Key::ALL.len());
    let other = Settings::preset("mask-full", &[]).unwrap();
    assert_ne!(settings.sha256().unwrap(), other.sha256().unwrap());
}
