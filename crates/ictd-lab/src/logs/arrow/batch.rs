//! Rows of an Arrow file: for every column the bytes of its entries, one after the other, compressed or not.

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem::discriminant;
use std::slice::Iter;

use super::super::column::{Column, text};
use super::super::lz4;
use super::super::table::Values;
use super::damaged;
use super::entries::{bits_of, floats, halved, whole_numbers};
use super::flatbuffer::Table;
use super::schema::{Dictionary, Field, Kind};
use crate::memory::{self, DOUBLE};

/// LZ4 repeats at most 255 bytes for every one that it reads.
const LZ4_RATIO: usize = 255;

/// Entries of dictionaries, by their numbers.
pub(super) type Dictionaries = HashMap<i64, Column>;

/// Rows while they are read: columns are taken one after the other.
pub(super) struct Batch<'a> {
    pub rows: usize,
    nodes: Iter<'a, [u8; 16]>,
    buffers: Iter<'a, [u8; 16]>,
    /// How many buffers have the texts of a column that keeps short ones apart.
    more: Iter<'a, [u8; 8]>,
    body: &'a [u8],
    /// Where the buffer before ended.
    end: usize,
    is_packed: bool,
    dictionaries: &'a Dictionaries,
    /// Bytes of memory that are taken already.
    held: f64,
}

/// Whether each row has an entry; none where all have.
type There = Option<Vec<bool>>;

impl<'a> Batch<'a> {
    pub fn new(
        table: &Table<'a>,
        body: &'a [u8],
        dictionaries: &'a Dictionaries,
        held: f64,
    ) -> Result<Self, String> {
        let codec = table.table(3).map(|compression| compression.byte(0).unwrap_or(0));
        if codec.is_some_and(|codec| codec != 0) {
            let found = if codec == Some(1) { "Zstandard" } else { "something unknown" };
            return Err(format!(
                "found entries compressed with {found}, expected LZ4 or none: write it with compression='lz4' or 'uncompressed'"
            ));
        }
        Ok(Self {
            rows: table.count(0).ok_or_else(damaged)?,
            nodes: table.list(1).unwrap_or_default().iter(),
            buffers: table.list(2).unwrap_or_default().iter(),
            more: table.list(4).unwrap_or_default().iter(),
            body,
            end: 0,
            is_packed: codec.is_some(),
            dictionaries,
            held,
        })
    }

    /// Refuses so many bytes more.
    fn admit(&self, bytes: f64) -> Result<(), String> {
        memory::admit(self.held + bytes, "the number of rows").map_err(|e| e.to_string())
    }

    /// Rows of a column, and how many of them are absent.
    fn node(&mut self) -> Result<(usize, usize), String> {
        let node = self.nodes.next().ok_or_else(damaged)?;
        let [rows, absent] = halved(node).map(|n| usize::try_from(n).map_err(|_| damaged()));
        Ok((rows?, absent?))
    }

    fn pass_buffer(&mut self) -> Result<(), String> {
        self.buffers.next().map(|_| ()).ok_or_else(damaged)
    }

    /// The bytes that come next.
    fn buffer(&mut self) -> Result<Cow<'a, [u8]>, String> {
        let place = self.buffers.next().ok_or_else(damaged)?;
        let [start, length] = halved(place).map(|n| usize::try_from(n).map_err(|_| damaged()));
        let (start, length) = (start?, length?);
        let end = start.checked_add(length).ok_or_else(damaged)?;
        let bytes = self.body.get(start..end).ok_or_else(damaged)?;
        if bytes.is_empty() {
            return Ok(bytes.into());
        }
        // One after the other: bytes that many columns share would take more memory than the file has bytes.
        if start < std::mem::replace(&mut self.end, end) {
            return Err(damaged());
        }
        if !self.is_packed {
            return Ok(bytes.into());
        }
        let (size, packed) = bytes.split_first_chunk().ok_or_else(damaged)?;
        match i64::from_le_bytes(*size) {
            // Bytes that would not become fewer are left as they are.
            -1 => Ok(packed.into()),
            size => {
                let size = usize::try_from(size).map_err(|_| damaged())?;
                if size > packed.len().saturating_mul(LZ4_RATIO) {
                    return Err(damaged());
                }
                self.admit(size as f64)?;
                lz4::frame(packed, size).map(Cow::from).ok_or_else(damaged)
            }
        }
    }

    /// Which of so many rows have an entry, given which have what it stands in.
    fn there(&mut self, rows: usize, absent: usize, outer: &There) -> Result<There, String> {
        if absent == 0 {
            self.pass_buffer()?;
            return Ok(outer.clone());
        }
        let bits = self.buffer()?;
        let own = bits_of(&bits, rows)?;
        Ok(Some(match outer {
            Some(outer) => own.zip(outer).map(|(own, outer)| own && *outer).collect(),
            None => own.collect(),
        }))
    }

    /// Passes over a column that nobody asks for.
    pub fn pass(&mut self, field: &Field) -> Result<(), String> {
        self.node()?;
        let buffers = match field.kind {
            _ if field.dictionary.is_some() => 2,
            Kind::Null => 0,
            Kind::Struct | Kind::Lists(_) => 1,
            Kind::Text { .. } => 3,
            Kind::View => 2 + self.pieces()?,
            Kind::Bool | Kind::Whole { .. } | Kind::Float(_) | Kind::List { .. } | Kind::Other(_) => 2,
        };
        for _ in 0..buffers {
            self.pass_buffer()?;
        }
        match field.dictionary {
            Some(_) => Ok(()),
            None => field.children.iter().try_for_each(|child| self.pass(child)),
        }
    }

    /// Buffers that the texts of the next column are spread over.
    fn pieces(&mut self) -> Result<usize, String> {
        let count = self.more.next().map(|bytes| i64::from_le_bytes(*bytes));
        count.and_then(|n| usize::try_from(n).ok()).ok_or_else(damaged)
    }

    /// Reads a column: what has entries of its own is added to `found`.
    pub fn read(&mut self, field: &Field, found: &mut Vec<Column>) -> Result<(), String> {
        self.inner(field, self.rows, &None, found)
    }

    fn inner(
        &mut self,
        field: &Field,
        rows: usize,
        outer: &There,
        found: &mut Vec<Column>,
    ) -> Result<(), String> {
        if field.kind == Kind::Struct && field.dictionary.is_none() {
            let (count, absent) = self.node()?;
            if count != rows {
                return Err(damaged());
            }
            let there = self.there(rows, absent, outer)?;
            return field.children.iter().try_for_each(|child| self.inner(child, rows, &there, found));
        }
        let column = match field.kind {
            Kind::List { .. } | Kind::Lists(_) if field.dictionary.is_none() => {
                self.lists(field, rows, outer)?
            }
            _ => self.entries(field, Some(rows), outer)?,
        };
        self.held += column.size();
        found.push(column);
        Ok(())
    }

    /// A column of lists.
    fn lists(&mut self, field: &Field, rows: usize, outer: &There) -> Result<Column, String> {
        let (count, absent) = self.node()?;
        if count != rows {
            return Err(damaged());
        }
        let there = self.there(rows, absent, outer)?;
        let ends = match field.kind {
            Kind::List { wide } => Some(self.ends(wide, rows)?),
            _ => None,
        };
        let entries = self.entries(field.entry(), None, &None)?;
        let width = if let Kind::Lists(width) = field.kind { width } else { 0 };
        // As long as the entries are: a number of rows that they do not have ends before it takes memory.
        let mut column = Column::of_lists(field.none());
        for row in 0..rows {
            let is_there = there.as_ref().is_none_or(|there| there[row]);
            let range = match &ends {
                Some(ends) => ends[row]..ends[row + 1],
                None => row.saturating_mul(width)..(row + 1).saturating_mul(width),
            };
            if range.end > entries.values.len() {
                return Err(damaged());
            }
            column.begin_list(is_there.then_some(range.len()));
            if is_there {
                column.extend(&entries, range);
            }
        }
        Ok(column)
    }

    /// Where texts or lists begin and end: one place more than there are rows.
    fn ends(&mut self, wide: bool, rows: usize) -> Result<Vec<usize>, String> {
        let bytes = self.buffer()?;
        if rows == 0 {
            return Ok(vec![0]);
        }
        let count = rows.checked_add(1).ok_or_else(damaged)?;
        let kind = Kind::Whole { bytes: if wide { 8 } else { 4 }, signed: true };
        let list = whole_numbers(kind, &bytes, count)?;
        let places: Option<Vec<usize>> = list.into_iter().map(|n| usize::try_from(n).ok()).collect();
        places.filter(|places| places.is_sorted()).ok_or_else(damaged)
    }

    /// A column of one entry per row.
    fn entries(&mut self, field: &Field, rows: Option<usize>, outer: &There) -> Result<Column, String> {
        let (count, absent) = self.node()?;
        if rows.is_some_and(|rows| rows != count) {
            return Err(damaged());
        }
        // Of these there is nothing but their number, which the whole file tells.
        if field.kind == Kind::Null && field.dictionary.is_none() {
            return Ok(Column::new(field.none()));
        }
        let there = self.there(count, absent, outer)?;
        if let Some(dictionary) = field.dictionary {
            return self.picked(field, dictionary, count, there);
        }
        let values = match field.kind {
            Kind::Bool => {
                let bytes = self.buffer()?;
                let bits = bits_of(&bytes, count)?;
                self.admit(DOUBLE * count as f64)?;
                Values::Whole(bits.map(i64::from).collect())
            }
            kind @ Kind::Whole { .. } => {
                let bytes = self.buffer()?;
                self.admit(DOUBLE * count as f64)?;
                Values::Whole(whole_numbers(kind, &bytes, count)?)
            }
            Kind::Float(size) => {
                let bytes = self.buffer()?;
                self.admit(DOUBLE * count as f64)?;
                Values::Float(floats(size, &bytes, count)?)
            }
            Kind::View => Values::Text(self.views(count, &there)?),
            Kind::Text { wide } => Values::Text(self.texts(wide, count, &there)?),
            // Others are no columns of one entry per row.
            _ => return Err(damaged()),
        };
        Ok(match there {
            Some(there) => Column::with_gaps(values, &there),
            None => Column::new(values),
        })
    }

    fn texts(&mut self, wide: bool, count: usize, there: &There) -> Result<Vec<String>, String> {
        let ends = self.ends(wide, count)?;
        let bytes = self.buffer()?;
        self.admit(bytes.len() as f64 + Values::text_memory(0) * count as f64)?;
        let text = |row: usize| match there {
            Some(there) if !there[row] => Ok(String::new()),
            _ => text(bytes.get(ends[row]..ends[row + 1]).ok_or_else(damaged)?),
        };
        (0..count).map(text).collect()
    }

    /// Texts of up to twelve bytes stand beside their lengths, others in one of several buffers.
    fn views(&mut self, count: usize, there: &There) -> Result<Vec<String>, String> {
        let bytes = self.buffer()?;
        let pieces = self.pieces()?;
        let mut buffers = Vec::new();
        for _ in 0..pieces {
            buffers.push(self.buffer()?);
        }
        let views =
            count.checked_mul(16).and_then(|n| bytes.get(..n)).ok_or_else(damaged)?.as_chunks::<16>().0;
        let number = |view: &[u8; 16], k: usize| {
            view[4 * k..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
        };
        // Views may share their text.
        let memory = views.iter().map(|view| Values::text_memory(number(view, 0))).sum();
        self.admit(memory)?;
        let text = |(row, view): (usize, &[u8; 16])| {
            if there.as_ref().is_some_and(|there| !there[row]) {
                return Ok(String::new());
            }
            let length = number(view, 0);
            let bytes = match length {
                0..=12 => &view[4..4 + length],
                _ => {
                    let (piece, start) = (number(view, 2), number(view, 3));
                    let piece = buffers.get(piece).ok_or_else(damaged)?;
                    piece.get(start..start + length).ok_or_else(damaged)?
                }
            };
            text(bytes)
        };
        views.iter().enumerate().map(text).collect()
    }

    /// Entries of a dictionary by their places.
    fn picked(
        &mut self,
        field: &Field,
        dictionary: Dictionary,
        count: usize,
        there: There,
    ) -> Result<Column, String> {
        let bytes = self.buffer()?;
        let places = whole_numbers(dictionary.places, &bytes, count)?;
        let known = self.dictionaries.get(&dictionary.id);
        let known = known.ok_or("found numbers of a dictionary, expected the dictionary before them")?;
        // Two columns may share one, if it is what both hold.
        if discriminant(&known.values) != discriminant(&field.none()) {
            return Err(damaged());
        }
        let length = known.values.len();
        let mut chosen = Vec::with_capacity(places.len());
        for (row, place) in places.into_iter().enumerate() {
            let is_there = there.as_ref().is_none_or(|there| there[row]);
            let place = usize::try_from(place).ok().filter(|place| *place < length);
            match place {
                _ if !is_there => chosen.push(None),
                Some(place) => chosen.push(Some(place).filter(|place| known.has(*place))),
                None => return Err(format!("found an entry beyond the {length} of the dictionary")),
            }
        }
        // Long texts take next to nothing in the file.
        let memory = match &known.values {
            Values::Text(list) => {
                chosen.iter().map(|k| Values::text_memory(k.map_or(0, |k| list[k].len()))).sum()
            }
            _ => DOUBLE * count as f64,
        };
        self.admit(memory)?;
        let mut column = Column::new(field.none());
        column.pick(known, &chosen);
        Ok(column)
    }
}
