//! Rows of a table as they come from a reader: parsed, their states numbered within the batch.

use super::cell::Failure;
use super::interner::Interner;

/// In place of the number of a state: there is none.
pub(crate) const NONE: u32 = u32::MAX;
/// The episode ended in a terminal state.
pub(crate) const TERMINATED: u8 = 1;
/// Recording ended.
pub(crate) const TRUNCATED: u8 = 2;

/// Names of consecutive rows, each with how many rows in a row have it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    bytes: Vec<u8>,
    /// End of a name in `bytes`, and its number of rows.
    runs: Vec<(usize, u32)>,
}

impl Runs {
    fn last(&self) -> Option<&[u8]> {
        let start = self.runs.len().checked_sub(2).map_or(0, |k| self.runs[k].0);
        self.runs.last().map(|&(end, _)| &self.bytes[start..end])
    }

    /// Adds a row.
    pub fn push(&mut self, name: &[u8]) {
        if self.last() == Some(name)
            && let Some((_, rows)) = self.runs.last_mut()
        {
            *rows += 1;
            return;
        }
        self.bytes.extend_from_slice(name);
        self.runs.push((self.bytes.len(), 1));
    }

    /// The names with their numbers of rows.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let starts = std::iter::once(0).chain(self.runs.iter().map(|&(end, _)| end));
        starts.zip(&self.runs).map(|(start, &(end, rows))| (&self.bytes[start..end], rows as usize))
    }
}

/// Consecutive rows. All lists are as long as `rows` but those of columns that are not there, which are empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// Where each row stands, relative to the beginning of the batch.
    pub rows: Vec<u32>,
    /// How many places there are, empty lines included.
    pub places: u64,
    pub episodes: Runs,
    pub ids: Runs,
    pub times: Vec<f64>,
    /// Whether some of them are dates.
    pub has_dates: bool,
    /// Ends that were marked as terminated and truncated, and are taken for truncated.
    pub limits: u64,
    /// Numbers in `table`, or [`NONE`].
    pub states: Vec<u32>,
    /// The states that followed.
    pub next: Vec<u32>,
    /// NaN where there is none.
    pub rewards: Vec<f64>,
    pub flags: Vec<u8>,
    /// The states of the batch: texts of labels, or eight bytes for each feature.
    pub table: Interner,
    /// The row in which a state first turned up, relative to the beginning of the batch.
    pub origins: Vec<u32>,
    /// The first row that cannot be read; there are no rows after it.
    pub failure: Option<Failure>,
}

impl Batch {
    /// The number of a state within the batch.
    pub fn state(&mut self, key: &[u8], row: usize) -> u32 {
        let (number, is_new) = self.table.intern(key);
        if is_new {
            self.origins.push(row as u32);
        }
        number
    }
}
