//! HyperQueue: a job whose tasks are units.
//!
//! Where there is the program `hq` it takes the units as a JSON file. The package on PyPI has no such program: there a script submits
//! through its Python interface, to the server that `HQ_SERVER_DIR` names, or to a cluster of its own on this machine.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde::Serialize;
use serde_json::Value;

use super::{Engine, Job, State, Work, called, complaint};
use crate::LabError;

/// What submits where there is no `hq`.
const SCRIPT: &str = include_str!("hyperqueue.py");
/// The worker of a unit, as the arguments of a shell: `HQ_ENTRY` is the text of a JSON entry, in quotes.
const WORKER: &str = r#"exec "$0" sweep "$1" --index "$(printf %s "$HQ_ENTRY" | tr -d '"')" --threads "$2""#;
/// The Python that has the package, unless this variable names another.
const PYTHON: &str = "ICTD_PYTHON";

/// What HyperQueue calls units of time.
const UNITS_OF_TIME: [&str; 5] = [
    "s sec secs second seconds",
    "m min mins minute minutes",
    "h hr hrs hour hours",
    "d day days",
    "w week weeks",
];

/// HyperQueue's program, or a script's process.
#[derive(Debug, Default)]
pub(super) struct HyperQueue {
    script: Option<Child>,
}

/// What the script is told.
#[derive(Serialize)]
struct Told<'a> {
    name: &'a str,
    command: Vec<String>,
    units: PathBuf,
    threads: usize,
    logs: PathBuf,
}

fn has_hq() -> Result<bool, LabError> {
    Ok(called(Command::new("hq").arg("--version"))?.is_some_and(|output| output.status.success()))
}

/// Whether there is a server that is not of this command's making, and does not end with it.
pub(super) fn has_server() -> bool {
    has_hq().unwrap_or(false) || std::env::var_os("HQ_SERVER_DIR").is_some()
}

fn python() -> String {
    std::env::var(PYTHON).unwrap_or_else(|_| "python3".into())
}

impl Engine for HyperQueue {
    fn largest_unit(&self) -> Result<usize, LabError> {
        // Made for millions of tasks.
        Ok(usize::MAX - 1)
    }

    fn write(&self, work: &Work<'_>) -> Result<PathBuf, LabError> {
        let folder = &work.folder;
        folder.below("logs")?;
        let units: Vec<String> = work
            .units
            .iter()
            .map(|&unit| {
                let runs = work.range(unit);
                format!("{}..{}", runs.start, runs.end)
            })
            .collect();
        folder.json("units", &units)?;
        let told = Told {
            name: &work.name,
            command: command(work),
            units: work.root.join("engine/units.json"),
            threads: work.options.threads,
            logs: work.root.join("engine/logs"),
        };
        folder.json("submit", &told)?;
        folder.write("submit.py", SCRIPT.as_bytes())?;
        Ok(folder.path().join("units.json"))
    }

    fn submit(&mut self, work: &Work<'_>, job: &mut Job) -> Result<(), LabError> {
        if has_hq()? {
            let mut hq = Command::new("hq");
            hq.args([
                "--output-mode=quiet",
                "submit",
                "--name",
                &work.name,
                "--crash-limit=unlimited",
                "--stdout=none",
            ]);
            hq.arg(format!("--stderr={}", work.root.join("engine/logs/unit_%{TASK_ID}.log").display()));
            hq.arg(format!("--cpus={}", work.options.threads))
                .arg("--from-json")
                .arg(work.root.join("engine/units.json"));
            if let Some(time) = &work.options.time {
                hq.arg(format!("--time-limit={time}"));
            }
            hq.args(&work.options.extra).arg("--").args(command(work));
            let Some(output) = called(&mut hq)? else { return Err(nowhere()) };
            if !output.status.success() {
                return Err(LabError::refused("engine", format!("hq: {}", complaint(&output))));
            }
            let text = String::from_utf8_lossy(&output.stdout);
            // Sites say this and that before it.
            let number = text.split_whitespace().rfind(|word| word.parse::<u64>().is_ok());
            job.id = Some(number.map(str::to_owned).ok_or_else(|| {
                let said = crate::one_line(text.trim());
                LabError::refused("engine", format!("hq submit said '{said}', expected the number of a job"))
            })?);
            return Ok(());
        }
        let given = [("job-option", !work.options.extra.is_empty()), ("time", work.options.time.is_some())];
        if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            return Err(LabError::refused(option, "there is no hq here to take it, expected it left out"));
        }
        let has_package = called(Command::new(python()).args(["-c", "import hyperqueue"]))?;
        if !has_package.is_some_and(|output| output.status.success()) {
            return Err(nowhere());
        }
        let mut script = Command::new(python());
        script.arg(work.folder.path().join("submit.py")).arg(work.folder.path().join("submit.json"));
        let log = work.folder.path().join("logs/submit.log");
        let log = File::create(&log).map_err(|source| LabError::Write { path: log, source })?;
        // Its input is open as long as this process is there.
        script.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let child = script.spawn().map_err(|e| LabError::internal("engine", e))?;
        job.id = Some(format!("process {}", child.id()));
        self.script = Some(child);
        Ok(())
    }

    fn state(&mut self, job: &Job) -> Result<State, LabError> {
        if let Some(script) = &mut self.script {
            let ended = script.try_wait().map_err(|e| LabError::internal("engine", e))?;
            return Ok(ended.map_or(State::Active, |_| State::Gone));
        }
        // A script ends with the sweep that started it; what it had submitted elsewhere is found by nobody.
        let Some(id) = job.id.as_ref().filter(|id| id.parse::<u64>().is_ok()) else { return Ok(State::Gone) };
        let Some(output) = called(Command::new("hq").args(["--output-mode=json", "job", "info", id]))? else {
            return Ok(State::Unknown("there is no hq here any more".into()));
        };
        if !output.status.success() {
            return Ok(State::Unknown(complaint(&output)));
        }
        Ok(state(&String::from_utf8_lossy(&output.stdout), &job.name))
    }
}

impl Drop for HyperQueue {
    fn drop(&mut self) {
        if let Some(mut script) = self.script.take() {
            // The script ends when its input does; workers on this machine end with it.
            drop(script.stdin.take());
            let _ = script.wait();
        }
    }
}

fn command(work: &Work<'_>) -> Vec<String> {
    let text = |path: &PathBuf| path.to_string_lossy().into_owned();
    [
        "sh".into(),
        "-c".into(),
        WORKER.into(),
        text(&work.program),
        text(&work.root),
        work.options.threads.to_string(),
    ]
    .into()
}

/// Whether HyperQueue takes a text for a time limit: hours:minutes:seconds, or numbers with units such as `1h 30m`.
pub(super) fn is_time(text: &str) -> bool {
    let is_number = |part: &str| (1..=9).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    if text.contains(':') {
        return text.split(':').count() == 3 && text.split(':').all(is_number);
    }
    // Numbers and the letters after them.
    let mut words: Vec<(String, String)> = Vec::new();
    for c in text.chars().filter(|c| *c != ' ') {
        match words.last_mut() {
            Some((_, unit)) if c.is_ascii_alphabetic() => unit.push(c),
            Some((number, unit)) if unit.is_empty() => number.push(c),
            _ => words.push((c.to_string(), String::new())),
        }
    }
    let is_unit = |unit: &str| UNITS_OF_TIME.iter().any(|known| known.split(' ').any(|word| word == unit));
    !words.is_empty() && words.iter().all(|(number, unit)| is_number(number) && is_unit(unit))
}

fn nowhere() -> LabError {
    let problem = format!(
        "there is neither hq nor a Python with the package hyperqueue, expected one of them (pip install hyperqueue; {PYTHON} names another Python)"
    );
    LabError::refused("engine", problem)
}

/// What `hq job info` says of a job of this name.
fn state(info: &str, name: &str) -> State {
    let Ok(Value::Array(jobs)) = serde_json::from_str::<Value>(info) else {
        return State::Unknown("hq said something that is no JSON".into());
    };
    // An unknown number is an empty list; a server that forgot its jobs gives numbers out again.
    let Some(job) = jobs.iter().find(|job| job["info"]["name"] == name) else { return State::Gone };
    let stats = &job["info"]["task_stats"];
    let of = |key: &str| stats[key].as_u64().unwrap_or(0);
    if of("running") + of("waiting") > 0 { State::Active } else { State::Gone }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_that_hyperqueue_knows() {
        for time in ["01:30:00", "90s", "1h", "1h30m", "1h 30m", "90 min", "2days"] {
            assert!(is_time(time), "{time}");
        }
        for time in ["", "banana", "90", "1:30", "h", "1x", "1.5h", "-1h", "1h30"] {
            assert!(!is_time(time), "{time}");
        }
    }

    #[test]
    fn a_job_is_known_by_its_name() {
        let info = |name: &str, running: u64, waiting: u64| {
            format!(
                r#"[{{"info": {{"name": "{name}", "task_stats": {{"running": {running}, "waiting": {waiting}, "finished": 3}}}}}}]"#
            )
        };
        assert_eq!(state(&info("own", 1, 0), "own"), State::Active);
        assert_eq!(state(&info("own", 0, 2), "own"), State::Active);
        assert_eq!(state(&info("own", 0, 0), "own"), State::Gone);
        assert_eq!(state(&info("other", 1, 0), "own"), State::Gone);
        assert_eq!(state("[]", "own"), State::Gone);
        assert!(matches!(state("<html>", "own"), State::Unknown(_)));
    }
}
