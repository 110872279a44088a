//! Tables in Arrow or Parquet.

use std::path::Path;

use super::assembler::Stop;
use super::column::Leaf;
use super::episode::Sink;
use super::job::Job;
use super::reading::Reading;
use super::table::{Block, Table};
use super::{arrow, parquet};
use crate::LabError;

/// Reads the columns of a file as a table.
pub(super) fn read<S: Sink>(job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
    let blocks = columns(job.path(), &job.input.bytes()?)?;
    Table::new(blocks).read(job, sink)
}

/// The columns of a file.
pub(super) fn columns(path: &Path, bytes: &[u8]) -> Result<Vec<Block>, LabError> {
    // pandas keeps the numbers of its rows.
    let leaves = leaves(path, bytes, |name| !name.starts_with("__index_level_"))?;
    if leaves.is_empty() {
        return Err(LabError::parse(path, "found no columns, expected some"));
    }
    Ok(leaves.into_iter().map(Leaf::block).collect())
}

/// The columns whose names are asked for, of a file of either format.
pub(super) fn leaves(
    path: &Path,
    bytes: &[u8],
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Leaf>, LabError> {
    let found = match bytes.starts_with(parquet::MARK) {
        true => parquet::leaves(bytes, is_wanted),
        false => arrow::leaves(bytes, is_wanted),
    };
    found.map_err(|message| LabError::parse(path, message))
}
