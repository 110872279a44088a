//! Logs that are arrays in memory: the rules are those of files.

use std::collections::HashMap;
use std::path::Path;

use ictd::context::End;
use ictd::matrix::Matrix;

use super::assembler::{Assembler, Stop};
use super::episode::{OwnedEpisode, Sink};
use super::input::Input;
use super::job::Job;
use super::mapping::{Mapping, Missing, Wanted};
use super::parser::RowParser;
use super::queries::Queries;
use super::reading::Reading;
use super::states::States;
use super::table::{Block, Places, Table, Values};
use crate::{LabError, Progress};

/// Transitions as arrays, one row each. A last row of an episode without a reward says where the episode was cut short.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrays {
    /// Names of the features; a single name where states are labels.
    pub columns: Vec<String>,
    /// Whether states are labels, one per row, or numbers, as many per row as there are columns.
    pub is_label: bool,
    /// States that were left, row after row.
    pub states: Values,
    /// States that followed; without them the next row of an episode says which.
    pub next: Option<Values>,
    /// Rewards, with the name that errors call them by.
    pub rewards: (String, Vec<f64>),
    /// The episode of every row. Without it episodes end where a flag says so; without flags every row is its own where it says which state
    /// followed, else all rows are one.
    pub episode: Option<Values>,
    /// Times.
    pub time: Option<Values>,
    /// Ends in a terminal state.
    pub terminated: Option<Values>,
    /// Ends of recording.
    pub truncated: Option<Values>,
    /// What to do with rows that lack a value.
    pub missing: Missing,
}

impl Arrays {
    /// Episodes that were kept, as arrays: those that were cut short have a last row without a reward.
    pub fn of_episodes(reading: &Reading, episodes: &[OwnedEpisode]) -> Self {
        let (columns, is_label) = match &reading.states {
            States::Labels(_) => (reading.state_columns.clone(), true),
            States::Features { names, .. } => (names.clone(), false),
        };
        let mut numbers: Vec<u32> = Vec::new();
        let (mut names, mut rewards, mut times) = (Vec::new(), Vec::new(), Vec::new());
        let (mut terminated, mut truncated) = (Vec::new(), Vec::new());
        let has_times = !episodes.is_empty() && episodes.iter().all(|episode| episode.times.is_some());
        let mut parts: HashMap<&str, usize> = HashMap::new();
        for OwnedEpisode { name, states, rewards: paid, end, times: moments } in episodes {
            let steps = paid.len();
            let rows = steps + usize::from(*end == End::Truncated);
            let part = parts.entry(name).and_modify(|part| *part += 1).or_insert(1);
            // What follows a gap does not go on where the part before it ended.
            let name = if *part > 1 { format!("{name} (part {part})") } else { name.clone() };
            names.resize(names.len() + rows, name);
            numbers.extend(&states[..rows]);
            rewards.extend(paid.iter().copied().chain(std::iter::repeat_n(f64::NAN, rows - steps)));
            let is_last = |t: usize, wanted: End| i64::from(t + 1 == steps && *end == wanted);
            terminated.extend((0..rows).map(|t| is_last(t, End::Terminated)));
            truncated.extend((0..rows).map(|t| is_last(t, End::Truncated)));
            times.extend(moments.iter().filter(|_| has_times).flat_map(|times| times.iter().take(rows)));
        }
        let states = match &reading.states {
            States::Labels(labels) => {
                Values::Text(numbers.iter().map(|&s| labels[s as usize].clone()).collect())
            }
            States::Features { rows, .. } => {
                Values::Float(numbers.iter().flat_map(|&s| rows.row(s as usize)).copied().collect())
            }
        };
        Self {
            columns,
            is_label,
            states,
            next: None,
            time: (has_times && times.len() == rewards.len()).then_some(Values::Float(times)),
            rewards: ("rewards".into(), rewards),
            episode: Some(Values::Text(names)),
            terminated: reading.tells_ends.then_some(Values::Whole(terminated)),
            truncated: Some(Values::Whole(truncated)),
            missing: Missing::Refuse,
        }
    }
}

/// What errors call the whole; nobody sees it, as errors are no longer those of a file.
const NOWHERE: &str = "arrays";

/// An error about arrays: without the name of a file, and with what is a flag of the command as a parameter.
fn without_file(error: LabError) -> LabError {
    match error {
        LabError::Parse { message, .. } => {
            LabError::refused(NOWHERE, message.replace("--missing ", "missing="))
        }
        error => error,
    }
}

impl Arrays {
    /// The number of rows; refuses a column of another length.
    fn checked(&self) -> Result<usize, LabError> {
        let (width, entries) = (self.columns.len(), self.states.len());
        let (reward, rewards) = &self.rewards;
        if width == 0 {
            let rows = rewards.len();
            let problem = format!("found 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required.");
            return Err(LabError::refused("X", problem));
        }
        let rows = entries / width;
        if rows == 0 {
            return Err(LabError::refused("X", "found 0 rows, expected at least one transition"));
        }
        let next = self.next.as_ref().map(|next| ("next_state", next.len() / width));
        let others = [
            ("episode", &self.episode),
            ("time", &self.time),
            ("terminated", &self.terminated),
            ("truncated", &self.truncated),
        ];
        let others = others.into_iter().filter_map(|(name, column)| Some((name, column.as_ref()?.len())));
        let all = [(reward.as_str(), rewards.len())].into_iter().chain(next).chain(others);
        for (name, found) in all {
            if found != rows {
                let problem = format!("found {found} rows, expected {rows} as X has");
                return Err(LabError::refused(name, problem));
            }
        }
        Ok(rows)
    }

    /// The columns as a table, and what each is.
    fn table(self) -> Result<(Table, Mapping, Missing), LabError> {
        let rows = self.checked()?;
        let Self { columns, is_label, states, next, rewards, episode, time, terminated, truncated, missing } =
            self;
        let width = (!is_label).then_some(columns.len());
        let (mut header, mut blocks) =
            (columns.clone(), vec![Block { name: "X".into(), width, values: states }]);
        let mut mapping = Mapping { states: (0..columns.len()).collect(), is_label, ..Mapping::default() };
        let has_next = next.is_some();
        if let Some(values) = next {
            mapping.next = (header.len()..header.len() + columns.len()).collect();
            header.extend(columns.iter().map(|name| format!("next_state {name}")));
            blocks.push(Block { name: "next_state".into(), width, values });
        }
        let mut column = |name: &str, values: Values| {
            header.push(name.into());
            blocks.push(Block { name: name.into(), width: None, values });
            header.len() - 1
        };
        mapping.reward = column(&rewards.0, Values::Float(rewards.1));
        mapping.time = time.map(|values| column("time", values));
        let has_ends = terminated.is_some() || truncated.is_some();
        mapping.terminated = terminated.map(|values| column("terminated", values));
        mapping.truncated = truncated.map(|values| column("truncated", values));
        mapping.episode = match episode {
            Some(values) => Some(column("episode", values)),
            None if has_next => Some(column("(every row)", Values::Whole((0..rows as i64).collect()))),
            None if has_ends => None,
            None => Some(column("(all rows)", Values::Whole(vec![0; rows]))),
        };
        mapping.header = header;
        mapping.warn(&Wanted::default());
        Ok((Table::new(blocks), mapping, missing))
    }

    /// Hands the episodes on.
    pub(super) fn read<S: Sink>(
        self,
        make: impl Fn() -> Result<S, LabError>,
        progress: &Progress,
    ) -> Result<(Reading, S), LabError> {
        let (table, mapping, missing) = self.table()?;
        let parser = RowParser::new(&mapping, missing);
        let mut gather = false;
        loop {
            let mut sink = make()?;
            let mut assembler =
                Assembler::new(Path::new(NOWHERE), mapping.clone(), missing, gather, &mut sink);
            assembler.skip_to(0);
            progress.begin("reading arrays", "rows", table.num_rows() as u64)?;
            let fed = table.feed(&mut assembler, &parser, Places::Rows, progress);
            match fed.and_then(|()| assembler.finish()) {
                Ok(reading) => return Ok((reading, sink)),
                Err(Stop::Error(error)) => return Err(without_file(error)),
                // No cell of an array is in quotes.
                Err(Stop::Interleaved | Stop::Quoted) if !gather => gather = true,
                Err(_) => {
                    let problem = "episodes cannot be told apart";
                    return Err(LabError::internal("arrays", problem));
                }
            }
        }
    }
}

/// Reads a log whose columns are arrays under names, by which their parts are guessed or said as those of files are: an array has one entry per row,
/// or several. `name` is what errors call the whole.
pub fn read_columns<S: Sink>(
    name: &str,
    columns: Vec<(String, Vec<usize>, Values)>,
    wanted: &Wanted,
    make: impl Fn() -> Result<S, LabError>,
    progress: &Progress,
) -> Result<(Reading, S), LabError> {
    let blocks = columns.into_iter().map(|(name, shape, values)| Block::new(&name, &shape, values));
    let table = Table::of_arrays(blocks.collect());
    let input = Input::Memory(name.into(), Vec::new().into());
    let mut gather = false;
    loop {
        let mut sink = make()?;
        match table.read(&Job { input: &input, wanted, gather, progress }, &mut sink) {
            Ok(reading) => return Ok((reading, sink)),
            Err(Stop::Error(error)) => return Err(error),
            Err(_) if !gather => gather = true,
            Err(_) => return Err(LabError::internal("columns", "episodes cannot be told apart")),
        }
    }
}

/// States that values are asked of, as those of a log were given: numbers row after row, or labels.
pub fn queries_of(asked: Values, reading: &Reading) -> Result<Queries, LabError> {
    let states = match &reading.states {
        States::Features { names, .. } => {
            let numbers = match asked {
                Values::Float(numbers) => numbers,
                Values::Whole(numbers) => numbers.into_iter().map(|n| n as f64).collect(),
                Values::Text(_) => return Err(LabError::refused("X", "found texts, expected numbers")),
            };
            features(numbers, names, &reading.means)?
        }
        States::Labels(_) => States::Labels(labelled(asked)?),
    };
    Ok(Queries { states, ids: Vec::new() })
}

/// Rows of features; one that is missing is the mean of the log's where that was asked for.
fn features(mut numbers: Vec<f64>, names: &[String], means: &[f64]) -> Result<States, LabError> {
    let width = names.len().max(1);
    let is_refused = |x: &f64| if x.is_nan() { means.is_empty() } else { !x.is_finite() };
    if let Some(k) = numbers.iter().position(is_refused) {
        let found = if numbers[k].is_nan() { "NaN".into() } else { numbers[k].to_string() };
        let (row, column) = (k / width, &names[k % width]);
        let problem = format!("row {row}, column {column}: found {found}, expected a finite number");
        return Err(LabError::refused("X", problem));
    }
    if !means.is_empty() {
        let missing = numbers.iter_mut().enumerate().filter(|(_, x)| x.is_nan());
        missing.for_each(|(k, x)| *x = means[k % width]);
    }
    let rows = Matrix::from_vec(numbers.len() / width, width, numbers);
    Ok(States::Features { names: names.to_vec(), rows })
}

/// Labels as they are written.
fn labelled(asked: Values) -> Result<Vec<String>, LabError> {
    let texts: Vec<String> = match asked {
        Values::Text(texts) => texts,
        Values::Whole(numbers) => numbers.iter().map(i64::to_string).collect(),
        Values::Float(_) => {
            return Err(LabError::refused("X", "found numbers, expected labels as in the log"));
        }
    };
    let label = |(row, text): (usize, String)| match text.trim() {
        "" => Err(LabError::refused("X", format!("row {row}: found no value, expected a state"))),
        text => Ok(text.to_owned()),
    };
    texts.into_iter().enumerate().map(label).collect()
}
