//! Damaged and made-up files for every reader: none may panic, hang or take memory without bound, and what is refused is
//! refused in one line. Input number k of a reader is the same in every run, so that a failure can be looked at again.
#![allow(dead_code, missing_docs)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ictd::random::{Purpose, Stream};
use ictd_lab::files::process::peak_rss_kib;

/// A reader that takes longer for one input hangs.
const HANGS: Duration = Duration::from_secs(60);
/// Inputs have at most this many bytes, or as many as the one that was damaged.
const LONGEST: usize = 1 << 16;
/// A message of more characters is no line that anybody reads.
const LONGEST_LINE: usize = 1200;
/// More memory than this is no answer to an input of [`LONGEST`] bytes.
const MEMORY_KIB: u64 = 1 << 20;
/// Failures that are reported before a reader is given up.
const REPORTED: usize = 10;

/// What a reader made of an input.
pub enum Answer {
    /// It was read, and used.
    Accepted,
    /// It was refused, in these words.
    Refused(String),
}

impl<T> From<Result<T, ictd_lab::LabError>> for Answer {
    fn from(result: Result<T, ictd_lab::LabError>) -> Self {
        result.map_or_else(|e| Self::Refused(e.to_string()), |_| Self::Accepted)
    }
}

/// A directory in memory where there is one: readers that write results sync them to disk, which takes most of the time.
pub fn scratch() -> std::io::Result<tempfile::TempDir> {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

/// A reader and what it is given.
pub struct Reader {
    pub name: &'static str,
    /// Inputs to be damaged; the first is accepted.
    pub valid: Vec<Vec<u8>>,
    /// Whether it refuses anything; others do the work again, or take everything.
    pub refuses: bool,
    /// What is put into them.
    pub words: &'static [&'static str],
    /// Reads the input, which stands in a file too.
    pub read: Box<dyn FnMut(&Path, &[u8]) -> Answer>,
}

/// What happened.
#[derive(Debug, Default)]
pub struct Outcome {
    pub inputs: u64,
    pub accepted: u64,
    pub refused: u64,
    /// In words, with the number of the input.
    pub failures: Vec<String>,
}

/// Gives a reader the inputs from `first` on, at most `inputs` of them and for at most `time`. The input being read
/// stands in the directory `scratch`, so that it is there after a crash that nothing can catch.
pub fn run(reader: &mut Reader, first: u64, inputs: u64, time: Duration, scratch: &Path) -> Outcome {
    let file: PathBuf = scratch.join(format!("{}.input", reader.name));
    let name = reader.name;
    let (alive, heard) = mpsc::channel::<u64>();
    let watchdog = std::thread::spawn(move || {
        let mut last = first;
        loop {
            match heard.recv_timeout(HANGS) {
                Ok(number) => last = number,
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    eprintln!("{name}: input {last} has taken more than {HANGS:?}");
                    std::process::exit(3);
                }
            }
        }
    });
    let start = Instant::now();
    let mut outcome = Outcome::default();
    for number in first..first.saturating_add(inputs) {
        if start.elapsed() >= time || outcome.failures.len() >= REPORTED {
            break;
        }
        // Nobody listens when the watchdog has ended the process.
        let _ = alive.send(number);
        let input = input(reader, number);
        fs::write(&file, &input).expect("the scratch directory can be written to");
        let answer = catch_unwind(AssertUnwindSafe(|| (reader.read)(&file, &input)));
        outcome.inputs += 1;
        let mut failed = |what: String| outcome.failures.push(format!("{name}, input {number}: {what}"));
        match answer {
            Ok(Answer::Accepted) => outcome.accepted += 1,
            Ok(Answer::Refused(line)) => {
                outcome.refused += 1;
                if line.trim().is_empty() || line.contains(char::is_control) {
                    failed(format!("refused in no line: {line:?}"));
                }
                if line.chars().count() > LONGEST_LINE {
                    failed(format!("refused in {} characters", line.chars().count()));
                }
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                failed(format!("panicked: {}", text.or(panic.downcast_ref().copied()).unwrap_or("?")));
            }
        }
    }
    if peak_rss_kib().is_some_and(|kib| kib > MEMORY_KIB) {
        outcome.failures.push(format!("{name}: more than {MEMORY_KIB} KiB of memory"));
    }
    drop(alive);
    watchdog.join().expect("the watchdog only waits");
    outcome
}

/// Input number `number` of a reader: first those to be damaged, as they are, then damaged ones.
pub fn input(reader: &Reader, number: u64) -> Vec<u8> {
    if let Some(valid) = reader.valid.get(number as usize) {
        return valid.clone();
    }
    let mut stream = Stream::new(0, Purpose::Prompt, number);
    let stream = &mut stream;
    if below(stream, 50) == 0 {
        let length = below(stream, 300);
        return (0..length).map(|_| below(stream, 256) as u8).collect();
    }
    let mut bytes = reader.valid[below(stream, reader.valid.len())].clone();
    let longest = bytes.len().max(LONGEST);
    // Mostly one change, so that what follows it is still read.
    for _ in 0..1 + below(stream, 6) / 3 + below(stream, 40) / 38 * 8 {
        damage(&mut bytes, reader, stream);
    }
    bytes.truncate(longest);
    bytes
}

fn below(stream: &mut Stream, bound: usize) -> usize {
    stream.below(bound.max(1) as u32) as usize
}

/// A range of the bytes, mostly a short one.
fn range(bytes: &[u8], stream: &mut Stream) -> (usize, usize) {
    let longest = if below(stream, 4) == 0 { bytes.len() } else { 8 };
    let begin = below(stream, bytes.len() + 1);
    (begin, (begin + below(stream, longest + 1)).min(bytes.len()))
}

/// One change.
fn damage(bytes: &mut Vec<u8>, reader: &Reader, stream: &mut Stream) {
    let (begin, end) = range(bytes, stream);
    let part = bytes[begin..end].to_vec();
    let put = |bytes: &mut Vec<u8>, begin: usize, end: usize, with: &[u8]| {
        bytes.splice(begin..end, with.iter().copied());
    };
    match below(stream, 16) {
        0 if begin < bytes.len() => bytes[begin] ^= 1 << below(stream, 8),
        1 if begin < bytes.len() => bytes[begin] = below(stream, 256) as u8,
        2 => put(bytes, begin, end, &[]),
        3 => bytes.truncate(begin),
        4 => {
            let word = reader.words[below(stream, reader.words.len())];
            put(bytes, begin, end, word.as_bytes());
        }
        // The same again, up to very often: deep nesting, long lists, keys given twice.
        5 => {
            let times = [2, 2, 3, 100, 10_000][below(stream, 5)];
            let length = (LONGEST / part.len().max(1)).min(times);
            put(bytes, begin, end, &part.repeat(length));
        }
        6 => {
            let other = &reader.valid[below(stream, reader.valid.len())];
            let (from, to) = range(other, stream);
            put(bytes, begin, end, &other[from..to]);
        }
        7 => {
            let mark = b"{}[]\",:.-=#\n\0\xff\xe2"[below(stream, 15)];
            put(bytes, begin, begin, &[mark]);
        }
        // A word or a number in the place of one that is there.
        _ => {
            let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"+-._".contains(b);
            let from = bytes[..begin].iter().rposition(|b| !is_part(b)).map_or(0, |k| k + 1);
            let to = bytes[begin..].iter().position(|b| !is_part(b)).map_or(bytes.len(), |k| begin + k);
            let word = reader.words[below(stream, reader.words.len())];
            // A word with quotes replaces one with quotes, a number stays where it is.
            let quoted = word.len() > 1 && word.starts_with('"') && word.ends_with('"');
            let in_quotes = from > 0 && bytes[from - 1] == b'"' && bytes.get(to) == Some(&b'"');
            let (from, to) = if quoted && in_quotes { (from - 1, to + 1) } else { (from, to) };
            put(bytes, from, to, word.as_bytes());
        }
    }
}

/// Numbers at the ends of what can be written.
macro_rules! words {
    ($($more:expr),* $(,)?) => {
        &[
            "0", "-0.0", "1", "-1", "2", "3", "7", "1e308", "-1e308", "1e-320", "1e999", "0.5", "1e16", "4294967296",
            "9223372036854775807", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "NaN",
            "Infinity", "-Infinity", "nan", "inf", "null", "true", "false", "\"\"", "\"a\\nb\"", "\"\u{e9}\\u0000\"", "[]",
            "{}", "[[]]", "[[[[[[[[", "{\"a\":{\"a\":{\"a\":", "\u{feff}", "\u{202e}", "\r\n",
            $($more),*
        ]
    };
}
pub(crate) use words;
