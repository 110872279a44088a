//! What Minari keeps beside the arrays, and where.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hdf5_pure::{AttrValue, Group};
use serde_json::Value;

use super::reading::Reading;
use super::states::States;
use super::write::LABEL;
use crate::LabError;
use crate::files::numbers_or_null;

/// The file in which Minari says something about a data set, or an episode of it.
pub(super) const METADATA: &str = "metadata.json";

/// What such a file says; none where there is no file.
pub(super) fn json(path: &Path) -> Result<Option<Value>, LabError> {
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(None) };
    let value = serde_json::from_str(&numbers_or_null(&text));
    value.map(Some).map_err(|e| LabError::parse(path, e.to_string()))
}

/// What Minari says about a data set, and what `ictd convert` adds to it.
#[derive(Default)]
pub(super) struct Metadata {
    episodes: Option<u64>,
    steps: Option<u64>,
    pub names: Option<Vec<String>>,
    labels: Option<Vec<String>>,
    features: Option<Vec<String>>,
}

impl Metadata {
    /// What is said about the whole: in `metadata.json` beside the file, or in attributes of the root.
    pub fn of(path: &Path, root: &Group) -> Result<Self, LabError> {
        if let Some(value) = json(&path.with_file_name(METADATA))? {
            return Ok(Self::told(&value));
        }
        let attributes: HashMap<String, AttrValue> = root.attrs().unwrap_or_default();
        let number = |key: &str| attributes.get(key).and_then(AttrValue::as_u64);
        Ok(Self { episodes: number("total_episodes"), steps: number("total_steps"), ..Self::default() })
    }

    /// What `metadata.json` says.
    pub fn told(value: &Value) -> Self {
        let number = |key: &str| value.get(key).and_then(Value::as_u64);
        let texts = |key: &str| -> Option<Vec<String>> {
            value.get(key)?.as_array()?.iter().map(|text| text.as_str().map(String::from)).collect()
        };
        Self {
            episodes: number("total_episodes"),
            steps: number("total_steps"),
            names: texts("ictd_episodes"),
            labels: texts("ictd_labels"),
            features: texts("ictd_features"),
        }
    }

    /// Gives states and their columns the names that they had before they were written as numbers.
    pub fn name(self, reading: &mut Reading) {
        match (&mut reading.states, self.labels, self.features) {
            (States::Labels(numbers), Some(labels), _) => {
                let label = |n: &String| n.parse().ok().and_then(|k: usize| labels.get(k)).cloned();
                let Some(named) = numbers.iter().map(label).collect() else { return };
                *numbers = named;
                for shown in reading.first.iter_mut().flat_map(|t| [&mut t.state, &mut t.next]) {
                    *shown = label(shown).unwrap_or_else(|| shown.clone());
                }
                reading.state_columns = vec![LABEL.into()];
            }
            (States::Features { names, .. }, _, Some(features)) if features.len() == names.len() => {
                reading.state_columns.clone_from(&features);
                *names = features;
            }
            _ => {}
        }
    }

    pub fn compare(&self, path: &Path, episodes: u64, reading: &mut Reading) -> Result<(), LabError> {
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

/// Where a Minari data set has its episodes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    /// In a file of HDF5.
    File(PathBuf),
    /// In a folder, as Arrow or Parquet.
    #[cfg(feature = "parquet")]
    Folder(PathBuf),
}

/// Finds a Minari data set by its folder or its id; `None` where it is neither.
pub(super) fn find(path: &Path) -> Result<Option<Found>, LabError> {
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
        return Ok(Some(Found::File(file)));
    }
    let Some(about) = json(&data.join(METADATA))? else {
        let message = "found a folder without main_data.hdf5, expected a Minari data set";
        return Err(LabError::parse(path, message));
    };
    let kept = about.get("data_format").and_then(Value::as_str).unwrap_or("hdf5");
    match kept {
        #[cfg(feature = "parquet")]
        "arrow" | "parquet" => Ok(Some(Found::Folder(data))),
        #[cfg(not(feature = "parquet"))]
        "arrow" | "parquet" => {
            let expected = "one in HDF5; build with --features parquet or convert it first";
            Err(LabError::parse(path, format!("found a Minari data set in {kept}, expected {expected}")))
        }
        _ => {
            let message =
                format!("found a Minari data set in {kept} without main_data.hdf5, expected one in HDF5");
            Err(LabError::parse(path, message))
        }
    }
}
