//! One way to say which tasks: every command takes a family and a file.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;

use common::{assert_refused, ictd, ictd_in, json};

/// Commands at sizes that are quick, without their tasks.
const COMMANDS: [&[&str]; 8] = [
    &["msve", "--tasks", "3", "--lengths", "1,5", "--layers", "2", "--json"],
    &["certify", "--json"],
    &["bound", "--contexts", "2", "--lengths", "100", "--json"],
    &["neu", "--samples", "8", "--lengths", "30", "--layers", "2", "--json"],
    &["lemmas", "--trials", "5", "--json"],
    &["regimes", "--tasks", "1", "--json"],
    &["pretrain", "--seeds", "1", "--set", "epochs=3", "--json"],
    &["branches", "--seeds", "1", "--set", "epochs=2", "--json", "--fresh"],
];

const MACHINE: &str = r#"{"gamma": 0.8, "transitions": [[0.9, 0.1, 0], [0.2, 0.6, 0.2], [0.7, 0, 0.3]],
    "rewards": [1, 0.2, -2], "features": [[3, 0, 0], [0, 3, 0], [0, 0, 3]]}"#;

fn write(dir: &Path, name: &str, arguments: &[&str]) {
    let output = ictd_in(dir, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::write(dir.join(name), output.stdout).unwrap();
}

#[test]
fn every_command_takes_a_family_by_name() {
    let dir = tempfile::tempdir().unwrap();
    for command in COMMANDS {
        let family = ["--task", "dense", "--states", "4", "--features", "3"];
        json(&ictd_in(dir.path(), &[command, &family].concat()));
    }
}

#[test]
fn every_command_takes_a_file() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("machine.json"), MACHINE).unwrap();
    for command in COMMANDS {
        json(&ictd_in(dir.path(), &[command, &["--task", "machine.json"]].concat()));
    }
}

/// What `ictd task` writes, to a pipe or to a directory, is the task of the family wherever it is read.
#[test]
fn a_written_task_is_the_task() {
    let dir = tempfile::tempdir().unwrap();
    let family = ["--states", "6", "--features", "3", "--gamma", "0.7"];
    for name in ["boyan", "loop", "dense", "coin", "figure-1"] {
        write(dir.path(), "t.json", &[&["task", name, "--json"], &family[..]].concat());
        assert!(ictd_in(dir.path(), &[&["task", name, "--out", "t"], &family[..]].concat()).status.success());
        let own = json(&ictd_in(dir.path(), &[&["certify", "--json", "--task", name], &family[..]].concat()));
        for file in ["t.json", "t/task.json"] {
            let read = json(&ictd_in(dir.path(), &["certify", "--json", "--task", file]));
            for key in ["status", "gamma", "contraction", "stability", "steps", "fixed_point"] {
                assert_eq!(read[key], own[key], "{name} {file} {key}");
            }
            // Reading and writing again changes no byte.
            let again = ictd_in(dir.path(), &["task", file, "--json"]).stdout;
            assert_eq!(again, fs::read(dir.path().join("t.json")).unwrap(), "{name} {file}");
        }
    }
}

#[test]
fn cart_poles_are_trained_on_and_their_errors_are_unknown() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "cart.json", &["task", "cartpole", "--json"]);
    let train = ["pretrain", "--seeds", "1", "--set", "epochs=4"];
    for task in ["cartpole", "cart.json"] {
        let result = json(&ictd_in(dir.path(), &[&train[..], &["--task", task, "--json"]].concat()));
        let seed = &result["seeds"][0];
        assert!(seed["msve"].is_null() && seed["td_loss"].as_f64().unwrap() > 0.0, "{task}: {seed}");
        let text = ictd_in(dir.path(), &[&train[..], &["--task", task]].concat()).stdout;
        assert!(String::from_utf8_lossy(&text).contains("unknown"), "{task}");
        for set in ["query=stationary", "loss=true-value"] {
            let refused = ictd_in(dir.path(), &[&train[..], &["--task", task, "--set", set]].concat());
            assert_refused(&refused, "not known");
        }
        for command in COMMANDS.into_iter().filter(|c| c[0] != "pretrain" && c[0] != "branches") {
            let output = ictd_in(dir.path(), &[command, &["--task", task]].concat());
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{command:?}: {message}");
            assert!(message.lines().last().unwrap().contains("not known"), "{command:?}: {message}");
        }
    }
    // Queries from a stationary law that nobody knows are left out of the map.
    let map = ["branches", "--seeds", "1", "--task", "cartpole", "--set", "epochs=1", "--json", "--fresh"];
    let map = json(&ictd_in(dir.path(), &map));
    let counts = map["counts"].as_array().unwrap();
    assert!(counts.iter().all(|count| count["query"] != "stationary") && counts[0]["change"] == "as given");
    let coordinates = ["--task", "cartpole", "--continuous", "--json"];
    json(&ictd_in(dir.path(), &[&train[..], &coordinates].concat()));
}

#[test]
fn options_that_contradict_the_tasks_are_one_line() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("machine.json"), MACHINE).unwrap();
    for (option, field) in [
        (&["--states", "3"][..], "states"),
        (&["--features", "3"], "features"),
        (&["--gamma", "0.5"], "gamma"),
        (&["--free"], "free"),
        (&["--threshold", "0.5"], "threshold"),
        (&["--one-hot"], "one-hot"),
        (&["--continuous"], "continuous"),
    ] {
        for command in ["certify", "pretrain", "msve"] {
            let output = ictd_in(dir.path(), &[&[command, "--task", "machine.json"], option].concat());
            assert_refused(&output, field);
        }
    }
    for (arguments, field) in [
        (&["regimes", "--gamma", "0.5"][..], "gamma"),
        (&["regimes", "--score-scale", "2"], "score-scale"),
        (&["regimes", "--unit-norm"], "unit-norm"),
        (&["pretrain", "--task", "bojan"], "boyan"),
        (&["pretrain", "--task", "coin", "--free"], "free"),
        (&["msve", "--task", "boyan", "--threshold", "0.5"], "threshold"),
        (&["certify", "--task", "figure-1", "--one-hot"], "one-hot"),
        (&["pretrain", "--set", "task.states=2"], "states"),
        (&["pretrain", "--set", "task.kind=own"], "task.kind"),
        (&["pretrain", "--set", "task.kind=bojan"], "task.kind"),
        (&["pretrain", "--task", "machine.json", "--set", "states=4"], "states"),
        (&["pretrain", "--task", "machine.json", "--set", "task=boyan"], "task=boyan"),
        (&["pretrain", "--set", "task=machine.json", "--states", "9"], "task=machine.json"),
        (&["branches", "--states", "5", "--set", "task.states=7"], "task.states=7"),
        (&["task", "cartpole", "--continuous", "--unit-norm"], "continuous"),
        (&["task", "cartpole", "--continuous", "--one-hot"], "continuous"),
        (&["task", "boyan", "--one-hot", "--features", "2"], "features"),
    ] {
        assert_refused(&ictd_in(dir.path(), arguments), field);
    }
}

/// A run directory names its task file and the file's hash, and does not go on with another one.
#[test]
fn resuming_checks_the_task_file() {
    let dir = tempfile::tempdir().unwrap();
    let (machine, at) = (dir.path().join("machine.json"), dir.path());
    fs::write(&machine, MACHINE).unwrap();
    let train = ["pretrain", "--seeds", "1", "--json"];
    json(&ictd_in(at, &[&train[..], &["--task", "machine.json", "--set", "epochs=3"]].concat()));
    let root = fs::read_dir(at.join("runs/paper")).unwrap().next().unwrap().unwrap().path();
    let config = root.join("seed_0000/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    assert!(text.contains("name = \"machine.json\"") && text.contains("sha256 = "), "{text}");
    let again = [&train[..], &[config.to_str().unwrap(), "--resume"]].concat();
    json(&ictd_in(at, &again));
    fs::write(&machine, MACHINE.replace("-2", "-3")).unwrap();
    assert_refused(&ictd_in(at, &again), "SHA-256");
    // The configuration alone says nothing of the change: it is found, and nothing is trained unless that is asked for.
    let named = [&train[..], &["--task", "machine.json", "--set", "epochs=3"]].concat();
    let resumed = [&named[..], &["--resume"]].concat();
    for changed in [MACHINE.replace("-2", "-3"), MACHINE.replace("0.8", "0.7")] {
        fs::write(&machine, changed).unwrap();
        let output = ictd_in(at, &resumed);
        assert_refused(&output, "resume: machine.json has SHA-256 ");
        assert_refused(&output, "or no --resume to train anew");
        assert_eq!(fs::read_dir(at.join("runs/paper")).unwrap().count(), 1);
    }
    json(&ictd_in(at, &named));
    let output = ictd_in(at, &resumed);
    json(&output);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("nothing to resume"));
    // Other settings are another run; that it starts is said.
    let other = ictd_in(at, &[&resumed[..], &["--set", "n=7"]].concat());
    let message = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(message.contains("nothing to resume for 1 seed in runs"), "{message}");
}

/// Whoever types options reads of options, whoever writes keys of keys.
#[test]
fn mistakes_are_named_as_they_were_made() {
    let dir = tempfile::tempdir().unwrap();
    for command in [&["pretrain"][..], &["branches"], &["certify"], &["task", "boyan"]] {
        let output = ictd_in(dir.path(), &[command, &["--score-scale", "-1"]].concat());
        assert_refused(&output, "error: score-scale is -1");
    }
    let (scale, map) = ("task.score_scale", "task.feature_map");
    for (set, key) in [("task.score_scale=-1", scale), ("task.feature_map=coordinates", map)] {
        assert_refused(&ictd_in(dir.path(), &["pretrain", "--set", set]), &format!("error: {key} is "));
    }
    for (text, key) in [
        ("n = 3\n[task]\nscore_scale = -1.0\n", scale),
        ("n = 3\n[task]\nfeature_map = \"coordinates\"\n", map),
    ] {
        fs::write(dir.path().join("mine.toml"), text).unwrap();
        assert_refused(
            &ictd_in(dir.path(), &["pretrain", "mine.toml"]),
            &format!("mine.toml: line 3: {key} is "),
        );
    }
}

/// A cart-pole's value is a sum of its rewards: it must not overflow either.
#[test]
fn rewards_of_a_cart_pole_may_not_overflow() {
    let dir = tempfile::tempdir().unwrap();
    let cart = json(&ictd(&["task", "cartpole", "--json"]));
    for reward in [1e308, 1e200] {
        let mut large = cart.clone();
        large["rewards"][3] = reward.into();
        fs::write(dir.path().join("cart.json"), large.to_string()).unwrap();
        assert_refused(&ictd_in(dir.path(), &["task", "cart.json"]), "rewards: values may be as large as");
    }
}

#[test]
fn a_broken_file_is_one_line_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    for (from, to, field) in [
        ("[0.7, 0, 0.3]", "[0.7, 0, 0.2]", "row 2 sums to"),
        ("0.8", "NaN", "gamma: missing or no number, expected the discount, as in \"gamma\": 0.9"),
        ("-2", "-1e308", "rewards: the values overflow, expected values of at most 1e150"),
        ("-2", "-1e200", "rewards: the value of state 0 is -"),
        ("-2", "NaN", "reward of state 2 is NaN"),
        ("[0, 0, 3]", "[0, 0]", "features"),
        ("\"rewards\"", "\"reward\"", "unknown field `reward`"),
        ("\"gamma\"", "\"values\": [1, 2, 3], \"gamma\"", "values: that of state 0"),
    ] {
        fs::write(dir.path().join("t.json"), MACHINE.replace(from, to)).unwrap();
        assert_refused(&ictd_in(dir.path(), &["certify", "--task", "t.json"]), field);
    }
    assert_refused(&ictd(&["certify", "--task", "no-such.json"]), "no-such.json");
}
