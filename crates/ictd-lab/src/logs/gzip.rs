//! Files compressed with gzip (RFC 1952).

use std::io::{Error, ErrorKind, Read, Result};

use crc32fast::Hasher;
use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};

/// Bytes read at a time.
const BUFFER: usize = 1 << 16;

/// Decompresses while it reads; several files after one another are read as one.
pub(crate) struct Gunzip<R> {
    source: R,
    buffer: Vec<u8>,
    used: usize,
    state: Option<Box<InflateState>>,
    crc: Hasher,
    length: u32,
    files: usize,
}

impl<R: Read> Gunzip<R> {
    pub fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), used: 0, state: None, crc: Hasher::new(), length: 0, files: 0 }
    }

    /// At least `wanted` unread bytes, or as many as there are.
    fn fill(&mut self, wanted: usize) -> Result<usize> {
        if self.buffer.len() - self.used < wanted {
            self.buffer.drain(..self.used);
            self.used = 0;
            let mut chunk = vec![0; BUFFER];
            while self.buffer.len() < wanted {
                match self.source.read(&mut chunk) {
                    Ok(0) => break,
                    Ok(n) => self.buffer.extend_from_slice(&chunk[..n]),
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(self.buffer.len() - self.used)
    }

    fn take(&mut self, count: usize) -> Result<&[u8]> {
        if self.fill(count)? < count {
            return Err(broken("the compressed file ends early"));
        }
        self.used += count;
        Ok(&self.buffer[self.used - count..self.used])
    }

    fn header(&mut self) -> Result<()> {
        let fixed: Vec<u8> = self.take(10)?.to_vec();
        if fixed[..3] != [0x1f, 0x8b, 8] || fixed[3] & 0xe0 != 0 {
            return Err(broken("found no header of gzip"));
        }
        let flags = fixed[3];
        if flags & 4 != 0 {
            let length = self.take(2)?;
            let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
            self.take(length)?;
        }
        // A name and a comment, each ended by 0.
        for _ in 0..(flags >> 3 & 1) + (flags >> 4 & 1) {
            while self.take(1)?[0] != 0 {}
        }
        if flags & 2 != 0 {
            self.take(2)?;
        }
        Ok(())
    }

    fn trailer(&mut self) -> Result<()> {
        let (crc, length) = (self.crc.clone().finalize(), self.length);
        let found = self.take(8)?;
        if found[..4] != crc.to_le_bytes() || found[4..] != length.to_le_bytes() {
            return Err(broken("the compressed file is damaged: its checksum differs"));
        }
        Ok(())
    }
}

fn broken(message: &str) -> Error {
    Error::new(ErrorKind::InvalidData, message.to_owned())
}

impl<R: Read> Read for Gunzip<R> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        loop {
            let mut state = match self.state.take() {
                Some(state) => state,
                // Zeros may follow, to fill a block of a tape.
                None if self.files > 0 && (self.fill(1)? == 0 || self.buffer[self.used] == 0) => {
                    return Ok(0);
                }
                None => {
                    self.header()?;
                    self.files += 1;
                    (self.crc, self.length) = (Hasher::new(), 0);
                    InflateState::new_boxed(DataFormat::Raw)
                }
            };
            let available = self.fill(1)?;
            let result = inflate(&mut state, &self.buffer[self.used..], out, MZFlush::None);
            self.used += result.bytes_consumed;
            let written = result.bytes_written;
            self.crc.update(&out[..written]);
            self.length = self.length.wrapping_add(written as u32);
            match result.status {
                Ok(MZStatus::StreamEnd) => self.trailer()?,
                Ok(_) | Err(MZError::Buf) if available > 0 || written > 0 => self.state = Some(state),
                Ok(_) | Err(MZError::Buf) => return Err(broken("the compressed file ends early")),
                Err(_) => return Err(broken("the compressed file is damaged")),
            }
            if written > 0 || out.is_empty() {
                return Ok(written);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
        file.extend(miniz_oxide::deflate::compress_to_vec(content, 6));
        file.extend(crc32fast::hash(content).to_le_bytes());
        file.extend((content.len() as u32).to_le_bytes());
        file
    }

    fn read(file: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        Gunzip::new(file).read_to_end(&mut out).map(|_| out)
    }

    #[test]
    fn files_after_one_another_are_read_as_one() {
        let long: Vec<u8> = (0..200_000u32).map(|k| (k.wrapping_mul(k) >> 7) as u8).collect();
        let mut both = gzip(&long);
        both.extend(gzip(b"and more"));
        assert_eq!(read(&both).unwrap(), [&long[..], b"and more"].concat());
    }

    #[test]
    fn damage_is_noticed() {
        let whole = gzip(b"episode,t,state,reward\n");
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "{cut}");
        }
        let mut changed = whole.clone();
        let last = changed.len() - 5;
        changed[last] ^= 1;
        assert!(read(&changed).is_err());
    }
}
