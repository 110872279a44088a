//! Damaged files are refused in one line: the first inputs of `cargo xtask fuzz`.
#![allow(missing_docs)]

mod common {
    pub mod context_readers;
    pub mod fuzz;
    pub mod log_readers;
    pub mod npz;
    pub mod readers;
    pub mod sweep_readers;
}

use std::time::Duration;

use common::{fuzz, readers};

/// Inputs of a reader that only reads, and of one that also computes.
const INPUTS: [(&str, u64); 35] = [
    ("context", 2000),
    ("context-npz", 2000),
    ("context-arrays", 2000),
    ("params", 2000),
    ("task", 1000),
    ("safetensors", 1000),
    ("safetensors-header", 2000),
    ("config", 1500),
    ("set", 1500),
    ("checkpoint", 120),
    ("journal", 30),
    ("sweep-plan", 600),
    ("sweep-journal", 60),
    ("cache", 30),
    ("label", 500),
    ("log-csv", 600),
    ("log-quoted", 600),
    ("log-tsv", 600),
    ("log-jsonl", 600),
    ("log-list", 600),
    ("log-context", 600),
    ("log-arrays", 600),
    ("log-npy", 600),
    ("log-npz", 600),
    ("log-hdf5", 600),
    ("log-minari", 200),
    ("log-gzip", 200),
    ("query-text", 600),
    ("query-json", 600),
    ("query-numpy", 600),
    ("log-parquet", 600),
    ("query-parquet", 600),
    ("log-arrow", 600),
    ("query-arrow", 600),
    ("log-parts", 600),
];

/// Readers that are left out of the usual build.
const COLUMNAR: usize = 5;

#[test]
fn damaged_files_are_refused_in_one_line() {
    let dir = fuzz::scratch().unwrap();
    let mut failures = Vec::new();
    let mut readers = readers::all(dir.path());
    let built = INPUTS.len() - if cfg!(feature = "parquet") { 0 } else { COLUMNAR };
    let inputs = &INPUTS[..built];
    assert!(readers.iter().map(|r| r.name).eq(inputs.iter().map(|(name, _)| *name)));
    for (reader, &(name, inputs)) in readers.iter_mut().zip(inputs) {
        let outcome = fuzz::run(reader, 0, inputs, Duration::MAX, dir.path());
        // A harness whose inputs are all accepted, or all refused, tests nothing.
        assert!(outcome.accepted > 0, "{name}: {outcome:?}");
        assert_eq!(outcome.refused > 0, reader.refuses, "{name}: {outcome:?}");
        failures.extend(outcome.failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
