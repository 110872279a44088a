//! Logs that are read for a test, and what they say.
#![allow(dead_code, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use ictd::End;
use ictd_lab::logs::{Kept, Missing, Reading, Wanted, read};
use ictd_lab::{LabError, Progress};

pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/logs").join(name)
}

pub fn read_kept(path: &Path, wanted: &Wanted) -> Result<(Reading, Kept), LabError> {
    read(path, wanted, || Ok(Kept::default()), &Progress::default())
}

/// A text as a file of that name, read.
pub fn read_text(name: &str, text: impl AsRef<[u8]>, wanted: &Wanted) -> Result<(Reading, Kept), LabError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, text).unwrap();
    read_kept(&path, wanted)
}

pub fn ok(text: &str) -> (Reading, Kept) {
    read_text("log.csv", text, &Wanted::default()).unwrap()
}

pub fn missing(missing: Missing) -> Wanted {
    Wanted { missing, ..Wanted::default() }
}

/// Episodes as texts: states, rewards, end.
pub fn told(reading: &Reading, kept: &Kept) -> Vec<String> {
    let state = |s: &u32| reading.states.describe(*s);
    let line = |e: &ictd_lab::logs::OwnedEpisode| {
        let states: Vec<String> = e.states.iter().map(state).collect();
        let end = if e.end == End::Terminated { "terminated" } else { "truncated" };
        format!("{}: {} | {:?} {end}", e.name, states.join(" "), e.rewards)
    };
    kept.0.iter().map(line).collect()
}
