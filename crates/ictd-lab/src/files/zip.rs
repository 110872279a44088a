//! Zip archives, as far as NPZ files need them: stored or deflated entries, sizes up to 64 bits, no encryption.

use std::borrow::Cow;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use crate::memory;

/// Whether a file begins as archives do, empty ones too.
pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// The entries of an archive: names and contents. What is stored as it is stays where it is.
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<(String, Cow<'_, [u8]>)>, String> {
    let broken = || "found a zip archive that ends early or is damaged, expected a whole one".to_owned();
    let end = end_record(bytes).ok_or_else(broken)?;
    let mut at = end.directory;
    let mut total = 0.0;
    let mut found = Vec::new();
    for _ in 0..end.entries {
        let record = bytes.get(at..).and_then(|rest| rest.first_chunk::<46>()).ok_or_else(broken)?;
        if record[..4] != *b"PK\x01\x02" {
            return Err(broken());
        }
        let [name, extra, comment] = [28, 30, 32].map(|k| usize::from(two(record, k)));
        let rest = bytes.get(at + 46..at + 46 + name + extra).ok_or_else(broken)?;
        let title = String::from_utf8_lossy(&rest[..name]).into_owned();
        let mut sizes = [24, 20, 42].map(|k| u64::from(four(record, k)));
        wide_sizes(&rest[name..], &mut sizes);
        let [size, packed, offset] = sizes;
        if two(record, 8) & 1 != 0 {
            return Err(format!("{title}: found an encrypted entry, expected a plain one"));
        }
        total += size as f64;
        memory::admit(total, "the size of the arrays").map_err(|e| e.to_string())?;
        let offset = usize::try_from(offset).map_err(|_| broken())?;
        let local = bytes.get(offset..).and_then(|rest| rest.first_chunk::<30>()).ok_or_else(broken)?;
        let begin = offset + 30 + usize::from(two(local, 26)) + usize::from(two(local, 28));
        let stop = begin.checked_add(usize::try_from(packed).map_err(|_| broken())?).ok_or_else(broken)?;
        let data = bytes.get(begin..stop).ok_or_else(broken)?;
        let content = match two(record, 10) {
            0 => Cow::Borrowed(data),
            8 => decompress_to_vec_with_limit(data, size as usize).map_err(|_| broken())?.into(),
            method => {
                return Err(format!(
                    "{title}: found compression method {method}, expected stored or deflated"
                ));
            }
        };
        if content.len() as u64 != size || crc32fast::hash(&content) != four(record, 16) {
            return Err(format!("{title}: found a checksum that differs, expected that of its content"));
        }
        found.push((title, content));
        at += 46 + name + extra + comment;
    }
    Ok(found)
}

struct End {
    entries: u64,
    directory: usize,
}

/// The record at the end of an archive, and the one of archives beyond 4 GB before it.
fn end_record(bytes: &[u8]) -> Option<End> {
    let last = bytes.len().checked_sub(22)?;
    let first = last.saturating_sub(1 << 16);
    let at = (first..=last).rev().find(|&at| bytes[at..].starts_with(b"PK\x05\x06"))?;
    let record = &bytes[at..];
    let (mut entries, mut directory) = (u64::from(two(record, 10)), u64::from(four(record, 16)));
    if let Some(locator) = at.checked_sub(20).map(|k| &bytes[k..at]).filter(|l| l.starts_with(b"PK\x06\x07"))
    {
        let record = bytes.get(usize::try_from(eight(locator, 8)).ok()?..)?;
        if record.len() >= 56 && record.starts_with(b"PK\x06\x06") {
            (entries, directory) = (eight(record, 32), eight(record, 48));
        }
    }
    // An entry takes at least 46 bytes of the directory.
    (entries <= bytes.len() as u64 / 46)
        .then_some(End { entries, directory: usize::try_from(directory).ok()? })
}

/// Replaces sizes that did not fit into 32 bits.
fn wide_sizes(mut extra: &[u8], sizes: &mut [u64; 3]) {
    while extra.len() >= 4 {
        let (tag, length) = (two(extra, 0), usize::from(two(extra, 2)));
        let Some(body) = extra.get(4..4 + length) else { return };
        if tag == 1 {
            let mut wide = body.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
                *size = wide.next().unwrap_or(*size);
            }
            return;
        }
        extra = &extra[4 + length..];
    }
}

/// Numbers at a place that is known to be there.
fn two(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn four(bytes: &[u8], at: usize) -> u32 {
    u32::from(two(bytes, at)) | u32::from(two(bytes, at + 2)) << 16
}

fn eight(bytes: &[u8], at: usize) -> u64 {
    u64::from(four(bytes, at)) | u64::from(four(bytes, at + 4)) << 32
}

/// An archive of stored entries; they are smaller than 4 GB, which the guard for memory sees to.
pub(crate) fn archive(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for (name, content) in entries {
        let offset = out.len() as u32;
        let mut common = Vec::new();
        // Version 2.0, no flags, stored, 1 January 1980.
        common.extend([20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0]);
        common.extend(crc32fast::hash(content).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(content);
        directory.extend(b"PK\x01\x02\x14\0");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let begin = out.len() as u32;
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend((entries.len() as u16).to_le_bytes());
    out.extend((entries.len() as u16).to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(begin.to_le_bytes());
    out.extend([0, 0]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let files = vec![("a.npy".to_owned(), vec![1u8; 1000]), ("b".to_owned(), Vec::new())];
        let whole = archive(&files);
        let found = entries(&whole).unwrap();
        assert!(found.iter().all(|(_, content)| matches!(content, Cow::Borrowed(_))));
        assert!(
            found.iter().map(|(name, content)| (name, &**content)).eq(files.iter().map(|(n, c)| (n, &c[..])))
        );
        for cut in 0..whole.len() {
            assert!(entries(&whole[..cut]).is_err(), "{cut}");
        }
        let mut changed = whole.clone();
        changed[100] ^= 1;
        assert!(entries(&changed).unwrap_err().contains("a.npy: found a checksum that differs"));
    }
}
