//! Attacks on the program: what it is given, where it writes and what happens to it meanwhile, the same in every run.

mod directories;
mod draw;
mod flags;
mod flips;
mod kills;
mod known;
mod levels;
mod pairs;
mod process;
mod readers;
mod small;
mod table;
mod trees;

pub use table::Row;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Cases that run at once.
const WORKERS: usize = 2;
/// Time between words on what is going on.
const SPEAKS: Duration = Duration::from_secs(5);

/// What a fault is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The program panicked.
    Panic,
    /// A signal that nobody sent ended it.
    Abort,
    /// Damage became a result, and nothing was said.
    Silent,
    /// A number that is none, in a result.
    Nan,
    /// No word for ten seconds.
    Hang,
    /// It is asked to stop, and does not, or not as promised.
    Stop,
    /// Everything else that is not as promised.
    Other,
}

impl Class {
    /// All of them with their headings.
    pub const ALL: [(Self, &str); 7] = [
        (Self::Panic, "panics"),
        (Self::Abort, "aborts"),
        (Self::Silent, "silent differences"),
        (Self::Nan, "NaN"),
        (Self::Hang, "hangs"),
        (Self::Stop, "not stopped"),
        (Self::Other, "other"),
    ];
}

/// Something that must not happen.
#[derive(Clone, Debug)]
pub struct Fault {
    pub class: Class,
    pub what: String,
}

impl Fault {
    pub fn new(class: Class, what: impl Into<String>) -> Self {
        Self { class, what: what.into() }
    }
}

/// What a case did, as one would type it, and what was wrong.
#[derive(Debug)]
pub struct Case {
    pub line: String,
    pub faults: Vec<Fault>,
}

/// Cases of one kind, by number.
pub struct Attack<'a> {
    /// Kind and what is attacked, for instance `flips/cache`.
    pub name: String,
    /// Cases of `cargo xtask attack`, of which there are no more where `finite`.
    pub cases: u64,
    pub finite: bool,
    /// Does a case in an empty directory of its own.
    pub run: Box<dyn Fn(u64, &Path) -> io::Result<Case> + Sync + 'a>,
}

impl<'a> Attack<'a> {
    /// Cases without end.
    pub fn endless(
        name: impl Into<String>,
        cases: u64,
        run: impl Fn(u64, &Path) -> io::Result<Case> + Sync + 'a,
    ) -> Self {
        Self { name: name.into(), cases, finite: false, run: Box::new(run) }
    }

    /// A list of cases.
    pub fn finite(
        name: impl Into<String>,
        cases: usize,
        run: impl Fn(u64, &Path) -> io::Result<Case> + Sync + 'a,
    ) -> Self {
        Self { name: name.into(), cases: cases as u64, finite: true, run: Box::new(run) }
    }
}

/// Kinds of attacks and what makes them ready.
pub const KINDS: [(&str, fn(&Lab) -> io::Result<Vec<Attack<'_>>>); 7] = [
    ("flags", flags::attacks),
    ("known", known::attacks),
    ("flips", flips::attacks),
    ("kills", kills::attacks),
    ("pairs", pairs::attacks),
    ("directories", directories::attacks),
    ("levels", levels::attacks),
];

/// The program and a place to work.
pub struct Lab {
    pub program: PathBuf,
    /// Removed at the end.
    pub scratch: PathBuf,
}

impl Lab {
    /// In memory where that is possible: what is written is synced, which takes most of the time on a disk.
    pub fn open(program: &Path) -> io::Result<Self> {
        let name = format!("ictd-attack-{}", std::process::id());
        let places = [Path::new("/dev/shm").to_owned(), std::env::temp_dir()];
        let scratch =
            places.iter().map(|place| place.join(&name)).find(|path| fs::create_dir_all(path).is_ok());
        let scratch = scratch.ok_or_else(|| io::Error::other("no directory for temporary files"))?;
        Ok(Self { program: fs::canonicalize(program)?, scratch })
    }

    /// An empty directory for what attacks have in common.
    pub fn dir(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.scratch.join(name);
        trees::fresh(&path)?;
        Ok(path)
    }

    /// A run of the program in a directory.
    pub fn call(&self, dir: &Path, arguments: &[&str]) -> process::Call {
        process::Call::new(&self.program, dir, arguments)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // What stays behind takes memory until the next start of the machine, and harms nobody.
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// All cases of the table.
    Full,
    /// One in so many, and at least a few.
    Part(u64),
    /// As many as this time allows, per attack.
    Time(Duration),
    /// This one.
    One(u64),
}

impl Extent {
    fn cases(self, attack: &Attack<'_>) -> std::ops::Range<u64> {
        match self {
            Self::Part(part) => 0..attack.cases.div_ceil(part).max(4).min(attack.cases),
            Self::Time(_) if !attack.finite => 0..u64::MAX,
            Self::Full | Self::Time(_) => 0..attack.cases,
            Self::One(case) => case..case + 1,
        }
    }

    fn time(self) -> Duration {
        if let Self::Time(time) = self { time } else { Duration::MAX }
    }
}

/// Does the cases of an attack, two at a time.
pub fn run(lab: &Lab, attack: &Attack<'_>, extent: Extent) -> Row {
    let cases = extent.cases(attack);
    // A part of a list has something of everything in it.
    let is_spread = attack.finite && matches!(extent, Extent::Part(_));
    let stride = if is_spread { attack.cases / cases.end.max(1) } else { 1 };
    let (next, done) = (AtomicU64::new(cases.start), AtomicU64::new(0));
    let failures = Mutex::new(Vec::new());
    let start = Instant::now();
    let spoken = Mutex::new(Instant::now());
    let work = |worker: usize| {
        while start.elapsed() < extent.time() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= cases.end {
                break;
            }
            let number = number * stride;
            let dir = lab.scratch.join(format!("worker-{worker}/case"));
            let case = trees::fresh(&dir).and_then(|()| (attack.run)(number, &dir));
            let case = case.unwrap_or_else(|error| Case {
                line: String::new(),
                faults: vec![Fault::new(Class::Other, format!("could not be tried: {error}"))],
            });
            if matches!(extent, Extent::One(_)) {
                eprintln!("{} case {number}: {}", attack.name, case.line);
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
            if !case.faults.is_empty() {
                failures.push((number, case));
            }
            let mut spoken = spoken.lock().unwrap_or_else(PoisonError::into_inner);
            if spoken.elapsed() > SPEAKS {
                *spoken = Instant::now();
                let of = if cases.end == u64::MAX { String::new() } else { format!(" of {}", cases.end) };
                eprintln!("{}: {done}{of} cases, {} failed", attack.name, failures.len());
            }
        }
    };
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            scope.spawn(move || work(worker));
        }
    });
    let mut failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort_by_key(|(number, _)| *number);
    Row {
        name: attack.name.clone(),
        cases: done.into_inner(),
        failures,
        seconds: start.elapsed().as_secs_f64(),
    }
}

/// Attacks on the binary whose names begin as asked for, each to the extent that is asked for first.
pub fn all(lab: &Lab, wanted: &[(&str, Extent)], mut row: impl FnMut(Row)) -> io::Result<()> {
    for (kind, attacks) in KINDS {
        if !wanted.iter().any(|(name, _)| kind.starts_with(name) || name.starts_with(kind)) {
            continue;
        }
        for attack in attacks(lab)? {
            if let Some((_, extent)) = wanted.iter().find(|(name, _)| attack.name.starts_with(name)) {
                row(run(lab, &attack, *extent));
            }
        }
    }
    Ok(())
}

/// Inputs per reader and the seconds they may take: those that only read have them all, those that compute as many as fit.
const INPUTS: (u64, u64) = (14_000, 40);
/// `quick` is one case in so many.
const QUICK: u64 = 30;

/// What the command line asks for: names that begin so, and how much of them.
fn asked<'a>(arguments: &[&'a str]) -> (&'a str, Extent) {
    let number = |text: &str| text.parse::<u64>().ok();
    match arguments {
        [] => ("", Extent::Full),
        ["quick"] => ("", Extent::Part(QUICK)),
        [only] => match number(only) {
            // Equal shares for the attacks, of which there are about forty.
            Some(seconds) => ("", Extent::Time(Duration::from_secs(seconds) / 40)),
            None => (only, Extent::Full),
        },
        [name, case, ..] => (name, number(case).map_or(Extent::Part(QUICK), Extent::One)),
    }
}

/// Whether the command line asks for attacks on readers, which are a program of their own.
pub fn wants_readers(arguments: &[&str]) -> bool {
    let (wanted, _) = asked(arguments);
    "readers".starts_with(wanted) || wanted.starts_with("readers")
}

/// Failures of an attack that are printed, per class; all are in a file.
const PRINTED: usize = 3;

/// Copies the table of the last run to the docs.
pub fn publish() -> io::Result<()> {
    table::publish()
}

/// Does what the command line asks for, prints the table and the first failures, and says whether there are none.
pub fn command(arguments: &[&str], program: &Path, mut readers: std::process::Command) -> bool {
    let (wanted, extent) = asked(arguments);
    let mut rows: Vec<Row> = Vec::new();
    let mut done = || -> io::Result<()> {
        let mut add = |row: Row| {
            eprintln!(
                "{}: {} cases, {} failed, {:.0} s",
                row.name,
                row.cases,
                row.failures.len(),
                row.seconds
            );
            rows.push(row);
        };
        if wants_readers(arguments) {
            let name = wanted.strip_prefix("readers/").unwrap_or("all").to_owned();
            let (first, inputs, seconds) = match extent {
                Extent::Full => (0, INPUTS.0, INPUTS.1),
                Extent::Part(part) => (0, INPUTS.0 / part, INPUTS.1 / 10),
                Extent::Time(time) => (0, u64::MAX, time.as_secs().max(1)),
                Extent::One(case) => (case, 1, INPUTS.1),
            };
            let words = [seconds.to_string(), name, first.to_string(), inputs.to_string()];
            readers::attacks(readers.args(words))?.into_iter().for_each(&mut add);
        }
        let lab = Lab::open(program)?;
        all(&lab, &[(wanted, extent)], add)
    };
    if let Err(error) = done() {
        eprintln!("attack: {error}");
        return false;
    }
    let table = table::markdown(&rows);
    print!("{}\n{table}", table::failures(&rows, PRINTED));
    let failures = table::failures(&rows, usize::MAX);
    let written = fs::create_dir_all("target/attack").and_then(|()| fs::write(table::FILE, &table));
    if let Err(error) = written.and_then(|()| fs::write("target/attack/failures.txt", failures)) {
        eprintln!("attack: target/attack: {error}");
        return false;
    }
    !rows.is_empty() && rows.iter().all(|row| row.failures.is_empty())
}
