//! Tensors on disk in the safetensors format.
//!
//! The format is eight bytes of header length, a JSON header, and the numbers; writing and reading it
//! here keeps metadata order and bytes under our control.
//!
//! Files of format 3 carry a digest: the metadata entry `sha256` is that of the whole file with the entry left empty. Such a file
//! is read only where it is, to the last byte, what would be written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::sha256;

/// The metadata entry that says the format.
pub(crate) const FORMAT: &str = "schema_version";
/// The format that carries a digest.
pub(crate) const SEALED_FORMAT: &str = "3";
/// The metadata entry of the digest.
const DIGEST: &str = "sha256";

/// Named float32 tensors, row-major, and string metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensors {
    /// Name, shape and numbers.
    pub tensors: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    /// Key and value.
    pub metadata: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

impl Tensors {
    /// Adds a tensor.
    ///
    /// # Panics
    /// When the shape does not hold as many numbers as there are.
    pub fn insert(&mut self, name: &str, shape: &[usize], numbers: Vec<f32>) {
        assert_eq!(shape.iter().product::<usize>(), numbers.len(), "tensor {name}: shape and numbers differ");
        self.tensors.insert(name.to_owned(), (shape.to_vec(), numbers));
    }

    /// The numbers of a tensor.
    pub fn get(&self, name: &str) -> Result<&[f32], String> {
        self.tensors.get(name).map(|t| t.1.as_slice()).ok_or_else(|| format!("tensor {name} is missing"))
    }

    /// Whether files of these tensors carry a digest.
    pub fn is_sealed(&self) -> bool {
        self.metadata.get(FORMAT).is_some_and(|format| format == SEALED_FORMAT)
    }

    /// The file's bytes, with their digest where the format has one; the same tensors give the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut metadata = self.metadata.clone();
        if self.is_sealed() {
            metadata.insert(DIGEST.into(), String::new());
            let digest = sha256(&self.bytes_with(&metadata));
            metadata.insert(DIGEST.into(), digest);
        }
        self.bytes_with(&metadata)
    }

    fn bytes_with(&self, metadata: &BTreeMap<String, String>) -> Vec<u8> {
        let mut header = serde_json::Map::new();
        header.insert("__metadata__".into(), serde_json::json!(metadata));
        let mut end = 0;
        for (name, (shape, numbers)) in &self.tensors {
            let begin = end;
            end += 4 * numbers.len();
            let entry = serde_json::json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, end]});
            header.insert(name.clone(), entry);
        }
        let mut text = serde_json::Value::Object(header).to_string();
        // Numbers start at a multiple of eight.
        text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(text.as_bytes());
        for (_, numbers) in self.tensors.values() {
            bytes.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
        }
        bytes
    }

    /// Reads a file's bytes; says what is wrong with them. The digest, where there is one, is checked and left out.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let cut = || "the file is cut short".to_owned();
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
        let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
        let header: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(header).map_err(|e| format!("header: {e}"))?;
        let mut found = Self::default();
        let mut ranges = Vec::new();
        for (name, value) in header {
            if name == "__metadata__" {
                found.metadata = serde_json::from_value(value).map_err(|e| format!("metadata: {e}"))?;
                continue;
            }
            let entry: Entry = serde_json::from_value(value).map_err(|e| format!("tensor {name}: {e}"))?;
            if entry.dtype != "F32" {
                return Err(format!("tensor {name} has type {}, expected F32", entry.dtype));
            }
            let [begin, end] = entry.data_offsets;
            let raw = data.get(begin..end).ok_or_else(cut)?;
            ranges.push([begin, end]);
            let (shape, bytes) = (entry.shape, raw.len());
            let count = shape.iter().try_fold(1usize, |n, &k| n.checked_mul(k));
            if count.and_then(|n| n.checked_mul(4)) != Some(bytes) {
                return Err(format!("tensor {name}: shape {shape:?} does not fit its {bytes} bytes"));
            }
            let numbers = raw.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            found.tensors.insert(name, (shape, numbers));
        }
        check_tiling(ranges, data.len())?;
        let carries_digest = found.metadata.remove(DIGEST).is_some();
        // Where the entry is there and the format is not, or the other way round, one of them is damaged.
        if (carries_digest || found.is_sealed()) && found.to_bytes() != bytes {
            return Err("the file is damaged: its content has another SHA-256 than it says".into());
        }
        Ok(found)
    }
}

/// Refuses tensors that overlap, and bytes that belong to none.
fn check_tiling(mut ranges: Vec<[usize; 2]>, length: usize) -> Result<(), String> {
    ranges.sort_unstable();
    let mut end = 0;
    for [begin, next] in ranges {
        if begin != end {
            return Err(format!("a tensor starts at byte {begin} of the data, expected {end}"));
        }
        end = next;
    }
    if end == length { Ok(()) } else { Err(format!("the data have {length} bytes, expected {end}")) }
}
