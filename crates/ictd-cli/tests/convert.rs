//! Logs between formats, from the command line.
#![allow(missing_docs)]

use std::fs;

use assert_cmd::Command;

fn ictd(dir: &std::path::Path, arguments: &[&str]) -> std::process::Output {
    Command::cargo_bin("ictd").unwrap().current_dir(dir).args(arguments).output().unwrap()
}

/// What `ictd task` writes is a log, and every task a Minari data set.
#[test]
fn every_task_is_written_as_a_minari_data_set_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ictd::task::Kind::NAMED {
        let kind = kind.as_str();
        let made = ictd(dir.path(), &["task", kind, "--trajectory", "30", "--out", kind]);
        assert!(made.status.success(), "{made:?}");
        let mut tables = Vec::new();
        for (k, file) in ["trajectory.json", "trajectory.csv"].into_iter().enumerate() {
            let (source, set, table) =
                (format!("{kind}/{file}"), format!("{kind}{k}-v0"), format!("{kind}{k}.csv"));
            for (from, to) in [(&source, &set), (&set, &table)] {
                let done = ictd(dir.path(), &["convert", from, to, "--quiet"]);
                assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
            }
            assert!(dir.path().join(&set).join("data/metadata.json").is_file());
            tables.push(fs::read_to_string(dir.path().join(table)).unwrap());
        }
        assert_eq!(tables[0], tables[1], "{kind}");
        assert_eq!(tables[0].lines().count(), 32, "{kind}");
    }
}

#[test]
fn the_mapping_is_said_and_refusals_have_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let table = "who,week,zone,r,done\na,0,x,1,0\na,1,y,2,1\n";
    fs::write(dir.path().join("log.csv"), table).unwrap();
    let refused = ictd(dir.path(), &["convert", "log.csv", "out.jsonl"]);
    assert_eq!(refused.status.code(), Some(2));
    let done = ictd(
        dir.path(),
        &[
            "convert",
            "log.csv",
            "out.jsonl",
            "--episode",
            "who",
            "--state",
            "zone",
            "--time",
            "week",
            "--explain",
        ],
    );
    assert!(done.status.success(), "{done:?}");
    let (said, shown) = (String::from_utf8(done.stderr).unwrap(), String::from_utf8(done.stdout).unwrap());
    assert!(
        said.contains("  state       zone\n") && said.contains("warning: 'done' is taken for terminated"),
        "{said}"
    );
    assert!(shown.contains("episode a, step 0: state x, reward 1, next state y"), "{shown}");
    let written = fs::read_to_string(dir.path().join("out.jsonl")).unwrap();
    assert_eq!(written.lines().count(), 2, "{written}");
    for (arguments, says) in [
        (["convert", "log.csv", "out.xls"], "output is out.xls, expected a name ending in .csv"),
        (["convert", "nothing.csv", "out.csv"], "input nothing.csv"),
        (
            ["convert", "log.csv", "a/b/out.csv"],
            "row 2, column who: found 'a', expected a number; --state says which columns are the state",
        ),
    ] {
        let refused = ictd(dir.path(), &arguments);
        let message = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && message.contains(says), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert!(!dir.path().join("a").exists());
}

#[test]
fn standard_input_is_known_by_how_it_begins() {
    let dir = tempfile::tempdir().unwrap();
    let plain = b"episode,t,state,reward,terminated\na,0,x,1,0\na,1,y,2,1\n";
    // By gzip.compress of Python, without a time.
    let packed = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 75, 45, 200, 44, 206, 79, 73, 213, 41, 209, 41, 46, 73, 44, 73, 213,
        41, 74, 45, 79, 44, 74, 209, 41, 73, 45, 202, 205, 204, 3, 10, 164, 112, 37, 234, 24, 232, 84, 232,
        24, 234, 24, 0, 89, 134, 58, 149, 58, 70, 58, 134, 92, 0, 213, 41, 148, 101, 54, 0, 0, 0,
    ];
    let list = b"[\n  {\"episode\": \"a\", \"state\": \"x\", \"reward\": 1, \"terminated\": 0},\n  \
                 {\"episode\": \"a\", \"state\": \"y\", \"reward\": 2, \"terminated\": 1}\n]\n";
    let written = [&plain[..], &packed, list].map(|input| {
        let run = Command::cargo_bin("ictd")
            .unwrap()
            .current_dir(dir.path())
            .args(["convert", "-", "out.csv", "--quiet"])
            .write_stdin(input)
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
        fs::read_to_string(dir.path().join("out.csv")).unwrap()
    });
    assert!(written[0] == written[1] && written[1] == written[2], "{written:?}");
}
