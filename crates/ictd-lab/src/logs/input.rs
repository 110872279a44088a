//! Where bytes come from: a file, standard input, or a compressed file.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::gzip::Gunzip;
use crate::LabError;
use crate::files::read_bytes;

/// What files of gzip begin with.
const GZIP: &[u8; 2] = &[0x1f, 0x8b];

/// What can be read from the beginning more than once.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// A file.
    File(PathBuf),
    /// A file compressed with gzip.
    Gzip(PathBuf),
    /// Standard input or a pipe, which is kept.
    Memory(PathBuf, Arc<[u8]>),
}

impl Input {
    /// Finds the input; `-` is standard input, and a file that begins as those of gzip is decompressed.
    pub fn open(path: &Path) -> Result<Self, LabError> {
        // What is no file, a pipe for instance, can be read only once.
        let is_once = std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir());
        if path == Path::new("-") || is_once {
            return Ok(Self::Memory(path.to_owned(), read_bytes(path)?.into()));
        }
        let mut start = [0; 2];
        let read = File::open(path).and_then(|mut file| file.read(&mut start));
        match read.map_err(|source| LabError::Read { path: path.to_owned(), source })? {
            2 if start == *GZIP => Ok(Self::Gzip(path.to_owned())),
            _ => Ok(Self::File(path.to_owned())),
        }
    }

    /// As the user calls it.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Gzip(path) | Self::Memory(path, _) => path,
        }
    }

    /// Its size in bytes; 0 where that is not known before the end.
    pub fn size(&self) -> u64 {
        match self {
            Self::File(path) => std::fs::metadata(path).map_or(0, |m| m.len()),
            Self::Gzip(_) => 0,
            Self::Memory(_, bytes) if bytes.starts_with(GZIP) => 0,
            Self::Memory(_, bytes) => bytes.len() as u64,
        }
    }

    /// The bytes from the beginning.
    pub fn reader(&self) -> Result<Box<dyn Read + Send>, LabError> {
        let open = |path: &PathBuf| File::open(path).map_err(|e| self.failed(e));
        Ok(match self {
            Self::File(path) => Box::new(open(path)?),
            Self::Gzip(path) => Box::new(Gunzip::new(open(path)?)),
            Self::Memory(_, bytes) if bytes.starts_with(GZIP) => {
                Box::new(Gunzip::new(Cursor::new(bytes.clone())))
            }
            Self::Memory(_, bytes) => Box::new(Cursor::new(bytes.clone())),
        })
    }

    /// All bytes.
    pub fn bytes(&self) -> Result<Vec<u8>, LabError> {
        let mut bytes = Vec::new();
        // What is larger than the guard for memory is not read to its end.
        let limit = ictd::pretrain::MEMORY_LIMIT as u64;
        self.reader()?.take(limit + 1).read_to_end(&mut bytes).map_err(|e| self.failed(e))?;
        crate::memory::admit(bytes.len() as f64, "the size of the file")?;
        Ok(bytes)
    }

    /// An error while reading.
    pub fn failed(&self, source: io::Error) -> LabError {
        LabError::Read { path: self.path().to_owned(), source }
    }
}
