//! Tensors on disk in the safetensors format.
//!
//! The format is eight bytes of header length, a JSON header, and the numbers; writing and reading it
//! here keeps metadata order and bytes under our control.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

    /// The file's bytes; the same tensors give the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut header = serde_json::Map::new();
        header.insert("__metadata__".into(), serde_json::json!(self.metadata));
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

    /// Reads a file's bytes; says what is wrong with them.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let cut = || "the file is cut short".to_owned();
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
        let (header, data) = rest.split_at_checked(length).ok_or_else(cut)?;
        let header: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(header).map_err(|e| format!("header: {e}"))?;
        let mut found = Self::default();
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
            let (shape, bytes) = (entry.shape, raw.len());
            let count = shape.iter().try_fold(1usize, |n, &k| n.checked_mul(k));
            if count.and_then(|n| n.checked_mul(4)) != Some(bytes) {
                return Err(format!("tensor {name}: shape {shape:?} does not fit its {bytes} bytes"));
            }
            let numbers = raw.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
            found.tensors.insert(name, (shape, numbers));
        }
        Ok(found)
    }
}
