//! Task files and training configurations.
#![allow(missing_docs)]

use std::fs;

use ictd::pretrain::{Key, Mask, PretrainConfig, QueryPosition};
use ictd::random::{Purpose, Stream};
use ictd::task::{CartPole, Family, FeatureMap, Kind, TaskSource as _};
use ictd_lab::LabError;
use ictd_lab::files::{AnyTask, TaskFile, read_task, to_json_17};
use ictd_lab::studies::pretrain::Settings;

fn read(text: &str) -> Result<AnyTask, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.json");
    fs::write(&path, text).unwrap();
    let read = read_task(&path).map(|named| named.task);
    read.map_err(|e| e.to_string().split_once("t.json: ").unwrap().1.to_owned())
}

/// Values of generated tasks are ⟨w, x⟩, not the solution of an equation: they too survive to the last bit.
#[test]
fn what_is_written_is_read_to_the_last_bit() {
    for (_, kind) in Kind::NAMED {
        let mut stream = Stream::new(3, Purpose::Task, 0);
        let task = match kind {
            Kind::Cartpole => AnyTask::CartPole(CartPole::generate(&Family::of(kind), &mut stream).unwrap()),
            _ => AnyTask::Finite(Family::of(kind).draw(&mut stream).unwrap()),
        };
        let file = TaskFile::of(&task).unwrap();
        for text in [to_json_17(&file).unwrap(), serde_json::to_string_pretty(&file).unwrap()] {
            assert_eq!(read(&text).as_ref(), Ok(&task), "{kind}");
        }
    }
    let family = Family { feature_map: FeatureMap::Coordinates, ..Family::of(Kind::Cartpole) };
    let task = AnyTask::CartPole(CartPole::generate(&family, &mut Stream::new(3, Purpose::Task, 0)).unwrap());
    let text = serde_json::to_string(&TaskFile::of(&task).unwrap()).unwrap();
    assert_eq!(read(&text), Ok(task));
}

const PARTS: &str =
    r#""transitions": [[0.5, 0.5], [0.25, 0.75]], "rewards": [1, -2], "features": [[1, 0], [0, 1]]"#;

#[test]
fn a_file_by_hand_needs_four_fields() {
    let Ok(AnyTask::Finite(task)) = read(&format!(r#"{{{PARTS}, "gamma": 0.5}}"#)) else { panic!() };
    assert_eq!(task.mrp().initial_distribution(), [0.5, 0.5]);
    assert!(task.values().iter().zip(task.mrp().bellman(task.values())).all(|(a, b)| (a - b).abs() < 1e-14));
    // μ = (1/3, 2/3), with ten digits.
    assert!(
        read(&format!(
            r#"{{{PARTS}, "gamma": 0.5, "stationary_distribution": [0.3333333333, 0.6666666667]}}"#
        ))
        .is_ok()
    );
}

#[test]
fn each_mistake_names_its_place() {
    let more = |text: &str| read(&format!(r#"{{{PARTS}, "gamma": 0.5, {text}}}"#)).unwrap_err();
    for (text, expected) in [
        (r#""values": [1, 2]"#, "values: that of state 0 is 1, expected"),
        (r#""values": [1]"#, "values has 1 entries, expected one for each of the 2"),
        (
            r#""stationary_distribution": [0.5, 0.5]"#,
            "stationary_distribution: entry 0 is 0.5, expected 0.33",
        ),
        (r#""stationary_distribution": [NaN, 0.5]"#, "stationary_distribution: entry 0 is NaN"),
        (r#""reversibilisation_spectrum": [1, 0.5]"#, "reversibilisation_spectrum: entry 1 is 0.5"),
        (r#""eigenvalues": [[1, 0]]"#, "eigenvalues: 2 numbers, expected 4"),
        (r#""initial_distribution": [0.5]"#, "initial distribution has 1"),
        (r#""inital": [0.5]"#, "unknown field `inital`"),
    ] {
        let message = more(text);
        assert!(message.contains(expected) && !message.contains('\n'), "{text}: {message}");
    }
    for (text, expected) in [
        (format!("{{{PARTS}}}"), "gamma is NaN, expected 0 <= gamma < 1"),
        (format!(r#"{{{PARTS}, "gamma": 1}}"#), "gamma is 1.0"),
        (r#"{"gamma": 0.5}"#.into(), "rewards: missing"),
        (r#"{"gamma": 0.5, "rewards": [1]}"#.into(), "transitions: missing"),
        (r#"{"gamma": 0.5, "rewards": [1], "transitions": [[1]]}"#.into(), "features: missing"),
        (
            format!(r#"{{{PARTS}, "gamma": 0.5}}"#).replace("[0.25, 0.75]", "[NaN, 0.75]"),
            "transitions: entry (1, 0) is NaN",
        ),
        (format!(r#"{{{PARTS}, "gamma": 0.5}}"#).replace("[0.25, 0.75]", "[0.25]"), "transitions: "),
        (format!(r#"{{{PARTS}, "gamma": 0.5}}"#).replace("-2", "null"), "reward of state 1 is NaN"),
        (
            format!(r#"{{{PARTS}, "gamma": 0.5}}"#).replace("[0, 1]", "[0, Infinity]"),
            "features: entry (1, 1) is NaN",
        ),
        (format!(r#"{{{PARTS}, "gamma": "x"}}"#), "gamma: invalid type"),
    ] {
        let message = read(&text).unwrap_err();
        assert!(message.contains(expected) && !message.contains('\n'), "{text}: {message}");
    }
}

fn with(overrides: &[&str]) -> Result<PretrainConfig, String> {
    let overrides: Vec<String> = overrides.iter().map(|s| s.to_string()).collect();
    Settings::preset("paper", &overrides).map(|s| s.config).map_err(|e| e.to_string())
}

#[test]
fn task_keys_may_stand_inside_and_outside_their_table() {
    let inside = with(&["task.kind=loop", "task.states=16", "task.representable=false"]).unwrap();
    let outside = with(&["family=loop", "states=16", "representable=false"]).unwrap();
    assert_eq!(inside, outside);
    assert_eq!((inside.task.kind, inside.task.num_states), (Kind::Loop, 16));
    assert_eq!(
        with(&["task=loop", "gamma=0.5"]).unwrap().task,
        Family { gamma: 0.5, ..Family::of(Kind::Loop) }
    );
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    for text in [
        "family = 'loop'\nstates = 16",
        "[task]\nkind = 'loop'\nstates = 16",
        "states = 16\n[task]\nkind = 'loop'",
    ] {
        fs::write(&path, text).unwrap();
        let task = Settings::file(&path, &[]).unwrap().config.task;
        assert_eq!((task.kind, task.num_states, task.feature_dim), (Kind::Loop, 16, 4), "{text}");
    }
    fs::write(&path, "task = 'dense'").unwrap();
    assert_eq!(Settings::file(&path, &[]).unwrap().config.task, Family::of(Kind::Dense));
}

const TASK: &str = r#"{"transitions": [[0.5, 0.5], [0.25, 0.75]], "rewards": [1, -2], "features": [[1, 0, 0], [0, 1, 0]], "gamma": 0.5}"#;

#[test]
fn a_task_file_is_named_with_its_hash_and_checked() {
    let dir = tempfile::tempdir().unwrap();
    let (task, config) = (dir.path().join("t.json"), dir.path().join("c.toml"));
    fs::write(&task, TASK).unwrap();
    let choice = format!("task={}", task.display());
    let settings = Settings::preset("paper", &[choice.clone(), "score_scale=4".into()]);
    assert!(settings.is_err(), "score_scale stands in the table task");
    let settings = Settings::preset("paper", &[choice.clone(), "task.score_scale=4".into()]).unwrap();
    let task_keys = &settings.config.task;
    assert_eq!((task_keys.kind, task_keys.num_states, task_keys.feature_dim), (Kind::Own, 2, 3));
    assert_eq!(task_keys.gamma, 0.5);
    let mut stream = Stream::new(0, Purpose::Task, 0);
    let drawn = settings.config.source().unwrap().draw(&mut stream).unwrap();
    assert_eq!(drawn.features().row(1), [0.0, 2.0, 0.0]);
    // What a run directory keeps says all of it, and is refused when the file is another.
    fs::write(&config, settings.to_toml().unwrap()).unwrap();
    assert_eq!(Settings::file(&config, &[]).unwrap().config, settings.config);
    let message = |overrides: &[String]| Settings::file(&config, overrides).unwrap_err().to_string();
    assert!(message(&["states=3".into()]).contains("task is with 3 states"));
    fs::write(&task, TASK.replace("-2", "-3")).unwrap();
    assert!(message(&[]).contains("SHA-256"));
    assert!(with(&["task=bojan"]).unwrap_err().contains("boyan"));
}

#[test]
fn overrides_reach_every_level() {
    let config =
        with(&["query=skip", "mask=\"relaxed\"", "optimizer.lr=3e-4", "tau=2", "rho.end=0.5"]).unwrap();
    assert_eq!((config.query, config.mask), (QueryPosition::Skip, Mask::Relaxed));
    assert_eq!((config.optimizer.lr, config.temperature, config.rho.end), (3e-4, 2.0, 0.5));
    assert_eq!(with(&["temperature=2"]).unwrap().temperature, 2.0);
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
        ("rho.strat=0.5", ["rho.strat", "did you mean 'start'?"]),
        ("rho=0.5", ["rho", "start"]),
        ("tau=0", ["temperature", "> 0"]),
        ("kernel=rbf", ["kernel is rbf", "softmax, linear"]),
        ("kernel=nobody", ["kernel", "elu1"]),
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
