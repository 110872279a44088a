//! Entries of Arrow: the bytes of numbers.

use super::damaged;
use super::schema::Kind;
use crate::files::npy::halves;

/// Two numbers of 64 bits.
pub(super) fn halved(bytes: &[u8; 16]) -> [i64; 2] {
    let (halves, _) = bytes.as_chunks();
    [halves[0], halves[1]].map(i64::from_le_bytes)
}

/// `count` bits.
pub(super) fn bits_of(bytes: &[u8], count: usize) -> Result<impl Iterator<Item = bool>, String> {
    let bytes = bytes.get(..count.div_ceil(8)).ok_or_else(damaged)?;
    Ok((0..count).map(|k| bytes[k / 8] >> (k % 8) & 1 == 1))
}

/// `count` whole numbers; those of 64 bits without a sign are those of the same bits with one.
pub(super) fn whole_numbers(kind: Kind, bytes: &[u8], count: usize) -> Result<Vec<i64>, String> {
    let Kind::Whole { bytes: size, signed } = kind else { return Err(damaged()) };
    let bytes = count.checked_mul(size).and_then(|n| bytes.get(..n)).ok_or_else(damaged)?;
    macro_rules! numbers {
        ($type:ty) => {
            bytes.as_chunks().0.iter().map(|b| <$type>::from_le_bytes(*b) as i64).collect()
        };
    }
    Ok(match (size, signed) {
        (1, true) => numbers!(i8),
        (1, false) => numbers!(u8),
        (2, true) => numbers!(i16),
        (2, false) => numbers!(u16),
        (4, true) => numbers!(i32),
        (4, false) => numbers!(u32),
        _ => numbers!(i64),
    })
}

/// `count` floating-point numbers of so many bytes each.
pub(super) fn floats(size: usize, bytes: &[u8], count: usize) -> Result<Vec<f64>, String> {
    let bytes = count.checked_mul(size).and_then(|n| bytes.get(..n)).ok_or_else(damaged)?;
    Ok(match size {
        2 => halves(bytes, false),
        4 => bytes.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect(),
        _ => bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
    })
}
