//! Contexts in archives of arrays: the same as in JSON, and each mistake named.
#![allow(missing_docs)]

mod common {
    pub mod logs;
    pub mod npz;
}

use std::fs;
use std::path::{Path, PathBuf};

use common::logs::{read_kept, read_text, told};
use common::npz::{archive, array, doubles, fortran};
use ictd::context::Context;
use ictd_lab::files::read_context;
use ictd_lab::logs::Wanted;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/contexts").join(name)
}

/// Reads a file of that content; a mistake without what names the file.
fn read(content: &[u8]) -> Result<Context, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.npz");
    fs::write(&path, content).unwrap();
    read_context(&path).map_err(|e| e.to_string().split_once("c.npz: ").unwrap().1.to_owned())
}

fn features() -> (&'static str, Vec<u8>) {
    ("features.npy", doubles("(3, 2)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
}

fn rewards() -> (&'static str, Vec<u8>) {
    ("rewards.npy", doubles("(2,)", &[0.5, -0.5]))
}

#[test]
fn files_of_numpy_have_the_contexts_of_their_json() {
    for (npz, json) in
        [("one.npz", "one.json"), ("episodes.npz", "episodes.json"), ("packed.npz", "episodes.json")]
    {
        assert_eq!(read_context(&data(npz)).unwrap(), read_context(&data(json)).unwrap(), "{npz}");
    }
}

#[test]
fn as_logs_they_have_the_same_episodes() {
    for (npz, json) in [("one.npz", "one.json"), ("packed.npz", "episodes.json")] {
        let [arrays, text] = [npz, json].map(|name| read_kept(&data(name), &Wanted::default()).unwrap());
        assert_eq!(told(&arrays.0, &arrays.1), told(&text.0, &text.1), "{npz}");
        assert_eq!(arrays.0.states, text.0.states);
    }
    // A table has as many rows of features as rewards.
    let flags = ("terminated", array("'|b1'", "(2,)", &[0, 1]));
    let table = archive(&[("features", doubles("(2, 1)", &[0.5, 1.5])), rewards(), flags], false);
    let (reading, kept) = read_text("log.npz", table, &Wanted::default()).unwrap();
    assert_eq!(told(&reading, &kept).len(), 1);
    let short = archive(&[features(), ("rewards", doubles("(1,)", &[1.0]))], false);
    let message = read_text("log.npz", short, &Wanted::default()).unwrap_err().to_string();
    assert!(message.contains("log.npz: rewards: episode 0 has 1 rewards and 3 feature rows"), "{message}");
    let nothing = [("features", doubles("(2, 1)", &[0.5, f64::NAN])), ("rewards", doubles("(1,)", &[1.0]))];
    let message = read_text("log.npz", archive(&nothing, false), &Wanted::default()).unwrap_err().to_string();
    assert!(message.contains("NaN"), "{message}");
}

#[test]
fn arrays_of_any_type_and_order_are_read() {
    let plain = read(&archive(&[features(), rewards()], false)).unwrap();
    assert_eq!(read(&archive(&[rewards(), features()], true)).unwrap(), plain);
    let columns: Vec<u8> = [1u8, 3, 5, 2, 4, 6].to_vec();
    let singles = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_be_bytes).concat();
    for other in [
        fortran("'|u1'", "(3, 2)", &columns),
        array("'>f4'", "(3, 2)", &singles),
        array("'<i2'", "(3, 2)", &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]),
    ] {
        assert_eq!(read(&archive(&[("features", other), rewards()], false)).unwrap(), plain);
    }
    // One flag of whatever shape ends one trajectory; -0 is 0.
    for shape in ["()", "(1,)"] {
        let flag = |byte: u8| array("'|b1'", shape, &[byte]);
        let with = |byte| read(&archive(&[features(), rewards(), ("terminated.npy", flag(byte))], false));
        assert_eq!(with(0).unwrap(), plain);
        assert!(with(1).unwrap() != plain);
    }
    let zeros = read(&archive(
        &[("features", doubles("(2, 1)", &[-0.0, 0.0])), ("rewards", doubles("(1,)", &[1.0]))],
        false,
    ));
    assert!(zeros.unwrap().features_of(0)[0].is_sign_positive());
}

#[test]
fn each_mistake_of_an_archive_names_its_array() {
    let with = |name: &'static str, content: Vec<u8>| {
        let mut files = vec![features(), rewards()];
        files.retain(|(other, _)| *other != name);
        files.push((name, content));
        archive(&files, false)
    };
    let whole = archive(&[features(), rewards()], false);
    let mut changed = whole.clone();
    changed[140] ^= 1;
    let long = |numbers: &[i64]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        with("lengths.npy", array("'<i8'", &format!("({},)", numbers.len()), &bytes))
    };
    let several = |lengths: Vec<u8>, more: &[(&'static str, Vec<u8>)]| {
        let mut files = vec![
            ("features.npy", doubles("(5, 1)", &[0.0, 1.0, 2.0, f64::NAN, 4.0])),
            ("rewards.npy", doubles("(3,)", &[1.0, 2.0, 3.0])),
            ("lengths.npy", lengths),
        ];
        files.extend_from_slice(more);
        archive(&files, false)
    };
    let two = array("'|u1'", "(2,)", &[1, 2]);
    for (content, expected) in [
        (b"hello".to_vec(), "found no signature of NPZ, expected an archive of arrays"),
        (features().1, "found a single array, expected an archive with the arrays features and rewards"),
        (whole[..whole.len() - 1].to_vec(), "found a zip archive that ends early or is damaged"),
        (changed, "features.npy: found a checksum that differs"),
        (archive(&[], false), "features: missing"),
        (archive(&[features()], false), "rewards: missing"),
        (archive(&[rewards()], false), "features: missing"),
        (
            archive(&[features(), features(), rewards()], false),
            "features: found two arrays of that name, expected one",
        ),
        (
            with("feature.npy", doubles("()", &[1.0])),
            "feature: found an array of that name, expected features, rewards, lengths, terminated, queries (states and \
             values are passed over); did you mean 'features'?",
        ),
        (with("notes.txt", b"hello".to_vec()), "notes.txt: found an array of that name"),
        (with("rewards.npy", b"hello".to_vec()), "rewards: found no header of NPY"),
        (
            with("rewards.npy", doubles("(3,)", &[1.0])),
            "rewards: found 8 bytes of data, expected 3 entries of 8",
        ),
        (
            with("rewards.npy", array("'|O'", "(2,)", &[0; 16])),
            "rewards: found Python objects, expected numbers",
        ),
        (with("rewards.npy", array("'|S1'", "(2,)", b"ab")), "rewards: found texts"),
        (
            with("rewards.npy", array("'<u8'", "(1,)", &[255; 8])),
            "rewards: found a whole number beyond 2^63 - 1, expected smaller",
        ),
        (
            with("rewards.npy", doubles("(2, 1)", &[1.0; 2])),
            "rewards: found an array of shape (2, 1), expected one axis",
        ),
        (
            with("rewards.npy", doubles("()", &[1.0])),
            "rewards: found an array of shape (), expected one axis",
        ),
        (
            with("rewards.npy", doubles("(3,)", &[1.0; 3])),
            "rewards: episode 0 has 3 rewards and 3 feature rows, expected one row more",
        ),
        (with("rewards.npy", doubles("(2,)", &[1.0, f64::NAN])), "rewards: entry 1 of episode 0 is NaN"),
        (
            with("features.npy", doubles("(3,)", &[1.0; 3])),
            "features: found an array of shape (3,), expected two axes: states and their features",
        ),
        (
            with("features.npy", doubles("(3, 1, 1)", &[1.0; 3])),
            "features: found an array of shape (3, 1, 1)",
        ),
        (
            with("features.npy", doubles("(9000000000000000000, 0)", &[])),
            "features: found an array of shape (9000000000000000000, 0), expected at least one feature",
        ),
        (
            with("features.npy", doubles("(3, 2)", &[0.0, 0.0, 0.0, f64::INFINITY, 0.0, 0.0])),
            "features: entry 1 of row 1 of episode 0 is inf, expected a finite number",
        ),
        (with("queries.npy", doubles("(1, 3)", &[0.0; 3])), "queries: query 0 has 3 entries, expected 2"),
        (
            with("queries.npy", doubles("(2,)", &[0.0; 2])),
            "queries: found an array of shape (2,), expected two axes",
        ),
        (
            with("queries.npy", doubles("(9000000000000000000, 0)", &[])),
            "queries: found an array of shape (9000000000000000000, 0), expected at least one feature",
        ),
        (
            with("queries.npy", doubles("(2, 2)", &[0.0, 0.0, f64::NAN, 0.0])),
            "queries: entry 0 of query 1 is NaN, expected a finite number",
        ),
        (with("terminated.npy", two.clone()), "terminated: found 2 entries, expected 1, one per episode"),
        (
            with("terminated.npy", doubles("()", &[f64::NAN])),
            "terminated: entry 0 is NaN, expected true or false, or 1 or 0",
        ),
        (long(&[3]), "rewards: found 2 entries, expected 3, the sum of lengths"),
        (long(&[i64::MAX, i64::MAX]), "rewards: found 2 entries, expected 18446744073709552000, the sum"),
        (long(&[3, -1]), "lengths: entry 1 is -1, expected a whole number, 0 or more"),
        (long(&[1, 1]), "features: found 3 rows, expected 4: one more than transitions in every episode"),
        (
            with("lengths.npy", doubles("(2,)", &[0.5, 1.5])),
            "lengths: entry 0 is 0.5, expected a whole number, 0 or more",
        ),
        (
            several(doubles("(2,)", &[1.0, 2.0]), &[]),
            "features: entry 0 of row 1 of episode 1 is NaN, expected a finite number",
        ),
        (
            several(doubles("(2,)", &[1.0, 2.0]), &[("terminated", doubles("()", &[1.0]))]),
            "terminated: found 1 entries, expected 2, one per episode",
        ),
        (
            several(two, &[("terminated", doubles("(2,)", &[1.0, 2.0]))]),
            "terminated: entry 1 is 2, expected true",
        ),
    ] {
        let message = read(&content).unwrap_err();
        assert!(message.starts_with(expected), "{message}\nexpected {expected}");
    }
}
