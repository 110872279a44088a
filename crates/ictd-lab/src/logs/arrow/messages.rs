//! What Arrow files and streams are made of: the schema, then messages with dictionaries and rows.

use super::damaged;
use super::flatbuffer::Table;

/// What a file begins with; it ends with the first six bytes.
const MARK: &[u8; 8] = b"ARROW1\0\0";
/// What a message begins with, but in files that are older than 2019.
const NEXT: u32 = u32::MAX;

/// What the header of a message is.
const SCHEMA: u8 = 1;
pub(super) const DICTIONARY: u8 = 2;
pub(super) const ROWS: u8 = 3;

/// A header, and the bytes that it tells of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub kind: u8,
    pub header: Table<'a>,
    pub body: &'a [u8],
}

/// A file or a stream taken apart.
pub(super) struct Content<'a> {
    pub schema: Table<'a>,
    /// Bytes among which the schema stands.
    pub size: usize,
    /// Dictionaries stand before the rows that need them.
    pub messages: Vec<Message<'a>>,
}

impl<'a> Content<'a> {
    pub fn of(bytes: &'a [u8]) -> Result<Self, String> {
        // One that is cut in its first bytes is no stream.
        if bytes.starts_with(&MARK[..5]) { Self::of_file(bytes) } else { Self::of_stream(bytes) }
    }

    fn of_stream(mut bytes: &'a [u8]) -> Result<Self, String> {
        let size = bytes.len();
        let first = message(&mut bytes)?.filter(|first| first.kind == SCHEMA).ok_or_else(damaged)?;
        let mut messages = Vec::new();
        while let Some(next) = message(&mut bytes)? {
            messages.push(next);
        }
        Ok(Self { schema: first.header, size: size - bytes.len(), messages })
    }

    /// The last part of a file says where everything is: some have something else than messages in between.
    fn of_file(bytes: &'a [u8]) -> Result<Self, String> {
        let content =
            bytes.strip_suffix(&MARK[..6]).filter(|_| bytes.starts_with(MARK)).ok_or_else(damaged)?;
        let (content, length) = content.split_last_chunk::<4>().ok_or_else(damaged)?;
        let size = u32::from_le_bytes(*length) as usize;
        let start = content.len().checked_sub(size).ok_or_else(damaged)?;
        let (content, footer) = content.split_at(start);
        let footer = Table::root(footer).ok_or_else(damaged)?;
        let schema = footer.table(1).ok_or_else(damaged)?;
        let mut messages = Vec::new();
        let mut places = Vec::new();
        for (field, kind) in [(2, DICTIONARY), (3, ROWS)] {
            for block in footer.list::<24>(field).unwrap_or_default() {
                let start = block.first_chunk().and_then(|b| usize::try_from(i64::from_le_bytes(*b)).ok());
                let all = start.and_then(|start| content.get(start..)).ok_or_else(damaged)?;
                let mut rest = all;
                let next = message(&mut rest)?.filter(|next| next.kind == kind).ok_or_else(damaged)?;
                places.push((content.len() - all.len(), content.len() - rest.len()));
                messages.push(next);
            }
        }
        // What is told of twice would take more memory than the file has bytes.
        places.sort_unstable();
        if places.is_sorted_by(|before, after| before.1 <= after.0) {
            Ok(Self { schema, size, messages })
        } else {
            Err(damaged())
        }
    }
}

/// The message that comes next; none at the mark that ends a stream.
fn message<'a>(bytes: &mut &'a [u8]) -> Result<Option<Message<'a>>, String> {
    let mut number = || {
        let (number, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
        *bytes = rest;
        Ok::<u32, String>(u32::from_le_bytes(*number))
    };
    let size = match number()? {
        NEXT => number()?,
        size => size,
    } as usize;
    if size == 0 {
        return Ok(None);
    }
    let (content, rest) = bytes.split_at_checked(size).ok_or_else(damaged)?;
    let table = Table::root(content).ok_or_else(damaged)?;
    // Those of the versions before laid some columns out in another way.
    let version = table.short(0).unwrap_or(0);
    if !matches!(version, 3 | 4) {
        return Err(format!("found Arrow of version {}, expected 4 or 5", version.saturating_add(1)));
    }
    let length = table.count(3).ok_or_else(damaged)?;
    let (body, rest) = rest.split_at_checked(length).ok_or_else(damaged)?;
    *bytes = rest;
    let kind = table.byte(1).unwrap_or(0);
    let header = table.table(2).ok_or_else(damaged)?;
    Ok(Some(Message { kind, header, body }))
}
