//! Slurm: an array job whose elements are units.
//!
//! Without accounting Slurm forgets elements some minutes after their end, and numbers of jobs that were lost in a crash of the
//! controller are given out again: a job is asked about by its name.

use std::path::PathBuf;
use std::process::Command;

use super::{Engine, Job, State, Work, called, complaint};
use crate::{LabError, shell_word};

/// Reasons for which Slurm keeps an element waiting that will not pass by themselves.
const STUCK: [&str; 6] =
    ["held", "JobHeld", "PartitionConfig", "BadConstraints", "DependencyNeverSatisfied", "InvalidAccount"];
/// How much longer than the trial says a unit may take: other machines are slower, and nodes are shared.
const SAFETY: f64 = 4.0;
/// Minutes that a unit gets beside that.
const SPARE: f64 = 5.0;

/// Slurm's commands.
#[derive(Debug)]
pub(super) struct Slurm;

fn missing(program: &str) -> LabError {
    let problem = format!(
        "there is no {program} here, expected Slurm's commands; --write-job writes the job without them"
    );
    LabError::refused("engine", problem)
}

impl Engine for Slurm {
    fn largest_unit(&self) -> Result<usize, LabError> {
        // Where the controller does not answer, submitting will say so.
        let Some(output) = called(Command::new("scontrol").args(["show", "config"]))? else {
            return Ok(1000);
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let size = text.lines().find_map(|line| {
            line.trim().strip_prefix("MaxArraySize")?.split('=').nth(1)?.trim().parse::<usize>().ok()
        });
        Ok(size.unwrap_or(1001).max(2) - 1)
    }

    fn write(&self, work: &Work<'_>) -> Result<PathBuf, LabError> {
        let Work { root, folder, program, name, runs, chunk, units, seconds, options } = work;
        folder.below("logs")?;
        let time = options.time.clone().unwrap_or_else(|| {
            let minutes = (SAFETY * seconds / 60.0 + SPARE).ceil() as u64;
            format!("{}-{:02}:{:02}:00", minutes / 1440, minutes / 60 % 24, minutes % 60)
        });
        let limit = options.limit.map_or_else(String::new, |limit| format!("%{limit}"));
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let log = format!("{}/unit_%a.log", in_options(&text(&root.join("engine/logs"))));
        let threads = options.threads;
        let script = format!(
            "#!/bin/sh\n\
             #SBATCH --job-name={name}\n\
             #SBATCH --array={}{limit}\n\
             #SBATCH --cpus-per-task={threads}\n\
             #SBATCH --time={time}\n\
             #SBATCH --requeue\n\
             #SBATCH --open-mode=append\n\
             #SBATCH --output={log}\n\
             first=$((SLURM_ARRAY_TASK_ID * {chunk}))\n\
             end=$((first + {chunk}))\n\
             if [ $end -gt {runs} ]; then end={runs}; fi\n\
             # In the place of the shell, so that signals reach it.\n\
             exec {} sweep {} --index $first..$end --threads {threads}\n",
            ranges(units),
            shell_word(&text(program)),
            shell_word(&text(root)),
        );
        folder.write("job.sh", script.as_bytes())?;
        Ok(folder.path().join("job.sh"))
    }

    fn submit(&mut self, work: &Work<'_>, job: &mut Job) -> Result<(), LabError> {
        let mut command = Command::new("sbatch");
        command.arg("--parsable").args(&work.options.extra).arg(work.folder.path().join("job.sh"));
        let Some(output) = called(&mut command)? else { return Err(missing("sbatch")) };
        if !output.status.success() {
            return Err(LabError::refused("engine", format!("sbatch: {}", complaint(&output))));
        }
        // Where its answer has no number the job is known by its name.
        (job.id, job.cluster) = number_and_cluster(&String::from_utf8_lossy(&output.stdout));
        Ok(())
    }

    fn state(&mut self, job: &Job) -> Result<State, LabError> {
        let mut command = Command::new("squeue");
        command.args(["-h", "-r", "-n", &job.name, "-o", "%t|%r"]);
        command.args(job.cluster.iter().flat_map(|cluster| ["-M", cluster]));
        let Some(output) = called(&mut command)? else { return Err(missing("squeue")) };
        if !output.status.success() {
            return Ok(State::Unknown(complaint(&output)));
        }
        Ok(state(&String::from_utf8_lossy(&output.stdout)))
    }
}

/// What `sbatch --parsable` answers in its last line, whatever a site says before: the number of a job, and with several clusters
/// the name of one.
fn number_and_cluster(answer: &str) -> (Option<String>, Option<String>) {
    let last = answer.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut words = last.trim().split(';').map(String::from);
    match words.next() {
        Some(id) if id.parse::<u64>().is_ok() => (Some(id), words.next()),
        _ => (None, None),
    }
}

/// A path as Slurm takes it in a line of options of a script: up to the first space, quote or `#` without a backslash, and with
/// `%` for what differs between elements.
fn in_options(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for c in path.chars() {
        match c {
            '%' => text.push('%'),
            ' ' | '\'' | '"' | '#' | '\\' => text.push('\\'),
            _ => {}
        }
        text.push(c);
    }
    text
}

/// Whether Slurm takes a text for a time limit: minutes, minutes:seconds, hours:minutes:seconds, days-hours and so on.
pub(super) fn is_time(text: &str) -> bool {
    if ["infinite", "unlimited"].contains(&text.to_lowercase().as_str()) {
        return true;
    }
    let is_number = |part: &str| (1..=9).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let (days, rest) = text.split_once('-').map_or((None, text), |(days, rest)| (Some(days), rest));
    days.is_none_or(is_number) && rest.split(':').count() <= 3 && rest.split(':').all(is_number)
}

/// Whether an option of `sbatch` is one that jobs of sweeps have already: their name and their elements, by which they are asked
/// about, and what is printed.
pub(super) fn is_own(option: &str) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    let is_short = ["-J", "-a"].iter().any(|short| name.starts_with(short));
    is_short || ["--job-name", "--array", "--parsable"].contains(&name)
}

/// What the elements of a job that Slurm knows of come to.
fn state(elements: &str) -> State {
    let mut stuck = None;
    // Where a cluster is named its name comes first.
    let is_element = |line: &&str| !line.is_empty() && !line.starts_with("CLUSTER:");
    for line in elements.lines().map(str::trim).filter(is_element) {
        let (state, reason) = line.split_once('|').unwrap_or((line, ""));
        match state {
            "PD" if STUCK.iter().any(|word| reason.contains(word)) => {
                stuck.get_or_insert_with(|| reason.to_owned());
            }
            _ => return State::Active,
        }
    }
    stuck.map_or(State::Gone, State::Stuck)
}

/// Numbers as Slurm lists them: `0-4,7,9-11`.
fn ranges(units: &[usize]) -> String {
    let runs = units.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [unit] => unit.to_string(),
        run => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_listed_as_ranges() {
        for (units, list) in [(vec![0], "0"), (vec![0, 1, 2, 3], "0-3"), (vec![0, 1, 4, 6, 7], "0-1,4,6-7")] {
            assert_eq!(ranges(&units), list);
        }
    }

    #[test]
    fn answers_have_a_number() {
        let of = |answer| number_and_cluster(answer);
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("17\n"), (some("17"), None));
        assert_eq!(of("Welcome; be kind\n17;far\n\n"), (some("17"), some("far")));
        for answer in ["", "\n", "submitted", ";far"] {
            assert_eq!(of(answer), (None, None), "{answer:?}");
        }
    }

    #[test]
    fn paths_keep_their_signs() {
        assert_eq!(in_options("/a/b"), "/a/b");
        assert_eq!(in_options(r##"/50% of/it's "x#y\"##), r##"/50%%\ of/it\'s\ \"x\#y\\"##);
    }

    #[test]
    fn limits_are_those_that_slurm_knows() {
        for time in ["90", "90:30", "1:30:00", "2-12", "2-12:30", "2-12:30:15", "UNLIMITED"] {
            assert!(is_time(time), "{time}");
        }
        for time in ["", "banana", "1h", "1:2:3:4", "-1", "1-", "1-2-3", "1.5", "1:", "99999999999"] {
            assert!(!is_time(time), "{time}");
        }
    }

    #[test]
    fn a_job_is_active_as_long_as_one_element_can_go_on() {
        assert_eq!(state(""), State::Gone);
        assert_eq!(state("R|None\n"), State::Active);
        assert_eq!(state("PD|BeginTime\n"), State::Active);
        assert_eq!(state("PD|Resources\nR|None"), State::Active);
        assert_eq!(
            state("PD|launch failed requeued held\n"),
            State::Stuck("launch failed requeued held".into())
        );
        assert_eq!(state("PD|PartitionConfig\nPD|Priority"), State::Active);
        assert_eq!(state("CLUSTER: far\n"), State::Gone);
        assert_eq!(state("CLUSTER: far\nR|None"), State::Active);
    }
}
