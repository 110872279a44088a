//! JSON: a row or an episode per line, lists of rows, and the contexts that `ictd task` writes.

use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use super::assembler::{Assembler, Stop};
use super::episode::Sink;
use super::input::Input;
use super::job::Job;
use super::json_values::{Object, block, is_list};
use super::names;
use super::parser::RowParser;
use super::reading::Reading;
use super::table::{Block, Places, Table, Values};
use crate::LabError;
use crate::files::{ContextFile, numbers_or_null, parse_json};

/// Lines put together at once.
const LINES: usize = 4096;
/// No line is longer.
const LONGEST_LINE: usize = 1 << 28;

/// Reads JSON of any of these forms.
pub(super) fn read<S: Sink>(job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
    let input = job.input;
    let mut first = String::new();
    let mut reader = BufReader::new(input.reader()?);
    while first.trim().is_empty() {
        first.clear();
        if line(input, &mut reader, &mut first)? == 0 {
            return Err(LabError::parse(input.path(), "found an empty file, expected JSON").into());
        }
    }
    let start = first.trim_start().trim_start_matches('\u{feff}');
    let is_whole =
        serde_json::from_str::<Object>(&numbers_or_null(start)).is_ok_and(|object| !object.is_context());
    job.progress.begin(format!("reading {}", input.path().display()), "rows", 0)?;
    if is_whole {
        return lines(job, sink);
    }
    let bytes = input.bytes()?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|e| LabError::parse(input.path(), format!("not UTF-8 text: {e}")))?;
    let text = numbers_or_null(text.trim_start_matches('\u{feff}'));
    let failed = |e: serde_json::Error| LabError::parse(input.path(), e.to_string());
    if start.starts_with('[') {
        let rows: Vec<Object> = serde_json::from_str(&text).map_err(failed)?;
        return list(job, rows, sink);
    }
    match serde_json::from_str::<Object>(&text) {
        Ok(object) if object.is_context() => context(job, &bytes, sink),
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
fn line(input: &Input, reader: &mut impl std::io::BufRead, text: &mut String) -> Result<usize, LabError> {
    let mut bytes = Vec::new();
    let read = std::io::Read::take(&mut *reader, LONGEST_LINE as u64).read_until(b'\n', &mut bytes);
    let read = read.map_err(|e| input.failed(e))?;
    if read == LONGEST_LINE {
        return Err(LabError::parse(input.path(), format!("found a line of more than {LONGEST_LINE} bytes")));
    }
    // Text that is none shows as a mark of replacement in the message about it.
    text.push_str(&String::from_utf8_lossy(&bytes));
    Ok(read)
}

/// All objects of a file that is no log: those of a list, or one per line. Rows are counted from 1.
pub(super) fn objects(input: &Input) -> Result<Vec<(u64, Object)>, LabError> {
    let bytes = input.bytes()?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|e| LabError::parse(input.path(), format!("not UTF-8 text: {e}")))?;
    let text = numbers_or_null(text.trim_start_matches('\u{feff}'));
    if text.trim_start().starts_with('[') {
        let rows: Vec<Object> =
            serde_json::from_str(&text).map_err(|e| LabError::parse(input.path(), e.to_string()))?;
        return Ok((1..).zip(rows).collect());
    }
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let object = |(number, line): (u64, &str)| match serde_json::from_str(line) {
        Ok(object) => Ok((number, object)),
        Err(e) => Err(LabError::parse(
            input.path(),
            format!("row {number}: found no JSON object ({e}), expected one on every line"),
        )),
    };
    lines.map(object).collect()
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
        ended = line(input, &mut reader, &mut text)? == 0;
        number += 1;
        let trimmed = text.trim().trim_start_matches('\u{feff}');
        if !trimmed.is_empty() {
            let object: Object = serde_json::from_str(&numbers_or_null(trimmed)).map_err(|e| {
                LabError::parse(
                    path,
                    format!("row {number}: found no JSON object ({e}), expected one on every line"),
                )
            })?;
            rows.push((number, object));
        }
        let is_episode = rows.first().is_some_and(|(_, object)| object.is_episode());
        // Rows of one batch stand on consecutive lines.
        let full = is_episode || rows.len() >= LINES || trimmed.is_empty();
        if (ended || full) && !rows.is_empty() {
            if let (None, Some(sink)) = (&feeder, sink.take()) {
                feeder = Some(Feeder::new(*job, &rows[0].1, sink)?);
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
    let mut feeder = Feeder::new(*job, first, sink)?;
    let step = if first.is_episode() { 1 } else { LINES };
    rows.chunks(step).try_for_each(|part| feeder.feed(part))?;
    feeder.finish()
}

/// Hands objects on as rows; all have the columns of the first.
struct Feeder<'a, S> {
    job: Job<'a>,
    parser: RowParser,
    assembler: Assembler<'a, S>,
    is_episode: bool,
    has_names: bool,
}

impl<'a, S: Sink> Feeder<'a, S> {
    fn new(job: Job<'a>, first: &Object, sink: &'a mut S) -> Result<Self, LabError> {
        let is_episode = first.is_episode();
        let is_name = |name: &String| names::EPISODE.contains(&name.to_ascii_lowercase().as_str());
        let has_names = job.wanted.episode.is_some() || first.keys().any(is_name);
        let blocks = match is_episode {
            true => episode(first, 1, has_names),
            false => columns(&[(1, first)]),
        };
        let header = Table::new(blocks.map_err(|message| LabError::parse(job.path(), message))?).header();
        let (parser, assembler) = job.rows("row 1", header, sink)?;
        Ok(Self { job, parser, assembler, is_episode, has_names })
    }

    fn feed(&mut self, rows: &[(u64, Object)]) -> Result<(), Stop> {
        let references: Vec<(u64, &Object)> = rows.iter().map(|(number, object)| (*number, object)).collect();
        let blocks = match (self.is_episode, rows) {
            (true, [(number, object)]) => episode(object, *number, self.has_names),
            _ => columns(&references),
        };
        let table = Table::new(blocks.map_err(|message| LabError::parse(self.job.path(), message))?);
        let header = table.header();
        let known = self.assembler.header();
        if header != known {
            let differs =
                known.iter().find(|c| !header.contains(c)).or(header.iter().find(|c| !known.contains(c)));
            let message = match differs {
                Some(name) => format!(
                    "row {}: found other keys than in row 1, expected the same ('{name}' differs)",
                    rows[0].0
                ),
                None => format!("row {}: found the keys in another order, expected that of row 1", rows[0].0),
            };
            return Err(LabError::parse(self.job.path(), message).into());
        }
        self.assembler.skip_to(rows[0].0);
        let places = if self.is_episode { Places::Line } else { Places::Rows };
        table.feed(&mut self.assembler, &self.parser, places, self.job.progress)
    }

    fn finish(self) -> Result<Reading, Stop> {
        self.assembler.finish()
    }
}

/// Objects that are rows, as columns.
pub(super) fn columns(rows: &[(u64, &Object)]) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let Some((_, first)) = rows.first() else { return Ok(blocks) };
    for name in first.keys() {
        let cells = rows.iter().map(|(number, object)| (*number, object.get(name)));
        blocks.extend(block(name, cells.collect::<Vec<_>>().as_slice())?);
    }
    for (number, object) in rows {
        if let Some(other) = object.keys().find(|name| first.get(name).is_none()) {
            return Err(format!(
                "row {number}: found the key '{other}', expected those of row {}",
                rows[0].0
            ));
        }
    }
    Ok(blocks)
}

/// An object with lists, one entry per step: T of them, states T or T + 1.
fn episode(object: &Object, number: u64, has_names: bool) -> Result<Vec<Block>, String> {
    let is_reward = |name: &&String| names::REWARD.contains(&name.to_ascii_lowercase().as_str());
    let steps = object.keys().find(is_reward).and_then(|name| object.get(name)).and_then(Value::as_array);
    let steps = steps.map_or(0, Vec::len);
    let mut blocks = Vec::new();
    if !has_names {
        let values = Values::Text(vec![number.to_string(); steps + 1]);
        blocks.push(Block { name: "episode".into(), width: None, values });
    }
    for name in object.keys() {
        let once;
        let cells: Vec<(u64, Option<&Value>)> = match object.get(name) {
            Some(Value::Array(list)) if !(steps..=steps + 1).contains(&list.len()) => {
                return Err(format!(
                    "row {number}, column {name}: found {} entries, expected {steps} as there are rewards, or one more",
                    list.len()
                ));
            }
            Some(Value::Array(list)) => list.iter().map(|value| (number, Some(value))).collect(),
            Some(Value::String(text)) if names::STATE.contains(&name.as_str()) && text.len() > 100 => {
                return Err(format!(
                    "row {number}, column {name}: found packed data, expected lists of numbers (RLlib: write with \
                     compress_columns = [])"
                ));
            }
            // What is said once is said of the end.
            Some(flag @ Value::Bool(_)) => {
                once = Value::Bool(false);
                (1..=steps).map(|t| (number, Some(if t == steps { flag } else { &once }))).collect()
            }
            Some(Value::Object(_)) => Vec::new(),
            value => (0..=steps).map(|_| (number, value)).collect(),
        };
        if !cells.is_empty() {
            blocks.extend(block(name, &cells)?);
        }
    }
    // Without a last state there is no last row.
    let has_last = blocks.iter().any(|b| b.rows() == steps + 1 && object.get(&b.name).is_some_and(is_list));
    if !has_last {
        blocks.iter_mut().for_each(|b| b.truncate(steps));
    }
    Ok(blocks)
}

/// A context: episodes of features.
fn context<S: Sink>(job: &Job<'_>, bytes: &[u8], sink: &mut S) -> Result<Reading, Stop> {
    let path = job.path();
    let file: ContextFile = parse_json(path, bytes)?;
    let episodes = file.into_episodes().map_err(|e| crate::files::at(path, e))?;
    let width = episodes.first().and_then(|e| e.features.first()).map_or(0, Vec::len);
    let names = (0..width).map(|a| format!("s_{a}"));
    let header: Vec<String> =
        ["episode", "reward", "terminated"].into_iter().map(String::from).chain(names).collect();
    let (parser, assembler) = job.rows("features", header, sink)?;
    let mut assembler = assembler.by_step();
    let plain = |numbers: &[Option<f64>]| numbers.iter().map(|x| x.unwrap_or(f64::NAN)).collect::<Vec<f64>>();
    for (number, episode) in episodes.iter().enumerate() {
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
            return Err(LabError::parse(path, message).into());
        }
        if let Some(t) = episode.rewards.iter().position(Option::is_none) {
            let message = format!("rewards: entry {t} of episode {number} is no finite number, expected one");
            return Err(LabError::parse(path, message).into());
        }
        let features = episode.features.iter().flat_map(|row| plain(row)).collect();
        let flags = (1..=steps).map(|t| i64::from(t == steps && episode.terminated)).collect();
        let table = Table::new(vec![
            Block::new("episode", &[rows], Values::Whole(vec![number as i64; rows])),
            Block::new("reward", &[steps], Values::Float(plain(&episode.rewards))),
            Block::new("terminated", &[steps], Values::Whole(flags)),
            Block::new("s", &[rows, width], Values::Float(features)),
        ]);
        table.feed(&mut assembler, &parser, Places::Steps, job.progress)?;
    }
    assembler.finish()
}
