//! Cells of a line as a row.

use std::borrow::Cow;

use super::batch::{Batch, NONE, TERMINATED, TRUNCATED};
use super::cell::{self, Failure};
use super::mapping::{Mapping, Missing};

/// The cells of a row, whatever they are kept as.
pub(crate) trait Cells {
    /// The cell as text: a name, a label, or what a message quotes.
    fn text(&self, column: usize) -> Cow<'_, [u8]>;
    /// Whether it says that there is no value.
    fn is_missing(&self, column: usize) -> bool;
    /// Whether there is nothing at all: where everything is a label, so are words that say that there is no value.
    fn is_empty(&self, column: usize) -> bool;
    /// A finite number, or what was expected.
    fn number(&self, column: usize) -> Result<f64, &'static str>;
    /// Yes or no.
    fn flag(&self, column: usize) -> Option<bool>;
    /// A number or a date, and whether it is a date.
    fn time(&self, column: usize) -> Result<(f64, bool), &'static str>;
}

/// Where a cell begins and ends in its line.
pub(crate) type Span = (u32, u32);

/// Cells of a line of text.
pub(crate) struct Line<'a> {
    pub bytes: &'a [u8],
    pub spans: &'a [Span],
}

impl Line<'_> {
    fn cell(&self, column: usize) -> &[u8] {
        let (start, end) = self.spans[column];
        self.bytes[start as usize..end as usize].trim_ascii()
    }

    /// Whether there is nothing in any of them.
    pub fn is_blank(&self) -> bool {
        (0..self.spans.len()).all(|k| self.cell(k).is_empty())
    }
}

impl Cells for Line<'_> {
    fn text(&self, column: usize) -> Cow<'_, [u8]> {
        self.cell(column).into()
    }

    fn is_missing(&self, column: usize) -> bool {
        cell::is_missing(self.cell(column))
    }

    fn is_empty(&self, column: usize) -> bool {
        self.cell(column).is_empty()
    }

    fn number(&self, column: usize) -> Result<f64, &'static str> {
        cell::number(self.cell(column))
    }

    fn flag(&self, column: usize) -> Option<bool> {
        cell::flag(self.cell(column))
    }

    fn time(&self, column: usize) -> Result<(f64, bool), &'static str> {
        cell::time(self.cell(column))
    }
}

/// Knows which cell is what.
#[derive(Clone, Debug)]
pub(crate) struct RowParser {
    mapping: Mapping,
    missing: Missing,
}

impl RowParser {
    pub fn new(mapping: &Mapping, missing: Missing) -> Self {
        Self { mapping: mapping.clone(), missing }
    }

    /// Adds the row of a line to the batch; lines without any content are passed over.
    pub fn line(&self, batch: &mut Batch, line: &Line<'_>, place: usize) -> Result<(), Failure> {
        let (found, expected) = (line.spans.len(), self.mapping.header.len());
        if found != expected && !line.is_blank() {
            let expected = format!("{expected} as in the header");
            return Err(Failure::row(place, format!("{found} cells"), expected));
        }
        // One cell tells of most lines that they are not blank.
        let some = self.mapping.episode.unwrap_or(self.mapping.reward);
        match found != expected || (line.cell(some).is_empty() && line.is_blank()) {
            true => Ok(()),
            false => self.row(batch, line, place),
        }
    }

    /// Adds a row to the batch.
    pub fn row(&self, batch: &mut Batch, cells: &impl Cells, place: usize) -> Result<(), Failure> {
        let Mapping { episode, time, states, next, reward, terminated, truncated, id, .. } = &self.mapping;
        let fail = |column: usize, expected: &str| self.failure(place, column, cells, expected);
        let needed = [(episode, "the name of an episode"), (time, "a time"), (id, "an id")];
        if let Some((Some(k), expected)) = needed.iter().find(|(k, _)| k.is_some_and(|k| cells.is_missing(k)))
        {
            return Err(fail(*k, expected));
        }
        let (moment, is_date) = match *time {
            Some(k) => cells.time(k).map_err(|expected| fail(k, expected))?,
            None => (0.0, false),
        };
        let paid = match cells.is_missing(*reward) {
            true => f64::NAN,
            false => cells.number(*reward).map_err(|expected| fail(*reward, expected))?,
        };
        let mut flags = 0;
        let mut dropped = false;
        for (column, bit) in [(*terminated, TERMINATED), (*truncated, TRUNCATED)] {
            let Some(k) = column else { continue };
            match (cells.flag(k), cells.is_missing(k)) {
                (Some(set), _) => flags |= if set { bit } else { 0 },
                (None, true) if paid.is_nan() => {}
                (None, true) if self.missing == Missing::Drop => dropped = true,
                (None, _) => return Err(fail(k, "true or false, or 1 or 0")),
            }
        }
        if flags == TERMINATED | TRUNCATED && self.mapping.done_is_any_end {
            flags = TRUNCATED;
            batch.limits += 1;
        }
        let state = match dropped {
            true => NONE,
            false => self.state(batch, states, cells, place, true)?,
        };
        let following = match next.is_empty() {
            true => NONE,
            false => self.state(batch, next, cells, place, flags & TERMINATED == 0 && !paid.is_nan())?,
        };
        batch.episodes.push(&episode.map_or(Cow::Borrowed(b"" as &[u8]), |k| cells.text(k)));
        if let Some(k) = id {
            batch.ids.push(&cells.text(*k));
        }
        if time.is_some() {
            batch.times.push(moment);
            batch.has_dates |= is_date;
        }
        batch.rewards.push(paid);
        batch.flags.push(flags);
        batch.states.push(state);
        if !next.is_empty() {
            batch.next.push(following);
        }
        batch.rows.push(place as u32);
        Ok(())
    }

    fn failure(&self, place: usize, column: usize, cells: &impl Cells, expected: &str) -> Failure {
        Failure::cell(place, &self.mapping.header[column], &cells.text(column), expected)
    }

    /// The number of the state in the columns. Where it need not be there, a missing one is none.
    fn state(
        &self,
        batch: &mut Batch,
        columns: &[usize],
        cells: &impl Cells,
        place: usize,
        needed: bool,
    ) -> Result<u32, Failure> {
        let refuse = |k: usize| {
            Err(self.failure(place, k, cells, "a value (--missing drop or mean says what to do without)"))
        };
        let no_feature = |k: usize, expected: &str| {
            let hint = if expected == "a number" { "; --state says which columns are the state" } else { "" };
            self.failure(place, k, cells, &format!("{expected}{hint}"))
        };
        if let [k] = *columns {
            let is_missing = if self.mapping.is_label { cells.is_empty(k) } else { cells.is_missing(k) };
            return match is_missing {
                false => Ok(batch.state(&cells.text(k), place)),
                true if self.missing == Missing::Drop || !needed => Ok(NONE),
                true if self.missing == Missing::Mean => Ok(batch.state(b"", place)),
                true => refuse(k),
            };
        }
        let mut key = [0u8; 8 * 16];
        let mut long;
        let key = match 8 * columns.len() <= key.len() {
            true => &mut key[..8 * columns.len()],
            false => {
                long = vec![0u8; 8 * columns.len()];
                &mut long[..]
            }
        };
        for (&k, bytes) in columns.iter().zip(key.as_chunks_mut::<8>().0) {
            let x = match (cells.is_missing(k), self.missing) {
                // Not a second zero.
                (false, _) => cells.number(k).map_err(|expected| no_feature(k, expected))? + 0.0,
                (true, _) if !needed => return Ok(NONE),
                (true, Missing::Mean) => f64::NAN,
                (true, Missing::Drop) => return Ok(NONE),
                (true, Missing::Refuse) => return refuse(k),
            };
            *bytes = x.to_le_bytes();
        }
        Ok(batch.state(key, place))
    }
}
