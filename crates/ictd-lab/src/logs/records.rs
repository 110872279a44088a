//! Records of a table as text whose cells in quotes may have line breaks and quotes: slower than lines.

use csv::{ByteRecord, Reader, ReaderBuilder};

use super::csv::{Header, separator, without_mark};
use super::input::Input;
use crate::LabError;

/// Reads records one after the other.
pub(super) struct Records<'a> {
    input: &'a Input,
    text: &'a [u8],
    reader: Reader<&'a [u8]>,
    pub header: Header,
}

impl<'a> Records<'a> {
    /// The records of these bytes; the first one has the names of at least so many columns.
    pub fn new(input: &'a Input, bytes: &'a [u8], least: usize) -> Result<Self, LabError> {
        let text = &bytes[without_mark(input, bytes)?..];
        let separator = separator(text.split(|b| *b == b'\n').next().unwrap_or_default());
        let mut reader = ReaderBuilder::new();
        let reader = reader.has_headers(false).flexible(true).delimiter(separator).from_reader(text);
        let header = Header { names: Vec::new(), separator };
        let mut records = Self { input, text, reader, header };
        let mut record = ByteRecord::new();
        let line = records.next(&mut record)?.unwrap_or(1);
        records.header = Header::new(input, line, record.iter(), separator, least)?;
        Ok(records)
    }

    /// Reads the next one, and says on which line it begins; `None` after the last.
    pub fn next(&mut self, record: &mut ByteRecord) -> Result<Option<u64>, LabError> {
        let from = self.reader.position().clone();
        let more = self.reader.read_byte_record(record);
        if !more.map_err(|e| LabError::parse(self.input.path(), e.to_string()))? {
            return Ok(None);
        }
        // The reader passes over lines without any content, and over the second half of a line break.
        let rest = self.text.get(from.byte() as usize..).unwrap_or_default();
        let passed = rest.iter().take_while(|b| matches!(b, b'\r' | b'\n')).filter(|b| **b == b'\n').count();
        Ok(Some(from.line() + passed as u64))
    }

    /// How many bytes were read.
    pub fn bytes(&self) -> u64 {
        self.reader.position().byte()
    }
}
