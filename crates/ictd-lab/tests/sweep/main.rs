//! Sweeps: the same table in whatever order and by however many workers runs are done, and nothing lost when one is killed.
#![allow(missing_docs)]

mod directory;
mod plans;
mod runs;

use std::fs;
use std::path::{Path, PathBuf};

use ictd_lab::sweep::{Plan, Request, TABLE, curve_file};
use ictd_lab::{LabError, Progress};

const PLAN: &str = r#"
seeds = "0..3"
metrics = "every 4"
checkpoints = "all"

[set]
epochs = 10
batch = 8

[grid]
kernel = ["softmax", "linear"]

[[zip]]
n = [5, 8]
layers = [2, 3]
"#;

/// A task file.
const MACHINE: &str = r#"{"gamma": 0.8, "transitions": [[0.9, 0.1], [0.2, 0.8]], "rewards": [1, 0.2], "features": [[3, 0], [0, 3]]}"#;

fn plan(dir: &Path, text: &str) -> Result<Plan, LabError> {
    let path = dir.join("plan.toml");
    fs::write(&path, text).unwrap();
    Plan::read(&path)
}

fn request(dir: &Path, text: &str, name: &str) -> Request {
    Request { plan: plan(dir, text).unwrap(), out: dir.join(name), fresh: false, extend: false }
}

/// Does all runs on so many threads and writes the table.
fn swept(request: &Request, threads: usize) -> PathBuf {
    let pool = rayon_pool(threads);
    pool.install(|| {
        let opened = request.open(true).unwrap();
        let progress = Progress::default();
        opened.work(&(0..opened.sweep.num_runs()), &progress).unwrap();
        opened.finish(&progress, |_| {}).unwrap();
    });
    request.out.clone()
}

fn rayon_pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Every file that results are in, with its bytes; journals differ in the order of their lines.
fn results(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = vec![(TABLE.to_owned(), fs::read(out.join(TABLE)).unwrap())];
    for setting in 0..4 {
        let name = curve_file(setting);
        found.push((name.clone(), fs::read(out.join(name)).unwrap()));
    }
    let mut folders: Vec<PathBuf> =
        fs::read_dir(out.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        found.extend(files.into_iter().map(|path| {
            (path.display().to_string().replace(&out.display().to_string(), ""), fs::read(&path).unwrap())
        }));
    }
    found
}

fn journals(out: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(out.join("journal")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "log")).collect();
    files.sort();
    files
}

fn rows(out: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(out.join(TABLE)).unwrap();
    reader.records().map(|row| row.unwrap().iter().map(String::from).collect()).collect()
}

/// Records of the journals.
fn records(out: &Path) -> usize {
    journals(out).iter().map(|path| fs::read_to_string(path).unwrap().lines().count()).sum()
}
