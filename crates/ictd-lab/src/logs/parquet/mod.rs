//! Parquet: columns of numbers, truth values, texts, lists of them and structures, as pandas, pyarrow and DuckDB write them.
//!
//! Written by hand rather than taken from a library: the usual one brings a licence and versions that the audit refuses.

mod encoding;
mod pages;
mod schema;
mod thrift;
mod write;

pub(crate) use super::table::Values;
pub(crate) use write::to_bytes;

use self::encoding::Kind;
use self::pages::Chunk;
use self::thrift::{Node, structure};
use super::column::{Column, Leaf};
use crate::memory;

/// What a file begins and ends with.
pub(super) const MARK: &[u8; 4] = b"PAR1";

fn damaged() -> String {
    "found a Parquet file that ends early or is damaged, expected a whole one".to_owned()
}

fn nests() -> String {
    "found lists of lists or structures, expected one number, truth value or text per row or lists of them"
        .to_owned()
}

/// The columns whose names are asked for.
pub(super) fn leaves(bytes: &[u8], is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Leaf>, String> {
    let content = bytes.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(MARK)).ok_or_else(damaged)?;
    let (content, length) = content.split_last_chunk::<4>().ok_or_else(damaged)?;
    let start = content.len().checked_sub(u32::from_le_bytes(*length) as usize).ok_or_else(damaged)?;
    let metadata = structure(&mut &content[start..]).ok_or_else(damaged)?;
    let rows = metadata.count(3).ok_or_else(damaged)?;
    let columns = metadata.list(2).and_then(schema::leaves).ok_or_else(damaged)?;
    let groups = metadata.list(4).ok_or_else(damaged)?;
    let in_groups = groups.iter().try_fold(0usize, |sum, group| sum.checked_add(group.count(3)?));
    if in_groups != Some(rows) {
        return Err(damaged());
    }
    let mut found = Vec::new();
    let mut size = 0.0;
    for (k, leaf) in columns.into_iter().enumerate().filter(|(_, leaf)| is_wanted(&leaf.names[0])) {
        let name = leaf.names.join("_");
        let in_column = |message: String| format!("column {name}: {message}");
        let kind = leaf.kind().map_err(in_column)?;
        let chunks = groups.iter().map(|group| chunk(bytes, group, k, &leaf, kind));
        let chunks = chunks.collect::<Option<Vec<_>>>().ok_or_else(damaged)?;
        // Entries in runs take next to nothing in the file.
        let count = chunks.iter().map(|chunk| chunk.count as f64).sum::<f64>();
        memory::admit(size + 16.0 * count, "the number of rows").map_err(|e| e.to_string())?;
        let mut column = match leaf.levels.list {
            Some(_) => Column::of_lists(kind.none()),
            None => Column::new(kind.none()),
        };
        for chunk in chunks {
            chunk.read(&mut column).map_err(in_column)?;
            memory::admit(size + column.size(), "the number of rows").map_err(|e| e.to_string())?;
        }
        if column.rows() != rows {
            return Err(damaged());
        }
        size += column.size();
        found.push(Leaf::new(leaf.names, column, kind == Kind::Int64 { signed: false }, size)?);
    }
    Ok(found)
}

/// Where a group of rows keeps a column; none where that is not in the file.
fn chunk<'a>(
    bytes: &'a [u8],
    group: &Node<'_>,
    column: usize,
    leaf: &schema::Leaf<'_>,
    kind: Kind,
) -> Option<Chunk<'a>> {
    let rows = group.count(3)?;
    let metadata = group.list(1)?.get(column)?.field(3)?;
    let data = metadata.count(9)?;
    let dictionary = metadata.count(11).filter(|offset| *offset > 0 && *offset < data);
    let begin = dictionary.unwrap_or(data);
    let end = begin.checked_add(metadata.count(7)?)?;
    let count = metadata.count(5)?;
    let is_whole = count == rows || leaf.levels.list.is_some();
    (metadata.whole(1) == leaf.node.whole(1) && is_whole).then_some(())?;
    Some(Chunk { bytes: bytes.get(begin..end)?, kind, levels: leaf.levels, codec: metadata.whole(4)?, count })
}
