//! HDF5 files of Minari, D4RL and d3rlpy.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hdf5_pure::{AttrValue, DType, Dataset, File, Group};
use serde_json::Value;

use super::assembler::{Assembler, Stop};
use super::episode::Sink;
use super::job::Job;
use super::parser::RowParser;
use super::reading::Reading;
use super::states::States;
use super::table::{Block, Places, Table, Values};
use super::write::FILLED;
use crate::LabError;
use crate::files::numbers_or_null;

/// No data set unpacks to more than so many times the bytes of its file: deflate reaches 1032.
const RATIO: u64 = 1100;
/// Groups in groups, as dictionaries of observations have them.
const DEEPEST: usize = 8;

/// Reads a file of any of these layouts.
pub(super) fn read<S: Sink>(job: &Job<'_>, sink: &mut S) -> Result<Reading, Stop> {
    let path = job.path();
    let bytes = job.input.bytes()?;
    let size = bytes.len() as u64;
    let file = File::from_bytes(bytes).map_err(|e| failed(path, "", e))?;
    let source = Source { path, size };
    let root = file.root();
    let groups = root.groups().map_err(|e| failed(path, "", e))?;
    let datasets = root.datasets().map_err(|e| failed(path, "", e))?;
    let episodes = numbered(&groups, "episode_");
    if !episodes.is_empty() {
        let blocks = |k: usize| source.minari(&root, &format!("episode_{}", episodes[k]));
        let metadata = source.metadata(&root)?;
        let names = metadata.names.clone().filter(|names| names.len() == episodes.len());
        let names = names.unwrap_or_else(|| episodes.iter().map(u64::to_string).collect());
        let mut reading = source.episodes(job, &names, blocks, sink)?;
        metadata.compare(path, episodes.len() as u64, &mut reading)?;
        metadata.name(&mut reading.states);
        return Ok(reading);
    }
    let has = |name: &str| datasets.iter().any(|d| d == name);
    if has("columns") && has("num_episodes") {
        let episodes = numbered(&datasets, "rewards_");
        let names: Vec<String> = episodes.iter().map(u64::to_string).collect();
        let blocks = |k: usize| source.d3rlpy(&root, &datasets, episodes[k]);
        return source.episodes(job, &names, blocks, sink);
    }
    let mut blocks = Vec::new();
    for name in &datasets {
        let dataset = root.dataset(name).map_err(|e| failed(path, name, e))?;
        // Beside the arrays there may be pictures or words about them.
        if let Ok((shape, values)) = source.values(name, &dataset)
            && !shape.is_empty()
        {
            blocks.push(Block::new(name, &shape, values));
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
}

impl Source<'_> {
    fn fail(&self, place: &str, message: impl std::fmt::Display) -> LabError {
        LabError::parse(self.path, format!("{place}: {message}"))
    }

    /// Reads one table per episode.
    fn episodes<S: Sink>(
        &self,
        job: &Job<'_>,
        names: &[String],
        blocks: impl Fn(usize) -> Result<Vec<Block>, LabError>,
        sink: &mut S,
    ) -> Result<Reading, Stop> {
        let mut all: Option<(RowParser, Assembler<'_, S>)> = None;
        let mut sink = Some(sink);
        job.progress.begin(format!("reading {}", self.path.display()), "steps", 0)?;
        for (k, name) in names.iter().enumerate() {
            let mut found = blocks(k)?;
            let rows = found.iter().map(Block::rows).max().unwrap_or(0);
            found.push(Block {
                name: "episode".into(),
                width: None,
                values: Values::Text(vec![name.clone(); rows]),
            });
            let table = Table::new(found);
            if let Some(sink) = sink.take() {
                let (parser, assembler) = job.rows("arrays", table.header(), sink)?;
                all = Some((parser, assembler.by_step()));
            }
            let Some((parser, assembler)) = &mut all else { continue };
            if table.header() != assembler.header() {
                return Err(self
                    .fail(
                        &format!("episode {name}"),
                        "found other arrays than in the first, expected the same",
                    )
                    .into());
            }
            table.feed(assembler, parser, Places::Steps, job.progress)?;
        }
        let Some((_, assembler)) = all else {
            return Err(LabError::parse(self.path, "found no episodes, expected some").into());
        };
        assembler.finish()
    }

    /// An episode of Minari: a group with T + 1 observations and T of everything else.
    fn minari(&self, root: &Group, name: &str) -> Result<Vec<Block>, LabError> {
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
        let shape = shape.into_iter().map(|d| d as usize).collect();
        let values = match dataset.dtype().map_err(wrap)? {
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
            DType::String | DType::VariableLengthString => Values::Text(dataset.read_string().map_err(wrap)?),
            other => {
                return Err(
                    self.fail(name, format!("found entries of type {other}, expected numbers or texts"))
                );
            }
        };
        Ok((shape, values))
    }

    /// What is said about the whole: in `metadata.json` beside the file, or in attributes of the root.
    fn metadata(&self, root: &Group) -> Result<Metadata, LabError> {
        let beside = self.path.with_file_name("metadata.json");
        if let Ok(text) = std::fs::read_to_string(&beside) {
            let value: Value = serde_json::from_str(&numbers_or_null(&text))
                .map_err(|e| LabError::parse(&beside, e.to_string()))?;
            let number = |key: &str| value.get(key).and_then(Value::as_u64);
            let texts = |key: &str| -> Option<Vec<String>> {
                value.get(key)?.as_array()?.iter().map(|text| text.as_str().map(String::from)).collect()
            };
            return Ok(Metadata {
                episodes: number("total_episodes"),
                steps: number("total_steps"),
                names: texts("ictd_episodes"),
                labels: texts("ictd_labels"),
                features: texts("ictd_features"),
            });
        }
        let attributes: HashMap<String, AttrValue> = root.attrs().unwrap_or_default();
        let number = |key: &str| attributes.get(key).and_then(AttrValue::as_u64);
        Ok(Metadata {
            episodes: number("total_episodes"),
            steps: number("total_steps"),
            ..Metadata::default()
        })
    }
}

/// Dictionary keys are joined by an underscore, the name of the episode is left out.
fn inner_name(place: &str) -> String {
    place.split('/').skip(1).collect::<Vec<_>>().join("_")
}

/// What Minari says about a data set, and what `ictd convert` adds to it.
#[derive(Default)]
struct Metadata {
    episodes: Option<u64>,
    steps: Option<u64>,
    names: Option<Vec<String>>,
    labels: Option<Vec<String>>,
    features: Option<Vec<String>>,
}

impl Metadata {
    /// Gives states the names that they had before they were written as numbers.
    fn name(self, states: &mut States) {
        match (states, self.labels, self.features) {
            (States::Labels(numbers), Some(labels), _) => {
                let label = |n: &String| n.parse().ok().and_then(|k: usize| labels.get(k));
                if let Some(named) = numbers.iter().map(|n| label(n).cloned()).collect() {
                    *numbers = named;
                }
            }
            (States::Features { names, .. }, _, Some(features)) if features.len() == names.len() => {
                *names = features
            }
            _ => {}
        }
    }

    fn compare(&self, path: &Path, episodes: u64, reading: &mut Reading) -> Result<(), LabError> {
        if let Some(said) = self.episodes.filter(|said| *said != episodes) {
            return Err(LabError::parse(
                path,
                format!("found {episodes} episodes, expected {said} as total_episodes says"),
            ));
        }
        let steps = reading.counts.transitions + reading.counts.dropped_transitions;
        if let Some(said) = self.steps.filter(|said| *said != steps) {
            reading.warnings.push(format!("{steps} steps, while total_steps says {said}"));
        }
        Ok(())
    }
}

/// The file of a Minari data set given by its folder or its id; `None` where it is neither.
pub(super) fn minari_file(path: &Path) -> Result<Option<PathBuf>, LabError> {
    let mut folder = path.to_owned();
    if !path.exists() {
        let root = std::env::var_os("MINARI_DATASETS_PATH").map(PathBuf::from);
        let root = root.or_else(|| std::env::home_dir().map(|home| home.join(".minari/datasets")));
        match root.map(|root| root.join(path)).filter(|_| path.is_relative()) {
            Some(found) if found.is_dir() => folder = found,
            _ => return Ok(None),
        }
    }
    if !folder.is_dir() {
        return Ok(None);
    }
    let inner = folder.join("data");
    let data = if inner.is_dir() { inner } else { folder };
    let file = data.join("main_data.hdf5");
    if file.is_file() {
        return Ok(Some(file));
    }
    if data.join("metadata.json").is_file() {
        return Ok(Some(data));
    }
    Err(LabError::parse(path, "found a folder without main_data.hdf5, expected a Minari data set"))
}
