//! Arrays of NumPy: the format NPY, alone or in archives (NPZ).

use std::borrow::Cow;
use std::collections::HashSet;

use super::values::Values;
use super::zip;
use crate::memory::{self, DOUBLE};
use crate::one_line::quoted;

/// What arrays begin with.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Whether a file begins as a single array does.
pub(super) fn is_array(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// An array with a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Values,
}

/// The arrays of an archive, each of another name. `is_wanted` says which to take, or what is wrong with a name.
pub(crate) fn archive(
    bytes: &[u8],
    is_wanted: impl Fn(&str) -> Result<bool, String>,
) -> Result<Vec<Named>, String> {
    let members = zip::entries(bytes)?;
    let mut names = HashSet::new();
    for name in members.iter().map(|(file, _)| plain(file)) {
        if !names.insert(name) {
            return Err(format!("{name}: found two arrays of that name, expected one"));
        }
    }
    let unpacked = |content: &Cow<'_, [u8]>| match content {
        Cow::Owned(content) => content.len() as f64,
        Cow::Borrowed(_) => 0.0,
    };
    // The file, its content where that was packed, and what is made of it.
    let mut held = bytes.len() as f64 + members.iter().map(|(_, content)| unpacked(content)).sum::<f64>();
    let mut arrays = Vec::new();
    for (file, content) in &members {
        let name = plain(file);
        if is_wanted(name)? {
            let (shape, values) = array(content, held).map_err(|message| format!("{name}: {message}"))?;
            held += values.memory();
            arrays.push(Named { name: name.into(), shape, values });
        }
    }
    Ok(arrays)
}

/// The name of an array by that of its file.
fn plain(file: &str) -> &str {
    file.strip_suffix(".npy").unwrap_or(file)
}

/// The shape and the entries of an array in the format NPY, in C order whatever its own.
///
/// `held` bytes of memory are taken already.
pub(crate) fn array(bytes: &[u8], held: f64) -> Result<(Vec<usize>, Values), String> {
    let broken = || "found no header of NPY, expected an array that NumPy saved".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(broken)?;
    let (length, start) = match rest {
        [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([*a, *b])), 4),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 6),
        _ => return Err(broken()),
    };
    let header = rest.get(start..start + length).ok_or_else(broken)?;
    let header = std::str::from_utf8(header).map_err(|_| broken())?;
    let kind = entry(header, "descr").ok_or_else(broken)?.trim();
    let kind = kind.strip_prefix(['\'', '"']).and_then(|k| k.strip_suffix(['\'', '"'])).ok_or_else(|| {
        "found an array of records, expected plain numbers or texts: save columns as separate arrays"
            .to_owned()
    })?;
    let fortran = entry(header, "fortran_order").is_some_and(|v| v.trim() == "True");
    let shape = entry(header, "shape").ok_or_else(broken)?;
    let shape = shape.trim().trim_start_matches('(').trim_end_matches(')').split(',').map(str::trim);
    let shape: Result<Vec<usize>, _> = shape.filter(|s| !s.is_empty()).map(str::parse).collect();
    let shape = shape.map_err(|_| broken())?;
    let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d)).ok_or_else(broken)?;
    let data = &rest[start + length..];
    if !fortran || shape.len() < 2 {
        return Ok((shape, entries(kind, count, data, held)?));
    }
    // While the order changes there are two of it.
    let values = entries(kind, count, data, held + Values::LARGEST * count as f64)?;
    let values = values.row_by_row(&shape);
    Ok((shape, values))
}

/// What stands after a key of the dictionary in a header.
fn entry<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let at = header.find(&format!("'{key}'"))? + key.len() + 2;
    let rest = header[at..].trim_start().strip_prefix(':')?.trim_start();
    let end = match rest.starts_with('(') {
        true => rest.find(')')? + 1,
        false => rest.find([',', '}'])?,
    };
    Some(&rest[..end])
}

/// The entries of an array of that type.
fn entries(kind: &str, count: usize, data: &[u8], held: f64) -> Result<Values, String> {
    let size: usize = kind.get(2..).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let unit = if kind.get(1..2) == Some("U") { 4 * size } else { size };
    let wanted = count.checked_mul(unit).filter(|wanted| *wanted <= data.len());
    let Some(wanted) = wanted else {
        return Err(format!("found {} bytes of data, expected {count} entries of {unit}", data.len()));
    };
    // Another array, for instance: NumPy appends them one after another.
    if unit > 0 && data.len() > wanted {
        let rest = data.len() - wanted;
        return Err(format!(
            "found {rest} bytes after {count} entries of {unit}, expected nothing after them"
        ));
    }
    let each = match (kind.get(1..2), size) {
        (Some("U" | "S"), _) => Values::text_memory(unit),
        // Large ones become texts.
        (Some("u"), 8) => DOUBLE + Values::text_memory(20),
        _ => DOUBLE,
    };
    memory::admit(held + each * count as f64, "the size of the arrays").map_err(|e| e.to_string())?;
    let data = &data[..wanted];
    let big = kind.starts_with('>');
    macro_rules! numbers {
        ($type:ty, $to:ty, $variant:ident) => {{
            let read = |bytes: &[u8; size_of::<$type>()]| match big {
                true => <$type>::from_be_bytes(*bytes) as $to,
                false => <$type>::from_le_bytes(*bytes) as $to,
            };
            Values::$variant(data.as_chunks::<{ size_of::<$type>() }>().0.iter().map(read).collect())
        }};
    }
    Ok(match (kind.get(1..2), size) {
        (Some("f"), 8) => numbers!(f64, f64, Float),
        (Some("f"), 4) => numbers!(f32, f64, Float),
        (Some("f"), 2) => Values::Float(halves(data, big)),
        (Some("i"), 8) => numbers!(i64, i64, Whole),
        (Some("i"), 4) => numbers!(i32, i64, Whole),
        (Some("i"), 2) => numbers!(i16, i64, Whole),
        (Some("i"), 1) => numbers!(i8, i64, Whole),
        // Larger ones than 2⁶³ − 1 are names of something: texts keep them apart.
        (Some("u"), 8) => {
            let read = |b: &[u8; 8]| if big { u64::from_be_bytes(*b) } else { u64::from_le_bytes(*b) };
            let list: Vec<u64> = data.as_chunks::<8>().0.iter().map(read).collect();
            match list.iter().map(|&n| i64::try_from(n)).collect() {
                Ok(whole) => Values::Whole(whole),
                Err(_) => Values::Text(list.iter().map(u64::to_string).collect()),
            }
        }
        (Some("u"), 4) => numbers!(u32, i64, Whole),
        (Some("u"), 2) => numbers!(u16, i64, Whole),
        (Some("u" | "b"), 1) => numbers!(u8, i64, Whole),
        (Some("U"), size) if size > 0 => texts(data.chunks_exact(unit).map(|t| wide_text(t, big).ok_or(t)))?,
        (Some("S"), size) if size > 0 => texts(data.chunks_exact(unit).map(|t| narrow_text(t).ok_or(t)))?,
        (Some("O"), _) => {
            return Err(
                "found Python objects, expected numbers or texts: convert with numpy's astype(str)".into()
            );
        }
        _ => return Err(format!("found entries of type '{kind}', expected numbers, booleans or texts")),
    })
}

/// Floating-point numbers of 16 bits: a sign, five bits of exponent, ten of fraction.
pub(crate) fn halves(bytes: &[u8], big: bool) -> Vec<f64> {
    let number = |b: &[u8; 2]| {
        let bits = if big { u16::from_be_bytes(*b) } else { u16::from_le_bytes(*b) };
        let fraction = f64::from(bits & 0x3ff) / 1024.0;
        let size = match i32::from(bits >> 10 & 0x1f) {
            0 => fraction * 2f64.powi(-14),
            31 if fraction == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            exponent => (1.0 + fraction) * 2f64.powi(exponent - 15),
        };
        if bits >> 15 == 0 { size } else { -size }
    };
    bytes.as_chunks::<2>().0.iter().map(number).collect()
}

/// Texts, or the first entry that is none.
fn texts<'a>(list: impl Iterator<Item = Result<String, &'a [u8]>>) -> Result<Values, String> {
    let explain = |(k, text): (usize, Result<String, &[u8]>)| {
        text.map_err(|bytes| format!("found {} in entry {k}, expected UTF-8 text", quoted(bytes)))
    };
    list.enumerate().map(explain).collect::<Result<_, _>>().map(Values::Text)
}

fn wide_text(bytes: &[u8], big: bool) -> Option<String> {
    let code = |b: &[u8; 4]| if big { u32::from_be_bytes(*b) } else { u32::from_le_bytes(*b) };
    let codes = bytes.as_chunks::<4>().0.iter().map(code).take_while(|c| *c != 0);
    codes.map(char::from_u32).collect()
}

fn narrow_text(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |k| k + 1);
    String::from_utf8(bytes[..end].to_vec()).ok()
}

/// An array as a file.
pub(crate) fn to_bytes(shape: &[usize], values: &Values) -> Vec<u8> {
    let (kind, data): (String, Vec<u8>) = match values {
        Values::Float(list) => ("<f8".into(), list.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Values::Whole(list) => ("<i8".into(), list.iter().flat_map(|n| n.to_le_bytes()).collect()),
        Values::Text(list) => {
            let longest = list.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1);
            let padded = |text: &String| {
                let codes = text.chars().map(u32::from).chain(std::iter::repeat(0)).take(longest);
                codes.flat_map(u32::to_le_bytes).collect::<Vec<u8>>()
            };
            (format!("<U{longest}"), list.iter().flat_map(padded).collect())
        }
    };
    let shape: String = shape.iter().map(|d| format!("{d},")).collect();
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The data begins at a multiple of 64 bytes.
    let padding = (64 - (10 + header.len() + 1) % 64) % 64;
    header += &" ".repeat(padding);
    header.push('\n');
    let mut out = [MAGIC, b"\x01\0"].concat();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(data);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_read() {
        // From numpy: float16 of these numbers.
        let bits: [u16; 8] = [0x0000, 0x8000, 0x3c00, 0xc000, 0x3555, 0x0001, 0x7bff, 0xfc00];
        let numbers =
            [0.0, -0.0, 1.0, -2.0, 0.333_251_953_125, 5.960_464_477_539_063e-8, 65504.0, f64::NEG_INFINITY];
        assert_eq!(halves(&bits.map(u16::to_le_bytes).concat(), false), numbers);
        assert_eq!(halves(&bits.map(u16::to_be_bytes).concat(), true), numbers);
        assert!(halves(&[0, 0x7e], false)[0].is_nan());
    }

    #[test]
    fn bytes_after_an_array_are_refused() {
        let file = to_bytes(&[3], &Values::Float(vec![1.0; 3]));
        assert!(array(&file, 0.0).is_ok());
        let two = [file.clone(), file].concat();
        let message = array(&two, 0.0).unwrap_err();
        assert!(message.contains("bytes after 3 entries of 8, expected nothing"), "{message}");
    }

    #[test]
    fn an_array_that_does_not_fit_beside_the_others_is_refused_before_it_is_made() {
        let file = to_bytes(&[3], &Values::Float(vec![1.0; 3]));
        let limit = ictd::pretrain::MEMORY_LIMIT;
        assert!(array(&file, limit - 24.0).is_ok());
        assert!(
            array(&file, limit - 23.0).unwrap_err().contains("at most 8 GB: lower the size of the arrays")
        );
    }
}
