//! Pages: the entries of a column, compressed and encoded.

use std::io::Read as _;

use super::super::cell::quoted;
use super::super::gzip::Gunzip;
use super::super::table::Values;
use super::thrift::{Node, structure, varint};
use crate::memory;

/// Snappy copies at most 64 bytes for every three that it reads.
const SNAPPY_RATIO: usize = 22;

/// How entries are kept, and what they mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Bool,
    Int32 { signed: bool },
    Int64 { signed: bool },
    Float,
    Double,
    Text,
}

/// A column of a group of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk<'a> {
    /// The bytes of its pages.
    pub bytes: &'a [u8],
    pub kind: Kind,
    /// Whether entries may be absent.
    pub optional: bool,
    pub codec: i64,
    /// How many entries there are, absent ones included.
    pub rows: usize,
}

/// What a page says of rows.
struct Page {
    /// One per row; 0 where there is no entry.
    levels: Vec<u32>,
    encoding: Option<i64>,
    bytes: Vec<u8>,
    /// Where the entries begin.
    start: usize,
}

impl Chunk<'_> {
    /// A page of at most `left` rows that unpacks to `size` bytes: levels are compressed with the entries or, in the second
    /// version, stand before what is compressed.
    fn page(&self, header: &Node<'_>, body: &[u8], size: usize, left: usize) -> Result<Page, String> {
        let is_first = header.whole(1) == Some(0);
        let fields = header.field(if is_first { 5 } else { 8 }).ok_or_else(broken)?;
        let rows = fields.count(1).filter(|rows| *rows <= left).ok_or_else(broken)?;
        if is_first {
            let bytes = unpacked(self.codec, body, size)?;
            let mut rest = bytes.as_slice();
            let levels = match self.optional {
                false => vec![1; rows],
                true if fields.whole(3) == Some(RLE) => hybrid(with_length(&mut rest)?, 1, rows)?,
                true => return Err("found levels of an old encoding, expected those of RLE".into()),
            };
            let start = bytes.len() - rest.len();
            return Ok(Page { levels, encoding: fields.whole(2), bytes, start });
        }
        let [definitions, repetitions] = [5, 6].map(|k| fields.count(k).unwrap_or(0));
        let parts = body.split_at_checked(repetitions).and_then(|(_, b)| b.split_at_checked(definitions));
        let (levels, packed) = parts.ok_or_else(broken)?;
        let levels = if self.optional { hybrid(levels, 1, rows)? } else { vec![1; rows] };
        let codec = if fields.whole(7) == Some(0) { 0 } else { self.codec };
        let size = size.checked_sub(repetitions + definitions).ok_or_else(broken)?;
        Ok(Page { levels, encoding: fields.whole(4), bytes: unpacked(codec, packed, size)?, start: 0 })
    }
}

/// Entries of a column, and which of them are absent.
#[derive(Clone, Debug)]
pub(super) struct Column {
    values: Values,
    absent: Vec<usize>,
}

impl Column {
    pub fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Float | Kind::Double => Values::Float(Vec::new()),
            Kind::Text => Values::Text(Vec::new()),
            _ => Values::Whole(Vec::new()),
        };
        Self { values, absent: Vec::new() }
    }

    /// Bytes of memory that it takes.
    pub fn size(&self) -> f64 {
        self.values.memory() + 8.0 * self.absent.len() as f64
    }

    /// Whole numbers of which some are absent, or too large for their type, are kept as texts.
    pub fn finish(self, kind: Kind) -> Values {
        let Self { values, absent } = self;
        match values {
            Values::Whole(list) => {
                let unsigned = kind == Kind::Int64 { signed: false };
                let is_large = unsigned && list.iter().any(|n| *n < 0);
                if absent.is_empty() && !is_large {
                    return Values::Whole(list);
                }
                let text = |n: &i64| if unsigned { (*n as u64).to_string() } else { n.to_string() };
                let mut texts: Vec<String> = list.iter().map(text).collect();
                absent.iter().for_each(|&row| texts[row].clear());
                Values::Text(texts)
            }
            values => values,
        }
    }

    /// Adds the entries of a column in a group of rows.
    pub fn extend(&mut self, chunk: Chunk<'_>) -> Result<(), String> {
        let mut rest = chunk.bytes;
        let mut dictionary = None;
        let mut read = 0;
        while read < chunk.rows {
            let header =
                structure(&mut rest).ok_or("found a damaged header of a page, expected a whole one")?;
            let sizes = header.count(2).zip(header.count(3));
            let page = sizes.and_then(|(size, packed)| Some((size, rest.split_at_checked(packed)?)));
            let Some((size, (body, after))) = page else {
                return Err("found a page that ends early, expected a whole one".into());
            };
            rest = after;
            match header.whole(1) {
                Some(0 | 3) => {
                    let page = chunk.page(&header, body, size, chunk.rows - read)?;
                    self.entries(chunk.kind, &page, dictionary.as_ref())?;
                    read += page.levels.len();
                }
                Some(2) => {
                    let count = header.field(7).and_then(|h| h.count(1)).ok_or_else(broken)?;
                    let bytes = unpacked(chunk.codec, body, size)?;
                    dictionary = Some(plain(chunk.kind, &bytes, count)?);
                }
                // An index, and what later versions may have.
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds the entries of a page.
    fn entries(&mut self, kind: Kind, page: &Page, dictionary: Option<&Values>) -> Result<(), String> {
        let Page { levels, encoding, bytes, start } = page;
        let mut bytes = &bytes[*start..];
        let count = levels.iter().filter(|level| **level > 0).count();
        let found = match (encoding.unwrap_or(-1), kind) {
            (PLAIN, _) => plain(kind, bytes, count)?,
            (RLE, Kind::Bool) => {
                let list = hybrid(with_length(&mut bytes)?, 1, count)?;
                Values::Whole(list.into_iter().map(i64::from).collect())
            }
            (PLAIN_DICTIONARY | RLE_DICTIONARY, _) => {
                let dictionary =
                    dictionary.ok_or("found numbers of a dictionary, expected the dictionary too")?;
                // A page without entries may lack the width of their numbers.
                let (width, rest) = bytes.split_first().unwrap_or((&0, &[]));
                picked(dictionary, &hybrid(rest, *width, count)?, self.size())?
            }
            (other, _) => {
                let name = ENCODINGS.iter().find(|(n, _)| *n == other).map_or("unknown", |(_, name)| name);
                return Err(format!(
                    "found the encoding {name}, expected PLAIN or that of a dictionary: pandas and pyarrow write these"
                ));
            }
        };
        let start = self.values.len();
        self.absent
            .extend(levels.iter().enumerate().filter(|(_, level)| **level == 0).map(|(k, _)| start + k));
        match (&mut self.values, found) {
            (Values::Float(all), Values::Float(list)) => spread(all, list, levels, f64::NAN),
            (Values::Whole(all), Values::Whole(list)) => spread(all, list, levels, 0),
            (Values::Text(all), Values::Text(list)) => spread(all, list, levels, String::new()),
            _ => return Err(broken()),
        }
        Ok(())
    }
}

const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;
/// Those that are not read.
const ENCODINGS: [(i64, &str); 6] = [
    (3, "RLE"),
    (4, "BIT_PACKED"),
    (5, "DELTA_BINARY_PACKED"),
    (6, "DELTA_LENGTH_BYTE_ARRAY"),
    (7, "DELTA_BYTE_ARRAY"),
    (9, "BYTE_STREAM_SPLIT"),
];

pub(super) fn broken() -> String {
    "found a damaged page, expected a whole one".to_owned()
}

/// Puts what is absent between what is there.
fn spread<T: Clone>(all: &mut Vec<T>, list: Vec<T>, levels: &[u32], absent: T) {
    let mut list = list.into_iter();
    let next = |level: &u32| if *level > 0 { list.next() } else { None };
    all.extend(levels.iter().map(next).map(|entry| entry.unwrap_or_else(|| absent.clone())));
}

/// Entries by their places in a dictionary; `held` bytes of memory are taken already.
fn picked(dictionary: &Values, places: &[u32], held: f64) -> Result<Values, String> {
    fn pick<T: Clone>(list: &[T], places: &[u32]) -> Option<Vec<T>> {
        places.iter().map(|&k| list.get(k as usize).cloned()).collect()
    }
    let found = match dictionary {
        Values::Float(list) => pick(list, places).map(Values::Float),
        Values::Whole(list) => pick(list, places).map(Values::Whole),
        Values::Text(list) => {
            // Long texts take next to nothing in the file.
            let texts = places.iter().filter_map(|&k| list.get(k as usize));
            let size = texts.map(|text| Values::text_memory(text.len())).sum::<f64>();
            memory::admit(held + size, "the number of rows").map_err(|e| e.to_string())?;
            pick(list, places).map(Values::Text)
        }
    };
    found.ok_or_else(|| format!("found an entry beyond the {} of the dictionary", dictionary.len()))
}

/// A part of the bytes that begins with its length.
fn with_length<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(broken)?;
    let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(broken)?;
    *bytes = rest;
    Ok(part)
}

/// `count` numbers of `width` bits, in runs of one number and groups of eight.
fn hybrid(mut bytes: &[u8], width: u8, count: usize) -> Result<Vec<u32>, String> {
    if width > 32 {
        return Err(broken());
    }
    let width = usize::from(width);
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let head = varint(&mut bytes).ok_or_else(broken)?;
        let length = usize::try_from(head >> 1).map_err(|_| broken())?;
        let left = count - numbers.len();
        let is_packed = head & 1 == 1;
        let size = if is_packed { length.checked_mul(width) } else { Some(width.div_ceil(8)) };
        let (part, rest) = size.and_then(|size| bytes.split_at_checked(size)).ok_or_else(broken)?;
        bytes = rest;
        if is_packed {
            let bit = |k: usize| u32::from(part[k / 8] >> (k % 8) & 1);
            let number = |k: usize| (0..width).fold(0, |n, b| n | bit(k * width + b) << b);
            numbers.extend((0..length.saturating_mul(8).min(left)).map(number));
        } else {
            let number = part.iter().rev().fold(0, |n, b| n << 8 | u32::from(*b));
            numbers.resize(numbers.len() + length.min(left), number);
        }
    }
    Ok(numbers)
}

/// `count` entries one after the other.
fn plain(kind: Kind, bytes: &[u8], count: usize) -> Result<Values, String> {
    let take = |size: usize| count.checked_mul(size).and_then(|n| bytes.get(..n)).ok_or_else(broken);
    Ok(match kind {
        Kind::Bool => {
            let bytes = bytes.get(..count.div_ceil(8)).ok_or_else(broken)?;
            Values::Whole((0..count).map(|k| i64::from(bytes[k / 8] >> (k % 8) & 1)).collect())
        }
        Kind::Int32 { signed } => {
            let number = |b: &[u8; 4]| match signed {
                true => i64::from(i32::from_le_bytes(*b)),
                false => i64::from(u32::from_le_bytes(*b)),
            };
            Values::Whole(take(4)?.as_chunks().0.iter().map(number).collect())
        }
        Kind::Int64 { .. } => {
            Values::Whole(take(8)?.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect())
        }
        Kind::Float => {
            Values::Float(take(4)?.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect())
        }
        Kind::Double => {
            Values::Float(take(8)?.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect())
        }
        Kind::Text => {
            let mut rest = bytes;
            let text = |_| {
                let bytes = with_length(&mut rest)?;
                let text = std::str::from_utf8(bytes);
                text.map(str::to_owned).map_err(|_| format!("found {}, expected UTF-8 text", quoted(bytes)))
            };
            Values::Text((0..count).map(text).collect::<Result<_, String>>()?)
        }
    })
}

/// The content of a page, which has `size` bytes.
fn unpacked(codec: i64, bytes: &[u8], size: usize) -> Result<Vec<u8>, String> {
    let content = match codec {
        0 => bytes.to_vec(),
        1 => {
            // What says that it becomes larger than it can is not given the memory.
            let length = snap::raw::decompress_len(bytes).map_err(|_| broken())?;
            if length != size || length > SNAPPY_RATIO * bytes.len() {
                return Err(broken());
            }
            snap::raw::Decoder::new().decompress_vec(bytes).map_err(|_| broken())?
        }
        2 => {
            let mut content = Vec::new();
            let limit = size as u64 + 1;
            Gunzip::new(bytes).take(limit).read_to_end(&mut content).map_err(|e| e.to_string())?;
            content
        }
        other => {
            let names = ["", "", "", "LZO", "Brotli", "LZ4", "Zstandard", "LZ4"];
            let name = usize::try_from(other).ok().and_then(|k| names.get(k)).unwrap_or(&"something unknown");
            return Err(format!(
                "found pages compressed with {name}, expected Snappy, gzip or none: write it with compression='snappy'"
            ));
        }
    };
    if content.len() != size {
        return Err(broken());
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_groups_are_told_apart() {
        // The example of the format: 0 to 7 in three bits each, then a run of three fours.
        let bytes = [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010, 3 << 1, 4];
        assert_eq!(hybrid(&bytes, 3, 11).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7, 4, 4, 4]);
        assert_eq!(hybrid(&bytes, 3, 9).unwrap().len(), 9);
        assert!(hybrid(&bytes, 3, 12).is_err() && hybrid(&bytes, 33, 1).is_err());
        assert_eq!(hybrid(&[], 0, 0).unwrap(), [0u32; 0]);
    }

    #[test]
    fn absent_whole_numbers_become_empty_texts() {
        let mut column = Column::new(Kind::Int64 { signed: false });
        let bytes = [7u64, u64::MAX].map(u64::to_le_bytes).concat();
        let page = Page { levels: vec![1, 0, 1], encoding: Some(PLAIN), bytes, start: 0 };
        column.entries(Kind::Int64 { signed: false }, &page, None).unwrap();
        let texts = ["7", "", "18446744073709551615"].map(String::from).to_vec();
        assert_eq!(column.finish(Kind::Int64 { signed: false }), Values::Text(texts));
    }

    #[test]
    fn a_page_does_not_grow_beyond_what_snappy_can_do() {
        // A length of four gigabytes in six bytes.
        assert_eq!(unpacked(1, &[255, 255, 255, 255, 15, 0], u32::MAX as usize), Err(broken()));
    }

    #[test]
    fn long_texts_of_a_dictionary_are_counted_before_they_are_copied() {
        let dictionary = Values::Text(vec!["x".repeat(1000)]);
        let limit = ictd::pretrain::MEMORY_LIMIT;
        assert!(picked(&dictionary, &[0; 10], limit - 11_000.0).is_ok());
        assert!(picked(&dictionary, &[0; 10], limit - 10_000.0).unwrap_err().contains("at most 8 GB"));
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        let found = plain(Kind::Text, b"\x02\0\0\0\xe9t", 1);
        assert_eq!(found, Err("found '\u{fffd}t', expected UTF-8 text".into()));
    }
}
