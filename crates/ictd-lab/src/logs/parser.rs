//! Cells of a line as a row.

use super::batch::{Batch, NONE, TERMINATED, TRUNCATED};
use super::cell::{self, Failure};
use super::mapping::{Mapping, Missing};

/// Where a cell begins and ends in its line.
pub(crate) type Span = (u32, u32);

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
    pub fn row(&self, batch: &mut Batch, line: &[u8], cells: &[Span], place: usize) -> Result<(), Failure> {
        let Mapping { header, episode, time, states, next, reward, terminated, truncated, id, .. } = &self.mapping;
        let cell = |k: usize| {
            let (start, end) = cells[k];
            cell::trimmed(&line[start as usize..end as usize])
        };
        if cells.len() != header.len() {
            if cells.iter().all(|&(start, end)| cell::trimmed(&line[start as usize..end as usize]).is_empty()) {
                return Ok(());
            }
            let found = format!("{} cells", cells.len());
            return Err(Failure::row(place, found, format!("{} as in the header", header.len())));
        }
        let name = episode.map_or(b"" as &[u8], cell);
        if episode.is_some() && cell::is_missing(name) {
            if (0..cells.len()).all(|k| cell(k).is_empty()) {
                return Ok(());
            }
            return Err(self.failure(place, *episode, name, "the name of an episode"));
        }
        let moment = match time {
            Some(k) if cell::is_missing(cell(*k)) => return Err(self.failure(place, *time, cell(*k), "a time")),
            Some(k) => cell::time(cell(*k)).map_err(|expected| self.failure(place, *time, cell(*k), expected))?,
            None => 0.0,
        };
        let paid = match cell(*reward) {
            none if cell::is_missing(none) => f64::NAN,
            paid => cell::number(paid).map_err(|expected| self.failure(place, Some(*reward), paid, expected))?,
        };
        let mut flags = 0;
        let mut dropped = false;
        for (column, bit) in [(*terminated, TERMINATED), (*truncated, TRUNCATED)] {
            let Some(k) = column else { continue };
            match (cell::flag(cell(k)), cell::is_missing(cell(k))) {
                (Some(set), _) => flags |= if set { bit } else { 0 },
                (None, true) if paid.is_nan() => {}
                (None, true) if self.missing == Missing::Drop => dropped = true,
                (None, _) => return Err(self.failure(place, column, cell(k), "true or false, or 1 or 0")),
            }
        }
        let state = match dropped {
            true => NONE,
            false => self.state(batch, states, cell, place, true)?,
        };
        let following = match next.is_empty() {
            true => NONE,
            false => self.state(batch, next, cell, place, flags & TERMINATED == 0 && !paid.is_nan())?,
        };
        batch.episodes.push(name);
        if let Some(k) = id {
            batch.ids.push(cell(*k));
        }
        if time.is_some() {
            batch.times.push(moment);
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

    fn failure(&self, place: usize, column: Option<usize>, found: &[u8], expected: &str) -> Failure {
        Failure::cell(place, column.map_or("", |k| &self.mapping.header[k]), found, expected)
    }

    /// The number of the state in the columns. Where it need not be there, a missing one is none.
    fn state<'l>(
        &self,
        batch: &mut Batch,
        columns: &[usize],
        cell: impl Fn(usize) -> &'l [u8],
        place: usize,
        needed: bool,
    ) -> Result<u32, Failure> {
        let refuse = |k: usize| {
            Err(self.failure(place, Some(k), cell(k), "a value (--missing drop or mean says what to do without)"))
        };
        if let [k] = *columns {
            return match cell::is_missing(cell(k)) {
                false => Ok(batch.state(cell(k), place)),
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
            let x = match (cell::is_missing(cell(k)), self.missing) {
                (false, _) => {
                    let x = cell::number(cell(k));
                    // Not a second zero.
                    x.map_err(|expected| self.failure(place, Some(k), cell(k), expected))? + 0.0
                }
                (true, Missing::Mean) => f64::NAN,
                (true, Missing::Drop) => return Ok(NONE),
                (true, Missing::Refuse) if !needed => return Ok(NONE),
                (true, Missing::Refuse) => return refuse(k),
            };
            *bytes = x.to_le_bytes();
        }
        Ok(batch.state(key, place))
    }
}
