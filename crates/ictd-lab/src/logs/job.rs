//! What every reader is given.

use std::path::Path;

use super::assembler::Assembler;
use super::episode::Sink;
use super::input::Input;
use super::mapping::{Mapping, Wanted};
use super::parser::RowParser;
use crate::{LabError, Progress};

/// A file that is to be read, and how.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub input: &'a Input,
    pub wanted: &'a Wanted,
    /// Whether all rows are gathered first, because those of an episode do not stand together.
    pub gather: bool,
    pub progress: &'a Progress,
}

impl<'a> Job<'a> {
    /// As the user calls the file.
    pub fn path(&self) -> &'a Path {
        self.input.path()
    }

    /// What reads rows of these columns and what puts them together; the names of columns stand at `place`.
    pub fn rows<'s, S: Sink>(
        &self,
        place: &str,
        header: Vec<String>,
        sink: &'s mut S,
    ) -> Result<(RowParser, Assembler<'s, S>), LabError>
    where
        'a: 's,
    {
        let mapping = Mapping::guess(self.path(), place, header, self.wanted)?;
        let parser = RowParser::new(&mapping, self.wanted.missing);
        Ok((parser, Assembler::new(self.path(), mapping, self.wanted.missing, self.gather, sink)))
    }
}
