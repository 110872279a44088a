//! Logs in Arrow and Parquet are the logs that they are in other formats.
#![cfg(feature = "parquet")]
#![allow(missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use ictd::End;
use ictd_lab::logs::{Kept, Missing, Reading, States, Wanted, convert, queries, read};
use ictd_lab::report::Records;
use ictd_lab::{LabError, Progress};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs").join(name)
}

fn read_kept(path: &Path) -> Result<(Reading, Kept), LabError> {
    read(path, &Wanted::default(), || Ok(Kept::default()), &Progress::default())
}

/// A directory in memory where there is one, for thousands of files.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
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
        (
            "../arrow/lists",
            "column state: found lists of lists or structures, expected one number, truth value",
        ),
        ("../arrow/ragged", "column state: row 1: found 1 entries, expected 2 as before"),
        (
            "delta",
            "column state: found the encoding DELTA_BYTE_ARRAY, expected PLAIN or that of a dictionary",
        ),
    ] {
        let error = read_kept(&data(&format!("parquet/{name}.parquet"))).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // One that ends early, anywhere.
    let dir = scratch();
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

#[test]
fn an_arrow_file_of_pandas_is_the_log_of_its_arrays() {
    let (reading, kept) = read_kept(&data("arrow/flat.feather")).unwrap();
    assert_eq!((reading.states, kept), told(&data("flat.npz")));
}

#[test]
fn every_kind_of_arrow_column_is_read() {
    // Files with and without compression, a stream, and one of polars; texts of all three layouts.
    let (expected, episodes) = read_kept(&data("arrow/kinds.csv")).unwrap();
    for name in ["kinds.arrow", "kinds-lz4.arrow", "kinds.arrows", "polars.arrow"] {
        let (reading, kept) = read_kept(&data(&format!("arrow/{name}"))).unwrap();
        assert_eq!((&reading.states, &kept), (&expected.states, &episodes), "{name}");
        assert_eq!(reading.mapping, expected.mapping, "{name}");
    }
}

#[test]
fn lists_and_structures_of_arrow_and_parquet_are_columns() {
    let wanted = Wanted { state: Some("obs_,fixed_".into()), missing: Missing::Mean, ..Wanted::default() };
    let told = |path: &Path| {
        let (reading, kept) = read(path, &wanted, || Ok(Kept::default()), &Progress::default()).unwrap();
        (reading.state_columns, reading.states, reading.counts.replaced, kept)
    };
    let expected = told(&data("arrow/nested.csv"));
    assert_eq!(expected.2, 9);
    for name in ["nested.arrow", "nested.parquet", "nested-v2.parquet"] {
        assert_eq!(told(&data(&format!("arrow/{name}"))), expected, "{name}");
    }
    // Rows 1 and 2 of the same table.
    let (_, States::Features { rows, .. }, _, kept) = told(&data("arrow/slice.arrow")) else {
        panic!("labels where there are features");
    };
    assert_eq!(kept.0[0].rewards, [2.0, 3.0]);
    assert_eq!(rows.as_slice(), [3.0, 4.0, 1.5, 4.0, 5.0, 6.0, 5.0, 4.0, 2.5, 4.0, 5.0, 6.0]);
}

#[test]
fn arrow_that_cannot_be_read_is_refused_by_its_column() {
    for (name, expected) in [
        ("zstd", "found entries compressed with Zstandard, expected LZ4 or none: write it with compression"),
        ("decimal", "column reward: found decimals, expected numbers, truth values or texts"),
        ("lists", "column state: found lists of lists or structures, expected lists of numbers"),
        ("map", "column state: found maps, expected numbers"),
        ("union", "column state: found unions, expected numbers"),
        ("ragged", "column state: row 1: found 1 entries, expected 2 as before"),
        ("empty", "column state: row 0: found an empty list, expected numbers"),
        ("bytes", "column state: found '\u{fffd}t', expected UTF-8 text"),
        ("tensor", "found an Arrow file that ends early or is damaged, expected a whole one"),
    ] {
        let error = read_kept(&data(&format!("arrow/{name}.arrow"))).unwrap_err().to_string();
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    }
    let dir = scratch();
    let refused = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        read_kept(&path).unwrap_err().to_string()
    };
    assert!(refused("old.feather", b"FEA1xxxx").contains("found Feather of the first version"));
    assert!(refused("text.arrow", b"episode,reward\n").contains("found no signature of Arrow or Parquet"));
    // One that ends early, anywhere: a stream has a mark at its end.
    for (name, step) in [("kinds.arrow", 5), ("kinds-lz4.arrow", 7), ("kinds.arrows", 13)] {
        let whole = fs::read(data(&format!("arrow/{name}"))).unwrap();
        for length in (6..whole.len() - 8).step_by(step) {
            let path = dir.path().join(name);
            fs::write(&path, &whole[..length]).unwrap();
            let error = read_kept(&path).unwrap_err().to_string();
            assert!(error.contains("ends early or is damaged"), "{name} {length}: {error}");
        }
    }
}

#[test]
fn a_minari_data_set_is_the_same_in_hdf5_arrow_and_parquet() {
    for (name, columns) in [
        ("box", "observations_0 observations_1"),
        ("discrete", "observations"),
        (
            "dict",
            "observations_a__index_0 observations_a__index_1 observations_bits_0 observations_bits_1 \
             observations_bits_2 observations_m_x_0 observations_m_y_0 observations_m_y_1 observations_z_0 \
             observations_z_1",
        ),
        ("text", "observations"),
    ] {
        let minari = |kept: &str| data(&format!("arrow/minari/{name}-{kept}"));
        let (expected, episodes) = read_kept(&minari("hdf5").join("main_data.hdf5.gz")).unwrap();
        assert_eq!(expected.state_columns.join(" "), columns);
        let ends: Vec<(End, usize)> = episodes.0.iter().map(|e| (e.end, e.rewards.len())).collect();
        // As make.py says.
        assert_eq!(ends, [(End::Truncated, 5), (End::Terminated, 2)]);
        for path in ["arrow", "parquet"].map(minari) {
            for path in [path.clone(), path.join("data")] {
                let (reading, kept) = read_kept(&path).unwrap();
                assert_eq!((&reading, &kept), (&expected, &episodes), "{}", path.display());
            }
        }
    }
}

/// A data set whose files can be changed.
fn copied(kept: &str, dir: &Path) -> PathBuf {
    let (from, to) = (data(&format!("arrow/minari/box-{kept}/data")), dir.join(kept));
    for folder in ["", "0", "1"] {
        fs::create_dir_all(to.join(folder)).unwrap();
        for entry in fs::read_dir(from.join(folder)).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                fs::copy(entry.path(), to.join(folder).join(entry.file_name())).unwrap();
            }
        }
    }
    to
}

#[test]
fn minari_in_arrow_or_parquet_is_checked_as_in_hdf5() {
    for kept in ["arrow", "parquet"] {
        let dir = tempfile::tempdir().unwrap();
        let folder = copied(kept, dir.path());
        let part = |episode: &str| folder.join(episode).join(format!("part-0.{kept}"));
        let refused = || read_kept(&folder).unwrap_err().to_string();
        let whole = read_kept(&folder).unwrap().1;
        // Episodes come in the order of their numbers, not of their names.
        fs::rename(folder.join("0"), folder.join("10")).unwrap();
        fs::rename(folder.join("1"), folder.join("9")).unwrap();
        let names = |kept: &Kept| kept.0.iter().map(|e| e.name.clone()).collect::<Vec<_>>();
        let again = read_kept(&folder).unwrap().1;
        assert_eq!(
            (names(&whole), names(&again)),
            (vec!["0".into(), "1".into()], vec!["9".into(), "10".into()])
        );
        assert_eq!(again.0[1].rewards, whole.0[0].rewards);
        // Without what is said about an episode, its last row is that of the last state.
        let about = folder.join("9/metadata.json");
        let said = fs::read_to_string(&about).unwrap();
        fs::remove_file(&about).unwrap();
        assert_eq!(read_kept(&folder).unwrap().1, again);
        // Where there are as many steps as rows, none of them says nothing.
        fs::write(&about, said.replace("\"total_steps\": 2", "\"total_steps\": 3")).unwrap();
        let padding = "episode 9, step 2: found a row after the terminated end of its episode";
        assert!(refused().contains(padding), "{}", refused());
        fs::write(&about, said.replace("\"total_steps\": 2", "\"total_steps\": 7")).unwrap();
        assert!(
            refused().contains("found 3 rows, expected one more than the 7 of total_steps"),
            "{}",
            refused()
        );
        fs::write(&about, said).unwrap();
        // Other files than those of Minari, or none.
        fs::copy(part("10"), folder.join(format!("10/part-1.{kept}"))).unwrap();
        assert!(
            refused().contains("10: found 2 files part-…, expected part-0 with the episode"),
            "{}",
            refused()
        );
        fs::remove_file(folder.join(format!("10/part-1.{kept}"))).unwrap();
        fs::copy(data("arrow/ragged.arrow"), part("9")).unwrap();
        assert!(refused().contains("found no column observations, expected one"), "{}", refused());
        fs::write(part("9"), "").unwrap();
        assert!(refused().contains("ends early or is damaged"), "{}", refused());
        fs::remove_dir_all(folder.join("9")).unwrap();
        assert!(refused().contains("found 1 episodes, expected 2 as total_episodes says"), "{}", refused());
        fs::remove_dir_all(folder.join("10")).unwrap();
        assert!(refused().contains("found no episodes, expected some"), "{}", refused());
    }
}

#[test]
fn states_are_asked_for_in_arrow() {
    let (reading, _) = read_kept(&data("arrow/minari/box-arrow")).unwrap();
    // A file of one of its episodes has the same columns.
    let query = data("arrow/minari/box-arrow/data/1/part-0.arrow");
    let found = queries(&query, &reading, &Wanted::default()).unwrap();
    assert_eq!(found.states.len(), 3);
    let error = queries(&data("arrow/minari/box-arrow"), &reading, &Wanted::default()).unwrap_err();
    assert!(error.to_string().contains("found a Minari data set, expected states as CSV"), "{error}");
}

/// Whatever a file says about sizes and places, reading it neither panics nor asks for memory that nobody has.
#[test]
fn lying_numbers_in_arrow_and_parquet_are_refused_or_mean_nothing() {
    let dir = scratch();
    let lies = [1i64 << 60, -1, i64::MIN, 1 << 31, 0];
    for name in ["arrow/nested.arrow", "arrow/kinds.arrows", "arrow/nested.parquet"] {
        let whole = fs::read(data(name)).unwrap();
        let path = dir.path().join("lie.arrow");
        let mut refused = 0;
        for place in (0..whole.len() - 8).step_by(4) {
            for lie in lies {
                let mut changed = whole.clone();
                changed[place..place + 8].copy_from_slice(&lie.to_le_bytes());
                fs::write(&path, &changed).unwrap();
                let Err(error) = read_kept(&path) else { continue };
                refused += 1;
                assert_eq!(error.to_string().lines().count(), 1, "{name} {place}: {error}");
            }
        }
        assert!(refused > whole.len() / 4, "{name}: {refused}");
    }
}
