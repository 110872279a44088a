//! From rows to episodes.
//!
//! Episodes whose rows stand together are handed on one by one. A file in which an episode comes back later is read again with
//! all its rows gathered first.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use ictd::context::End;

use super::batch::{Batch, NONE};
use super::cell::Failure;
use super::clock::Clock;
use super::episode::{Episode, Sink};
use super::ids::Ids;
use super::interner::hash;
use super::mapping::{Mapping, Missing};
use super::names::counts_steps;
use super::reading::{Counts, Reading, Transition};
use super::rows::Rows;
use super::segments::{Columns, Cut, Segments};
use super::states::{StateTable, TableError, Used};
use crate::{LabError, memory};

/// Why reading cannot go on as it does.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The file is refused.
    Error(LabError),
    /// An episode comes back after others.
    Interleaved,
    /// A cell in quotes goes over the end of its line.
    Quoted,
}

impl From<LabError> for Stop {
    fn from(error: LabError) -> Self {
        Self::Error(error)
    }
}

/// How rows are called in messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Naming {
    /// By their number in the file, as editors and spreadsheets count.
    Row,
    /// By episode and number in it.
    Step,
}

pub(crate) struct Assembler<'a, S> {
    path: &'a Path,
    naming: Naming,
    columns: Arc<Columns>,
    missing: Missing,
    is_calendar: bool,
    clock: Clock,
    has_episodes: bool,
    sink: &'a mut S,
    table: StateTable,
    mapping: Mapping,
    /// The episode at hand.
    name: Vec<u8>,
    rows: Rows,
    /// Hashes of the names of episodes that were handed on.
    done: HashSet<u64>,
    /// All rows, where episodes are interleaved: with the number of the episode.
    gathered: Option<Gathered>,
    ids: Ids,
    /// The first row of the next batch.
    next_row: u64,
    counts: Counts,
    first: Vec<Transition>,
    used: Used,
    /// The first place at which a state is to be a mean.
    missing_at: Option<String>,
    /// Room to put an episode together.
    scratch: Vec<u32>,
}

#[derive(Default)]
struct Gathered {
    names: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
    episodes: Vec<u32>,
}

impl<'a, S: Sink> Assembler<'a, S> {
    pub fn new(path: &'a Path, mapping: Mapping, missing: Missing, gather: bool, sink: &'a mut S) -> Self {
        let name = |k: usize| mapping.header[k].clone();
        let columns = Columns {
            time: mapping.time.map_or_else(|| "t".into(), name),
            reward: name(mapping.reward),
            state: mapping.states.first().map_or_else(String::new, |&k| name(k)),
            next: mapping.next.first().map_or_else(String::new, |&k| name(k)),
        };
        let width = if mapping.states.len() > 1 { mapping.states.len() } else { 0 };
        let is_calendar = mapping.time.is_some_and(|k| !counts_steps(&mapping.header[k]));
        Self {
            path,
            naming: Naming::Row,
            clock: Clock::new(&columns.time),
            columns: Arc::new(columns),
            missing,
            is_calendar,
            has_episodes: mapping.episode.is_some(),
            sink,
            table: StateTable::new(width, mapping.is_label, missing == Missing::Mean),
            mapping,
            name: Vec::new(),
            rows: Rows::default(),
            done: HashSet::new(),
            gathered: gather.then(Gathered::default),
            ids: Ids::default(),
            next_row: 1,
            counts: Counts::default(),
            first: Vec::new(),
            used: Used::default(),
            missing_at: None,
            scratch: Vec::new(),
        }
    }

    /// Rows are called by their episode, counted from 0 in each.
    pub fn by_step(mut self) -> Self {
        self.naming = Naming::Step;
        self
    }

    /// Says the number of the row that comes next: 1 at first, more where rows were passed over.
    pub fn skip_to(&mut self, row: u64) {
        self.next_row = row;
    }

    /// Names of the columns.
    pub fn header(&self) -> &[String] {
        &self.mapping.header
    }

    fn place(&self, row: u64) -> String {
        match self.naming {
            Naming::Row => format!("row {row}"),
            Naming::Step => format!("episode {}, step {row}", String::from_utf8_lossy(&self.name)),
        }
    }

    fn error(&self, row: u64, failure: &Failure) -> LabError {
        LabError::parse(self.path, format!("{}{}", self.place(row), failure.text()))
    }

    /// Takes rows that follow those before.
    pub fn batch(&mut self, batch: &Batch) -> Result<(), Stop> {
        let first = match self.naming {
            Naming::Row => self.next_row,
            Naming::Step => 0,
        };
        self.next_row += batch.places;
        self.clock.has_dates |= batch.has_dates;
        self.counts.limits += batch.limits;
        let mut numbers = vec![NONE; batch.table.len()];
        let mut ids = Vec::new();
        for (name, length) in batch.ids.iter() {
            if std::str::from_utf8(name).is_err() {
                let column = self.mapping.id.map_or("", |k| &self.mapping.header[k]);
                let failure = Failure::cell(0, column, name, "UTF-8 text");
                return Err(self.error(first + u64::from(batch.rows[ids.len()]), &failure).into());
            }
            let id = self.ids.number(name);
            ids.extend(std::iter::repeat_n(id, length));
        }
        let mut row = 0;
        for (name, length) in batch.episodes.iter() {
            for k in row..row + length {
                // Without a column of episodes, one ends after its flag; a row without a reward still belongs to it.
                let begins = match self.has_episodes {
                    true => k == row && (self.rows.is_empty() || self.name != name),
                    false => self.rows.is_empty() || self.ended_before(batch, k),
                };
                if begins {
                    self.finish_episode()?;
                    let unnamed = self.done.len().to_string();
                    self.begin(if self.has_episodes { name } else { unnamed.as_bytes() })?;
                }
                self.row(batch, k, first, &mut numbers)?;
                self.rows.ids.extend(ids.get(k));
            }
            row += length;
        }
        // What comes before the failure may be at fault itself, but only the end of its episode tells.
        match &batch.failure {
            Some(failure) => {
                if self.naming == Naming::Step
                    && let Some((name, _)) = batch.episodes.iter().last()
                {
                    self.name = name.to_vec();
                }
                Err(self.error(first + failure.row, failure).into())
            }
            None => Ok(()),
        }
    }

    /// Whether row `k` of a table without episodes begins one.
    fn ended_before(&self, batch: &Batch, k: usize) -> bool {
        let ended = self.rows.last_flags() != 0 && !batch.rewards[k].is_nan();
        let earlier =
            batch.times.get(k).zip(self.rows.times.last()).is_some_and(|(now, before)| now <= before);
        ended || earlier
    }

    fn begin(&mut self, name: &[u8]) -> Result<(), Stop> {
        self.name.clear();
        self.name.extend_from_slice(name);
        if let Some(gathered) = &mut self.gathered {
            if !gathered.numbers.contains_key(name) {
                gathered.numbers.insert(name.to_vec(), gathered.names.len() as u32);
                gathered.names.push(name.to_vec());
            }
        } else if !self.done.insert(hash(name)) {
            return Err(Stop::Interleaved);
        }
        Ok(())
    }

    fn row(&mut self, batch: &Batch, k: usize, first: u64, numbers: &mut [u32]) -> Result<(), Stop> {
        let state = self.number(batch, batch.states[k], first, numbers)?;
        if state != NONE {
            self.table.visit(state);
        }
        self.rows.states.push(state);
        self.rows.rewards.push(batch.rewards[k]);
        self.rows.flags.push(batch.flags[k]);
        self.rows.places.push(first + u64::from(batch.rows[k]));
        if let Some(&time) = batch.times.get(k) {
            self.rows.times.push(time);
        }
        if let Some(&next) = batch.next.get(k) {
            let next = self.number(batch, next, first, numbers)?;
            self.rows.next.push(next);
        }
        if let Some(gathered) = &mut self.gathered {
            let episode = gathered.numbers.get(&self.name).copied().unwrap_or_default();
            gathered.episodes.push(episode);
        }
        let waiting = self.rows.len();
        if waiting.is_power_of_two() && waiting >= 1 << 16 {
            // Twice: lists double when they are full.
            memory::admit(2.0 * 64.0 * waiting as f64, "rows, or sort the file by episode")?;
        }
        self.counts.rows += 1;
        Ok(())
    }

    fn number(&mut self, batch: &Batch, local: u32, first: u64, numbers: &mut [u32]) -> Result<u32, Stop> {
        if local == NONE {
            return Ok(NONE);
        }
        let known = numbers[local as usize];
        if known != NONE {
            return Ok(known);
        }
        match self.table.number(batch, local, first, &self.columns.state) {
            Ok(number) => {
                numbers[local as usize] = number;
                if self.missing_at.is_none() && batch.table.key(local as usize).is_empty() {
                    self.missing_at = Some(self.place(first + u64::from(batch.origins[local as usize])));
                }
                Ok(number)
            }
            Err(TableError::Cell(failure)) => Err(self.error(first + failure.row, &failure).into()),
            Err(TableError::Other(error)) => Err(error.into()),
        }
    }

    /// Hands on the episode at hand, unless all are gathered.
    fn finish_episode(&mut self) -> Result<(), Stop> {
        if self.gathered.is_none() {
            let mut rows = std::mem::take(&mut self.rows);
            self.hand_on(&mut rows)?;
            rows.clear();
            self.rows = rows;
        }
        Ok(())
    }

    fn hand_on(&mut self, rows: &mut Rows) -> Result<(), LabError> {
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_by_time();
        let name = String::from_utf8(self.name.clone()).map_err(|_| {
            let expected = "UTF-8 text in the column of episodes";
            self.error(rows.places[0], &Failure::row(0, "bytes that are no text", expected))
        })?;
        let key = hash(&self.name);
        let columns = self.columns.clone();
        let pace = self.clock.pace(rows, &name).map(|pace| pace.cloned());
        let pace = pace.map_err(|(row, failure)| self.error(rows.places[row], &failure))?;
        let segments = Segments { rows, pace: pace.as_ref(), missing: self.missing, columns: &columns };
        let mut k = 0;
        let mut parts = 0;
        let mut states = std::mem::take(&mut self.scratch);
        while k < rows.len() {
            let cut = segments.next(k).map_err(|(row, failure)| self.error(rows.places[row], &failure))?;
            let Cut { transitions, last, end, dropped_rows, dropped_transitions, resume } = cut;
            self.counts.dropped_rows += dropped_rows;
            self.counts.dropped_transitions += dropped_transitions;
            if transitions > 0 {
                let range = k..k + transitions;
                let times = self.is_calendar && !rows.times.is_empty();
                let has_last = last != NONE && (end == End::Truncated || self.sink.wants_terminal_states());
                let all = rows.states[range.clone()].iter().copied().chain(has_last.then_some(last));
                states.clear();
                states.extend(all.map(|state| self.used.number(state)));
                let upto = (k + states.len()).min(rows.len());
                let episode = Episode {
                    name: &name,
                    // The first part that can be used is where the episode begins, as far as is known.
                    first_step: if parts == 0 { 0 } else { k },
                    key,
                    states: &states,
                    rewards: &rows.rewards[range],
                    end,
                    times: times.then(|| &rows.times[k..upto]),
                };
                let (table, order) = (&self.table, &self.used.order);
                Transition::show(&mut self.first, &episode, |used| table.describe(order[used as usize]));
                let taken = self.sink.episode(episode);
                taken.map_err(|error| self.refused(error, rows.places[k]))?;
                // A gap is not where an episode ends.
                self.counts.truncated = self.counts.truncated.saturating_sub(u64::from(parts > 0));
                parts += 1;
                self.counts.transitions += transitions as u64;
                match end {
                    End::Terminated => self.counts.terminated += 1,
                    End::Truncated => self.counts.truncated += 1,
                }
            }
            k = resume;
        }
        self.scratch = states;
        self.counts.episodes += 1;
        self.counts.cuts += u64::from(parts > 1) * (parts.max(1) - 1);
        self.counts.without_transition += u64::from(parts == 0);
        self.ids.remember(rows, self.is_calendar);
        Ok(())
    }

    /// An error of the sink, with the place of its episode.
    fn refused(&self, error: LabError, row: u64) -> LabError {
        let LabError::Log(error) = error else { return error };
        // The sink knows episodes by their numbers.
        let text = error.to_string();
        let text = text.trim_start_matches("episode ").trim_start_matches(|c: char| c.is_ascii_digit());
        let place = if self.naming == Naming::Row { format!("row {row}: ") } else { String::new() };
        LabError::parse(self.path, format!("{place}episode {}{text}", String::from_utf8_lossy(&self.name)))
    }

    /// Hands on what is left.
    pub fn finish(mut self) -> Result<Reading, Stop> {
        self.finish_episode()?;
        if let Some(gathered) = self.gathered.take() {
            let all = std::mem::take(&mut self.rows);
            let mut order: Vec<u32> = (0..gathered.episodes.len() as u32).collect();
            order.sort_by_key(|&k| (gathered.episodes[k as usize], k));
            for part in
                order.chunk_by(|&a, &b| gathered.episodes[a as usize] == gathered.episodes[b as usize])
            {
                let episode = gathered.episodes[part[0] as usize];
                self.name.clone_from(&gathered.names[episode as usize]);
                self.hand_on(&mut all.chosen(part))?;
            }
        }
        let Self { path, table, clock, counts, first, mapping, ids, mut used, missing_at, .. } = self;
        if counts.transitions == 0 {
            let message = format!(
                "found no transition in {} rows, expected one: terminated, or a last row without a reward, says where it led",
                counts.rows
            );
            return Err(LabError::parse(path, message).into());
        }
        let visited = used.order.len();
        let ids = ids.finish(|state| used.number(state));
        if let Some(place) = missing_at.filter(|_| table.has_labels()) {
            let failure =
                Failure::cell(0, &mapping.header[mapping.states[0]], b"", "a label: labels have no mean");
            return Err(LabError::parse(path, format!("{place}{}", failure.text())).into());
        }
        let (states, means, replaced) = table
            .finish(&used.order, mapping.state_names())
            .map_err(|message| LabError::parse(path, message))?;
        let mut reading =
            Reading::new(states, visited, Counts { replaced, uneven: clock.uneven, ..counts }, first, ids);
        reading.means = means;
        reading.explain(&mapping);
        Ok(reading)
    }
}
