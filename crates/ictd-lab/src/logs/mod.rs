//! Logs of others: trajectories in the formats people keep them in, read as episodes of numbered states.
//!
//! [`read`] finds out the format and the columns, and hands every episode to a [`Sink`]: one that counts, one that keeps, one
//! that writes. Rows of one episode that stand together are handed on as soon as the next one begins, so that memory does not
//! grow with the file; where they do not, they are gathered first.

mod assembler;
mod batch;
mod cell;
mod clock;
mod csv;
mod episode;
mod gzip;
mod hdf5;
mod ids;
mod input;
mod interner;
mod job;
mod json;
mod json_values;
mod mapping;
mod minari;
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
mod zip;

pub use episode::{Episode, Kept, OwnedEpisode, Sink};
pub use ids::LastSeen;
pub(crate) use mapping::ROLE;
pub use mapping::{Mapping, Missing, Wanted};
pub use queries::{Queries, queries};
pub use reading::{Counts, Reading, Transition};
pub use states::States;
pub(crate) use states::whole_label;
pub use write::{Conversion, convert};

use std::path::Path;

use assembler::Stop;
use input::Input;
use job::Job;

use crate::{LabError, Progress};

/// Reads a log; `-` is standard input. `make` gives an empty sink, more than once where a file has to be read again because
/// episodes in it are interleaved.
pub fn read<S: Sink>(
    path: &Path,
    wanted: &Wanted,
    make: impl Fn() -> Result<S, LabError>,
    progress: &Progress,
) -> Result<(Reading, S), LabError> {
    let file = minari::file(path)?;
    let input = Input::open(file.as_deref().unwrap_or(path))?;
    let format = Format::of(&input)?;
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
            Format::Parquet => parquet::read,
        };
        match read(&Job { input: &input, wanted, gather, progress }, &mut sink) {
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
    #[cfg(feature = "parquet")]
    Parquet,
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
            [b'P', b'K', 3 | 5, 4 | 6, ..] if !name.ends_with(".csv") => Self::Numpy,
            #[cfg(feature = "parquet")]
            [b'P', b'A', b'R', b'1', ..] => Self::Parquet,
            #[cfg(not(feature = "parquet"))]
            [b'P', b'A', b'R', b'1', ..] => {
                let message = "found Parquet, expected CSV, JSONL, NPZ or HDF5; build with --features parquet or convert it first";
                return Err(LabError::parse(input.path(), message));
            }
            [b'P', b'A', b'R', b'E', ..] => {
                return Err(LabError::parse(input.path(), "found encrypted Parquet, expected a plain file"));
            }
            [b'A', b'R', b'R', b'O', b'W', ..] => {
                let message = "found Arrow, expected CSV, JSONL, NPZ, HDF5 or Parquet: convert it first";
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
            _ if [".json", ".jsonl", ".ndjson"].iter().any(|end| name.ends_with(end)) => Self::Json,
            _ if text.strip_prefix(b"[").unwrap_or(text).trim_ascii_start().starts_with(b"{") => Self::Json,
            _ => Self::Text,
        })
    }
}
