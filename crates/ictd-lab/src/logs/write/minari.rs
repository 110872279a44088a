//! Minari data sets: `data/main_data.hdf5` and `data/metadata.json`.

use hdf5_pure::{AttrValue, EnumTypeBuilder, Error, FileBuilder};
use ictd::context::End;
use serde_json::{Value, json};

use super::super::states::whole_label;
use super::super::{OwnedEpisode, States};
use super::Log;
use super::rows::meaning;

/// The version whose layout this is.
const VERSION: &str = "0.5.3";

/// The attribute of an episode whose last observation only fills the place: the log does not say where it ended.
pub(in super::super) const FILLED: &str = "ictd_filled";

/// The two files of a data set of that name.
pub(super) fn files(log: &Log<'_>, name: &str) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let mut file = FileBuilder::new();
    let states = &log.reading.states;
    let whole = match states {
        States::Labels(labels) => labels.iter().map(|label| whole_label(label)).collect::<Option<Vec<i64>>>(),
        States::Features { .. } => None,
    };
    let flag =
        EnumTypeBuilder::with_base(hdf5_pure::make_i8_type()).value("FALSE", 0).value("TRUE", 1).build()?;
    for (k, episode) in log.episodes.0.iter().enumerate() {
        let OwnedEpisode { rewards, end, .. } = episode;
        let steps = rewards.len();
        let mut group = file.create_group(&format!("episode_{k}"));
        group.set_attr("id", AttrValue::I64(k as i64));
        group.set_attr("total_steps", AttrValue::I64(steps as i64));
        let mut observed = episode.states.clone();
        if observed.len() == steps {
            observed.extend(episode.states.last());
            group.set_attr(FILLED, AttrValue::I64(1));
        }
        let observations = group.create_dataset("observations");
        match (states, &whole) {
            (States::Features { rows, .. }, _) => {
                let data: Vec<f64> =
                    observed.iter().flat_map(|&s| rows.row(s as usize).iter().copied()).collect();
                observations
                    .with_f64_data(&data)
                    .with_shape(&[observed.len() as u64, rows.num_cols() as u64]);
            }
            (States::Labels(_), Some(whole)) => {
                observations.with_i64_data(&observed.iter().map(|&s| whole[s as usize]).collect::<Vec<_>>());
            }
            (States::Labels(_), None) => {
                observations.with_i64_data(&observed.iter().map(|&s| i64::from(s)).collect::<Vec<_>>());
            }
        }
        group.create_dataset("actions").with_i64_data(&vec![0; steps]);
        group.create_dataset("rewards").with_f64_data(rewards);
        for (name, which) in [("terminations", End::Terminated), ("truncations", End::Truncated)] {
            let flags: Vec<u8> = (1..=steps).map(|t| u8::from(t == steps && *end == which)).collect();
            group.create_dataset(name).with_enum_u8_data(flag.clone(), &flags);
        }
        file.add_group(group.finish());
    }
    let bytes = file.finish()?;
    let metadata = metadata(log, name, whole.as_deref(), bytes.len());
    Ok(vec![("main_data.hdf5", bytes), ("metadata.json", metadata)])
}

fn metadata(log: &Log<'_>, name: &str, whole: Option<&[i64]>, size: usize) -> Vec<u8> {
    let states = &log.reading.states;
    let space = match (states, whole) {
        (States::Features { rows, .. }, _) => {
            // Written by hand: JSON proper has no infinity, and Minari expects it.
            let d = rows.num_cols();
            let all = |bound: &str| vec![bound; d].join(", ");
            format!(
                r#"{{"type": "Box", "dtype": "float64", "shape": [{d}], "low": [{}], "high": [{}]}}"#,
                all("-Infinity"),
                all("Infinity")
            )
        }
        (States::Labels(labels), whole) => {
            let start = whole.and_then(|w| w.iter().copied().min()).unwrap_or(0);
            let end = whole.and_then(|w| w.iter().copied().max()).unwrap_or(labels.len() as i64 - 1);
            json!({"type": "Discrete", "dtype": "int64", "start": start, "n": end.saturating_sub(start).saturating_add(1)})
                .to_string()
        }
    };
    let action = json!({"type": "Discrete", "dtype": "int64", "start": 0, "n": 1}).to_string();
    let counts = log.reading.counts;
    let mut metadata = json!({
        "total_episodes": log.episodes.0.len(),
        "total_steps": counts.transitions,
        "data_format": "hdf5",
        "jpeg_encoding": false,
        "observation_space": space,
        "action_space": action,
        "dataset_id": name,
        "dataset_size": (size as f64 / 1e5).round() / 10.0,
        "minari_version": VERSION,
        "description": "written by ictd convert: states and rewards of a log, without actions",
    });
    if let Value::Object(entries) = &mut metadata {
        let is_numbered = whole.is_some();
        entries.extend(meaning(states).into_iter().filter(|_| !is_numbered));
        let names = log.names();
        entries.insert("ictd_episodes".into(), json!(names));
    }
    metadata.to_string().into_bytes()
}
