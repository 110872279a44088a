//! Small settings: the same code as large ones, in a few milliseconds.

use std::io;
use std::path::Path;

use super::Lab;
use super::trees::Tree;

/// A training run of one seed with two layers, long enough that a checkpoint comes in between.
pub const PRETRAIN: [&str; 24] = [
    "pretrain",
    "--set",
    "epochs=40",
    "--set",
    "batches=2",
    "--set",
    "batch=16",
    "--set",
    "n=6",
    "--set",
    "states=5",
    "--set",
    "features=2",
    "--set",
    "layers=2",
    "--set",
    "tied=false",
    "--seeds",
    "1",
    "--checkpoint-every",
    "20",
    "--out",
    "runs",
    "--json",
];

/// Two studies that only draw.
pub const REPRODUCE: [&str; 8] =
    ["reproduce", "--only", "fig2,fig4", "--quick", "--seeds", "1", "--out", "found"];

/// A search through readings with one epoch each.
pub const READINGS: [&str; 20] = [
    "readings",
    "--seeds",
    "1",
    "--set",
    "epochs=1",
    "--set",
    "batches=1",
    "--set",
    "batch=1",
    "--set",
    "n=1",
    "--set",
    "states=3",
    "--set",
    "features=1",
    "--set",
    "layers=1",
    "--out",
    "searched",
    "--json",
];

/// A sweep of twelve short runs; its plan is [`PLAN`].
pub const SWEEP: [&str; 5] = ["sweep", "plan.toml", "--out", "swept", "--json"];

/// Runs long enough that a moment between two of them is not hard to meet.
const PLAN: &str = r#"seeds = "0..3"
metrics = "every 20"
checkpoints = "all"
[set]
epochs = 60
batches = 2
batch = 16
n = 6
task = { states = 5, features = 2 }
[grid]
kernel = ["softmax", "linear"]
layers = [2, 3]
"#;

/// The plan in its file.
pub fn plan() -> Tree {
    Tree { files: [("plan.toml".into(), PLAN.as_bytes().to_vec())].into() }
}

/// Whether a file of a sweep is a result: journals are named by who wrote them, and differ in the order of their lines.
pub fn is_swept(path: &str) -> bool {
    !path.contains("journal/")
}

pub const CONTEXT: &str = r#"{"features": [[1.0, 0.5], [0.5, -0.25], [-1.0, 0.75], [0.5, -0.25]], "rewards": [1.0, -0.5, 0.25], "queries": [[0.5, 0.5]]}"#;

pub const TASK: &str = r#"{"gamma": 0.8, "transitions": [[0.9, 0.1, 0.0], [0.2, 0.6, 0.2], [0.7, 0.0, 0.3]],
 "rewards": [1.0, 0.2, -2.0], "features": [[3.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 3.0]]}
"#;

pub const PARAMS: &str = r#"{"V": [[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0],[0,0,1,1,-1]],
 "A": [[1,0,0,0,0],[0,1,0,0,0],[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0]]}
"#;

/// A finished run and what it printed.
pub struct Finished {
    pub tree: Tree,
    pub stdout: Vec<u8>,
    pub words: Vec<String>,
    pub seconds: f64,
}

/// Runs a command that must succeed, in a directory that is empty.
pub fn finished(lab: &Lab, name: &str, arguments: &[&str]) -> io::Result<Finished> {
    let dir = lab.dir(name)?;
    again(lab, &dir, arguments)
}

/// A sweep that nobody disturbed.
pub fn swept(lab: &Lab) -> io::Result<Finished> {
    let dir = lab.dir("swept")?;
    plan().write(&dir)?;
    again(lab, &dir, &SWEEP)
}

/// Runs a command that must succeed.
pub fn again(lab: &Lab, dir: &Path, arguments: &[&str]) -> io::Result<Finished> {
    let start = std::time::Instant::now();
    let call = lab.call(dir, arguments).patient();
    let answer = call.run()?;
    if answer.code != Some(0) {
        let problem = format!("{} ends with {:?}: {}", call.line(), answer.code, answer.last_line());
        return Err(io::Error::other(problem));
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(Finished { tree: Tree::read(dir), words: answer.words(), stdout: answer.stdout, seconds })
}
