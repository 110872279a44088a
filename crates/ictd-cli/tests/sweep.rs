//! Sweeps as commands: what they print, how they end, and whose directories they touch.
#![allow(missing_docs)]

mod common;

use std::fs;
use std::path::Path;
#[cfg(unix)]
use std::process::Output;

use common::{assert_refused, ictd_in, json};
use serde_json::Value;

const PLAN: &str = "seeds = 2\n[set]\nepochs = 30\nbatch = 8\n[grid]\n\"optimizer.lr\" = [1e-3, 1e6]\n";

fn with_plan(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("plan.toml"), text).unwrap();
    dir
}

/// Every file below a directory with its bytes.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(files(&entry));
        } else {
            found.push((entry.display().to_string(), fs::read(&entry).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_second_call_changes_nothing_and_ends_with_0() {
    let dir = with_plan(PLAN);
    let sweep = ["sweep", "plan.toml", "--out", "my out"];
    let first = ictd_in(dir.path(), &sweep);
    let message = String::from_utf8_lossy(&first.stderr);
    assert_eq!(first.status.code(), Some(1), "{message}");
    assert!(
        message.contains("2 of 4 runs diverged") && message.contains("ictd sweep show 'my out'"),
        "{message}"
    );
    let before = files(dir.path());
    let second = ictd_in(dir.path(), &sweep);
    let message = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(0), "{message}");
    assert!(message.contains("finished before") && message.contains("2 of 4 runs diverged"), "{message}");
    assert_eq!(files(dir.path()), before);
    let shown = ictd_in(dir.path(), &["sweep", "show", "my out"]);
    assert_eq!(shown.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("2 runs diverged and have no numbers"));
}

#[test]
fn what_is_asked_for_as_json_is_json() {
    let dir = with_plan(&PLAN.replace(", 1e6", ", 2e-3"));
    let sweep = ["sweep", "plan.toml", "--out", "out", "--json"];
    let told = |more: &[&str]| -> Value { json(&ictd_in(dir.path(), &[&sweep, more].concat())) };
    let before = told(&["--dry-run"]);
    assert_eq!((&before["runs"], &before["done"], &before["left"]), (&4.into(), &0.into(), &4.into()));
    assert!(before["seconds"].as_f64().unwrap() > 0.0 && !dir.path().join("out").exists());
    let part = told(&["--index", "1..3"]);
    assert_eq!((&part["first"], &part["end"], &part["done"]), (&1.into(), &3.into(), &2.into()));
    assert_eq!(told(&["--dry-run"])["done"], 2);
    assert_eq!(told(&[])["runs"], 4);
    let after = told(&["--dry-run"]);
    assert_eq!((&after["done"], &after["seconds"]), (&4.into(), &Value::Null));
}

#[test]
fn times_are_those_of_the_engine() {
    let dir = with_plan(PLAN);
    for (engine, time) in
        [("slurm", "banana"), ("slurm", "1h"), ("hyperqueue", "90"), ("hyperqueue", "banana")]
    {
        let output = ictd_in(dir.path(), &["sweep", "plan.toml", "--engine", engine, "--time", time]);
        assert_refused(&output, &format!("time is '{time}', expected"));
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    // A path with signs that mean something to Slurm or to a shell.
    let out = "50% of it's";
    let sweep = ["sweep", "plan.toml", "--out", out, "--engine", "slurm", "--write-job", "--time", "1-12"];
    assert!(ictd_in(dir.path(), &sweep).status.success());
    let script = fs::read_to_string(dir.path().join(out).join("engine/job.sh")).unwrap();
    assert!(
        script.contains("#SBATCH --time=1-12\n")
            && script.contains(r"50%%\ of\ it\'s/engine/logs/unit_%a.log")
    );
    assert!(script.contains(r"50% of it'\''s' --index"), "{script}");
}

/// What is typed may be what a case of the map says: both have a row.
#[test]
fn maps_take_changes_that_their_cases_have() {
    let dir = tempfile::tempdir().unwrap();
    let map = ["branches", "--seeds", "1", "--set", "epochs=1", "--set", "batch=2", "--json", "--fresh"];
    for change in [&["--states", "16"][..], &["--set", "n=5"], &["--set", "tau=0.6"]] {
        let found = json(&ictd_in(dir.path(), &[&map, change].concat()));
        let counts = found["counts"].as_array().unwrap();
        assert_eq!((counts.len(), &counts[0]["change"]), (33, &"as given".into()), "{change:?}");
    }
}

/// A map is gone on with or shown; another one in its place has to be asked for.
#[test]
fn maps_are_not_replaced_without_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let map = ["branches", "--set", "epochs=1", "--set", "batch=2", "--out", "map", "--seeds"];
    let made = |more: &[&str]| ictd_in(dir.path(), &[&map, more].concat());
    assert!(made(&["1"]).status.success());
    let before = files(&dir.path().join("map"));
    for more in [&["2"][..], &["1", "--map", "kernels"]] {
        assert_refused(&made(more), "--extend");
        assert_eq!(files(&dir.path().join("map")), before);
    }
    assert!(made(&["1"]).status.success());
    assert_eq!(files(&dir.path().join("map")), before);
    assert!(made(&["2", "--extend"]).status.success());
    fs::write(dir.path().join("map/sweep.json"), "{").unwrap();
    assert_refused(&made(&["2"]), "--fresh starts over");
    assert!(made(&["1", "--map", "kernels", "--fresh"]).status.success());
    // A table of somebody else's.
    fs::create_dir(dir.path().join("foo")).unwrap();
    fs::write(dir.path().join("foo/results.csv"), "mine").unwrap();
    let foreign = ["branches", "--seeds", "1", "--set", "epochs=1", "--out", "foo", "--fresh"];
    assert_refused(&ictd_in(dir.path(), &foreign), "has no sweep.json but 'results.csv'");
    assert_eq!(fs::read(dir.path().join("foo/results.csv")).unwrap(), b"mine");
}

/// First gradients are measured once for a map, and again where what was kept of them is damaged.
#[test]
fn first_gradients_are_measured_once() {
    let dir = tempfile::tempdir().unwrap();
    let map = ["branches", "--set", "epochs=1", "--set", "batch=2", "--out", "map", "--seeds", "1"];
    assert!(ictd_in(dir.path(), &map).status.success());
    let kept = dir.path().join("map/first_gradient.json");
    let when = || fs::metadata(&kept).unwrap().modified().unwrap();
    let (text, table) =
        (fs::read_to_string(&kept).unwrap(), fs::read(dir.path().join("map/first_gradient.csv")).unwrap());
    let before = when();
    assert!(ictd_in(dir.path(), &map).status.success());
    assert_eq!(when(), before, "nothing was measured");
    fs::write(&kept, text.replacen("\"gradient\": ", "\"gradient\": 1", 1)).unwrap();
    assert!(ictd_in(dir.path(), &map).status.success());
    assert_eq!(fs::read_to_string(&kept).unwrap(), text);
    assert_eq!(fs::read(dir.path().join("map/first_gradient.csv")).unwrap(), table);
    // Others for other seeds.
    assert!(ictd_in(dir.path(), &[&map[..8], &["2", "--extend"]].concat()).status.success());
    assert_ne!(fs::read_to_string(&kept).unwrap(), text);
}

/// What contradicts itself or asks for nothing is refused before anything is made of it.
#[test]
fn contradictions_are_refused() {
    let dir = with_plan(PLAN);
    for (options, expected) in [
        (&["--chunk", "0", "--engine", "slurm"][..], "chunk is 0, expected at least 1"),
        (&["--array-limit", "0", "--engine", "slurm"], "array-limit is 0, expected at least 1"),
        (&["--chunk", "5"], "chunk: --engine local has no use for it"),
        (&["--write-job"], "write-job: --engine local has no use for it"),
        (&["--time", "30"], "time: --engine local has no use for it"),
        (&["--job-option=--qos=low"], "job-option: --engine local has no use for it"),
        (
            &["--array-limit", "2", "--engine", "hyperqueue"],
            "array-limit: --engine hyperqueue has no use for it",
        ),
        (&["--engine", "slurm", "--index", "0..2"], "--index"),
        (&["--engine", "slurm", "--dry-run"], "--dry-run"),
        (&["--engine", "slurms"], "slurm"),
        (&["--fresh", "--extend"], "--extend"),
        (&["--fresh", "--index", "0..2"], "fresh: every worker would remove what the others did"),
        (&["--index", "0..5"], "index is '0..5', expected A..B within 0..4"),
        (&["--index", "0..5", "--dry-run"], "index is '0..5', expected A..B within 0..4"),
        (&["--index", "2..2"], "index is '2..2'"),
        (&["--index", "banana", "--dry-run"], "index is 'banana'"),
        (&["--threads", "0"], "threads is 0"),
    ] {
        assert_refused(
            &ictd_in(dir.path(), &[&["sweep", "plan.toml", "--out", "out"], options].concat()),
            expected,
        );
    }
    for option in ["--job-name=mine", "--array=0-3", "--parsable", "-J", "-Jmine", "-a0-3"] {
        let typed = format!("--job-option={option}");
        let output = ictd_in(dir.path(), &["sweep", "plan.toml", "--engine", "slurm", &typed]);
        assert_refused(&output, &format!("job-option: '{option}' is what the sweep says itself"));
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn what_there_is_to_do_of_a_part_is_told() {
    let dir = with_plan(&PLAN.replace(", 1e6", ", 2e-3"));
    let part = ["sweep", "plan.toml", "--out", "out", "--index", "1..3"];
    assert!(ictd_in(dir.path(), &["sweep", "plan.toml", "--out", "out", "--index", "0..2"]).status.success());
    let told = json(&ictd_in(dir.path(), &[&part[..], &["--dry-run", "--json"]].concat()));
    assert_eq!((&told["first"], &told["end"]), (&1.into(), &3.into()));
    assert_eq!((&told["done"], &told["left"]), (&1.into(), &1.into()));
    // A worker tries nothing before it begins: there are many, and each would.
    let worker = ictd_in(dir.path(), &part);
    let message = String::from_utf8_lossy(&worker.stderr);
    assert!(message.contains("1 to 3 here, 1 done before") && !message.contains("about"), "{message}");
}

/// Programs under the names of Slurm's: `sbatch` does the units itself, one after the other, unless the file `hold` is there; `squeue`
/// prints the file `queue`.
#[cfg(unix)]
fn slurm(dir: &Path) -> impl Fn(&[&str]) -> Output {
    use std::os::unix::fs::PermissionsExt as _;
    const SBATCH: &str = r#"#!/bin/sh
here=$(dirname "$0"); echo "$@" >> "$here/submitted"
[ -e "$here/refuse" ] && { echo "sbatch: error: no" >&2; exit 1; }
for job; do :; done
for part in $(sed -n 's/^#SBATCH --array=//p' "$job" | tr , ' '); do
  unit=${part%-*}
  while [ ! -e "$here/hold" ] && [ "$unit" -le "${part#*-}" ]; do
    SLURM_ARRAY_TASK_ID=$unit sh "$job" > /dev/null 2>&1 < /dev/null
    unit=$((unit + 1))
  done
done
echo "7;far"
"#;
    const SQUEUE: &str = "#!/bin/sh\nhere=$(dirname \"$0\"); echo \"$@\" >> \"$here/asked\"; cat \"$here/queue\" 2> /dev/null; exit 0\n";
    let bin = dir.join("bin");
    fs::create_dir(&bin).unwrap();
    for (name, text) in
        [("sbatch", SBATCH), ("squeue", SQUEUE), ("scontrol", "#!/bin/sh\necho MaxArraySize = 3\n")]
    {
        fs::write(bin.join(name), text).unwrap();
        fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let dir = dir.to_owned();
    move |arguments| {
        let mut command = assert_cmd::Command::cargo_bin("ictd").unwrap();
        command.current_dir(&dir).env("PATH", &path).args(arguments).output().unwrap()
    }
}

/// The number of jobs that were submitted.
#[cfg(unix)]
fn submitted(dir: &Path) -> usize {
    fs::read_to_string(dir.join("bin/submitted")).unwrap_or_default().lines().count()
}

/// A sweep whose parameters are gone is not finished: an engine makes them again, and nothing else.
#[cfg(unix)]
#[test]
fn an_engine_makes_lost_parameters_again() {
    let dir = with_plan(
        &PLAN.replace(", 1e6", ", 2e-3, 3e-3").replace("seeds = 2", "seeds = 4\ncheckpoints = \"final\""),
    );
    let ictd = slurm(dir.path());
    let sweep = ["sweep", "plan.toml", "--out", "out", "--engine", "slurm"];
    let first = ictd(&sweep);
    let message = String::from_utf8_lossy(&first.stderr);
    // As many units as fit into an array, whatever they take.
    assert!(
        first.status.success() && message.contains("slurm has job 7: 3 units of 4 runs each"),
        "{message}"
    );
    assert_eq!(submitted(dir.path()), 1);
    let before = files(&dir.path().join("out"));
    let lost = before.iter().find(|(name, _)| name.ends_with("seed_0003.final.safetensors")).unwrap();
    fs::remove_file(&lost.0).unwrap();
    let again = ictd(&sweep);
    let message = String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success(), "{message}");
    assert!(
        message.contains("12 runs, 11 done before") && message.contains("job 7: 1 unit of 4 runs"),
        "{message}"
    );
    assert_eq!((submitted(dir.path()), fs::read(&lost.0).unwrap()), (2, lost.1.clone()));
    // Where the parameters cannot be made, the sweep does not say that it is finished.
    fs::remove_file(&lost.0).unwrap();
    fs::write(dir.path().join("bin/hold"), "").unwrap();
    let never = ictd(&sweep);
    let message = String::from_utf8_lossy(&never.stderr);
    assert!(
        never.status.code() == Some(2) && message.contains("1 of 12 runs left after 3 submissions"),
        "{message}"
    );
    assert!(!dir.path().join("out/engine/job.json").exists());
}

/// Where there is no such engine nothing was submitted, and another one may be asked.
#[cfg(unix)]
#[test]
fn an_engine_that_is_not_there_has_no_job() {
    let dir = with_plan(&PLAN.replace(", 1e6", ", 2e-3"));
    for (engine, missing) in [("slurm", "there is no sbatch here"), ("hyperqueue", "there is neither hq nor")]
    {
        let mut command = assert_cmd::Command::cargo_bin("ictd").unwrap();
        let command = command.current_dir(dir.path()).env("PATH", dir.path()).env_remove("ICTD_PYTHON");
        let output =
            command.args(["sweep", "plan.toml", "--out", "out", "--engine", engine]).output().unwrap();
        assert_refused_last(&output, missing);
        assert!(!dir.path().join("out/engine/job.json").exists());
    }
}

/// A job that its engine knows is neither forgotten for another engine nor by starting over, and is asked about where it is.
#[cfg(unix)]
#[test]
fn a_job_that_is_under_way_is_not_forgotten() {
    let dir = with_plan(&PLAN.replace(", 1e6", ", 2e-3"));
    let ictd = slurm(dir.path());
    let sweep = ["sweep", "plan.toml", "--out", "out", "--engine"];
    // Refused: nothing waits for it, and `--watch` does not either.
    fs::write(dir.path().join("bin/refuse"), "").unwrap();
    assert_refused_last(&ictd(&[&sweep[..], &["slurm"]].concat()), "engine: sbatch: sbatch: error: no");
    assert!(!dir.path().join("out/engine/job.json").exists());
    fs::remove_file(dir.path().join("bin/refuse")).unwrap();
    // Taken, and waiting: the command is killed.
    fs::write(dir.path().join("bin/hold"), "").unwrap();
    fs::write(dir.path().join("bin/queue"), "CLUSTER: far\nPD|Priority\n").unwrap();
    let path = format!("{}:{}", dir.path().join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("ictd"));
    command
        .current_dir(dir.path())
        .env("PATH", path)
        .args(sweep)
        .arg("slurm")
        .stderr(std::process::Stdio::null());
    let mut command = command.spawn().unwrap();
    let asked = || fs::read_to_string(dir.path().join("bin/asked")).unwrap_or_default();
    while !asked().contains("-M far") {
        assert!(command.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    command.kill().unwrap();
    command.wait().unwrap();
    let under_way = "slurm has job 7, which is under way, expected it to end or to be cancelled";
    assert_refused_last(&ictd(&[&sweep[..], &["hyperqueue"]].concat()), under_way);
    for fresh in [
        // The runs would be done here and there, and workers there would find the directory in use.
        &["sweep", "plan.toml", "--out", "out"][..],
        &["sweep", "plan.toml", "--out", "out", "--extend", "--seeds", "3"],
        &["sweep", "plan.toml", "--out", "out", "--fresh"],
        &[&sweep[..], &["slurm", "--fresh"]].concat(),
    ] {
        assert_refused_last(&ictd(fresh), under_way);
        assert!(
            dir.path().join("out/engine/job.json").exists() && dir.path().join("out/sweep.json").exists()
        );
    }
    // Its workers are no others.
    assert!(ictd(&["sweep", "out", "--index", "0..1"]).status.success());
    // It is over: others may do the runs, and nobody is waited for.
    fs::write(dir.path().join("bin/queue"), "CLUSTER: far\n").unwrap();
    let watched = ictd(&["sweep", "show", "out", "--watch"]);
    assert_refused_last(&watched, "no process works on the others");
    assert!(ictd(&["sweep", "plan.toml", "--out", "out"]).status.success());
    assert!(!dir.path().join("out/engine/job.json").exists());
    assert!(ictd(&["sweep", "plan.toml", "--out", "out", "--fresh"]).status.success());
    assert!(!dir.path().join("out/engine").exists());
    assert_eq!(submitted(dir.path()), 2);
}

/// An error after other messages: one line, the last one.
#[cfg(unix)]
fn assert_refused_last(output: &Output, part: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    let last = message.trim_end().lines().last().unwrap_or_default();
    assert!(
        output.status.code() == Some(2) && last.starts_with("error: ") && last.contains(part),
        "{message}"
    );
    assert_eq!(message.matches("error: ").count(), last.matches("error: ").count(), "{message}");
}
