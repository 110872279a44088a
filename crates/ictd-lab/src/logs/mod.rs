//! Logs of others: trajectories in the formats people keep them in, read as episodes of numbered states.
//!
//! [`read`] finds out the format and the columns, and hands every episode to a [`Sink`]: one that counts, one that keeps, one
//! that writes. Rows of one episode that stand together are handed on as soon as the next one begins, so that memory does not
//! grow with the file; where they do not, they are gathered first.

mod assembler;
mod batch;
mod cell;
mod csv;
mod episode;
mod gzip;
mod input;
mod interner;
mod mapping;
mod names;
mod parser;
mod reading;
mod rows;
mod segments;
mod states;

pub use episode::{Episode, Kept, OwnedEpisode, Sink};
pub use mapping::{Mapping, Missing, Wanted};
pub use reading::{Counts, Reading, Transition};
pub use states::States;

use std::path::Path;

use assembler::Stop;
use input::Input;

use crate::{LabError, Progress};

/// Reads a log; `-` is standard input. `make` gives an empty sink, more than once where a file has to be read again because
/// episodes in it are interleaved.
pub fn read<S: Sink>(
    path: &Path,
    wanted: &Wanted,
    make: impl Fn() -> Result<S, LabError>,
    progress: &Progress,
) -> Result<(Reading, S), LabError> {
    let input = Input::open(path)?;
    let (mut gather, mut quoted) = (false, false);
    loop {
        let mut sink = make()?;
        let read = if quoted { csv::read_quoted } else { csv::read };
        match read(&input, wanted, gather, &mut sink, progress) {
            Ok(reading) => return Ok((reading, sink)),
            Err(Stop::Error(error)) => return Err(error),
            Err(Stop::Interleaved) => gather = true,
            Err(Stop::Quoted) => quoted = true,
        }
    }
}
