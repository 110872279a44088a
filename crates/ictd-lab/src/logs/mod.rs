//! Logs of others: trajectories in the formats people keep them in, read as episodes of numbered states.
//!
//! [`read`] finds out the format and the columns, and hands every episode to a [`Sink`]: one that counts, one that keeps, one
//! that writes. Rows of one episode that stand together are handed on as soon as the next one begins, so that memory does not
//! grow with the file; where they do not, they are gathered first.

mod arrays;
#[cfg(feature = "parquet")]
mod arrow;
mod assembler;
mod batch;
mod cell;
mod clock;
#[cfg(feature = "parquet")]
mod column;
#[cfg(feature = "parquet")]
mod columnar;
mod context;
mod csv;
mod episode;
mod episodes;
mod gzip;
mod hdf5;
mod ids;
mod input;
mod interner;
mod job;
mod json;
mod json_values;
#[cfg(feature = "parquet")]
mod lz4;
mod mapping;
mod minari;
#[cfg(feature = "parquet")]
mod minari_parts;
mod names;
mod npy;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod parser;
mod queries;
mod reading;
mod records;
mod rows;
mod segments;
mod states;
mod table;
mod write;

pub use arrays::{Arrays, queries_of, read_columns};
pub use episode::{Episode, Kept, OwnedEpisode, Sink};
pub use ids::LastSeen;
pub use mapping::{Mapping, Missing, Wanted};
pub use queries::{Queries, queries};
pub use reading::{Counts, Reading, Transition};
pub use states::States;
pub(crate) use states::whole_label;
pub use table::Values;
pub use write::{Conversion, convert};

use std::path::Path;

use assembler::Stop;
use input::Input;
use job::Job;
use minari::Found;

use crate::files::zip;
use crate::{LabError, Progress};

/// Reads a log; `-` is standard input. `make` gives an empty sink, more than once where a file has to be read again because
/// episodes in it are interleaved.
pub fn read<S: Sink>(
    path: &Path,
    wanted: &Wanted,
    make: impl Fn() -> Result<S, LabError>,
    progress: &Progress,
) -> Result<(Reading, S), LabError> {
    let known = |path: &Path| {
        let input = Input::open(path)?;
        let format = Format::of(&input)?;
        Ok::<_, LabError>((input, format))
    };
    let (input, format) = match minari::find(path)? {
        #[cfg(feature = "parquet")]
        Some(Found::Folder(data)) => (Input::File(data), Format::Minari),
        Some(Found::File(file)) => known(&file)?,
        None => known(path)?,
    };
    read_input(&input, format, wanted, make, progress)
}

/// As [`read`], of a file whose content is in memory; its name may say what it is written in.
pub fn read_bytes<S: Sink>(
    name: &str,
    bytes: &[u8],
    wanted: &Wanted,
    make: impl Fn() -> Result<S, LabError>,
    progress: &Progress,
) -> Result<(Reading, S), LabError> {
    let input = Input::Memory(name.into(), bytes.into());
    let format = Format::of(&input)?;
    read_input(&input, format, wanted, make, progress)
}

/// As [`read`], of arrays in memory instead of a file.
pub fn read_arrays<S: Sink>(
    arrays: Arrays,
    make: impl Fn() -> Result<S, LabError>,
    progress: &Progress,
) -> Result<(Reading, S), LabError> {
    arrays.read(make, progress)
}

fn read_input<S: Sink>(
    input: &Input,
    format: Format,
    wanted: &Wanted,
    make: impl Fn() -> Result<S, LabError>,
    progress: &Progress,
) -> Result<(Reading, S), LabError> {
    let (mut gather, mut quoted) = (false, false);
    loop {
        let mut sink = make()?;
        let read = match format {
            Format::Text if quoted => csv::read_quoted,
            Format::Text => csv::read,
            Format::Json => json::read,
            Format::Numpy => npy::read,
            Format::Hdf5 => hdf5::read,
            #[cfg(feature = "parquet")]
            Format::Columnar => columnar::read,
            #[cfg(feature = "parquet")]
            Format::Minari => minari_parts::read,
        };
        match read(&Job { input, wanted, gather, progress }, &mut sink) {
            Ok(reading) => return Ok((reading, sink)),
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Interleaved) => gather = true,
            Err(Stop::Quoted) => quoted = true,
        }
    }
}

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Text,
    Json,
    Numpy,
    Hdf5,
    /// Arrow or Parquet.
    #[cfg(feature = "parquet")]
    Columnar,
    /// A folder with files of these.
    #[cfg(feature = "parquet")]
    Minari,
}

impl Format {
    /// By how the file begins; what a text is, by its name too.
    fn of(input: &Input) -> Result<Self, LabError> {
        let mut start = Vec::new();
        let read = std::io::Read::read_to_end(&mut std::io::Read::take(input.reader()?, 64), &mut start);
        read.map_err(|e| input.failed(e))?;
        let name = input.path().to_string_lossy().to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start).trim_ascii_start();
        Ok(match start.as_slice() {
            [0x89, b'H', b'D', b'F', ..] => Self::Hdf5,
            [0x93, b'N', b'U', b'M', ..] => Self::Numpy,
            start if zip::is_archive(start) && !name.ends_with(".csv") => Self::Numpy,
            [b'P', b'A', b'R', b'1', ..] => Self::columnar(input, "Parquet")?,
            // A file, or a stream.
            [b'A', b'R', b'R', b'O', b'W', ..] | [255, 255, 255, 255, ..] => Self::columnar(input, "Arrow")?,
            [b'P', b'A', b'R', b'E', ..] => {
                return Err(LabError::parse(input.path(), "found encrypted Parquet, expected a plain file"));
            }
            [b'F', b'E', b'A', b'1', ..] => {
                let message = "found Feather of the first version, expected the second, which pandas writes";
                return Err(LabError::parse(input.path(), message));
            }
            _ if name.ends_with(".hdf5") || name.ends_with(".h5") => {
                return Err(LabError::parse(
                    input.path(),
                    "found no signature of HDF5, expected an HDF5 file",
                ));
            }
            _ if name.ends_with(".npz") || name.ends_with(".npy") => {
                return Err(LabError::parse(input.path(), "found no signature of NumPy, expected arrays"));
            }
            _ if [".arrow", ".feather", ".parquet"].iter().any(|end| name.ends_with(end)) => {
                let message = "found no signature of Arrow or Parquet, expected one of them";
                return Err(LabError::parse(input.path(), message));
            }
            _ if [".json", ".jsonl", ".ndjson"].iter().any(|end| name.ends_with(end)) => Self::Json,
            _ if text.strip_prefix(b"[").unwrap_or(text).trim_ascii_start().starts_with(b"{") => Self::Json,
            _ => Self::Text,
        })
    }

    /// Arrow or Parquet, where it was built in.
    #[cfg(feature = "parquet")]
    fn columnar(_: &Input, _: &str) -> Result<Self, LabError> {
        Ok(Self::Columnar)
    }

    #[cfg(not(feature = "parquet"))]
    fn columnar(input: &Input, found: &str) -> Result<Self, LabError> {
        let expected = "CSV, JSONL, NPZ or HDF5; build with --features parquet or convert it first";
        Err(LabError::parse(input.path(), format!("found {found}, expected {expected}")))
    }
}
