//! Parquet: flat columns of numbers, truth values and texts, as pandas, pyarrow and DuckDB write them.
//!
//! Written by hand rather than taken from a library: the usual one brings a licence and versions that the audit refuses.

mod pages;
mod thrift;
mod write;

pub(crate) use super::table::Values;
pub(crate) use write::to_bytes;

use std::path::Path;

use self::pages::{Chunk, Column, Kind};
use self::thrift::{Node, structure};
use super::assembler::Stop;
use super::episode::Sink;
use super::job::Job;
use super::reading::Reading;
use super::table::{Block, Table};
use crate::{LabError, memory};

/// What a file begins and ends with.
const MARK: &[u8; 4] = b"PAR1";

/// Reads the columns of a file as a table.
pub(super) fn read<S: Sink>(job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
    let blocks = columns(job.path(), &job.input.bytes()?)?;
    Table::new(blocks).read(job, sink)
}

/// The columns of a file.
pub(super) fn columns(path: &Path, bytes: &[u8]) -> Result<Vec<Block>, LabError> {
    blocks(bytes).map_err(|message| LabError::parse(path, message))
}

fn damaged() -> String {
    "found a Parquet file that ends early or is damaged, expected a whole one".to_owned()
}

fn blocks(bytes: &[u8]) -> Result<Vec<Block>, String> {
    let content = bytes.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(MARK)).ok_or_else(damaged)?;
    let (content, length) = content.split_last_chunk::<4>().ok_or_else(damaged)?;
    let start = content.len().checked_sub(u32::from_le_bytes(*length) as usize).ok_or_else(damaged)?;
    let metadata = structure(&mut &content[start..]).ok_or_else(damaged)?;
    let rows = metadata.count(3).ok_or_else(damaged)?;
    let schema = metadata.list(2).ok_or_else(damaged)?;
    let groups = metadata.list(4).ok_or_else(damaged)?;
    let leaves = schema.get(1..).ok_or_else(damaged)?;
    let in_groups = groups.iter().try_fold(0usize, |sum, group| sum.checked_add(group.count(3)?));
    if in_groups != Some(rows) || schema[0].count(5) != Some(leaves.len()) {
        // A column of columns counts as one.
        let nested = leaves.iter().find(|leaf| leaf.count(5).is_some_and(|n| n > 0));
        return Err(nested.map_or_else(damaged, |leaf| nests(&leaf.text(4).unwrap_or_default())));
    }
    let mut found = Vec::new();
    let mut size = 0.0;
    // Entries in runs take next to nothing in the file.
    memory::admit(16.0 * rows as f64 * leaves.len() as f64, "the number of rows")
        .map_err(|e| e.to_string())?;
    for (k, leaf) in leaves.iter().enumerate() {
        let name = leaf.text(4).ok_or_else(damaged)?;
        // pandas keeps the numbers of its rows.
        if name.starts_with("__index_level_") {
            continue;
        }
        let in_column = |message: String| format!("column {name}: {message}");
        let kind = kind(leaf)
            .map_err(|message| if message.is_empty() { nests(&name) } else { in_column(message) })?;
        let mut column = Column::new(kind);
        for group in groups {
            let chunk = chunk(bytes, group, k, leaf, kind).ok_or_else(damaged)?;
            column.extend(chunk).map_err(in_column)?;
            memory::admit(size + column.size(), "the number of rows").map_err(|e| e.to_string())?;
        }
        size += column.size();
        found.push(Block::new(&name, &[rows], column.finish(kind)));
    }
    if found.is_empty() {
        return Err("found no columns, expected some".into());
    }
    Ok(found)
}

fn nests(name: &str) -> String {
    format!("column {name}: found lists or structures, expected one number, truth value or text per row")
}

/// What a column holds; an empty message where its rows have more than one entry.
fn kind(leaf: &Node<'_>) -> Result<Kind, String> {
    if leaf.count(5).is_some_and(|n| n > 0) || leaf.whole(3) == Some(2) {
        return Err(String::new());
    }
    let expected = "expected numbers, truth values or texts";
    let logical = leaf.field(10);
    if leaf.whole(6) == Some(5) || logical.is_some_and(|l| l.field(5).is_some()) {
        return Err(format!("found decimals, {expected}: floating-point numbers can be read"));
    }
    let is_unsigned = |bits: i64| {
        let integer = logical.and_then(|l| l.field(10));
        integer.is_some_and(|i| i.whole(2) == Some(0)) || leaf.whole(6) == Some(bits)
    };
    Ok(match leaf.whole(1) {
        Some(0) => Kind::Bool,
        Some(1) => Kind::Int32 { signed: !is_unsigned(13) },
        Some(2) => Kind::Int64 { signed: !is_unsigned(14) },
        Some(4) => Kind::Float,
        Some(5) => Kind::Double,
        Some(6) => Kind::Text,
        Some(3) => return Err(format!("found times of 96 bits, {expected}: those of 64 bits can be read")),
        _ => return Err(format!("found entries of a fixed number of bytes, {expected}")),
    })
}

/// Where a group of rows keeps a column; none where that is not in the file.
fn chunk<'a>(
    bytes: &'a [u8],
    group: &Node<'_>,
    column: usize,
    leaf: &Node<'_>,
    kind: Kind,
) -> Option<Chunk<'a>> {
    let rows = group.count(3)?;
    let metadata = group.list(1)?.get(column)?.field(3)?;
    let data = metadata.count(9)?;
    let dictionary = metadata.count(11).filter(|offset| *offset > 0 && *offset < data);
    let begin = dictionary.unwrap_or(data);
    let end = begin.checked_add(metadata.count(7)?)?;
    (metadata.whole(1) == leaf.whole(1) && metadata.count(5) == Some(rows)).then_some(())?;
    Some(Chunk {
        bytes: bytes.get(begin..end)?,
        kind,
        optional: leaf.whole(3) == Some(1),
        codec: metadata.whole(4)?,
        rows,
    })
}
