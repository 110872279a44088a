//! Minari data sets in Arrow or Parquet: a folder per episode, whose file has one row more than there are steps.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::assembler::Stop;
use super::column::Leaf;
use super::episode::Sink;
use super::input::Input;
use super::job::Job;
use super::minari::{METADATA, Metadata, json};
use super::reading::Reading;
use super::table::Block;
use super::{columnar, episodes};
use crate::files::numbers_or_null;
use crate::{LabError, memory};

/// Columns of one number per step.
const STEPS: [&str; 3] = ["rewards", "terminations", "truncations"];
const OBSERVATIONS: &str = "observations";

/// Reads the episodes of a folder in the order of their numbers.
pub(super) fn read<S: Sink>(job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
    let data = job.path();
    let about = json(&data.join(METADATA))?.unwrap_or_default();
    let space: Option<Value> = about
        .get("observation_space")
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(&numbers_or_null(text)).ok());
    let metadata = Metadata::told(&about);
    let mut numbers = Vec::new();
    let failed = |source| LabError::Read { path: data.to_owned(), source };
    for entry in fs::read_dir(data).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok());
        numbers.extend(number.filter(|_| path.is_dir()).map(|number| (number, path)));
    }
    numbers.sort_unstable();
    let names: Vec<String> = numbers.iter().map(|(number, _)| number.to_string()).collect();
    let blocks = |k: usize| episode(&numbers[k].1, space.as_ref());
    let admit = |bytes: f64| memory::admit(bytes, "the number of rows");
    let mut reading = episodes::read(job, &names, blocks, admit, sink)?;
    metadata.compare(data, names.len() as u64, &mut reading)?;
    metadata.name(&mut reading);
    Ok(reading)
}

/// The file of an episode.
fn part(folder: &Path) -> Result<PathBuf, LabError> {
    let failed = |source| LabError::Read { path: folder.to_owned(), source };
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_part = |path: &Path| Some(path.file_name()?.to_str()?.starts_with("part-"));
        parts.extend(is_part(&path).filter(|is_part| *is_part).map(|_| path));
    }
    match parts.as_slice() {
        [part] => Ok(part.clone()),
        _ => {
            let found = format!("found {} files part-…, expected part-0 with the episode", parts.len());
            Err(LabError::parse(folder, found))
        }
    }
}

/// T + 1 observations and T of everything else, as in HDF5. Rewards and flags have one entry more in the file, which says
/// nothing; an episode that was recorded without its last observation has none.
fn episode(folder: &Path, space: Option<&Value>) -> Result<Vec<Block>, LabError> {
    let path = part(folder)?;
    let input = Input::open(&path)?;
    let is_wanted = |name: &str| name == OBSERVATIONS || STEPS.contains(&name);
    let leaves = columnar::leaves(&path, &input.bytes()?, is_wanted)?;
    let (mut observations, others): (Vec<Leaf>, Vec<Leaf>) =
        leaves.into_iter().partition(|leaf| leaf.names[0] == OBSERVATIONS);
    if observations.is_empty() {
        return Err(LabError::parse(&path, "found no column observations, expected one"));
    }
    observations.iter_mut().for_each(|leaf| as_in_hdf5(leaf, space));
    observations.sort_by(|a, b| a.names.cmp(&b.names));
    let mut blocks: Vec<Block> = observations.into_iter().map(Leaf::block).collect();
    let rows = blocks[0].rows();
    let about = json(&folder.join(METADATA))?;
    let said = about.as_ref().and_then(|about| about.get("total_steps")?.as_u64());
    let steps = said.map_or(Some(rows.saturating_sub(1)), |said| usize::try_from(said).ok());
    let steps =
        steps.filter(|steps| rows == *steps || steps.checked_add(1) == Some(rows)).ok_or_else(|| {
            let said = said.unwrap_or(0);
            LabError::parse(
                &path,
                format!("found {rows} rows, expected one more than the {said} of total_steps"),
            )
        })?;
    let mut others: Vec<Block> = others.into_iter().map(Leaf::block).collect();
    for name in STEPS {
        let place = others.iter().position(|block| block.name == name);
        let mut block = others.swap_remove(place.ok_or_else(|| {
            LabError::parse(&path, format!("found no column {name}, expected one number per step"))
        })?);
        block.truncate(steps);
        blocks.push(block);
    }
    Ok(blocks)
}

/// Entries of tuples are called `_index_0`, … there, and a number without dimensions is no list of one.
fn as_in_hdf5(leaf: &mut Leaf, space: Option<&Value>) {
    let mut space = space;
    for name in &mut leaf.names[1..] {
        space = match space.and_then(|space| space.get("subspaces")) {
            Some(Value::Array(list)) => {
                let inner = name.parse().ok().and_then(|k: usize| list.get(k));
                *name = format!("_index_{name}");
                inner
            }
            Some(Value::Object(parts)) => parts.get(name.as_str()),
            _ => None,
        };
    }
    if space.and_then(|space| space.get("shape")?.as_array()).is_some_and(Vec::is_empty) {
        leaf.as_numbers();
    }
}
