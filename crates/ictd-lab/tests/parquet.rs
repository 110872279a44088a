//! Logs in Parquet are the logs that they are in other formats.
#![cfg(feature = "parquet")]
#![allow(missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use ictd_lab::logs::{Kept, Missing, Reading, States, Wanted, convert, queries, read};
use ictd_lab::report::Records;
use ictd_lab::{LabError, Progress};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs").join(name)
}

fn read_kept(path: &Path) -> Result<(Reading, Kept), LabError> {
    read(path, &Wanted::default(), || Ok(Kept::default()), &Progress::default())
}

/// What a log says: states by their numbers, and episodes.
fn told(path: &Path) -> (States, Kept) {
    let (reading, kept) = read_kept(path).unwrap();
    (reading.states, kept)
}

#[test]
fn a_parquet_file_of_pandas_is_the_log_of_its_arrays() {
    assert_eq!(told(&data("parquet/flat.parquet")), told(&data("flat.npz")));
}

#[test]
fn every_kind_of_parquet_column_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("log.csv");
    let text = "episode,t,s_small,s_large,s_single,s_flag,reward,terminated\n\
                a,0,1,4294967295,0.5,1,1,0\na,1,-2,0,1.5,0,2,1\n\
                b,0,3,1,-2.5,1,-3,0\nb,1,1,2,0.5,1,0,0\nb,2,4,3,1e10,0,,0\n";
    fs::write(&table, text).unwrap();
    // Pages of both versions, with and without compression, dictionaries and several groups of rows.
    for name in ["kinds", "old"] {
        assert_eq!(told(&data(&format!("parquet/{name}.parquet"))), told(&table), "{name}");
    }
}

#[test]
fn what_is_written_as_parquet_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let (table, file) = (dir.path().join("log.csv"), dir.path().join("log.parquet"));
    let labels =
        "episode,t,state,reward,terminated\na,0,x,1,0\na,1,\"y é\",2,1\nb,0,y,0.5,0\nb,1,x,-1,0\nb,2,y,,0\n";
    let dates =
        "episode,date,s_0,s_1,reward\na,2024-01-01,1.5,2,1\na,2024-01-03,0.1,1e300,2\na,2024-02-01,1.5,2,\n";
    // More rows than a page has.
    let row = |k: usize| format!("{},{},{},{}\n", k / 100, k % 100, k % 7, k as f64 / 3.0);
    let long = format!("episode,t,state,reward\n{}", (0..70_000).map(row).collect::<String>());
    for text in [labels, dates, &long] {
        fs::write(&table, text).unwrap();
        convert(&table, &file, &Wanted::default(), &Progress::default()).unwrap();
        assert_eq!(told(&file), told(&table), "{}", &text[..20]);
    }
}

#[test]
fn parquet_that_cannot_be_read_is_refused_by_its_column() {
    for (name, expected) in [
        ("zstd", "column episode: found pages compressed with Zstandard, expected Snappy, gzip or none"),
        ("decimal", "column reward: found decimals, expected numbers, truth values or texts"),
        ("list", "column state: found lists or structures, expected one number, truth value or text per row"),
        (
            "delta",
            "column state: found the encoding DELTA_BYTE_ARRAY, expected PLAIN or that of a dictionary",
        ),
    ] {
        let error = read_kept(&data(&format!("parquet/{name}.parquet"))).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // One that ends early, anywhere.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.parquet");
    let whole = fs::read(data("parquet/old.parquet")).unwrap();
    for length in (4..whole.len()).step_by(5) {
        fs::write(&path, &whole[..length]).unwrap();
        let error = read_kept(&path).unwrap_err().to_string();
        assert!(error.contains("ends early or is damaged"), "{length}: {error}");
    }
}

#[test]
fn a_missing_parquet_entry_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("log.csv");
    fs::write(&table, "episode,state,reward,terminated\na,x,1,0\na,y,2,1\n").unwrap();
    let (reading, _) = read_kept(&table).unwrap();
    let file = dir.path().join("query.parquet");
    let ask = |cells: [&str; 2]| {
        let rows = cells.map(|cell| vec![cell.to_owned(), "7".into()]);
        let records = Records::of_cells("query", &["state".into(), "id".into()], rows).unwrap();
        fs::write(&file, records.parquet(&[])).unwrap();
        let wanted = Wanted { id: Some("id".into()), missing: Missing::Refuse, ..Wanted::default() };
        queries(&file, &reading, &wanted)
    };
    let found = ask(["y", "x"]).unwrap();
    assert_eq!(
        (found.states, found.ids),
        (States::Labels(vec!["y".into(), "x".into()]), vec!["7".into(); 2])
    );
    let error = ask(["y", ""]).unwrap_err().to_string();
    assert!(error.contains("row 1, column state: found"), "{error}");
}

#[test]
fn parquet_keeps_the_cells_of_records() {
    let dir = tempfile::tempdir().unwrap();
    let header = ["episode", "t", "state", "reward", "terminated"].map(String::from);
    // Names that look like numbers keep their zeros; truth values are 0 and 1.
    let rows =
        [["007", "0", "1.5", "1", "false"], ["007", "1", "-2", "2", "true"], ["8", "0", "3", "", "true"]];
    let records = Records::of_cells("log", &header, rows.map(|row| row.map(String::from).to_vec())).unwrap();
    let (table, file) = (dir.path().join("log.csv"), dir.path().join("log.parquet"));
    fs::write(&table, records.csv()).unwrap();
    fs::write(&file, records.parquet(&["reward"])).unwrap();
    assert_eq!(told(&file), told(&table));
    let (reading, kept) = read_kept(&file).unwrap();
    assert_eq!((kept.0[0].name.as_str(), reading.counts.rows), ("007", 3));
}
