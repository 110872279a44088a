//! Columns of numbers and texts, as binary formats keep them.

use std::borrow::Cow;

use super::assembler::{Assembler, Stop};
use super::batch::Batch;
use super::cell;
use super::episode::Sink;
use super::job::Job;
use super::names;
use super::parser::{Cells, RowParser};
use super::reading::Reading;
pub use crate::files::Values;
use crate::{LabError, Progress};

/// Rows put together at once.
const ROWS: usize = 1 << 14;

/// An array: one column, or as many as a row has entries.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Block {
    pub name: String,
    /// Entries of a row; none for a plain column.
    pub width: Option<usize>,
    pub values: Values,
}

impl Block {
    /// A block of that name from an array of that shape, of which the first dimension counts rows.
    pub fn new(name: &str, shape: &[usize], values: Values) -> Self {
        let width = (shape.len() > 1).then(|| shape[1..].iter().product());
        // One number per row is a column, however it is kept; only a state may be a list of one.
        let is_state = names::STATE.iter().any(|state| {
            name.strip_prefix(state).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        });
        Self { name: name.into(), width: width.filter(|w| *w != 1 || is_state), values }
    }

    /// Whether it has no part in a log.
    fn is_other(&self) -> bool {
        !names::is_role(&self.name)
    }

    /// Leaves out rows beyond so many.
    pub fn truncate(&mut self, rows: usize) {
        let length = rows * self.width.unwrap_or(1);
        match &mut self.values {
            Values::Float(list) => list.truncate(length),
            Values::Whole(list) => list.truncate(length),
            Values::Text(list) => list.truncate(length),
        }
    }

    /// One of its columns.
    pub fn lane(&self, lane: usize, name: &str, rows: usize) -> Self {
        let width = self.width.unwrap_or(1);
        let at = |row: usize| row * width + lane;
        let values = match &self.values {
            Values::Float(list) => Values::Float((0..rows).map(|row| list[at(row)]).collect()),
            Values::Whole(list) => Values::Whole((0..rows).map(|row| list[at(row)]).collect()),
            Values::Text(list) => Values::Text((0..rows).map(|row| list[at(row)].clone()).collect()),
        };
        Self { name: name.into(), width: None, values }
    }

    pub fn rows(&self) -> usize {
        // An array whose rows have no entries says nothing about how many there are.
        self.values.len() / self.width.unwrap_or(1).max(1)
    }
}

/// Arrays whose rows belong together. One that is shorter has no values in the last rows.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    blocks: Vec<Block>,
    /// Of every column its block and its place in the rows of the block.
    columns: Vec<(usize, usize)>,
    rows: usize,
}

impl Table {
    /// Arrays of a file that holds others too: those of another length that have no part in a log are left out.
    pub fn of_arrays(mut blocks: Vec<Block>) -> Self {
        let longest = blocks.iter().map(Block::rows).max().unwrap_or(0);
        let rows = rewards(&blocks).map_or(longest, Block::rows);
        blocks.retain(|block| block.rows() == rows || !block.is_other());
        Self::new(blocks)
    }

    pub fn new(blocks: Vec<Block>) -> Self {
        let lanes = |b: usize| (0..blocks[b].width.unwrap_or(1)).map(move |lane| (b, lane));
        let columns = (0..blocks.len()).flat_map(lanes).collect();
        let rows = blocks.iter().map(Block::rows).max().unwrap_or(0);
        Self { blocks, columns, rows }
    }

    pub fn num_rows(&self) -> usize {
        self.rows
    }

    pub fn row(&self, row: usize) -> TableRow<'_> {
        TableRow { table: self, row }
    }

    /// Names of the columns: those of a wide block are numbered.
    pub fn header(&self) -> Vec<String> {
        let name = |&(b, lane): &(usize, usize)| match self.blocks[b].width {
            Some(_) => format!("{}_{lane}", self.blocks[b].name),
            None => self.blocks[b].name.clone(),
        };
        self.columns.iter().map(name).collect()
    }

    /// Hands the rows on.
    pub fn feed<S: Sink>(
        &self,
        assembler: &mut Assembler<'_, S>,
        parser: &RowParser,
        places: Places<'_>,
        progress: &Progress,
    ) -> Result<(), Stop> {
        let step = if matches!(places, Places::Rows) { ROWS } else { self.rows.max(1) };
        for start in (0..self.rows).step_by(step) {
            let end = (start + step).min(self.rows);
            let mut batch = Batch { places: (end - start) as u64, ..Batch::default() };
            for row in start..end {
                let place = match places {
                    Places::Numbers(numbers) => (numbers[row] - numbers[0]) as usize,
                    _ => row - start,
                };
                batch.places = batch.places.max(place as u64 + 1);
                if let Err(failure) = parser.row(&mut batch, &self.row(row), place) {
                    batch.failure = Some(failure);
                    break;
                }
            }
            if places == Places::Line {
                batch.places = 1;
                batch.rows.fill(0);
                batch.failure.iter_mut().for_each(|failure| failure.row = 0);
            }
            assembler.batch(&batch)?;
            progress.step((end - start) as u64)?;
        }
        Ok(())
    }

    /// Reads the whole table, its rows counted from 0.
    pub(super) fn read<S: Sink>(&self, job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
        let (rows, like) = match rewards(&self.blocks) {
            Some(block) => (block.rows(), "as there are rewards"),
            None => (self.rows, "as in the others"),
        };
        if let Some(block) = self.blocks.iter().find(|block| block.rows() != rows) {
            let message = format!("{}: found {} rows, expected {rows} {like}", block.name, block.rows());
            return Err(LabError::parse(job.path(), message).into());
        }
        let (parser, mut assembler) = job.rows("arrays", self.header(), sink)?;
        assembler.skip_to(0);
        job.progress.begin(format!("reading {}", job.path().display()), "rows", self.rows as u64)?;
        self.feed(&mut assembler, &parser, Places::Rows, job.progress)?;
        assembler.finish()
    }
}

/// The block of rewards, where one is called so.
fn rewards(blocks: &[Block]) -> Option<&Block> {
    blocks.iter().find(|block| names::is_reward(&block.name))
}

/// What messages say about where a row stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Places<'a> {
    /// Its number in the file.
    Rows,
    /// The same, where some rows are passed over.
    Numbers(&'a [u64]),
    /// The line that the whole table stands on.
    Line,
    /// Its number in the episode that the table is.
    Steps,
}

/// One row of a table.
pub(crate) struct TableRow<'a> {
    table: &'a Table,
    row: usize,
}

/// One entry.
enum Entry<'a> {
    Float(f64),
    Whole(i64),
    Text(&'a str),
    NotANumber,
    /// As it is said.
    Missing(&'a str),
}

impl TableRow<'_> {
    fn entry(&self, column: usize) -> Entry<'_> {
        let (b, lane) = self.table.columns[column];
        let block = &self.table.blocks[b];
        let k = self.row * block.width.unwrap_or(1) + lane;
        match &block.values {
            values if k >= values.len() => Entry::Missing(""),
            Values::Float(list) if list[k].is_nan() => Entry::NotANumber,
            Values::Float(list) => Entry::Float(list[k]),
            Values::Whole(list) => Entry::Whole(list[k]),
            Values::Text(list) if cell::is_missing(list[k].trim().as_bytes()) => {
                Entry::Missing(list[k].trim())
            }
            Values::Text(list) => Entry::Text(list[k].trim()),
        }
    }
}

impl Cells for TableRow<'_> {
    fn text(&self, column: usize) -> Cow<'_, [u8]> {
        match self.entry(column) {
            Entry::Missing(text) => text.as_bytes().into(),
            // With a point, so that a column of such states is a feature.
            Entry::Float(x) => format!("{x:?}").into_bytes().into(),
            Entry::Whole(n) => n.to_string().into_bytes().into(),
            Entry::Text(text) => text.as_bytes().into(),
            Entry::NotANumber => Cow::Borrowed(b"NaN"),
        }
    }

    fn is_missing(&self, column: usize) -> bool {
        matches!(self.entry(column), Entry::Missing(_) | Entry::NotANumber)
    }

    fn is_empty(&self, column: usize) -> bool {
        matches!(self.entry(column), Entry::Missing("") | Entry::NotANumber)
    }

    fn number(&self, column: usize) -> Result<f64, &'static str> {
        match self.entry(column) {
            Entry::Float(x) if x.is_finite() => Ok(x),
            Entry::Float(_) => Err("a finite number"),
            Entry::Whole(n) => Ok(n as f64),
            Entry::Text(text) => cell::number(text.as_bytes()),
            Entry::NotANumber | Entry::Missing(_) => Err("a number"),
        }
    }

    fn flag(&self, column: usize) -> Option<bool> {
        match self.entry(column) {
            Entry::Float(0.0) | Entry::Whole(0) => Some(false),
            Entry::Float(1.0) | Entry::Whole(1) => Some(true),
            Entry::Text(text) => cell::flag(text.as_bytes()),
            _ => None,
        }
    }

    fn time(&self, column: usize) -> Result<(f64, bool), &'static str> {
        match self.entry(column) {
            Entry::Text(text) => cell::time(text.as_bytes()),
            _ => self.number(column).map(|x| (x, false)),
        }
    }
}
