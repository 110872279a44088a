//! Arrays of NumPy: `.npy` files, alone or in `.npz` archives.

use std::path::Path;

use ictd::context::End;

use super::assembler::Stop;
use super::context::{Trajectory, feed};
use super::episode::Sink;
use super::job::Job;
use super::reading::Reading;
use super::table::{Block, Table, Values};
use crate::LabError;
use crate::files::npy::{self, Named, array};
use crate::files::{ContextArrays, at, zip};

/// Reads the arrays of an archive as a context or as the columns of a table, or a single array with names for its fields.
pub(super) fn read<S: Sink>(job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
    let bytes = job.input.bytes()?;
    let blocks = match zip::is_archive(&bytes) {
        true => {
            let arrays = members(job.path(), &bytes)?;
            if is_context(&arrays) {
                drop(bytes);
                return context(job, arrays, sink);
            }
            columns(job.path(), arrays)?
        }
        false => single(job.path(), &bytes)?,
    };
    Table::of_arrays(blocks).read(job, sink)
}

fn members(path: &Path, bytes: &[u8]) -> Result<Vec<Named>, LabError> {
    npy::archive(bytes, |_| Ok(true)).map_err(|message| LabError::parse(path, message))
}

/// Whether all are arrays of a context, with more feature rows than rewards: tables have as many of everything.
fn is_context(arrays: &[Named]) -> bool {
    let rows = |name: &str| arrays.iter().find(|array| array.name == name)?.shape.first();
    arrays.iter().all(|array| ContextArrays::has(&array.name))
        && matches!((rows("features"), rows("rewards")), (Some(features), Some(rewards)) if features > rewards)
}

fn context<S: Sink>(job: &Job<'_>, arrays: Vec<Named>, sink: &mut S) -> Result<Reading, Stop> {
    let arrays = ContextArrays::new(arrays).map_err(|error| at(job.path(), error))?;
    let flat = |(features, rewards, end): (&[f64], &[f64], End)| {
        let is_terminated = end == End::Terminated;
        Ok(Trajectory { features: features.to_vec(), rewards: rewards.to_vec(), is_terminated })
    };
    feed(job, arrays.feature_dim(), arrays.episodes().map(flat), sink)
}

fn columns(path: &Path, arrays: Vec<Named>) -> Result<Vec<Block>, LabError> {
    // Single numbers beside the arrays say something about the whole.
    let arrays = arrays.into_iter().filter(|array| !array.shape.is_empty());
    let blocks: Vec<Block> = arrays.map(|a| Block::new(&a.name, &a.shape, a.values)).collect();
    if blocks.is_empty() {
        return Err(LabError::parse(path, "found no arrays, expected some"));
    }
    Ok(blocks)
}

/// The arrays of an archive, or a single one, which has no name.
pub(super) fn arrays(path: &Path, bytes: &[u8]) -> Result<Vec<Block>, LabError> {
    if zip::is_archive(bytes) {
        return columns(path, members(path, bytes)?);
    }
    let (shape, values) =
        array(bytes, bytes.len() as f64).map_err(|message| LabError::parse(path, message))?;
    Ok(vec![Block::new("", &shape, values)])
}

/// One array: its columns are in the order episode, t, state…, reward, terminated.
fn single(path: &Path, bytes: &[u8]) -> Result<Vec<Block>, LabError> {
    let fail = |message: String| LabError::parse(path, message);
    let (shape, values) = array(bytes, 2.0 * bytes.len() as f64).map_err(fail)?;
    let Values::Float(list) = values else {
        return Err(fail("found an array of whole numbers or texts, expected floating-point columns".into()));
    };
    let &[rows, columns] = shape.as_slice() else {
        return Err(fail(format!("found an array of shape {shape:?}, expected rows and columns")));
    };
    if columns < 5 {
        let expected = "at least 5: episode, t, state…, reward, terminated";
        return Err(fail(format!("found {columns} columns, expected {expected}")));
    }
    let column = |k: usize| Values::Float((0..rows).map(|row| list[row * columns + k]).collect());
    let name = |k: usize| match k {
        0 => "episode".to_owned(),
        1 => "t".into(),
        k if k + 2 == columns => "reward".into(),
        k if k + 1 == columns => "terminated".into(),
        _ if columns == 5 => "state".into(),
        k => format!("s_{}", k - 2),
    };
    Ok((0..columns).map(|k| Block::new(&name(k), &[rows], column(k))).collect())
}
