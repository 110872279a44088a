//! The readers of logs, with inputs that they accept.
#![allow(dead_code, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use ictd::End;
use ictd_lab::logs::{Kept, Missing, Reading, States, Wanted, convert, read};
use ictd_lab::{LabError, Progress};

use super::fuzz::{Reader, words};

const LABELS: &str = "episode,t,state,reward,terminated,truncated\n\
                      a,0,x,1,0,0\na,1,\"y, z\",2.5,1,0\nb,0,x,-1e3,0,0\nb,1,w,0,0,1\nb,2,x,,0,0\n";
const FEATURES: &str = "customer_id;date;age;income;reward\r\n\
                        7;2024-01-01;30;0.5;1\r\n7;2024-02-29T12:00;31;NA;2\r\n8;2024-01-01;1e3;-7;3\r\n8;2025-01-01;1;2;\r\n";
const ROWS: &str = "{\"episode\": 1, \"t\": 0, \"obs\": [1, 0.5], \"reward\": 1, \"terminated\": false}\n\
                    {\"episode\": 1, \"t\": 1, \"obs\": [2, 0.5], \"reward\": null, \"terminated\": false}\n\
                    {\"episode\": 2, \"t\": 0, \"obs\": [1, NaN], \"reward\": 3, \"terminated\": true}\n";
const EPISODES: &str = "{\"obs\": [[1], [2], [3]], \"rewards\": [1, 2], \"terminated\": true}\n{\"obs\": [[1], [2], [3]], \"rewards\": [1, 2.5, 3], \"terminated\": false}\n";

pub fn all() -> Vec<Reader> {
    let text = |texts: &[&str]| texts.iter().map(|t| t.as_bytes().to_vec()).collect();
    vec![
        reader(
            "log-text",
            "csv",
            text(&[LABELS, FEATURES, &LABELS.replace(',', "\t")]),
            words![
                ",",
                ";",
                "\n",
                "\r",
                "\t",
                "\"",
                "\"\"",
                "a",
                "b",
                "x",
                "7.5",
                "NA",
                "episode",
                "reward",
                "state",
                "t",
                "terminated",
                "next_state",
                "1,000",
                "2024-02-30",
                "2024-01-01T00:00:00+01:00"
            ],
        ),
        reader(
            "log-json",
            "jsonl",
            text(&[
                ROWS,
                EPISODES,
                r#"{"features": [[1, 0.5], [0.5, -0.25]], "rewards": [1.0]}"#,
                r#"[{"episode": "a", "state": "x", "r": 1, "done": 1}]"#,
            ]),
            words![
                "\"episode\"",
                "\"obs\"",
                "\"reward\"",
                "\"rewards\"",
                "\"t\"",
                "[1]",
                "[[1]]",
                "\"x\"",
                "\n",
                "}\n{",
                "\"features\""
            ],
        ),
        reader(
            "log-numpy",
            "npz",
            vec![real("flat.npz"), converted("out.npz")],
            words![
                "'<f8'", "'<i4'", "'|b1'", "'<U3'", "'|O'", "(3,)", "(138, 4)", "'shape'", "'descr'", "True",
                "PK"
            ],
        ),
        reader(
            "log-hdf5",
            "hdf5",
            vec![converted("out"), real("d4rl.hdf5"), real("d3rlpy.h5")],
            words!["episode_0", "rewards", "observations", "TREE", "SNOD", "HEAP", "OHDR", "terminals"],
        ),
    ]
}

fn real(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs").join(name)).expect("a file")
}

/// The table of labels in another format.
fn converted(name: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (source, target) = (dir.path().join("log.csv"), dir.path().join(name));
    fs::write(&source, LABELS).expect("the directory can be written to");
    convert(&source, &target, &Wanted::default(), &Progress::default()).expect("a conversion");
    let file = if name == "out" { target.join("data/main_data.hdf5") } else { target };
    fs::read(file).expect("what was written")
}

fn reader(
    name: &'static str,
    ending: &'static str,
    valid: Vec<Vec<u8>>,
    words: &'static [&'static str],
) -> Reader {
    let read = move |path: &Path, input: &[u8]| {
        let missing = [Missing::Refuse, Missing::Drop, Missing::Mean][input.len() % 3];
        let path = path.with_extension(ending);
        fs::write(&path, input).expect("the scratch directory can be written to");
        log(path, missing).into()
    };
    Reader { name, valid, refuses: true, words, read: Box::new(read) }
}

/// Reads a log; what is accepted makes sense, and stays the same when it is written and read again.
fn log(path: PathBuf, missing: Missing) -> Result<(), LabError> {
    let wanted = Wanted { missing, ..Wanted::default() };
    let keep =
        |path: &Path, wanted: &Wanted| read(path, wanted, || Ok(Kept::default()), &Progress::default());
    let (reading, kept) = keep(&path, &wanted)?;
    check(&reading, &kept);
    let again = path.with_extension("again.tsv");
    let done = convert(&path, &again, &wanted, &Progress::default())?;
    // Labels that look like numbers have to be called labels, and a name that cannot be told from nothing is none.
    if done.warnings.iter().any(|w| w.contains(":label")) {
        return Ok(());
    }
    let (_, written) = keep(&again, &Wanted::default()).expect("what was written is read");
    let rewards = |kept: &Kept| kept.0.iter().map(|e| (e.rewards.clone(), e.end)).collect::<Vec<_>>();
    assert_eq!(rewards(&written), rewards(&kept), "what was written is another log");
    Ok(())
}

fn check(reading: &Reading, kept: &Kept) {
    assert!(reading.visited <= reading.states.len() && !kept.0.is_empty());
    if let States::Features { rows, .. } = &reading.states {
        assert!(rows.as_slice().iter().all(|x| x.is_finite()), "a feature that is no number");
    }
    for episode in &kept.0 {
        let more = episode.states.len() - episode.rewards.len();
        assert!(!episode.rewards.is_empty() && episode.rewards.iter().all(|r| r.is_finite()));
        assert!(more == 1 || (more == 0 && episode.end == End::Terminated));
        assert!(episode.states.iter().all(|s| (*s as usize) < reading.visited));
    }
    let transitions: usize = kept.0.iter().map(|e| e.rewards.len()).sum();
    assert_eq!(transitions as u64, reading.counts.transitions);
}
