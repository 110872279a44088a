//! Files: tasks, and training configurations that name them; contexts, parameters, tensors, events, output directories.
#![allow(missing_docs)]

use std::fs;
use std::time::{Duration, UNIX_EPOCH};

use ictd::Context;
use ictd::pretrain::PretrainConfig;
use ictd::random::{Purpose, Stream};
use ictd::task::{CartPole, Family, FeatureMap, Kind, TaskSource as _};
use ictd::transformer::Parameters;
use ictd_lab::LabError;
use ictd_lab::files::process::utc;
use ictd_lab::files::{
    AnyTask, Description, EventFile, OutputDir, TaskFile, Tensors, read_context, read_params, read_task,
    to_json_17,
};
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
    for kind in Kind::NAMED {
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
        (format!("{{{PARTS}}}"), "gamma: missing or no number"),
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

fn context(json: &str) -> Result<Context, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.json");
    fs::write(&path, json).unwrap();
    read_context(&path).map_err(|e| e.to_string().split_once("c.json: ").unwrap().1.to_owned())
}

#[test]
fn both_forms_of_contexts_are_read() {
    let one = context(r#"{"features": [[1], [2]], "rewards": [3], "queries": [[4]]}"#).unwrap();
    assert_eq!((one.num_transitions(), one.num_columns()), (1, 3));
    let many = context(
        r#"{"episodes": [{"features": [[1], [2]], "rewards": [3], "terminated": true},
                         {"features": [[1], [2], [3]], "rewards": [3, 4]}]}"#,
    );
    assert_eq!(many.unwrap().num_columns(), 5);
}

#[test]
fn each_mistake_of_a_context_names_its_field() {
    for (json, expected) in [
        (r#"{"features": [], "rewards": []}"#, "^rewards: episode 0"),
        (r#"{"features": [[1]], "rewards": []}"#, "^rewards: the context is empty"),
        (r#"{"features": [[1], [1, 2]], "rewards": [1]}"#, "^features: row 1"),
        (r#"{"features": [[1], [NaN]], "rewards": [1]}"#, "^features: entry 0 of row 1"),
        (r#"{"features": [[1], [2]], "rewards": [-Infinity]}"#, "^rewards: entry 0"),
        (r#"{"features": [[1], [2]], "rewards": ["x"]}"#, "^rewards[0]: invalid type"),
        (r#"{"features": [[1], [2]]}"#, "^rewards: missing"),
        (r#"{"rewards": [1]}"#, "^features: missing"),
        (r#"{"feature": [[1]]}"#, "unknown field `feature`"),
        (r#"{"a\"NaN": NaN}"#, "unknown field `a\"NaN`"),
        (r#"{"features": [[1], [2]], "rewards": [1], "queries": [[1, 2]]}"#, "^queries: query 0"),
        ("{1", "line 1"),
        ("[[[1], [2]], [1]]", "expected a JSON object"),
    ] {
        let message = context(json).unwrap_err();
        let found = match expected.strip_prefix('^') {
            Some(start) => message.starts_with(start),
            None => message.contains(expected),
        };
        assert!(found, "{json}: {message}");
    }
}

#[test]
fn parameters_are_read_tied_and_per_layer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.json");
    let zero = "[[0,0,0,0],[0,0,0,0],[0,0,0,0],[0,0,0,0]]";
    let read = |json: String| {
        fs::write(&path, json).unwrap();
        read_params(&path).map(|model| model.parameters).map_err(|e| e.to_string())
    };
    assert!(matches!(read(format!(r#"{{"V": {zero}, "A": {zero}}}"#)), Ok(Parameters::Tied(_))));
    let layers = format!(r#"{{"layers": [{{"V": {zero}, "A": {zero}}}, {{"V": {zero}, "A": {zero}}}]}}"#);
    assert!(matches!(read(layers), Ok(Parameters::PerLayer(p)) if p.len() == 2));
    assert!(read(format!(r#"{{"V": {zero}}}"#)).unwrap_err().contains("either V and A, or layers"));
    assert!(read(format!(r#"{{"V": {zero}, "A": [[1]]}}"#)).unwrap_err().contains("A is 1×1"));
}

#[test]
fn descriptions_survive_their_metadata_and_later_formats_are_refused() {
    let mut config = PretrainConfig { tied: false, ..PretrainConfig::mask_relaxed() };
    config.task.gamma = 0.1 + 0.2;
    let description = Description::of(&config, config.num_steps());
    let mut metadata = description.metadata().unwrap();
    assert_eq!((metadata["kernel"].as_str(), metadata["diagonal_mix"].as_str()), ("softmax", "0.8"));
    metadata.insert("best_joint_bits".into(), "00000000".into());
    for format in ["2", "3"] {
        metadata.insert("schema_version".into(), format.into());
        assert_eq!(Description::read(&metadata), Ok(Some(description.clone())));
    }
    metadata.insert("kernel".into(), "nobody".into());
    assert!(Description::read(&metadata).unwrap_err().contains("nobody"));
    metadata.insert("schema_version".into(), "1".into());
    assert_eq!(Description::read(&metadata), Ok(None));
    metadata.insert("schema_version".into(), "4".into());
    assert!(Description::read(&metadata).is_err());
}

#[test]
fn numbers_survive_exactly_and_have_17_digits() {
    let numbers = [0.1, -1.0 / 3.0, 0.0, 1e300, 5e-324];
    let text = to_json_17(&numbers).unwrap();
    assert!(text.starts_with("[1.0000000000000001e-1,-3.3333333333333331e-1,"), "{text}");
    assert_eq!(serde_json::from_str::<[f64; 5]>(&text).unwrap(), numbers);
}

#[test]
fn writing_leaves_the_file_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let out = OutputDir::create(&dir.path().join("a/b")).unwrap();
    out.write("x.txt", b"one").unwrap();
    out.write("x.txt", b"two").unwrap();
    assert_eq!(fs::read(out.path().join("x.txt")).unwrap(), b"two");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
}

#[test]
fn a_failed_write_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let out = OutputDir::create(dir.path()).unwrap();
    // A directory in the file's place makes the rename fail.
    fs::create_dir(dir.path().join("taken")).unwrap();
    assert!(matches!(out.write("taken", b"x"), Err(LabError::Write { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_file_in_the_directory_s_place_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), b"").unwrap();
    assert!(matches!(OutputDir::create(&dir.path().join("file")), Err(LabError::Write { .. })));
}

#[test]
fn tensors_survive_and_damage_is_seen() {
    let mut tensors = Tensors::default();
    tensors.insert("V", &[2, 3], vec![1.0, -2.5, 3.0, f32::MIN_POSITIVE, 0.0, -0.0]);
    tensors.insert("history", &[1], vec![7.0]);
    tensors.metadata.insert("step".into(), "12".into());
    let bytes = tensors.to_bytes();
    assert_eq!(Tensors::from_bytes(&bytes).unwrap(), tensors);
    for end in [0, 7, 20, bytes.len() - 1] {
        assert!(Tensors::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
    }
    assert!(Tensors::from_bytes(&[255; 64]).is_err());
}

/// Origin: the bytes that TensorBoard 2.x's EventAccumulator reads as one scalar, laid out by hand from
/// the record format.
#[test]
fn records_are_framed() {
    let mut file = EventFile::new(0.0);
    file.scalar("a", 300, 1.0);
    let bytes = file.into_bytes();
    // As TensorFlow's own files begin: the length of the first record, its masked CRC-32C, the tag of the wall time.
    assert_eq!(bytes[..13], *b"\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09");
    let first = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let second = &bytes[8 + 4 + first + 4..];
    let payload = &second[12..12 + second[0] as usize];
    // wall time, step 300 as a two-byte varint, summary { value { tag "a", simple_value 1.0 } }.
    let mut expected = vec![9, 0, 0, 0, 0, 0, 0, 0, 0, 16, 172, 2, 42, 10, 10, 8, 10, 1, b'a', 21];
    expected.extend(1f32.to_le_bytes());
    assert_eq!(payload, expected);
}

/// Known times, around leap days and centuries among them (from `date -u -d @N`).
#[test]
fn dates_are_the_calendar_s() {
    for (seconds, expected) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_709_251_199, "2024-02-29T23:59:59Z"),
        (1_709_251_200, "2024-03-01T00:00:00Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
    ] {
        assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
    }
}
