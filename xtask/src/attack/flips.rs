//! One bit turned in a file that is read back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::draw::Draw;
use super::process::Answer;
use super::trees::{Tree, without_times};
use super::{Attack, Case, Class, Fault, Lab, small};

/// Flips per kind of file.
const FLIPS: u64 = 1000;

pub fn attacks(lab: &Lab) -> io::Result<Vec<Attack<'_>>> {
    let resume: Vec<&str> = small::PRETRAIN.into_iter().chain(["--resume"]).collect();
    let trained = small::finished(lab, "trained", &small::PRETRAIN)?;
    let unchanged = small::again(lab, &lab.scratch.join("trained"), &resume)?;
    let reproduced = small::finished(lab, "reproduced", &small::REPRODUCE)?;
    let recalled = small::again(lab, &lab.scratch.join("reproduced"), &small::REPRODUCE)?;
    small::finished(lab, "searched", &small::READINGS)?;
    let searched = small::again(lab, &lab.scratch.join("searched"), &small::READINGS)?;
    let stopped = stopped(lab)?;
    let resumed = {
        let dir = lab.dir("resumed")?;
        stopped.write(&dir)?;
        small::again(lab, &dir, &resume)?
    };
    if let Some(difference) = resumed.tree.difference(&trained.tree) {
        return Err(io::Error::other(format!("a run that was killed and taken up: {difference}")));
    }
    let params = stopped.files.iter().find(|(path, _)| path.to_string_lossy().contains("step_"));
    let params = Tree {
        files: params.map(|(_, bytes)| ("model.safetensors".into(), bytes.clone())).into_iter().collect(),
    };
    let one =
        |name: &str, text: &str| Tree { files: [(PathBuf::from(name), text.as_bytes().to_vec())].into() };
    let mut with_context = params.clone();
    with_context.files.extend(one("context.json", small::CONTEXT).files);
    let forward = ["forward", "--input", "context.json", "--json", "--params", "model.safetensors"];
    let values = {
        let dir = lab.dir("values")?;
        with_context.write(&dir)?;
        small::again(lab, &dir, &forward)?
    };
    let mut named = one("params.json", small::PARAMS);
    named.files.extend(one("context.json", small::CONTEXT).files);
    let config =
        String::from_utf8_lossy(&lab.call(&lab.scratch, &["pretrain", "--print-config"]).run()?.stdout)
            .into_owned();
    let no_copies = |path: &str| !path.contains("cache/") && !path.contains("journal/");
    let certify = ["certify", "--task", "task.json", "--json"];
    let plain = ["forward", "--input", "context.json", "--json"];
    let with_params = ["forward", "--input", "context.json", "--params", "params.json", "--json"];
    let swept = small::swept(lab)?;
    let unchanged_sweep = small::again(lab, &lab.scratch.join("swept"), &small::SWEEP)?;
    // All runs done, and no table yet.
    let recorded = swept
        .tree
        .clone()
        .only(|path| !["results", "curves/", "checkpoints.csv"].iter().any(|own| path.contains(own)));
    let merged = {
        let dir = lab.dir("merged")?;
        recorded.write(&dir)?;
        small::again(lab, &dir, &small::SWEEP)?
    };
    if let Some(difference) =
        merged.tree.clone().only(small::is_swept).difference(&swept.tree.clone().only(small::is_swept))
    {
        return Err(io::Error::other(format!("a table that was made of a journal: {difference}")));
    }
    let flips = [
        Flip::new("checkpoint-resume", stopped, "step_", &resume).judged_by(&resumed, |_| true),
        Flip::new("checkpoint-params", with_context, "model", &forward).judged_by(&values, |_| false),
        Flip::new("finished-run", trained.tree, "seed_", &resume).judged_by(&unchanged, |_| true),
        Flip::new("reproduce-cache", reproduced.tree.clone(), "cache/", &small::REPRODUCE)
            .judged_by(&recalled, no_copies),
        Flip::new("reproduce-files", reproduced.tree, "found/", &small::REPRODUCE)
            .judged_by(&recalled, no_copies),
        Flip::new("readings-journal", searched.tree.clone(), "journal/", &small::READINGS)
            .judged_by(&searched, no_copies),
        Flip::new("sweep-journal", recorded.clone(), "journal/", &small::SWEEP)
            .judged_by(&merged, small::is_swept),
        Flip::new("sweep-checkpoints", recorded.clone(), "checkpoints/", &small::SWEEP)
            .judged_by(&merged, small::is_swept),
        Flip::new("sweep-plan", recorded, "sweep.json", &small::SWEEP).judged_by(&merged, small::is_swept),
        Flip::new("sweep-finished", swept.tree, "swept/", &small::SWEEP)
            .judged_by(&unchanged_sweep, small::is_swept),
        Flip::new("task", one("task.json", small::TASK), "", &certify),
        Flip::new("context", one("context.json", small::CONTEXT), "", &plain),
        Flip::new("params-json", named, "params", &with_params),
        Flip::new("config", one("config.toml", &config), "", &["pretrain", "config.toml", "--print-config"]),
    ];
    Ok(flips.into_iter().map(|flip| flip.attack(lab)).collect())
}

/// A run that was killed between its first checkpoint and its end: the only checkpoint is the one of epoch 20.
fn stopped(lab: &Lab) -> io::Result<Tree> {
    let is_checkpoint = |path: &Path| path.to_string_lossy().contains("ckpt/step_");
    // The moment is short, and on a busy machine often missed.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        let dir = lab.dir("stopped")?;
        let mut running = lab.call(&dir, &small::PRETRAIN).start("killed")?;
        let start = Instant::now();
        while !running.has_ended()? && start.elapsed() < Duration::from_secs(10) {
            // The directory of the run is named after the hash of its configuration.
            if !glob(&dir).is_empty() {
                break;
            }
        }
        let killed = running.kill().unwrap_or(false);
        let tree = Tree::read(&dir);
        let checkpoints: Vec<_> = tree.files.keys().filter(|path| is_checkpoint(path)).collect();
        let is_first =
            matches!(&checkpoints[..], [path] if path.to_string_lossy().ends_with("00000040.safetensors"));
        if killed && is_first && tree.ending("result.json").is_empty() {
            return Ok(tree.only(|path| !path.ends_with(".tmp")));
        }
    }
    Err(io::Error::other("no run could be killed after its first checkpoint"))
}

/// Checkpoints below the directory.
fn glob(dir: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let runs = entries(&dir.join("runs/paper"))
        .flat_map(|run| entries(&run.join("seed_0000/ckpt")).collect::<Vec<_>>());
    runs.filter(|path| path.extension().is_some_and(|ending| ending == "safetensors")).collect()
}

/// Files, which of them are damaged, and the command that reads them.
struct Flip {
    name: String,
    tree: Tree,
    targets: Vec<PathBuf>,
    command: Vec<String>,
    /// What comes of undamaged files; without it only answers that nothing may have are faults.
    expected: Option<Expected>,
}

struct Expected {
    /// Which files are results; others are only there to be read.
    is_result: fn(&str) -> bool,
    tree: Tree,
    stdout: serde_json::Value,
    words: Vec<String>,
}

impl Flip {
    fn new(name: &str, tree: Tree, damaged: &str, command: &[&str]) -> Self {
        let targets = tree
            .files
            .iter()
            .filter(|(path, bytes)| path.to_string_lossy().contains(damaged) && !bytes.is_empty());
        let targets = targets.map(|(path, _)| path.clone()).collect();
        let command = command.iter().map(|word| word.to_string()).collect();
        Self { name: format!("flips/{name}"), tree, targets, command, expected: None }
    }

    fn judged_by(mut self, finished: &small::Finished, is_result: fn(&str) -> bool) -> Self {
        let (tree, words) = (finished.tree.clone().only(is_result), finished.words.clone());
        self.expected = Some(Expected { is_result, tree, stdout: printed(&finished.stdout), words });
        self
    }

    fn attack(self, lab: &Lab) -> Attack<'_> {
        Attack::endless(self.name.clone(), FLIPS, move |number, dir| {
            let mut draw = Draw::new(&self.name, number);
            let target = draw.pick(&self.targets);
            let mut bytes = self.tree.files[target].clone();
            let (byte, bit) = (draw.below(bytes.len()), draw.below(8));
            bytes[byte] ^= 1 << bit;
            self.tree.write(dir)?;
            fs::write(dir.join(target), &bytes)?;
            let words: Vec<&str> = self.command.iter().map(String::as_str).collect();
            let call = lab.call(dir, &words);
            let answer = call.run()?;
            let mut faults = answer.faults();
            faults.extend(self.expected.as_ref().and_then(|e| e.silent(&answer, dir, target, &bytes)));
            if !matches!(answer.code, Some(0 | 1 | 3)) && faults.is_empty() && !answer.is_refusal() {
                faults.push(Fault::new(
                    Class::Other,
                    format!("fails without a line that says why: {}", answer.last_line()),
                ));
            }
            let line = format!("bit {bit} of byte {byte} of {}: {}", target.display(), call.line());
            Ok(Case { line, faults })
        })
    }
}

impl Expected {
    /// Whether damage became a result, or stayed where it was, and nothing was said.
    fn silent(&self, answer: &Answer, dir: &Path, target: &Path, damaged: &[u8]) -> Option<Fault> {
        let is_named = answer.words().iter().any(|line| !self.words.contains(line));
        if !matches!(answer.code, Some(0 | 3)) || is_named {
            return None;
        }
        let found = Tree::read(dir);
        let what = if printed(&answer.stdout) != self.stdout {
            "prints other results".to_owned()
        } else if without_times(target).1 && found.files.get(target).is_some_and(|bytes| bytes == damaged) {
            format!("leaves {} damaged", target.display())
        } else {
            found.only(self.is_result).difference(&self.tree)?
        };
        Some(Fault::new(Class::Silent, what))
    }
}

/// JSON as printed, without times.
fn printed(stdout: &[u8]) -> serde_json::Value {
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(stdout) else {
        return serde_json::Value::Null;
    };
    if let Some(entries) = value.as_object_mut() {
        entries.remove("train_seconds");
    }
    value
}
