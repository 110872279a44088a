//! Tables as text: one row per line, cells separated by commas, tabs, semicolons or bars.
//!
//! The file is read in pieces that end with a line. Pieces are parsed on all threads while the rows of those before are put
//! together in order, so that the result does not depend on the number of threads and memory not on the size of the file.

use std::io::Read;

use rayon::prelude::*;

use super::assembler::Stop;
use super::batch::Batch;
use super::cell;
use super::episode::Sink;
use super::input::Input;
use super::job::Job;
use super::parser::{Line, RowParser, Span};
use super::reading::Reading;
use super::records::Records;
use crate::LabError;

/// Bytes of a piece. It must not depend on the number of threads: which states a piece knows decides nothing, but the first of
/// two errors should be the same.
const PIECE: usize = 1 << 20;
/// No line is longer.
const LONGEST_LINE: usize = 1 << 26;
/// Columns that a log has at least.
const LEAST: usize = 2;
const SEPARATORS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// The first line of a file.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub names: Vec<String>,
    pub separator: u8,
}

impl Header {
    /// Names in the cells of a line, at least so many.
    pub fn new<'a>(
        input: &Input,
        line: u64,
        cells: impl Iterator<Item = &'a [u8]>,
        separator: u8,
        least: usize,
    ) -> Result<Self, LabError> {
        let fail = |message: String| LabError::parse(input.path(), format!("row {line}: {message}"));
        let name = |cell: &[u8]| std::str::from_utf8(cell).map(|name| name.trim().to_owned());
        let names = cells.map(name).collect::<Result<Vec<String>, _>>();
        let names = names.map_err(|_| fail("found bytes that are no UTF-8, expected UTF-8 text".into()))?;
        if names.len() < least {
            let found = cell::quoted(names.concat().as_bytes());
            return Err(fail(format!(
                "found {found}, expected names of columns separated by commas, tabs, semicolons or bars"
            )));
        }
        if names.iter().all(|name| cell::number(name.as_bytes()).is_ok()) {
            return Err(fail("found numbers, expected names of columns".into()));
        }
        Ok(Self { names, separator })
    }

    /// What to say about a separator that the name of the file does not promise.
    fn warning(&self, input: &Input) -> Option<String> {
        let is_other = input.path().extension().is_some_and(|e| e == "csv") && self.separator != b',';
        let separator = (self.separator as char).escape_default();
        is_other.then(|| format!("cells are separated by '{separator}', not by commas"))
    }
}

/// Reads a table whose cells have no line breaks.
pub(super) fn read<S: Sink>(job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
    let Job { input, progress, .. } = *job;
    let path = input.path();
    let mut lines = Pieces { reader: input.reader()?, carry: Vec::new(), ended: false };
    let mut first = lines.next(input)?.unwrap_or_default();
    let body = without_mark(input, &first)?;
    let end = first[body..].iter().position(|b| *b == b'\n').map_or(first.len(), |k| body + k + 1);
    let header = header(input, &first[body..end])?;
    let (parser, mut assembler) = job.rows("row 1", header.names.clone(), sink)?;
    assembler.skip_to(2);
    let parse = |piece: &Vec<u8>| parse(piece, header.separator, &parser);
    progress.begin(format!("reading {}", path.display()), "MB", input.size() >> 20)?;
    let pieces = 2 * rayon::current_num_threads();
    let mut group: Vec<Vec<u8>> = vec![first.split_off(end)];
    let mut parsed: Vec<Result<Batch, Stop>> = Vec::new();
    // Rows before a place that cannot be read come first, however many are read at once.
    let mut failed = None;
    while !group.is_empty() || !parsed.is_empty() {
        let bytes: usize = group.iter().map(Vec::len).sum();
        // The pieces of this round are parsed while those of the last are put together.
        let (next, done) = rayon::join(
            || group.par_iter().map(parse).collect::<Vec<_>>(),
            || std::mem::take(&mut parsed).into_iter().try_for_each(|batch| assembler.batch(&batch?)),
        );
        done?;
        parsed = next;
        group.clear();
        while group.len() < pieces && failed.is_none() {
            match lines.next(input) {
                Ok(Some(piece)) => group.push(piece),
                Ok(None) => break,
                Err(error) => failed = Some(error),
            }
        }
        progress.step(bytes as u64 >> 20)?;
    }
    if let Some(error) = failed {
        return Err(error.into());
    }
    let mut reading = assembler.finish()?;
    reading.warnings.extend(header.warning(input));
    Ok(reading)
}

/// Reads a table in which cells in quotes may have line breaks: slower, one line after the other.
pub(super) fn read_quoted<S: Sink>(job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
    let Job { input, progress, .. } = *job;
    let bytes = input.bytes()?;
    let mut records = Records::new(input, &bytes, LEAST)?;
    let (parser, mut assembler) = job.rows("row 1", records.header.names.clone(), sink)?;
    progress.begin(format!("reading {}", input.path().display()), "MB", bytes.len() as u64 >> 20)?;
    let mut record = csv::ByteRecord::new();
    let (mut batch, mut begin, mut spans) = (Batch::default(), 1, Vec::new());
    loop {
        let before = records.bytes();
        let line = records.next(&mut record)?;
        if let Some(line) = line {
            spans.clear();
            spans.extend(
                (0..record.len()).filter_map(|k| record.range(k)).map(|r| (r.start as u32, r.end as u32)),
            );
            let place = (line - begin) as usize;
            batch.places = place as u64;
            if let Err(failure) =
                parser.line(&mut batch, &Line { bytes: record.as_slice(), spans: &spans }, place)
            {
                batch.failure = Some(failure);
            }
            progress.advance((records.bytes() >> 20) - (before >> 20));
        }
        if line.is_none() || batch.rows.len() >= 1 << 14 || batch.failure.is_some() {
            assembler.batch(&batch)?;
            begin += batch.places;
            batch = Batch::default();
            progress.check()?;
        }
        if line.is_none() {
            break;
        }
    }
    let mut reading = assembler.finish()?;
    reading.warnings.extend(records.header.warning(input));
    Ok(reading)
}

/// Pieces of a file that end with a line.
struct Pieces {
    reader: Box<dyn Read + Send>,
    carry: Vec<u8>,
    ended: bool,
}

impl Pieces {
    fn next(&mut self, input: &Input) -> Result<Option<Vec<u8>>, LabError> {
        let mut piece = std::mem::take(&mut self.carry);
        let mut seen = 0;
        loop {
            if !self.ended {
                let wanted = PIECE.max(piece.len()) as u64;
                let read = self.reader.by_ref().take(wanted).read_to_end(&mut piece);
                self.ended = read.map_err(|e| input.failed(e))? == 0;
            }
            if self.ended {
                return Ok((!piece.is_empty()).then_some(piece));
            }
            if let Some(end) = piece[seen..].iter().rposition(|b| *b == b'\n') {
                self.carry = piece.split_off(seen + end + 1);
                return Ok(Some(piece));
            }
            seen = piece.len();
            if seen > LONGEST_LINE {
                let message =
                    format!("found a line of more than {LONGEST_LINE} bytes, expected lines of text");
                return Err(LabError::parse(input.path(), message));
            }
        }
    }
}

/// Where the text begins, after the mark that Windows programs put in front; refuses what is no text.
pub(super) fn without_mark(input: &Input, bytes: &[u8]) -> Result<usize, LabError> {
    let refuse = |found: &str| {
        Err(LabError::parse(input.path(), format!("row 1: found {found}, expected UTF-8 text")))
    };
    match bytes {
        [] => Err(LabError::parse(input.path(), "found an empty file, expected a line of column names")),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => refuse("UTF-16"),
        [0x89, b'H', b'D', b'F', ..] => refuse("an HDF5 file (name it .hdf5)"),
        [b'P', b'K', 3, 4, ..] => {
            refuse("a zip archive (name it .npz if it is one, and save spreadsheets as CSV)")
        }
        [0xef, 0xbb, 0xbf, ..] => Ok(3),
        _ => Ok(0),
    }
}

/// The separator of a header: the one that is there most often.
pub(super) fn separator(line: &[u8]) -> u8 {
    let count = |separator: &u8| line.iter().filter(|b| *b == separator).count();
    // The last of several maxima is taken, so that a comma wins.
    SEPARATORS.into_iter().rev().max_by_key(count).unwrap_or(b',')
}

fn header(input: &Input, line: &[u8]) -> Result<Header, Stop> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // Between quotes it is part of a name.
    if line.split(|b| *b == b'"').step_by(2).any(|outside| outside.contains(&b'\r')) {
        let message = "row 1: found lines that end with CR alone, expected LF or CRLF";
        return Err(LabError::parse(input.path(), message).into());
    }
    let separator = separator(line);
    let mut spans = Vec::new();
    split(line, separator, line.contains(&b'"'), &mut spans).map_err(|()| Stop::Quoted)?;
    let cells = spans.iter().map(|&(start, end)| &line[start as usize..end as usize]);
    Ok(Header::new(input, 1, cells, separator, LEAST)?)
}

/// Finds the cells of a line; an error where quotes do not close in it, or have quotes inside.
fn split(line: &[u8], separator: u8, has_quotes: bool, cells: &mut Vec<Span>) -> Result<(), ()> {
    cells.clear();
    let mut start = 0;
    if !has_quotes {
        for (k, b) in line.iter().enumerate() {
            if *b == separator {
                cells.push((start as u32, k as u32));
                start = k + 1;
            }
        }
        cells.push((start as u32, line.len() as u32));
        return Ok(());
    }
    loop {
        let rest = &line[start..];
        if rest.first() == Some(&b'"') {
            let close = rest[1..].iter().position(|b| *b == b'"').ok_or(())? + start + 1;
            cells.push((start as u32 + 1, close as u32));
            match line.get(close + 1) {
                None => return Ok(()),
                Some(b) if *b == separator => start = close + 2,
                Some(_) => return Err(()),
            }
        } else {
            let end = rest.iter().position(|b| *b == separator).map_or(line.len(), |k| start + k);
            cells.push((start as u32, end as u32));
            if end == line.len() {
                return Ok(());
            }
            start = end + 1;
        }
    }
}

/// The rows of a piece.
fn parse(piece: &Vec<u8>, separator: u8, parser: &RowParser) -> Result<Batch, Stop> {
    let has_quotes = piece.contains(&b'"');
    let mut batch = Batch::default();
    let mut cells: Vec<Span> = Vec::new();
    let mut rest = piece.as_slice();
    let mut place = 0;
    while !rest.is_empty() {
        let end = rest.iter().position(|b| *b == b'\n');
        let line = &rest[..end.unwrap_or(rest.len())];
        rest = &rest[end.map_or(rest.len(), |k| k + 1)..];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.is_empty() {
            split(line, separator, has_quotes, &mut cells).map_err(|()| Stop::Quoted)?;
            if let Err(failure) = parser.line(&mut batch, &Line { bytes: line, spans: &cells }, place) {
                batch.failure = Some(failure);
                return Ok(batch);
            }
        }
        place += 1;
    }
    batch.places = place as u64;
    Ok(batch)
}
