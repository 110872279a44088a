//! HDF5 files of Minari, D4RL and d3rlpy.

use std::cell::Cell;
use std::path::Path;

use hdf5_pure::{AttrValue, DType, Dataset, Datatype, DatatypeByteOrder, File, Group};

use super::assembler::Stop;
use super::cell;
use super::episode::Sink;
use super::job::Job;
use super::minari::Metadata;
use super::reading::Reading;
use super::table::{Block, Table, Values};
use super::write::FILLED;
use super::{episodes, names};
use crate::files::npy::halves;
use crate::{LabError, memory};

/// No data set unpacks to more than so many times the bytes of its file: deflate reaches 1032.
const RATIO: u64 = 1100;
/// Groups in groups, as dictionaries of observations have them.
const DEEPEST: usize = 8;

/// Reads a file of any of these layouts.
pub(super) fn read<S: Sink>(job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
    let path = job.path();
    // In a page this reader would be larger than all others together.
    if cfg!(target_family = "wasm") {
        let message = "found HDF5, expected CSV, JSONL or NPZ here; `ictd convert` makes one of it";
        return Err(LabError::parse(path, message).into());
    }
    let bytes = job.input.bytes()?;
    let size = bytes.len() as u64;
    let file = File::from_bytes(bytes).map_err(|e| failed(path, "", e))?;
    let source = Source { path, size, held: Cell::new(0.0) };
    let root = file.root();
    let groups = root.groups().map_err(|e| failed(path, "", e))?;
    let datasets = root.datasets().map_err(|e| failed(path, "", e))?;
    let admit = |bytes: f64| source.admit(bytes);
    let episodes = numbered(&groups, "episode_");
    if !episodes.is_empty() {
        let blocks = |k: usize| source.minari(&root, &format!("episode_{}", episodes[k]));
        let metadata = Metadata::of(path, &root)?;
        let names = metadata.names.clone().filter(|names| names.len() == episodes.len());
        let names = names.unwrap_or_else(|| episodes.iter().map(u64::to_string).collect());
        let mut reading = episodes::read(job, &names, blocks, admit, sink)?;
        metadata.compare(path, episodes.len() as u64, &mut reading)?;
        metadata.name(&mut reading);
        return Ok(reading);
    }
    let has = |name: &str| datasets.iter().any(|d| d == name);
    if has("columns") && has("num_episodes") {
        let episodes = numbered(&datasets, "rewards_");
        let names: Vec<String> = episodes.iter().map(u64::to_string).collect();
        let blocks = |k: usize| source.d3rlpy(&root, &datasets, episodes[k]);
        return episodes::read(job, &names, blocks, admit, sink);
    }
    let mut blocks = Vec::new();
    for name in &datasets {
        let dataset = root.dataset(name).map_err(|e| failed(path, name, e))?;
        match source.values(name, &dataset) {
            Ok((shape, values)) if !shape.is_empty() => blocks.push(Block::new(name, &shape, values)),
            Err(error) if names::is_role(name) || job.wanted.names(name) => return Err(error.into()),
            // Beside the arrays there may be pictures or words about them.
            _ => {}
        }
    }
    if blocks.is_empty() {
        let found = groups.iter().chain(&datasets).take(8).cloned().collect::<Vec<_>>().join(", ");
        let expected = "groups episode_0, … (Minari), arrays (D4RL) or columns and num_episodes (d3rlpy)";
        return Err(LabError::parse(path, format!("found {found}, expected {expected}")).into());
    }
    Table::of_arrays(blocks).read(job, sink)
}

fn failed(path: &Path, place: &str, error: impl std::fmt::Display) -> LabError {
    let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
    LabError::parse(path, format!("{place}not an HDF5 file that can be read: {error}"))
}

/// Numbers after a prefix, in order.
fn numbered(names: &[String], prefix: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> = names.iter().filter_map(|n| n.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

struct Source<'a> {
    path: &'a Path,
    /// Of the file.
    size: u64,
    /// Bytes of the arrays that were read and are still needed: those of one episode where there are episodes.
    held: Cell<f64>,
}

impl Source<'_> {
    fn fail(&self, place: &str, message: impl std::fmt::Display) -> LabError {
        LabError::parse(self.path, format!("{place}: {message}"))
    }

    /// Refuses so many bytes more.
    fn admit(&self, bytes: f64) -> Result<(), LabError> {
        memory::admit(self.size as f64 + self.held.get() + bytes, "the size of the arrays")
    }

    /// An episode of Minari: a group with T + 1 observations and T of everything else.
    fn minari(&self, root: &Group, name: &str) -> Result<Vec<Block>, LabError> {
        self.held.set(0.0);
        let group = root.group(name).map_err(|e| failed(self.path, name, e))?;
        let mut blocks = self.observations(&group, "observations", name, 0)?;
        let states = blocks.first().map_or(0, Block::rows);
        for part in ["rewards", "terminations", "truncations"] {
            let place = format!("{name}/{part}");
            let dataset = group
                .dataset(part)
                .map_err(|_| self.fail(&place, "found none, expected one number per step"))?;
            let (shape, values) = self.values(&place, &dataset)?;
            blocks.push(Block::new(part, &shape, values));
        }
        let steps = blocks[blocks.len() - 3].rows();
        for block in &blocks {
            let is_state = block.name.starts_with("observations");
            let expected = if is_state { states } else { steps };
            if block.rows() != expected {
                let found = format!("found {} rows, expected {expected}", block.rows());
                return Err(self.fail(&format!("{name}/{}", block.name), found));
            }
        }
        // A last observation that `ictd convert` put there stands for none.
        let attributes = group.attrs().unwrap_or_default();
        if attributes.get(FILLED).and_then(AttrValue::as_i64) == Some(1) {
            blocks.iter_mut().for_each(|block| block.truncate(steps));
        }
        if states != steps + 1 && states != steps {
            let found = format!("found {states} rows and {steps} rewards, expected {}", steps + 1);
            return Err(self.fail(&format!("{name}/observations"), found));
        }
        Ok(blocks)
    }

    /// Observations: an array, or a group of them for dictionaries and tuples.
    fn observations(
        &self,
        group: &Group,
        name: &str,
        place: &str,
        depth: usize,
    ) -> Result<Vec<Block>, LabError> {
        let inner = format!("{place}/{name}");
        if let Ok(dataset) = group.dataset(name) {
            let (shape, values) = self.values(&inner, &dataset)?;
            return Ok(vec![Block::new(&inner_name(&inner), &shape, values)]);
        }
        let parts = group.group(name).ok().filter(|_| depth < DEEPEST);
        let parts = parts.ok_or_else(|| self.fail(&inner, "found none, expected observations"))?;
        let list =
            |names: Result<Vec<String>, hdf5_pure::Error>| names.map_err(|e| failed(self.path, &inner, e));
        let mut names = list(parts.datasets())?;
        names.extend(list(parts.groups())?);
        names.sort_unstable();
        names.dedup();
        let mut blocks = Vec::new();
        for part in names {
            blocks.extend(self.observations(&parts, &part, &inner, depth + 1)?);
        }
        if blocks.is_empty() {
            return Err(self.fail(&inner, "found an empty group, expected observations"));
        }
        Ok(blocks)
    }

    /// An episode of d3rlpy: T rows of everything, and whether it was terminated.
    fn d3rlpy(&self, root: &Group, datasets: &[String], number: u64) -> Result<Vec<Block>, LabError> {
        self.held.set(0.0);
        let read = |name: &str| -> Result<(Vec<usize>, Values), LabError> {
            let dataset = root.dataset(name).map_err(|e| failed(self.path, name, e))?;
            self.values(name, &dataset)
        };
        let whole = format!("observations_{number}");
        let mut blocks = Vec::new();
        if datasets.contains(&whole) {
            let (shape, values) = read(&whole)?;
            blocks.push(Block::new("observations", &shape, values));
        }
        for part in numbered(datasets, &format!("{whole}_")) {
            let (shape, values) = read(&format!("{whole}_{part}"))?;
            blocks.push(Block::new(&format!("observations_{part}"), &shape, values));
        }
        let (shape, rewards) = read(&format!("rewards_{number}"))?;
        let steps = rewards.len();
        blocks.push(Block::new("rewards", &shape, rewards));
        let terminated = match read(&format!("terminated_{number}"))?.1 {
            Values::Whole(list) if list.len() == 1 => list[0],
            _ => return Err(self.fail(&format!("terminated_{number}"), "found no flag, expected one")),
        };
        let flags = (1..=steps).map(|t| i64::from(t == steps) * terminated).collect();
        blocks.push(Block { name: "terminated".into(), width: None, values: Values::Whole(flags) });
        match blocks.iter().find(|block| block.rows() != steps) {
            Some(block) => {
                let found = format!("found {} rows, expected {steps} as there are rewards", block.rows());
                Err(self.fail(&format!("{}, episode {number}", block.name), found))
            }
            None => Ok(blocks),
        }
    }

    /// The entries of a data set.
    fn values(&self, name: &str, dataset: &Dataset) -> Result<(Vec<usize>, Values), LabError> {
        let wrap = |e: hdf5_pure::Error| failed(self.path, name, e);
        let shape = dataset.shape().map_err(wrap)?;
        let unit = dataset.element_size().map_err(wrap)?;
        let bytes = shape.iter().try_fold(unit, |n, &d| n.checked_mul(d));
        if bytes.is_none_or(|bytes| bytes > RATIO.saturating_mul(self.size)) {
            return Err(self.fail(name, format!("found shape {shape:?}, expected one that fits the file")));
        }
        let kind = dataset.dtype().map_err(wrap)?;
        // Once as they are kept in the file, once as they are kept here.
        let count = shape.iter().product::<u64>() as f64;
        let each = match kind {
            DType::String | DType::VariableLengthString => Values::text_memory(unit as usize),
            _ => memory::DOUBLE,
        };
        self.admit(count * (unit as f64 + each))?;
        self.held.set(self.held.get() + count * each);
        let shape = shape.into_iter().map(|d| d as usize).collect();
        let values = match kind {
            DType::F32 | DType::F64 => Values::Float(dataset.read_f64().map_err(wrap)?),
            DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U8 | DType::U16 | DType::U32 => {
                Values::Whole(dataset.read_i64().map_err(wrap)?)
            }
            DType::U64 => {
                let list = dataset.read_u64().map_err(wrap)?;
                match list.iter().map(|&n| i64::try_from(n)).collect() {
                    Ok(whole) => Values::Whole(whole),
                    Err(_) => Values::Text(list.iter().map(u64::to_string).collect()),
                }
            }
            // Booleans of h5py.
            DType::Enum(_) => {
                Values::Whole(dataset.read_u8().map_err(wrap)?.into_iter().map(i64::from).collect())
            }
            DType::String | DType::VariableLengthString => {
                let list = dataset.read_string().map_err(wrap)?;
                // What is no text was replaced while it was read.
                if let Some(k) = list.iter().position(|text| text.contains(char::REPLACEMENT_CHARACTER)) {
                    let found = cell::quoted(list[k].as_bytes());
                    return Err(self.fail(name, format!("found {found} in entry {k}, expected UTF-8 text")));
                }
                Values::Text(list)
            }
            DType::Other(kind) if is_half(&kind).is_some() => {
                let is_big = is_half(&kind) == Some(DatatypeByteOrder::BigEndian);
                let bytes = dataset.read_raw().map_err(wrap)?;
                Values::Float(halves(&bytes, is_big))
            }
            other => {
                return Err(
                    self.fail(name, format!("found entries of type {other}, expected numbers or texts"))
                );
            }
        };
        Ok((shape, values))
    }
}

/// Dictionary keys are joined by an underscore, the name of the episode is left out.
fn inner_name(place: &str) -> String {
    place.split('/').skip(1).collect::<Vec<_>>().join("_")
}

/// The order of bytes in floating-point numbers of 16 bits; none for other types.
fn is_half(kind: &Datatype) -> Option<DatatypeByteOrder> {
    match kind {
        Datatype::FloatingPoint { size: 2, byte_order, layout } if layout.exponent_size == 5 => {
            Some(*byte_order)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_that_does_not_fit_beside_the_others_is_refused_before_it_is_read() {
        let mut file = hdf5_pure::FileBuilder::new();
        file.create_dataset("rewards").with_f64_data(&[1.0; 3]);
        let file = File::from_bytes(file.finish().unwrap()).unwrap();
        let dataset = file.root().dataset("rewards").unwrap();
        // In the file and in memory it takes 24 bytes.
        for (spare, fits) in [(48.0, true), (47.0, false)] {
            let held = ictd::pretrain::MEMORY_LIMIT - 1000.0 - spare;
            let source = Source { path: Path::new("a.hdf5"), size: 1000, held: Cell::new(held) };
            assert_eq!(source.values("rewards", &dataset).is_ok(), fits, "{spare}");
        }
    }
}
