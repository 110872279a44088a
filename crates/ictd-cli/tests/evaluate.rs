//! `ictd evaluate` from the command line.
#![allow(missing_docs)]

mod common;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use assert_cmd::Command;
use common::{assert_refused, ictd_in, json};
use ictd::random::{Purpose, Stream};
use serde_json::Value;

/// Episodes of a walk over five rooms: one step to either side, 1 for leaving at the right. Room k is worth (k + 1)/6.
fn walks(episodes: usize) -> Vec<String> {
    let mut stream = Stream::new(7, Purpose::User(1), 0);
    let episode = |e: usize| {
        let (mut room, mut rows) = (2i32, String::new());
        for t in 0.. {
            let next = room + if stream.below(2) == 0 { 1 } else { -1 };
            let is_over = !(0..5).contains(&next);
            let reward = i32::from(next == 5);
            let _ = writeln!(rows, "{e},{t},{room},{reward},{}", u8::from(is_over));
            room = next;
            if is_over {
                break;
            }
        }
        rows
    };
    (0..episodes).map(episode).collect()
}

const HEADER: &str = "episode,t,state,reward,terminated\n";

fn write_walks(dir: &Path, episodes: usize) {
    fs::write(dir.join("log.csv"), HEADER.to_owned() + &walks(episodes).concat()).unwrap();
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_plain_table_needs_no_flags_and_gives_values_with_intervals() {
    let dir = tempfile::tempdir().unwrap();
    write_walks(dir.path(), 200);
    let found = json(&ictd_in(dir.path(), &["evaluate", "log.csv", "--gamma", "1", "--json"]));
    assert_eq!(found["judgement"], "trust", "{found}");
    let reasons = found["reasons"].as_array().unwrap();
    assert!(reasons.iter().all(Value::is_string) && reasons.len() > 1);
    let chosen = &found["chosen"];
    assert_eq!((&chosen["estimator"], &chosen["kernel"]), (&"softmax-td".into(), &"rbf".into()));
    assert!(number(&chosen["temperature"]) > 0.0 && number(&chosen["layers"]) >= 1.0);
    assert_eq!(chosen["scale"], "none", "labels have no scale");
    let rows = found["rows"].as_array().unwrap();
    let states: Vec<i64> = rows.iter().map(|row| row["state"].as_i64().unwrap()).collect();
    assert_eq!(states, [0, 1, 2, 3, 4]);
    let mut visits = 0.0;
    for (k, row) in rows.iter().enumerate() {
        let [value, low, high] = ["value", "low", "high"].map(|key| number(&row[key]));
        assert!(low < value && value < high, "{row}");
        let truth = (k + 1) as f64 / 6.0;
        // Twice as far as the interval reaches: one value of 15,000 by chance.
        assert!((value - truth).abs() < high - low, "{row}");
        visits += number(&row["visits"]);
    }
    let rows_of_file = walks(200).concat().lines().count();
    assert_eq!(visits, rows_of_file as f64);
    let mean = &found["mean"];
    assert!((number(&mean["value"]) - 0.5).abs() < number(&mean["high"]) - number(&mean["low"]), "{mean}");
}

#[test]
fn queries_come_back_in_their_order_and_unknown_states_are_marked() {
    let dir = tempfile::tempdir().unwrap();
    write_walks(dir.path(), 100);
    fs::write(dir.path().join("q.csv"), "customer,state\nann,4\nbob,0\neve,4\n").unwrap();
    let ask = |more: &[&str]| {
        let arguments = ["evaluate", "log.csv", "--gamma", "1", "--query", "q.csv", "--json"];
        ictd_in(dir.path(), &[&arguments, more].concat())
    };
    let all = json(&ictd_in(dir.path(), &["evaluate", "log.csv", "--gamma", "1", "--json"]));
    let found = json(&ask(&[]));
    let values = |found: &Value| -> Vec<Value> {
        found["rows"].as_array().unwrap().iter().map(|row| row["value"].clone()).collect()
    };
    let known = values(&all);
    assert_eq!(values(&found), [&known[4], &known[0], &known[4]].map(Clone::clone));
    assert_eq!(found["mean"], all["mean"], "the worth of an episode is that of the log");
    let ids = json(&ask(&["--id", "customer"]));
    let names: Vec<&str> =
        ids["rows"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["ann", "bob", "eve"]);
    // The same in other formats.
    fs::write(dir.path().join("q.csv"), "{\"state\": 4}\n{\"state\": 0}\n\n{\"state\": \"04\"}\n").unwrap();
    assert_eq!(values(&json(&ask(&[]))), values(&found));
    // A room that is not in the log.
    fs::write(dir.path().join("q.csv"), "state\n4\n9\n").unwrap();
    let strange = json(&ask(&[]));
    assert_eq!(strange["judgement"], "caution");
    assert_eq!(strange["rows"][1]["extrapolated"], true);
    assert!(strange["reasons"][0].as_str().unwrap().contains("1 of 2 values are extrapolated"), "{strange}");
    for (text, problem) in [
        ("room\n4\n", "expected 'state' too as in the log"),
        ("state\n4\n\"\"\n", "row 3, column state: found no value, expected a state"),
        ("state\n", "found no rows"),
        ("state\n4,5\n", "row 2: found 2 cells, expected 1"),
        ("", "found an empty file"),
    ] {
        fs::write(dir.path().join("q.csv"), text).unwrap();
        assert_refused(&ask(&["--quiet"]), problem);
    }
}

#[test]
fn neither_threads_nor_the_order_of_episodes_change_a_byte() {
    let dir = tempfile::tempdir().unwrap();
    let mut episodes = walks(60);
    let mut outputs = Vec::new();
    for threads in ["1", "2", "4"] {
        let text = HEADER.to_owned() + &episodes.concat();
        fs::write(dir.path().join("log.csv"), text).unwrap();
        let run = Command::cargo_bin("ictd")
            .unwrap()
            .current_dir(dir.path())
            .env("RAYON_NUM_THREADS", threads)
            .args([
                "evaluate",
                "log.csv",
                "--gamma",
                "0.9",
                "--compare",
                "--lambda",
                "0.5",
                "--json",
                "--out",
                "out",
            ])
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
        let page = fs::read_to_string(dir.path().join("out/report.html")).unwrap();
        let table = fs::read_to_string(dir.path().join("out/values.csv")).unwrap();
        outputs.push((String::from_utf8(run.stdout).unwrap(), page, table));
        episodes.rotate_left(17);
    }
    assert!(outputs[0].1.contains("Estimators side by side") && outputs[0].1.contains("LSTD(λ)"));
    assert!(outputs[0].2.starts_with("state,visits,value,low,high,extrapolated\n0,"), "{}", outputs[0].2);
    assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn what_cannot_be_trusted_is_refused_with_code_3() {
    let dir = tempfile::tempdir().unwrap();
    let judge = |episodes: usize, more: &[&str]| {
        write_walks(dir.path(), episodes);
        let arguments = ["evaluate", "log.csv", "--gamma", "1", "--json"];
        let run = ictd_in(dir.path(), &[&arguments, more].concat());
        let found: Value = serde_json::from_slice(&run.stdout).unwrap();
        let first = found["reasons"][0].as_str().unwrap().to_owned();
        (run.status.code(), found["judgement"].as_str().unwrap().to_owned(), first, found)
    };
    let (code, level, reason, found) = judge(1, &[]);
    assert_eq!((code, level.as_str()), (Some(3), "refuse"));
    assert!(
        reason.starts_with("too few episodes: 1") && found["rows"].as_array().unwrap().is_empty(),
        "{found}"
    );
    let (code, level, reason, _) = judge(4, &[]);
    assert_eq!((code, level.as_str()), (Some(3), "refuse"));
    assert!(reason.starts_with("too few episodes: 4"), "{reason}");
    let (code, level, reason, _) = judge(20, &[]);
    assert_eq!((code, level.as_str()), (Some(0), "caution"));
    assert!(reason.contains("few episodes"), "{reason}");
    assert_eq!(judge(20, &["--strict"]).0, Some(3));
    // Another estimator has intervals that are not corrected.
    let (code, level, reason, found) = judge(100, &["--estimator", "lstd"]);
    assert_eq!((code, level.as_str()), (Some(0), "caution"));
    assert!(reason.contains("resampled episodes alone"), "{reason}");
    assert_eq!(found["chosen"]["layers"], Value::Null);
}

/// Features of very different sizes, unscaled, look all alike or all different to a kernel.
#[test]
fn collapse_is_not_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let mut stream = Stream::new(3, Purpose::User(2), 0);
    let mut text = String::from("episode,t,age,income,reward,terminated\n");
    for e in 0..60 {
        for t in 0..5 {
            let (age, income) = (stream.uniform(), 1e9 * stream.uniform());
            let _ = writeln!(text, "{e},{t},{age},{income},{age},{}", u8::from(t == 4));
        }
    }
    fs::write(dir.path().join("log.csv"), text).unwrap();
    let run =
        |more: &[&str]| ictd_in(dir.path(), &[&["evaluate", "log.csv", "--gamma", "0.9"], more].concat());
    let unscaled = run(&["--scale", "none", "--temperature", "1e22", "--layers", "3", "--json"]);
    assert_eq!(unscaled.status.code(), Some(3), "{unscaled:?}");
    let found: Value = serde_json::from_slice(&unscaled.stdout).unwrap();
    assert!(found["reasons"][0].as_str().unwrap().contains("attention has collapsed"), "{found}");
    // Scaled, the same log says what it says.
    let scaled = run(&["--json"]);
    assert_eq!(scaled.status.code(), Some(0));
}

#[test]
fn noise_is_no_knowledge() {
    let dir = tempfile::tempdir().unwrap();
    let mut stream = Stream::new(4, Purpose::User(3), 0);
    let mut text = String::from(HEADER);
    for e in 0..200 {
        for t in 0..4 {
            let _ = writeln!(text, "{e},{t},{},{},{}", stream.below(8), stream.normal(), u8::from(t == 3));
        }
    }
    fs::write(dir.path().join("log.csv"), text).unwrap();
    let found = json(&ictd_in(dir.path(), &["evaluate", "log.csv", "--gamma", "0", "--json"]));
    assert_eq!(found["judgement"], "caution", "{found}");
    assert!(found["reasons"][0].as_str().unwrap().contains("not clearly better"), "{found}");
}

#[test]
fn mistakes_are_one_line_and_cost_nothing() {
    let dir = tempfile::tempdir().unwrap();
    write_walks(dir.path(), 10);
    for (arguments, problem) in [
        (&["log.csv"][..], "--gamma"),
        (&["log.csv", "--gamma", "1.5"], "gamma is 1.5, expected 0 <= gamma <= 1"),
        (&["log.csv", "--gamma", "nan"], "gamma is NaN"),
        (&["log.csv", "--gamma", "0.9", "--estimator", "lstd-lambda", "--lambda", "2"], "lambda is 2"),
        (&["log.csv", "--gamma", "0.9", "--ridge", "1"], "ridge: softmax-td has none, expected one of"),
        (&["log.csv", "--gamma", "0.9", "--temperature", "-1"], "temperature"),
        (&["log.csv", "--gamma", "0.9", "--ridge", "-1", "--estimator", "linear-lstd"], "ridge"),
        (&["log.csv", "--gamma", "0.9", "--layers", "9999999"], "layers"),
        (&["log.csv", "--gamma", "0.9", "--estimator", "kernel-ltsd"], "kernel-lstd"),
        (&["log.csv", "--gamma", "0.9", "--query", "none.csv"], "none.csv"),
        (&["none.csv", "--gamma", "0.9"], "none.csv"),
        (&["--self-test", "--logs", "1"], "logs is 1"),
        (&["log.csv", "--gamma", "0.9", "--self-test"], "cannot be used with"),
    ] {
        let run = ictd_in(dir.path(), &[&["evaluate", "--quiet", "--out", "out"], arguments].concat());
        assert_refused(&run, problem);
        assert!(!dir.path().join("out").exists(), "{arguments:?}");
    }
    // Without an end nothing is worth a finite sum.
    let text = HEADER.to_owned() + "a,0,x,1,0\na,1,y,1,0\na,2,x,,\nb,0,x,1,1\n";
    fs::write(dir.path().join("log.csv"), text).unwrap();
    let run = ictd_in(dir.path(), &["evaluate", "log.csv", "--gamma", "1", "--quiet"]);
    assert_refused(
        &run,
        "log.csv: row 2: episode a is truncated and gamma is 1, expected gamma < 1 or terminated episodes only",
    );
    // Nor is a sum that leaves the range.
    let text = HEADER.to_owned() + "zoe,0,x,1e200,1\n";
    fs::write(dir.path().join("log.csv"), text).unwrap();
    let run = ictd_in(dir.path(), &["evaluate", "log.csv", "--gamma", "1", "--quiet"]);
    assert_refused(&run, "log.csv: row 2: episode zoe: the returns overflow");
}

/// Subscriptions of three prices that are cut short after a year: what follows counts for most, and no mean of all may cap it.
#[test]
fn what_follows_the_end_of_recording_is_not_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let mut stream = Stream::new(11, Purpose::User(2), 0);
    let plans = [("basic", 10.0, 0.08), ("plus", 25.0, 0.04), ("pro", 60.0, 0.02)];
    let mut rows = String::from("episode,t,state,reward,terminated\n");
    for customer in 0..600 {
        let (name, fee, leaves) = plans[customer % 3];
        let mut here = true;
        for t in 0..12 {
            here = stream.uniform() >= leaves;
            let _ = writeln!(rows, "{customer},{t},{name},{fee},{}", u8::from(!here));
            if !here {
                break;
            }
        }
        if here {
            let _ = writeln!(rows, "{customer},12,{name},,");
        }
    }
    fs::write(dir.path().join("log.csv"), rows).unwrap();
    let found = json(&ictd_in(dir.path(), &["evaluate", "log.csv", "--gamma", "0.99", "--json"]));
    for (row, (_, fee, leaves)) in found["rows"].as_array().unwrap().iter().zip(plans) {
        let truth = fee / (1.0 - 0.99 * (1.0 - leaves));
        let [value, low, high] = ["value", "low", "high"].map(|key| number(&row[key]));
        // Twice as far as the interval reaches: one value of 15,000 by chance.
        assert!(low < value && value < high && (value - truth).abs() < high - low, "{row} {truth}");
    }
    assert!(number(&found["rows"][2]["value"]) > 1000.0, "{found}");
}

#[test]
fn states_that_nobody_leaves_leave_no_trust_whatever_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = String::from("episode,t,state,reward,terminated\n");
    for k in 0..80 {
        let _ = write!(rows, "{k},0,trial,{},0\n{k},1,paid,{},0\n{k},2,gone,,\n", k % 3, 9 + k % 2);
    }
    fs::write(dir.path().join("log.csv"), rows).unwrap();
    fs::write(dir.path().join("q.csv"), "state\npaid\n").unwrap();
    for more in [&[][..], &["--query", "q.csv"]] {
        let run =
            ictd_in(dir.path(), &[&["evaluate", "log.csv", "--gamma", "0.9", "--json"][..], more].concat());
        assert_eq!(run.status.code(), Some(3));
        let found: Value = serde_json::from_slice(&run.stdout).unwrap();
        assert!(found["reasons"].to_string().contains("that no episode leaves"), "{found}");
    }
}

#[test]
fn ids_say_who_has_ended_and_asking_twice_is_no_collapse() {
    let dir = tempfile::tempdir().unwrap();
    let text = HEADER.to_owned() + &walks(60).concat() + "late,0,1,0,0\nlate,1,2,,\n";
    fs::write(dir.path().join("log.csv"), text).unwrap();
    let evaluate = ["evaluate", "log.csv", "--gamma", "0.9", "--json"];
    let found = json(&ictd_in(dir.path(), &[&evaluate[..], &["--id", "episode"]].concat()));
    let ended: Vec<bool> =
        found["rows"].as_array().unwrap().iter().map(|row| row["ended"].as_bool().unwrap()).collect();
    assert_eq!(ended, [vec![true; 60], vec![false]].concat());
    fs::write(dir.path().join("q.csv"), "state\n2\n2\n").unwrap();
    let found = json(&ictd_in(dir.path(), &[&evaluate[..], &["--query", "q.csv"]].concat()));
    assert_eq!(found["judgement"], "trust", "{found}");
    // A second run into the same folder leaves nothing of the first that it does not write itself.
    let _ = json(&ictd_in(dir.path(), &[&evaluate[..], &["--compare", "--out", "out"]].concat()));
    assert!(dir.path().join("out/estimators.csv").exists());
    let _ = json(&ictd_in(dir.path(), &[&evaluate[..], &["--out", "out"]].concat()));
    assert!(!dir.path().join("out/estimators.csv").exists() && dir.path().join("out/values.csv").exists());
    let onto_itself = ictd_in(dir.path(), &["convert", "log.csv", "./log.csv"]);
    assert_refused(&onto_itself, "another file than the one that is read");
}

#[test]
#[cfg(unix)]
fn a_pipe_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    write_walks(dir.path(), 60);
    let from_file = json(&ictd_in(dir.path(), &["evaluate", "log.csv", "--gamma", "1", "--json"]));
    let from_pipe = Command::cargo_bin("ictd")
        .unwrap()
        .current_dir(dir.path())
        .args(["evaluate", "/dev/stdin", "--gamma", "1", "--json"])
        .write_stdin(fs::read(dir.path().join("log.csv")).unwrap())
        .output()
        .unwrap();
    assert_eq!(json(&from_pipe), from_file);
}
