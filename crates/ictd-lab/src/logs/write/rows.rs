//! One row per transition, and one more without a reward where the last state is known.

use std::collections::HashMap;
use std::path::Path;

use ictd::context::End;
use serde_json::{Map, Value, json};

use super::super::states::whole_label;
use super::super::table::Values;
use super::super::{Mapping, OwnedEpisode, States, Wanted, cell};
use super::Log;
use crate::files::{npy, zip};

/// A row of the table that is written.
struct Row<'a> {
    episode: &'a str,
    step: usize,
    time: Option<f64>,
    state: u32,
    /// None in the last row of an episode whose last state is known.
    reward: Option<f64>,
    terminated: bool,
    truncated: bool,
}

/// The column of labels in every format.
pub(in super::super) const LABEL: &str = "state";

impl Log<'_> {
    /// Names of the episodes: parts of one that was cut are told apart.
    pub(super) fn names(&self) -> Vec<String> {
        let mut parts: HashMap<&str, usize> = HashMap::new();
        let name = |episode: &'_ OwnedEpisode, part: usize| match part {
            1 => episode.name.clone(),
            part => format!("{}/{part}", episode.name),
        };
        let mut names = Vec::with_capacity(self.episodes.0.len());
        for episode in &self.episodes.0 {
            let part = parts.entry(&episode.name).or_default();
            *part += 1;
            names.push(name(episode, *part));
        }
        names
    }

    pub(super) fn has_times(&self) -> bool {
        self.episodes.0.iter().any(|episode| episode.times.is_some())
    }

    /// Names of the state columns: their own where a reader will know them again.
    pub(super) fn state_columns(&self) -> Vec<String> {
        let States::Features { names, .. } = &self.reading.states else { return vec![LABEL.into()] };
        let header = self.header(names);
        let own = Mapping::guess(Path::new(""), "", header.clone(), &Wanted::default());
        let kept = own.is_ok_and(|mapping| mapping.state_names() == *names);
        if kept { names.clone() } else { (0..names.len()).map(|a| format!("s_{a}")).collect() }
    }

    pub(super) fn header(&self, states: &[String]) -> Vec<String> {
        let time = if self.has_times() { "time" } else { "t" };
        let before = ["episode", time].map(String::from);
        let after = ["reward", "terminated", "truncated"].map(String::from);
        before.into_iter().chain(states.iter().cloned()).chain(after).collect()
    }

    fn each_row(&self, mut each: impl FnMut(Row<'_>)) {
        for (episode, name) in self.episodes.0.iter().zip(self.names()) {
            let steps = episode.rewards.len();
            for (t, &state) in episode.states.iter().enumerate() {
                let is_end = t + 1 == steps;
                each(Row {
                    episode: &name,
                    step: t,
                    time: episode.times.as_ref().map(|times| time(times, t)),
                    state,
                    reward: episode.rewards.get(t).copied(),
                    terminated: is_end && episode.end == End::Terminated,
                    truncated: is_end && episode.end == End::Truncated,
                });
            }
        }
    }
}

/// The time of a state; one that columns of the next state told has none of its own, and comes after all others.
fn time(times: &[f64], t: usize) -> f64 {
    times.get(t).copied().unwrap_or_else(|| times.last().map_or(0.0, |last| last + 1.0))
}

/// Says what a reader has to be told to understand the file.
pub(super) fn warn(log: &Log<'_>, warnings: &mut Vec<String>) {
    let States::Labels(labels) = &log.reading.states else { return };
    let numbers = labels.iter().filter(|label| label.parse::<f64>().is_ok()).count();
    let whole = labels.iter().filter(|label| cell::whole(label).as_ref() == Some(*label)).count();
    if numbers > 0 && whole < labels.len() {
        warnings.push("some labels are numbers: read the file with --state state:label".into());
    }
}

/// A table as text.
pub(super) fn text(log: &Log<'_>, separator: u8) -> Result<Vec<u8>, csv::Error> {
    let mut out = csv::WriterBuilder::new().delimiter(separator).from_writer(Vec::new());
    out.write_record(log.header(&log.state_columns()))?;
    let mut failure = Ok(());
    log.each_row(|row| {
        let mut cells =
            vec![row.episode.to_owned(), row.time.map_or_else(|| row.step.to_string(), |t| t.to_string())];
        match &log.reading.states {
            States::Labels(labels) => cells.push(labels[row.state as usize].clone()),
            // With a point, so that a single one is known as a feature.
            States::Features { rows, .. } => {
                cells.extend(rows.row(row.state as usize).iter().map(|x| format!("{x:?}")))
            }
        }
        cells.push(row.reward.map_or_else(String::new, |r| r.to_string()));
        cells.extend([row.terminated, row.truncated].map(|flag| flag.to_string()));
        if failure.is_ok() {
            failure = out.write_record(&cells);
        }
    });
    failure?;
    out.into_inner().map_err(|e| csv::Error::from(e.into_error()))
}

/// A label as JSON: whole numbers are numbers.
fn label(label: &str) -> Value {
    whole_label(label).map_or_else(|| json!(label), |n| json!(n))
}

/// One object per row.
pub(super) fn json_lines(log: &Log<'_>) -> Vec<u8> {
    let columns = log.header(&log.state_columns());
    let mut out = Vec::new();
    log.each_row(|row| {
        let mut cells = vec![json!(row.episode), row.time.map_or_else(|| json!(row.step), |t| json!(t))];
        match &log.reading.states {
            States::Labels(labels) => cells.push(label(&labels[row.state as usize])),
            States::Features { rows, .. } => {
                cells.extend(rows.row(row.state as usize).iter().map(|x| json!(x)))
            }
        }
        cells.extend([json!(row.reward), json!(row.terminated), json!(row.truncated)]);
        // Written by hand: a map would sort the keys.
        let entries = columns.iter().zip(&cells).map(|(name, cell)| format!("{}: {cell}", json!(name)));
        out.extend(format!("{{{}}}\n", entries.collect::<Vec<_>>().join(", ")).into_bytes());
    });
    out
}

/// One array per column.
pub(super) fn npz(log: &Log<'_>) -> Vec<u8> {
    let file =
        |(name, values): &(String, Values)| (format!("{name}.npy"), npy::to_bytes(&[values.len()], values));
    zip::archive(&columns(log).iter().map(file).collect::<Vec<_>>())
}

/// The columns of the table with their names; a reward that is absent is NaN.
pub(super) fn columns(log: &Log<'_>) -> Vec<(String, Values)> {
    let mut columns: Vec<Values> = Vec::new();
    let states = log.state_columns();
    let (mut episodes, mut steps, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rewards, mut terminated, mut truncated) = (Vec::new(), Vec::new(), Vec::new());
    let mut numbers = Vec::new();
    log.each_row(|row| {
        episodes.push(row.episode.to_owned());
        steps.push(row.step as i64);
        times.extend(row.time);
        numbers.push(row.state as usize);
        rewards.push(row.reward.unwrap_or(f64::NAN));
        terminated.push(i64::from(row.terminated));
        truncated.push(i64::from(row.truncated));
    });
    columns.push(Values::Text(episodes));
    columns.push(if log.has_times() { Values::Float(times) } else { Values::Whole(steps) });
    match &log.reading.states {
        States::Labels(labels) => {
            let whole: Option<Vec<i64>> = labels.iter().map(|text| label(text).as_i64()).collect();
            columns.push(match whole {
                Some(whole) => Values::Whole(numbers.iter().map(|&s| whole[s]).collect()),
                None => Values::Text(numbers.iter().map(|&s| labels[s].clone()).collect()),
            });
        }
        States::Features { rows, .. } => {
            let column = |a: usize| Values::Float(numbers.iter().map(|&s| rows[(s, a)]).collect());
            columns.extend((0..states.len()).map(column));
        }
    }
    columns.extend([Values::Float(rewards), Values::Whole(terminated), Values::Whole(truncated)]);
    log.header(&states).into_iter().zip(columns).collect()
}

/// The labels or names that numbers of states stand for, for formats that have numbers only.
pub(super) fn meaning(states: &States) -> Map<String, Value> {
    let mut meaning = Map::new();
    match states {
        States::Labels(labels) => meaning.insert("ictd_labels".into(), json!(labels)),
        States::Features { names, .. } => meaning.insert("ictd_features".into(), json!(names)),
    };
    meaning
}
