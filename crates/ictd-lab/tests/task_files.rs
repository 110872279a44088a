//! Task files, and training configurations that name tasks.
#![allow(missing_docs)]

use std::fs;

use ictd::pretrain::PretrainConfig;
use ictd::random::{Purpose, Stream};
use ictd::task::{CartPole, Family, FeatureMap, Kind, TaskSource as _};
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
