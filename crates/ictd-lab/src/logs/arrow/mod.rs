//! Arrow: files (which pandas calls Feather) and streams, of numbers, truth values, texts, lists of them and structures.
//!
//! Written by hand rather than taken from a library, as the reader of Parquet is.

mod batch;
mod flatbuffer;
mod schema;

use self::batch::{Batch, Dictionaries};
use self::flatbuffer::Table;
use self::schema::{Field, Kind, fields};
use super::column::{Column, Leaf};
use crate::memory;

/// What a file begins with; it ends with the first six bytes.
const MARK: &[u8; 8] = b"ARROW1\0\0";
/// What a message begins with, in files of this decade.
const NEXT: u32 = u32::MAX;

fn damaged() -> String {
    "found an Arrow file that ends early or is damaged, expected a whole one".to_owned()
}

/// What the header of a message is.
const SCHEMA: u8 = 1;
const DICTIONARY: u8 = 2;
const ROWS: u8 = 3;

struct Message<'a> {
    kind: u8,
    header: Table<'a>,
    /// Bytes of everything but the entries.
    size: usize,
    body: &'a [u8],
}

/// The message that comes next; none after the last one.
fn message<'a>(bytes: &mut &'a [u8]) -> Result<Option<Message<'a>>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut number = || {
        let (number, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
        *bytes = rest;
        Ok::<u32, String>(u32::from_le_bytes(*number))
    };
    let size = match number()? {
        NEXT => number()?,
        size => size,
    } as usize;
    if size == 0 {
        return Ok(None);
    }
    let (content, rest) = bytes.split_at_checked(size).ok_or_else(damaged)?;
    let table = Table::root(content).ok_or_else(damaged)?;
    // Those of the versions before laid some columns out in another way.
    let version = table.short(0).unwrap_or(0);
    if !matches!(version, 3 | 4) {
        return Err(format!("found Arrow of version {}, expected 4 or 5", version.saturating_add(1)));
    }
    let length = table.count(3).ok_or_else(damaged)?;
    let (body, rest) = rest.split_at_checked(length).ok_or_else(damaged)?;
    *bytes = rest;
    let kind = table.byte(1).unwrap_or(0);
    let header = table.table(2).ok_or_else(damaged)?;
    Ok(Some(Message { kind, header, size, body }))
}

/// The messages of a file, and how many of them have rows; of a stream that is not said.
fn content(bytes: &[u8]) -> Result<(&[u8], Option<usize>), String> {
    let Some(content) = bytes.strip_prefix(MARK) else {
        // One that is cut in its first bytes.
        return if bytes.starts_with(b"ARROW") { Err(damaged()) } else { Ok((bytes, None)) };
    };
    let content = content.strip_suffix(&MARK[..6]).ok_or_else(damaged)?;
    let (content, length) = content.split_last_chunk::<4>().ok_or_else(damaged)?;
    let start = content.len().checked_sub(u32::from_le_bytes(*length) as usize).ok_or_else(damaged)?;
    let (messages, footer) = content.split_at(start);
    let footer = Table::root(footer).ok_or_else(damaged)?;
    Ok((messages, Some(footer.list::<24>(3).map_or(0, <[_]>::len))))
}

/// A column that is asked for, and what was read of it.
struct Wanted<'f> {
    names: Vec<String>,
    field: &'f Field,
    column: Column,
}

/// The columns whose names are asked for.
pub(super) fn leaves(bytes: &[u8], is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Leaf>, String> {
    let (mut rest, expected) = content(bytes)?;
    let first = message(&mut rest)?.filter(|first| first.kind == SCHEMA).ok_or_else(damaged)?;
    let fields = fields(&first.header, first.size)?;
    let mut found = Vec::new();
    for field in fields.iter().filter(|field| is_wanted(&field.name)) {
        field.leaves(&[], &mut found);
    }
    let refused = found.iter().find_map(|(names, field)| Some((names, field.refusal()?)));
    if let Some((names, message)) = refused {
        return Err(format!("column {}: {message}", names.join("_")));
    }
    let mut wanted: Vec<Wanted<'_>> = found
        .into_iter()
        .map(|(names, field)| {
            let is_list = !std::ptr::eq(field, field.entry());
            let column = if is_list { Column::of_lists(field.none()) } else { Column::new(field.none()) };
            Wanted { names, field, column }
        })
        .collect();
    let mut dictionaries = Dictionaries::new();
    let (mut rows, mut batches) = (0usize, 0);
    while let Some(Message { kind, header, body, .. }) = message(&mut rest)? {
        let held = bytes.len() as f64
            + wanted.iter().map(|w| w.column.size()).sum::<f64>()
            + dictionaries.values().map(Column::size).sum::<f64>();
        match kind {
            DICTIONARY => {
                let id = header.long(0).unwrap_or(0);
                let mut fields = wanted.iter().map(|w| w.field.entry());
                let field = fields.find(|field| field.dictionary.is_some_and(|d| d.id == id));
                // One that nobody asks for.
                let Some(field) = field else { continue };
                let table = header.table(1).ok_or_else(damaged)?;
                let field = Field { dictionary: None, ..field.clone() };
                let mut read = Vec::new();
                Batch::new(&table, body, &Dictionaries::new(), held)?.read(&field, &mut read)?;
                let column = read.pop().ok_or_else(damaged)?;
                match dictionaries.get_mut(&id).filter(|_| header.byte(2).unwrap_or(0) != 0) {
                    Some(known) => known.append(column),
                    None => drop(dictionaries.insert(id, column)),
                }
            }
            ROWS => {
                let mut batch = Batch::new(&header, body, &dictionaries, held)?;
                let mut read = Vec::new();
                for field in &fields {
                    let in_column = |message: String| match message == damaged() {
                        true => message,
                        false => format!("column {}: {message}", field.name),
                    };
                    match is_wanted(&field.name) {
                        true => batch.read(field, &mut read).map_err(in_column)?,
                        false => batch.pass(field)?,
                    }
                }
                rows = rows.checked_add(batch.rows).ok_or_else(damaged)?;
                batches += 1;
                wanted.iter_mut().zip(read).for_each(|(w, column)| w.column.append(column));
            }
            _ => return Err("found a tensor, expected a table".into()),
        }
    }
    if expected.is_some_and(|expected| expected != batches) {
        return Err(damaged());
    }
    // Columns without any entry are as long as others: on their own they say nothing.
    let is_null = |w: &Wanted<'_>| w.field.kind == Kind::Null && w.field.dictionary.is_none();
    if !wanted.is_empty() && wanted.iter().all(is_null) {
        return Err("found no columns with entries, expected some".into());
    }
    let nulls = wanted.iter().filter(|w| is_null(w)).count();
    memory::admit(nulls as f64 * 64.0 * rows as f64, "the number of rows").map_err(|e| e.to_string())?;
    let leaf = |w: Wanted<'_>| {
        let column = if is_null(&w) { Column::of_nothing(rows) } else { w.column };
        Leaf::new(w.names, column, w.field.is_unsigned())
    };
    wanted.into_iter().map(leaf).collect()
}
