//! Contexts, as `ictd forward` reads them.

use ictd::context::End;

use super::super::States;
use super::Log;
use crate::files::{ContextFile, EpisodeFile};

/// More labels than this make vectors of zeros and a one that nobody wants.
pub(super) const MOST_LABELS: usize = 2048;

/// The log as a context; labels become unit vectors.
pub(super) fn json(log: &Log<'_>, warnings: &mut Vec<String>) -> Result<Vec<u8>, String> {
    let states = &log.reading.states;
    if let States::Labels(labels) = states {
        if labels.len() > MOST_LABELS {
            return Err(format!("{} labels, expected at most {MOST_LABELS} for a context", labels.len()));
        }
        warnings.push("labels are written as unit vectors, in the order in which they turn up".into());
    }
    let features = |state: u32| -> Vec<Option<f64>> {
        match states {
            States::Labels(labels) => {
                (0..labels.len()).map(|s| Some(f64::from(u8::from(s == state as usize)))).collect()
            }
            States::Features { rows, .. } => rows.row(state as usize).iter().copied().map(Some).collect(),
        }
    };
    let mut stand_ins = 0;
    let mut episodes = Vec::new();
    for episode in &log.episodes.0 {
        let mut rows: Vec<_> = episode.states.iter().map(|&s| features(s)).collect();
        if rows.len() == episode.rewards.len() {
            stand_ins += 1;
            rows.extend(rows.last().cloned());
        }
        episodes.push(EpisodeFile {
            features: rows,
            rewards: episode.rewards.iter().copied().map(Some).collect(),
            terminated: episode.end == End::Terminated,
        });
    }
    if stand_ins > 0 {
        warnings.push(format!(
            "{stand_ins} terminal states are not in the log: the state before stands in their place, where its value is 0"
        ));
    }
    let file = ContextFile { episodes: Some(episodes), ..ContextFile::default() };
    serde_json::to_vec(&file).map_err(|e| e.to_string())
}
