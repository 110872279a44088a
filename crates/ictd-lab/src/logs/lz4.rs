//! LZ4: frames, in which pandas compresses Arrow files, and blocks, of which they are made and which Parquet has alone.

/// What a frame begins with.
const MARK: [u8; 4] = 0x184d_2204_u32.to_le_bytes();

/// The content of a frame, which has `size` bytes; none where it is damaged. Checksums are passed over: that of the content
/// is left out by those who write Arrow, and the sizes have to agree.
pub(super) fn frame(bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    let rest = bytes.strip_prefix(&MARK)?;
    let (&[flags, _], rest) = rest.split_first_chunk()?;
    // The version, and content that needs no dictionary.
    (flags >> 6 == 1 && flags & 1 == 0).then_some(())?;
    let has_size = flags & 8 != 0;
    let mut rest = rest.get(if has_size { 9 } else { 1 }..)?;
    let mut content = Vec::new();
    loop {
        let (head, after) = rest.split_first_chunk()?;
        let head = u32::from_le_bytes(*head);
        if head == 0 {
            return (content.len() == size).then_some(content);
        }
        let (block, after) = after.split_at_checked((head & 0x7fff_ffff) as usize)?;
        if head >> 31 == 1 {
            (block.len() <= size - content.len()).then(|| content.extend_from_slice(block))?;
        } else {
            unpack(block, &mut content, size)?;
        }
        let checksum = if flags & 16 != 0 { 4 } else { 0 };
        rest = after.get(checksum..)?;
    }
}

/// The content of a block alone, which has `size` bytes.
pub(super) fn block(bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    unpack(bytes, &mut content, size)?;
    (content.len() == size).then_some(content)
}

/// Adds the content of a block, up to `size` bytes in all. What is repeated may stand in blocks before.
fn unpack(mut block: &[u8], content: &mut Vec<u8>, size: usize) -> Option<()> {
    loop {
        let (&token, rest) = block.split_first()?;
        block = rest;
        let literals = length(token >> 4, &mut block)?;
        let (copied, rest) = block.split_at_checked(literals)?;
        (literals <= size - content.len()).then(|| content.extend_from_slice(copied))?;
        if rest.is_empty() {
            return Some(());
        }
        let (offset, rest) = rest.split_first_chunk()?;
        block = rest;
        let offset = usize::from(u16::from_le_bytes(*offset));
        let count = length(token & 15, &mut block)?.checked_add(4)?;
        let start = content.len().checked_sub(offset).filter(|_| offset > 0)?;
        (count <= size - content.len()).then_some(())?;
        // A repetition may reach into itself.
        for k in start..start + count {
            content.push(content[k]);
        }
    }
}

/// A length of four bits and as many bytes more as are needed.
fn length(bits: u8, block: &mut &[u8]) -> Option<usize> {
    let mut length = usize::from(bits);
    let mut more = bits == 15;
    while more {
        let (&byte, rest) = block.split_first()?;
        *block = rest;
        length = length.checked_add(usize::from(byte))?;
        more = byte == 255;
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Put together by hand as the format says, with and without what is optional; files that pyarrow compressed are read
    /// elsewhere.
    #[test]
    fn literals_and_repetitions_are_put_together() {
        let text = b"abcabcabcabcabcabcabcabcabcabc, and no more";
        let mut block = vec![0x3f, b'a', b'b', b'c', 3, 0, 8, 0xd0];
        block.extend(b", and no more");
        for (flags, extra) in [(0x60, 0), (0x68, 8), (0x70, 0), (0x40, 0)] {
            let mut file = MARK.to_vec();
            file.extend([flags, 0x40]);
            file.extend(vec![0; extra + 1]);
            file.extend((block.len() as u32).to_le_bytes());
            file.extend(&block);
            file.extend(vec![0; if flags & 16 != 0 { 4 } else { 0 }]);
            file.extend([0; 4]);
            assert_eq!(frame(&file, text.len()).as_deref(), Some(&text[..]), "{flags:x}");
            for size in [0, text.len() - 1, text.len() + 1] {
                assert_eq!(frame(&file, size), None, "{size}");
            }
            for cut in 0..file.len() {
                assert_eq!(frame(&file[..cut], text.len()), None, "{cut}");
            }
        }
    }

    #[test]
    fn a_repetition_of_what_is_not_there_is_refused() {
        for offset in [0, 2] {
            let mut content = Vec::new();
            assert_eq!(unpack(&[0x10, b'a', offset, 0, 0x10, b'b'], &mut content, 100), None);
        }
        let mut content = Vec::new();
        assert_eq!(unpack(&[0x10, b'a', 1, 0, 0x10, b'b'], &mut content, 100), Some(()));
        assert_eq!(content, b"aaaaab");
    }
}
