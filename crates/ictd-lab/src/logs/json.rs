//! JSON: a row or an episode per line, lists of rows, and the contexts that `ictd task` writes.

use std::borrow::Cow;
use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use super::assembler::{Assembler, Stop};
use super::context::{Trajectory, feed};
use super::episode::Sink;
use super::input::Input;
use super::job::Job;
use super::json_values::{Cell, Keys, Object, is_list};
use super::names;
use super::parser::RowParser;
use super::reading::Reading;
use super::table::{Block, Places, Table, Values};
use crate::files::{ContextFile, EpisodeFile, nan_or_null, parse_json};
use crate::{LabError, memory};

/// Lines put together at once.
const LINES: usize = 4096;
/// No line is longer.
const LONGEST_LINE: usize = 1 << 28;
/// Bytes of memory that a byte of a list becomes, which is read at once: 10 were measured for rows of names and numbers, 17 for
/// short ones and for lists of digits.
const LIST: f64 = 20.0;
/// Those of a context, which is kept twice: 37 were measured for features of one digit.
const CONTEXT: f64 = 40.0;

/// Reads JSON of any of these forms.
pub(super) fn read<S: Sink>(job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
    let input = job.input;
    let mut first = String::new();
    let mut reader = BufReader::new(input.reader()?);
    let mut number = 0;
    while first.trim().is_empty() {
        first.clear();
        number += 1;
        if line(input, &mut reader, number, &mut first)? == 0 {
            return Err(LabError::parse(input.path(), "found an empty file, expected JSON").into());
        }
    }
    let start = first.trim_start().trim_start_matches('\u{feff}');
    let is_whole =
        serde_json::from_str::<Object>(&nan_or_null(start)).is_ok_and(|object| !object.is_context());
    job.progress.begin(format!("reading {}", input.path().display()), "rows", 0)?;
    if is_whole {
        return lines(job, sink);
    }
    let bytes = input.bytes()?;
    let text = whole(input, &bytes)?;
    let failed = |e: serde_json::Error| LabError::parse(input.path(), e.to_string());
    if start.starts_with('[') {
        let rows: Vec<Object> = serde_json::from_str(&text).map_err(failed)?;
        return list(job, rows, sink);
    }
    match serde_json::from_str::<Object>(&text) {
        Ok(object) if object.is_context() => context(job, text.as_bytes(), sink),
        Ok(object) if object.get("transitions").is_some() && object.get("gamma").is_some() => {
            Err(LabError::parse(
                input.path(),
                "found a task, expected trajectories: ictd task FILE --trajectory N --json makes one",
            )
            .into())
        }
        Ok(object) => list(job, vec![object], sink),
        Err(e) => {
            Err(LabError::parse(input.path(), format!("expected a JSON object on every line: {e}")).into())
        }
    }
}

/// The next line, with its end; 0 where there is none.
fn line(
    input: &Input,
    reader: &mut impl std::io::BufRead,
    number: u64,
    text: &mut String,
) -> Result<usize, LabError> {
    let mut bytes = Vec::new();
    let read = std::io::Read::take(&mut *reader, LONGEST_LINE as u64).read_until(b'\n', &mut bytes);
    let read = read.map_err(|e| input.failed(e))?;
    if read == LONGEST_LINE {
        return Err(LabError::parse(input.path(), format!("found a line of more than {LONGEST_LINE} bytes")));
    }
    *text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to() + 1;
        let message =
            format!("row {number}: found bytes that are no UTF-8 at byte {at}, expected UTF-8 text");
        LabError::parse(input.path(), message)
    })?;
    Ok(read)
}

/// The text of a file that is read at once.
fn whole<'a>(input: &Input, bytes: &'a [u8]) -> Result<Cow<'a, str>, LabError> {
    memory::admit(LIST * bytes.len() as f64, "the size of the file, or write an object per line")?;
    let text = std::str::from_utf8(bytes)
        .map_err(|e| LabError::parse(input.path(), format!("not UTF-8 text: {e}")))?;
    Ok(nan_or_null(text.trim_start_matches('\u{feff}')))
}

/// All objects of a file that is no log: those of a list, or one per line. Rows are counted from 1.
pub(super) fn objects(input: &Input) -> Result<Vec<(u64, Object)>, LabError> {
    let bytes = input.bytes()?;
    let text = whole(input, &bytes)?;
    if text.trim_start().starts_with('[') {
        let rows: Vec<Object> =
            serde_json::from_str(&text).map_err(|e| LabError::parse(input.path(), e.to_string()))?;
        return Ok((1..).zip(rows).collect());
    }
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(number, line)| Ok((number, object(input, number, line)?))).collect()
}

/// The object on a line.
fn object(input: &Input, number: u64, line: &str) -> Result<Object, LabError> {
    serde_json::from_str(line).map_err(|e| {
        let message = format!("row {number}: found no JSON object ({e}), expected one on every line");
        LabError::parse(input.path(), message)
    })
}

/// Objects on lines of their own.
fn lines<S: Sink>(job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
    let input = job.input;
    let path = input.path();
    let mut reader = BufReader::new(input.reader()?);
    let mut rows: Vec<(u64, Object)> = Vec::new();
    let mut feeder: Option<Feeder<'_, S>> = None;
    let mut sink = Some(sink);
    let (mut number, mut ended) = (0, false);
    while !ended {
        let mut text = String::new();
        number += 1;
        ended = line(input, &mut reader, number, &mut text)? == 0;
        let trimmed = text.trim().trim_start_matches('\u{feff}');
        if !trimmed.is_empty() {
            rows.push((number, object(input, number, &nan_or_null(trimmed))?));
        }
        let is_episode = rows.first().is_some_and(|(_, object)| object.is_episode());
        if (ended || is_episode || rows.len() >= LINES) && !rows.is_empty() {
            if let (None, Some(sink)) = (&feeder, sink.take()) {
                feeder = Some(Feeder::new(*job, &rows, sink)?);
            }
            if let Some(feeder) = &mut feeder {
                feeder.feed(&rows)?;
            }
            rows.clear();
        }
    }
    match feeder {
        Some(feeder) => feeder.finish(),
        None => Err(LabError::parse(path, "found no rows, expected some").into()),
    }
}

/// Objects of a list.
fn list<S: Sink>(job: &Job<'_>, rows: Vec<Object>, sink: &mut S) -> Result<Reading, Stop> {
    let rows: Vec<(u64, Object)> = (1..).zip(rows).collect();
    let Some((_, first)) = rows.first() else {
        return Err(LabError::parse(job.path(), "found no rows, expected some").into());
    };
    let mut parts = rows.chunks(if first.is_episode() { 1 } else { LINES }).peekable();
    let mut feeder = Feeder::new(*job, parts.peek().copied().unwrap_or_default(), sink)?;
    parts.try_for_each(|part| feeder.feed(part))?;
    feeder.finish()
}

/// Hands objects on as rows; all have the columns that the first ones have.
struct Feeder<'a, S> {
    job: Job<'a>,
    parser: RowParser,
    assembler: Assembler<'a, S>,
    form: Form,
}

impl<'a, S: Sink> Feeder<'a, S> {
    fn new(job: Job<'a>, rows: &[(u64, Object)], sink: &'a mut S) -> Result<Self, LabError> {
        let wrong = |message: String| LabError::parse(job.path(), message);
        let form = Form::of(rows, job.wanted.episode.is_some()).map_err(wrong)?;
        let header = Table::new(form.blocks(rows).map_err(wrong)?).header();
        let (parser, assembler) = job.rows("row 1", header, sink)?;
        Ok(Self { job, parser, assembler, form })
    }

    fn feed(&mut self, rows: &[(u64, Object)]) -> Result<(), Stop> {
        let blocks = self.form.blocks(rows).map_err(|message| LabError::parse(self.job.path(), message))?;
        let numbers: Vec<u64> = rows.iter().map(|(number, _)| *number).collect();
        self.assembler.skip_to(numbers.first().copied().unwrap_or_default());
        let places = if self.form.is_episode { Places::Line } else { Places::Numbers(&numbers) };
        Table::new(blocks).feed(&mut self.assembler, &self.parser, places, self.job.progress)
    }

    fn finish(self) -> Result<Reading, Stop> {
        self.assembler.finish()
    }
}

/// Objects that are rows, as columns.
pub(super) fn columns(rows: &[(u64, Object)]) -> Result<Vec<Block>, String> {
    let Some((first, object)) = rows.first() else { return Ok(Vec::new()) };
    let cells = |name: &str| cells(rows, false, name);
    Keys::new((*first, object), cells)?.blocks(rows, cells)
}

/// What objects hold: a row each, or an episode each.
struct Form {
    keys: Keys,
    is_episode: bool,
    /// Whether episodes say their names.
    has_names: bool,
}

impl Form {
    /// As the first of these objects, which are not none, have it.
    fn of(rows: &[(u64, Object)], has_names: bool) -> Result<Self, String> {
        let first = &rows[0].1;
        let is_name = |name: &String| names::EPISODE.contains(&name.to_ascii_lowercase().as_str());
        let (is_episode, has_names) = (first.is_episode(), has_names || first.keys().any(is_name));
        let keys = Keys::new((rows[0].0, first), |name| cells(rows, is_episode, name))?;
        Ok(Self { keys, is_episode, has_names })
    }

    /// Their columns.
    fn blocks(&self, rows: &[(u64, Object)]) -> Result<Vec<Block>, String> {
        let mut blocks = self.keys.blocks(rows, |name| cells(rows, self.is_episode, name))?;
        let ([(number, object)], true) = (rows, self.is_episode) else { return Ok(blocks) };
        let steps = steps(object);
        // Without a last state there is no last row.
        let has_last =
            blocks.iter().any(|b| b.rows() == steps + 1 && object.get(&b.name).is_some_and(is_list));
        if !has_last {
            blocks.iter_mut().for_each(|b| b.truncate(steps));
        }
        if !self.has_names {
            let values = Values::Text(vec![number.to_string(); steps + usize::from(has_last)]);
            blocks.insert(0, Block { name: "episode".into(), width: None, values });
        }
        Ok(blocks)
    }
}

/// Steps of an episode.
fn steps(object: &Object) -> usize {
    object.rewards().and_then(Value::as_array).map_or(0, Vec::len)
}

static FALSE: Value = Value::Bool(false);

/// The values of a key: one per row, or in an episode one per step, T of them, states T or T + 1.
fn cells<'a>(rows: &'a [(u64, Object)], is_episode: bool, name: &str) -> Result<Vec<Cell<'a>>, String> {
    let ([(number, object)], true) = (rows, is_episode) else {
        return Ok(rows.iter().map(|(number, object)| (*number, object.get(name))).collect());
    };
    let (number, steps) = (*number, steps(object));
    Ok(match object.get(name) {
        Some(Value::Array(list)) if !(steps..=steps + 1).contains(&list.len()) => {
            return Err(format!(
                "row {number}, column {name}: found {} entries, expected {steps} as there are rewards, or one more",
                list.len()
            ));
        }
        Some(Value::Array(list)) => list.iter().map(|value| (number, Some(value))).collect(),
        Some(Value::String(text)) if names::STATE.contains(&name) && text.len() > 100 => {
            return Err(format!(
                "row {number}, column {name}: found packed data, expected lists of numbers (RLlib: write with \
                 compress_columns = [])"
            ));
        }
        // What is said once is said of the end.
        Some(flag @ Value::Bool(_)) => {
            (1..=steps).map(|t| (number, Some(if t == steps { flag } else { &FALSE }))).collect()
        }
        value => (0..=steps).map(|_| (number, value)).collect(),
    })
}

/// A context: episodes of features.
fn context<S: Sink>(job: &Job<'_>, bytes: &[u8], sink: &mut S) -> Result<Reading, Stop> {
    let path = job.path();
    memory::admit(CONTEXT * bytes.len() as f64, "the size of the file")?;
    let file: ContextFile = parse_json(path, bytes)?;
    let episodes = file.into_episodes().map_err(|e| crate::files::at(path, e))?;
    let width = episodes.first().and_then(|e| e.features.first()).map_or(0, Vec::len);
    let plain = |numbers: Vec<Option<f64>>| numbers.into_iter().map(|x| x.unwrap_or(f64::NAN));
    let flat = |(number, episode): (usize, EpisodeFile)| {
        let (rows, steps) = (episode.features.len(), episode.rewards.len());
        let ragged = episode.features.iter().position(|row| row.len() != width);
        if rows != steps + 1 || ragged.is_some() {
            let message = match ragged {
                Some(row) => format!(
                    "features: row {row} of episode {number} has {} entries, expected {width}",
                    episode.features[row].len()
                ),
                None => format!(
                    "rewards: episode {number} has {steps} rewards and {rows} feature rows, expected one row more"
                ),
            };
            return Err(LabError::parse(path, message));
        }
        Ok(Trajectory {
            features: episode.features.into_iter().flat_map(plain).collect(),
            rewards: plain(episode.rewards).collect(),
            is_terminated: episode.terminated,
        })
    };
    feed(job, width, episodes.into_iter().enumerate().map(flat), sink)
}
