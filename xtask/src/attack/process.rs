//! Runs the program under limits and judges what it says.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::trees::Tree;
use super::{Class, Fault};

/// Who says nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(10);
/// A signal stops everything within a second; the machine is busy with other cases.
const STOPS: Duration = Duration::from_secs(3);
/// Address space of a process in KiB, half as much again as the program lets itself take: an allocation without bound ends it.
const MEMORY_KIB: u64 = 12 << 20;

/// A run of the program.
#[derive(Clone, Debug)]
pub struct Call {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(&'static str, String)>,
    /// Where it runs.
    pub dir: PathBuf,
    /// What `sh` does before it becomes the program, `"$0"` with `"$@"`.
    pub shell: String,
    /// How long it may take.
    patience: Duration,
}

/// What came of it.
#[derive(Debug)]
pub struct Answer {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// Faults of the time it took.
    pub slow: Option<Fault>,
}

impl Call {
    pub fn new<A: Into<OsString>>(
        program: &Path,
        dir: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.to_owned(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            dir: dir.to_owned(),
            shell: format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\""),
            patience: SILENCE,
        }
    }

    pub fn and<A: Into<OsString>>(mut self, more: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(more.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: &'static str, value: impl ToString) -> Self {
        self.environment.push((name, value.to_string()));
        self
    }

    pub fn shell(mut self, script: impl Into<String>) -> Self {
        self.shell = script.into();
        self
    }

    /// Where results are compared, and not how long they take.
    pub fn patient(mut self) -> Self {
        self.patience = 30 * SILENCE;
        self
    }

    /// As one would type it.
    pub fn line(&self) -> String {
        let environment = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let words = self.arguments.iter().map(|a| quoted(&a.to_string_lossy()));
        environment.chain(["ictd".to_owned()]).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Starts it; what it says goes to files beside its directory.
    pub fn start(&self, name: &str) -> io::Result<Running> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.shell).arg(&self.program).args(&self.arguments);
        self.spawn(command, name)
    }

    /// Starts it below `strace`, which kills it when it makes the `when`-th of these system calls.
    pub fn start_killed_at(&self, calls: &str, when: usize, name: &str) -> io::Result<Running> {
        let mut command = Command::new("strace");
        let inject = format!("inject={calls}:signal=KILL:when={when}");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-e", &inject]);
        command.arg(&self.program).args(&self.arguments);
        self.spawn(command, name)
    }

    fn spawn(&self, mut command: Command, name: &str) -> io::Result<Running> {
        let file = |ending: &str| self.dir.with_extension(format!("{name}.{ending}"));
        let (stdout, stderr) = (file("out"), file("err"));
        command.current_dir(&self.dir).envs(self.environment.iter().map(|(n, v)| (n, v)));
        command.stdin(Stdio::null()).stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
        let is_quiet = self.arguments.iter().any(|word| word == "--quiet" || word == "-q");
        Ok(Running {
            child: command.spawn()?,
            stdout,
            stderr,
            started: Instant::now(),
            patience: self.patience,
            is_quiet,
        })
    }

    /// Runs it to its end, or to the limits.
    pub fn run(&self) -> io::Result<Answer> {
        self.start("only")?.wait()
    }
}

/// A process.
pub struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
    started: Instant,
    patience: Duration,
    /// Whether it was asked to say nothing.
    is_quiet: bool,
}

impl Running {
    /// Kills it after that time, if it still runs then; says whether it did.
    pub fn kill_after(mut self, time: Duration) -> io::Result<bool> {
        while self.started.elapsed() < time {
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        self.kill()
    }

    /// Kills it now; says whether it ran until now.
    pub fn kill(mut self) -> io::Result<bool> {
        self.child.kill()?;
        Ok(self.child.wait()?.signal() == Some(9))
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    pub fn wait(mut self) -> io::Result<Answer> {
        let mut slow = None;
        let mut pause = Duration::from_micros(200);
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if self.started.elapsed() > self.patience {
                let spoke = fs::metadata(&self.stderr).is_ok_and(|m| m.len() > 0);
                if !spoke && !self.is_quiet {
                    slow = Some(Fault::new(Class::Hang, format!("says nothing for {:?}", self.patience)));
                    self.child.kill()?;
                    break self.child.wait()?;
                }
                break self.stop(&mut slow)?;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        };
        let (stdout, stderr) = (fs::read(&self.stdout)?, fs::read(&self.stderr)?);
        let _ = (fs::remove_file(&self.stdout), fs::remove_file(&self.stderr));
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ok(Answer { code: status.code(), signal: status.signal(), stdout, stderr, slow })
    }

    /// Long work that speaks is asked to stop.
    fn stop(&mut self, slow: &mut Option<Fault>) -> io::Result<std::process::ExitStatus> {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status()?;
        let asked = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                // It may have come to its end at the same moment.
                if !matches!(status.code(), Some(0 | 1 | 3 | 124)) {
                    let found = status.code().map_or("a signal".into(), |code| format!("code {code}"));
                    *slow = Some(Fault::new(
                        Class::Stop,
                        format!("ends with {found} when it is stopped, expected code 124"),
                    ));
                }
                return Ok(status);
            }
            if asked.elapsed() > STOPS {
                *slow = Some(Fault::new(Class::Stop, format!("goes on for {STOPS:?} when it is stopped")));
                self.child.kill()?;
                return self.child.wait();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Keys under which `null` says that there is no such number: an option of the result, not a number that is none. Beside a
/// [`REASON`] in words any number may be absent.
const NULLS: &[&str] = &[
    "attracted_by",
    "attracting_weight",
    "beats_zero_from",
    "best",
    "best_spectral_radius",
    "beyond",
    "bound",
    "bound_depth",
    "bound_events",
    "bound_sampling",
    "context_factor",
    "contraction_threshold",
    "covered",
    "data",
    "decay",
    "decay_half_width",
    "depth_factor",
    "depth_slope",
    "error_at_depth",
    "error_bound",
    "error_bound_inf",
    "figure",
    "fixed_point",
    "flatness",
    "floor",
    "floor_half_width",
    "form_margin",
    "largest_stable",
    "layers",
    "layers_per_tenfold_median",
    "layers_per_tenfold_worst",
    "layers_predicted",
    "layers_sufficient",
    "length_slope",
    "limit_change",
    "measured_max",
    "measured_mean",
    "min_kernel_ess",
    "mixing",
    "n",
    "n_episodes",
    "n_transitions",
    "neu",
    "norm_inf",
    "onset",
    "paper_decay",
    "predicted_decay",
    "reason",
    "rest_slope",
    "slack",
    "spread_slope",
    "stability",
    "threshold",
    "transformer",
    "transient",
    "value",
];

/// The key under which an object says why it has no numbers.
const REASON: &str = "reason";

impl Answer {
    /// Everything that no answer may be, whatever was asked.
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut add = |class, what: String| faults.push(Fault::new(class, what));
        if let Some(line) = self.stderr.lines().find(|line| line.contains("panicked at")) {
            add(Class::Panic, line.to_owned());
        } else if let Some(signal) = self.signal.filter(|_| self.slow.is_none()) {
            add(Class::Abort, format!("ended by signal {signal}: {}", self.last_line()));
        } else if !matches!(self.code, Some(0..=3 | 124)) && self.slow.is_none() {
            add(Class::Other, format!("exit code {:?}: {}", self.code, self.last_line()));
        }
        let lines = self.stderr.lines().count();
        if self.code == Some(2) && (lines != 1 || !self.stderr.starts_with("error: ")) {
            add(Class::Other, format!("refused in {lines} lines: {}", self.last_line()));
        }
        if matches!(self.code, Some(0 | 1 | 3))
            && let Some(found) = no_number("json", &self.stdout)
        {
            add(Class::Nan, format!("{found} on standard output, exit code {:?}", self.code));
        }
        faults.extend(self.slow.clone());
        faults
    }

    /// The same, and numbers that are none in files that were written.
    pub fn faults_with(&self, written: &Tree) -> Vec<Fault> {
        let mut faults = self.faults();
        if matches!(self.code, Some(0 | 1 | 3)) {
            for (path, bytes) in &written.files {
                let ending = path.extension().map_or("", |e| e.to_str().unwrap_or(""));
                let is_text = matches!(ending, "json" | "csv" | "svg");
                if let Some(found) = no_number(ending, bytes).filter(|_| is_text) {
                    faults.push(Fault::new(Class::Nan, format!("{found} in {path:?}")));
                }
            }
        }
        faults
    }

    /// Whether it failed as things fail: code 1 or 2, one line that says why.
    pub fn is_refusal(&self) -> bool {
        let errors = self.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        matches!(self.code, Some(1 | 2)) && errors == 1 && self.last_line().starts_with("error: ")
    }

    pub fn last_line(&self) -> &str {
        self.stderr.lines().last().unwrap_or("")
    }

    /// Warnings and errors, digits aside.
    pub fn words(&self) -> Vec<String> {
        let is_said = |line: &&str| line.starts_with("warning") || line.starts_with("error");
        let plain = |line: &str| line.replace(|c: char| c.is_ascii_digit(), "");
        self.stderr.lines().filter(is_said).map(plain).collect()
    }
}

/// What is no number in a text: NaN, an infinity, or `null` where JSON has a number.
fn no_number(ending: &str, bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    if ending == "json"
        && let Ok(value) = serde_json::from_str(&text)
    {
        return null(&value, "");
    }
    let bad = |word: &&str| matches!(*word, "NaN" | "nan" | "inf" | "Infinity");
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.find(bad).map(str::to_owned)
}

fn null(value: &serde_json::Value, key: &str) -> Option<String> {
    match value {
        serde_json::Value::Null => (!NULLS.contains(&key)).then(|| format!("null as {key}")),
        serde_json::Value::Array(items) => items.iter().find_map(|item| null(item, key)),
        serde_json::Value::Object(entries) if entries.get(REASON).is_some_and(|why| why.is_string()) => None,
        serde_json::Value::Object(entries) => entries.iter().find_map(|(key, value)| null(value, key)),
        _ => None,
    }
}

/// A word as a shell takes it; very long ones are shortened and say so.
fn quoted(word: &str) -> String {
    if word.chars().count() > 300 {
        let start: String = word.chars().take(8).collect();
        return format!("'{start}…' ({} bytes)", word.len());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else if word.contains(char::is_control) {
        format!("$'{}'", word.escape_default())
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
