//! Arrow: files (which pandas calls Feather) and streams, of numbers, truth values, texts, lists of them and structures.
//!
//! Written by hand rather than taken from a library, as the reader of Parquet is.

mod batch;
mod entries;
mod flatbuffer;
mod messages;
mod schema;

use self::batch::{Batch, Dictionaries};
use self::messages::{Content, DICTIONARY, Message, ROWS};
use self::schema::{Field, Kind, fields};
use super::column::{Column, Leaf};
use crate::memory::{self, DOUBLE};

fn damaged() -> String {
    "found an Arrow file that ends early or is damaged, expected a whole one".to_owned()
}

/// A column that is asked for, and what was read of it.
struct Wanted<'f> {
    names: Vec<String>,
    field: &'f Field,
    column: Column,
}

impl<'f> Wanted<'f> {
    fn new(names: Vec<String>, field: &'f Field) -> Result<Self, String> {
        if let Some(message) = field.refusal() {
            return Err(format!("column {}: {message}", names.join("_")));
        }
        let is_list = !std::ptr::eq(field, field.entry());
        let column = if is_list { Column::of_lists(field.none()) } else { Column::new(field.none()) };
        Ok(Self { names, field, column })
    }

    /// Whether there is nothing in it.
    fn is_null(&self) -> bool {
        self.field.kind == Kind::Null && self.field.dictionary.is_none()
    }
}

/// The columns whose names are asked for.
pub(super) fn leaves(bytes: &[u8], is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Leaf>, String> {
    let Content { schema, size, messages } = Content::of(bytes)?;
    let fields = fields(&schema, size)?;
    let mut found = Vec::new();
    for field in fields.iter().filter(|field| is_wanted(&field.name)) {
        field.leaves(&[], &mut found);
    }
    let wanted = found.into_iter().map(|(names, field)| Wanted::new(names, field));
    let mut wanted = wanted.collect::<Result<Vec<_>, String>>()?;
    let mut dictionaries = Dictionaries::new();
    let mut rows = 0usize;
    // Bytes of memory that the file and what was read of it take.
    let mut held = bytes.len() as f64;
    for Message { kind, header, body } in messages {
        let mut read = Vec::new();
        match kind {
            DICTIONARY => {
                let id = header.long(0).unwrap_or(0);
                let mut fields = wanted.iter().map(|w| w.field.entry());
                let field = fields.find(|field| field.dictionary.is_some_and(|d| d.id == id));
                // One that nobody asks for.
                let Some(field) = field else { continue };
                let table = header.table(1).ok_or_else(damaged)?;
                let field = Field { dictionary: None, ..field.clone() };
                Batch::new(&table, body, &Dictionaries::new(), held)?.read(&field, &mut read)?;
                let column = read.pop().ok_or_else(damaged)?;
                held += column.size();
                match dictionaries.get_mut(&id).filter(|_| header.byte(2).unwrap_or(0) != 0) {
                    Some(known) => known.append(column),
                    None => drop(dictionaries.insert(id, column)),
                }
            }
            ROWS => {
                let mut batch = Batch::new(&header, body, &dictionaries, held)?;
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
                held += read.iter().map(Column::size).sum::<f64>();
                wanted.iter_mut().zip(read).for_each(|(w, column)| w.column.append(column));
            }
            _ => return Err(damaged()),
        }
    }
    // Columns without any entry are as long as others: on their own they say nothing.
    let nulls = wanted.iter().filter(|w| w.is_null()).count();
    if nulls > 0 && nulls == wanted.len() {
        return Err("found no columns with entries, expected some".into());
    }
    let empty = DOUBLE * nulls as f64 * rows as f64;
    held += empty;
    memory::admit(held, "the number of rows").map_err(|e| e.to_string())?;
    let leaf = |w: Wanted<'_>| {
        let column = if w.is_null() { Column::of_nothing(rows) } else { w.column };
        Leaf::new(w.names, column, w.field.is_unsigned(), held)
    };
    wanted.into_iter().map(leaf).collect()
}
