//! The readers of logs and of queries about them, with inputs that they accept.
#![allow(dead_code, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use ictd::End;
use ictd_lab::logs::{Kept, Missing, Reading, States, Wanted, convert, queries, read};
use ictd_lab::{LabError, Progress};

use super::fuzz::{Reader, words};
use super::npz;

const LABELS: &str = "episode,t,state,reward,terminated,truncated\n\
                      a,0,x,1,0,0\na,1,y,2.5,1,0\nb,0,x,-1e3,0,0\nb,1,w,0,0,1\nb,2,x,,0,0\n";
const FEATURES: &str = "customer_id;date;age;income;reward\r\n\
                        7;2024-01-01;30;0.5;1\r\n7;2024-02-29T12:00;31;NA;2\r\n8;2024-01-01;1e3;-7;3\r\n8;2025-01-01;1;2;\r\n";
const QUOTED: &str = "\"episode\",\"t\",state,reward,terminated\n\
                      \"a\",0,\"y, z\",1,0\n\"a\",1,\"two\nlines \"\"said\"\"\",\"2.5\",1\nb,0,\"y, z\",-3,\"1\"\n";
const ROWS: &str = "{\"episode\": 1, \"t\": 0, \"obs\": [1, 0.5], \"reward\": 1, \"terminated\": false}\n\
                    {\"episode\": 1, \"t\": 1, \"obs\": [2, 0.5], \"reward\": null, \"terminated\": false}\n\
                    {\"episode\": 2, \"t\": 0, \"obs\": [1, NaN], \"reward\": 3, \"terminated\": true}\n";
const EPISODES: &str = "{\"obs\": [[1], [2], [3]], \"rewards\": [1, 2], \"terminated\": true}\n{\"obs\": [[1], [2], [3]], \"rewards\": [1, 2.5, 3], \"terminated\": false}\n";
const CONTEXT: &str = r#"{"features": [[1, 0.5], [0.5, -0.25]], "rewards": [1.0]}"#;
const LIST: &str = r#"[{"episode": "a", "state": "x", "r": 1, "done": 1}, {"episode": "b", "state": "y", "r": -2.5, "done": 1}]"#;

const TEXT_WORDS: &[&str] = words![
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
];
const JSON_WORDS: &[&str] = words![
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
];
const NUMPY_WORDS: &[&str] = words![
    "'<f8'", "'<i4'", "'|b1'", "'<U3'", "'|O'", "(3,)", "(138, 4)", "'shape'", "'descr'", "True", "PK"
];
const HDF5_WORDS: &[&str] =
    words!["episode_0", "rewards", "observations", "TREE", "SNOD", "HEAP", "OHDR", "terminals"];

/// Readers of logs, a format each, and of queries about them. Files that others wrote are among their inputs, as they are or
/// converted.
pub fn all() -> Vec<Reader> {
    let text = |texts: &[&str]| texts.iter().map(|t| t.as_bytes().to_vec()).collect::<Vec<_>>();
    let and_real = |texts: &[&str], name: &str| [text(texts), vec![of_real(name)]].concat();
    let tabs = LABELS.replace(',', "\t");
    #[allow(unused_mut)]
    let mut readers = vec![
        reader("log-csv", "csv", and_real(&[LABELS, FEATURES], "out.csv"), TEXT_WORDS),
        reader("log-quoted", "csv", text(&[QUOTED, &QUOTED.replace('\n', "\r\n")]), TEXT_WORDS),
        reader("log-tsv", "tsv", and_real(&[&tabs], "out.tsv"), TEXT_WORDS),
        reader("log-jsonl", "jsonl", and_real(&[ROWS, EPISODES], "out.jsonl"), JSON_WORDS),
        reader(
            "log-list",
            "json",
            text(&[LIST, &format!("[{}]", EPISODES.trim().replace('\n', ","))]),
            JSON_WORDS,
        ),
        reader("log-context", "json", vec![CONTEXT.into(), of_labels("out.json")], JSON_WORDS),
        reader("log-arrays", "npz", vec![context_arrays()], NUMPY_WORDS),
        reader("log-npy", "npy", vec![npy(6), npy(5)], NUMPY_WORDS),
        reader("log-npz", "npz", vec![real("flat.npz"), of_labels("out.npz")], NUMPY_WORDS),
        reader("log-hdf5", "hdf5", vec![real("d4rl.hdf5"), real("d3rlpy.h5")], HDF5_WORDS),
        reader(
            "log-minari",
            "hdf5",
            vec![of_labels("out"), unpacked("cartpole.hdf5.gz"), unpacked("legacy.hdf5.gz")],
            HDF5_WORDS,
        ),
        reader(
            "log-gzip",
            "gz",
            vec![gzip(LABELS.as_bytes()), real("cartpole.hdf5.gz"), real("legacy.hdf5.gz")],
            HDF5_WORDS,
        ),
        queries_of(
            "query-text",
            "csv",
            text(&["state\nx\ny\nw\n", "age;income\r\n30;0.5\r\n1e3;NA\r\n", "id\tstate\n\"a\nb\"\tx\n"]),
            TEXT_WORDS,
        ),
        queries_of(
            "query-json",
            "jsonl",
            text(&[
                "{\"state\": \"x\", \"id\": 1}\n{\"state\": \"y\", \"id\": 2}\n",
                "[{\"age\": 30, \"income\": 0.5}, {\"age\": 31, \"income\": null}]",
            ]),
            words!["\"state\"", "\"age\"", "\"income\"", "\"id\"", "[1]", "\"x\"", "\n", "}\n{"],
        ),
        queries_of("query-numpy", "npz", vec![npy(2), of_labels("out.npz"), real("flat.npz")], NUMPY_WORDS),
    ];
    #[cfg(feature = "parquet")]
    {
        let files = |names: &[&str]| names.iter().map(|name| real(name)).collect::<Vec<_>>();
        let words = words!["PAR1", "schema", "episode", "reward", "state", "\u{15}\u{0}", "\u{1c}\u{15}"];
        let parquet = ["flat", "kinds", "old", "list"].map(|name| format!("parquet/{name}.parquet"));
        let nested = ["nested", "nested-v2"].map(|name| format!("arrow/{name}.parquet"));
        let parquet: Vec<&str> = parquet.iter().chain(&nested).map(String::as_str).collect();
        readers.push(reader("log-parquet", "parquet", files(&parquet), words));
        readers.push(queries_of("query-parquet", "parquet", vec![of_labels("out.parquet")], words));
        let words = words!["ARROW1", "episode", "reward", "state", "\u{4}\"M\u{18}", "\u{8}\u{0}\u{0}\u{0}"];
        let arrow = [
            "flat.feather",
            "kinds.arrow",
            "kinds-lz4.arrow",
            "kinds.arrows",
            "nested.arrow",
            "polars.arrow",
        ];
        let arrow = arrow.map(|name| real(&format!("arrow/{name}")));
        readers.push(reader("log-arrow", "arrow", arrow.to_vec(), words));
        readers.push(queries_of("query-arrow", "arrow", files(&["arrow/query.arrow"]), words));
        let parts = [
            "box-arrow/data/0/part-0.arrow",
            "dict-arrow/data/1/part-0.arrow",
            "dict-parquet/data/0/part-0.parquet",
        ];
        let parts = parts.map(|name| real(&format!("arrow/minari/{name}")));
        let read = |path: &Path, input: &[u8]| log(episode(path, input), missing(input)).into();
        readers.push(Reader {
            name: "log-parts",
            valid: parts.to_vec(),
            refuses: true,
            words,
            read: Box::new(read),
        });
    }
    readers
}

fn real(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs").join(name)).expect("a file")
}

/// The content of a file that was compressed.
fn unpacked(name: &str) -> Vec<u8> {
    let file = real(name);
    // After the fixed part of the header may stand the name, ended by 0.
    let start =
        if file[3] & 8 == 0 { 10 } else { 11 + file[10..].iter().position(|b| *b == 0).expect("an end") };
    miniz_oxide::inflate::decompress_to_vec(&file[start..file.len() - 8]).expect("a compressed file")
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let body = miniz_oxide::deflate::compress_to_vec(content, 6);
    [&header[..], &body, &npz::crc32(content).to_le_bytes(), &(content.len() as u32).to_le_bytes()].concat()
}

/// Six rows of an array, of three episodes of two steps where there are columns enough.
fn npy(columns: usize) -> Vec<u8> {
    let entry = |row: usize, column: usize| match column {
        0 => row / 2,
        1 => row % 2,
        k if k + 1 == columns => row % 2,
        k => row * k,
    };
    let numbers: Vec<f64> = (0..6 * columns).map(|k| entry(k / columns, k % columns) as f64).collect();
    npz::doubles(&format!("(6, {columns})"), &numbers)
}

/// A context in arrays.
fn context_arrays() -> Vec<u8> {
    let features = npz::doubles("(4, 1)", &[0.5, 1.5, 0.5, 2.5]);
    let rewards = npz::doubles("(2,)", &[1.0, -0.5]);
    let lengths = npz::array("'|u1'", "(2,)", &[1, 1]);
    npz::archive(&[("features.npy", features), ("rewards.npy", rewards), ("lengths.npy", lengths)], false)
}

/// The table of labels in another format.
fn of_labels(name: &str) -> Vec<u8> {
    converted("log.csv", LABELS.as_bytes(), name)
}

/// A file of others in another format.
fn of_real(name: &str) -> Vec<u8> {
    converted("log.npz", &real("flat.npz"), name)
}

fn converted(source: &str, content: &[u8], name: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (source, target) = (dir.path().join(source), dir.path().join(name));
    fs::write(&source, content).expect("the directory can be written to");
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
    let read = move |path: &Path, input: &[u8]| log(named(path, ending, input), missing(input)).into();
    Reader { name, valid, refuses: true, words, read: Box::new(read) }
}

/// The input under a name of its format.
fn named(path: &Path, ending: &str, input: &[u8]) -> PathBuf {
    let path = path.with_extension(ending);
    fs::write(&path, input).expect("the scratch directory can be written to");
    path
}

/// The input as the only episode of a Minari data set.
#[cfg(feature = "parquet")]
fn episode(path: &Path, input: &[u8]) -> PathBuf {
    let folder = path.with_extension("set");
    fs::create_dir_all(folder.join("0")).expect("the scratch directory can be written to");
    let write = |name: &str, content: &[u8]| fs::write(folder.join(name), content).expect("as before");
    write("metadata.json", br#"{"data_format": "arrow", "total_episodes": 1}"#);
    write("0/part-0.arrow", input);
    folder
}

/// Each way to treat missing values has its turn.
fn missing(input: &[u8]) -> Missing {
    [Missing::Refuse, Missing::Drop, Missing::Mean][input.len() % 3]
}

/// A reader of queries about a log of labels and one of features: what either accepts has a state for every row.
fn queries_of(
    name: &'static str,
    ending: &'static str,
    valid: Vec<Vec<u8>>,
    words: &'static [&'static str],
) -> Reader {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let logs = [("labels.csv", LABELS), ("features.csv", FEATURES)].map(|(name, text)| {
        let wanted = Wanted { missing: Missing::Mean, ..Wanted::default() };
        let path = named(&dir.path().join(name), "csv", text.as_bytes());
        read(&path, &wanted, || Ok(Kept::default()), &Progress::default()).expect("a log").0
    });
    let read = move |path: &Path, input: &[u8]| {
        let wanted = Wanted { missing: missing(input), id: Some("id".into()), ..Wanted::default() };
        let path = named(path, ending, input);
        let [labels, features] = logs.each_ref().map(|log| {
            let found = queries(&path, log, &wanted)?;
            assert!(!found.states.is_empty());
            assert!(found.ids.is_empty() || found.ids.len() == found.states.len(), "ids of other rows");
            if let States::Features { rows, .. } = &found.states {
                assert!(rows.as_slice().iter().all(|x| x.is_finite()), "a feature that is no number");
            }
            Ok::<(), LabError>(())
        });
        labels.or(features).into()
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
