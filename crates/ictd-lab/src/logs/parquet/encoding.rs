//! How Parquet encodes and compresses entries.

use std::io::Read as _;

use super::super::column::text;
use super::super::gzip::Gunzip;
use super::super::lz4;
use super::super::table::Values;
use super::thrift::varint;
use crate::files::npy::halves;
use crate::memory;

/// Snappy copies at most 64 bytes for every three that it reads.
const SNAPPY_RATIO: usize = 22;

/// How entries are kept, and what they mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Bool,
    Int32 {
        signed: bool,
    },
    Int64 {
        signed: bool,
    },
    Float,
    /// Of 16 bits.
    Half,
    Double,
    Text,
}

impl Kind {
    /// No entries yet.
    pub fn none(self) -> Values {
        match self {
            Self::Half | Self::Float | Self::Double => Values::Float(Vec::new()),
            Self::Text => Values::Text(Vec::new()),
            _ => Values::Whole(Vec::new()),
        }
    }
}

/// Those that are not read.
pub(super) const ENCODINGS: [(i64, &str); 6] = [
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

/// Entries by their places in a dictionary; `held` bytes of memory are taken already.
pub(super) fn picked(dictionary: &Values, places: &[u32], held: f64) -> Result<Values, String> {
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
pub(super) fn with_length<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(broken)?;
    let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(broken)?;
    *bytes = rest;
    Ok(part)
}

/// `count` numbers of `width` bits, in runs of one number and groups of eight.
pub(super) fn hybrid(mut bytes: &[u8], width: u8, count: usize) -> Result<Vec<u32>, String> {
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
pub(super) fn plain(kind: Kind, bytes: &[u8], count: usize) -> Result<Values, String> {
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
        Kind::Half => Values::Float(halves(take(2)?, false)),
        Kind::Text => {
            let mut rest = bytes;
            Values::Text((0..count).map(|_| text(with_length(&mut rest)?)).collect::<Result<_, String>>()?)
        }
    })
}

/// The content of a page, which has `size` bytes.
pub(super) fn unpacked(codec: i64, bytes: &[u8], size: usize) -> Result<Vec<u8>, String> {
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
        7 => lz4::block(bytes, size).ok_or_else(broken)?,
        other => {
            // Of LZ4 only the older way to write it, which those who read it guess at.
            let names = ["", "", "", "LZO", "Brotli", "LZ4 of Hadoop", "Zstandard"];
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
