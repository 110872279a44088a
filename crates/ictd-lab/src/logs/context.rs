//! Contexts as logs: episodes of features.

use super::assembler::Stop;
use super::episode::Sink;
use super::job::Job;
use super::reading::Reading;
use super::table::{Block, Places, Table, Values};
use crate::LabError;

/// One episode of a context: a feature row more than there are rewards.
pub(super) struct Trajectory {
    /// Row after row; NaN where there is no value.
    pub features: Vec<f64>,
    pub rewards: Vec<f64>,
    pub is_terminated: bool,
}

/// Hands on the episodes of a context with rows of `width` features.
pub(super) fn feed<S: Sink>(
    job: &Job<'_>,
    width: usize,
    episodes: impl Iterator<Item = Result<Trajectory, LabError>>,
    sink: &mut S,
) -> Result<Reading, Stop> {
    let names = (0..width).map(|a| format!("s_{a}"));
    let header: Vec<String> =
        ["episode", "reward", "terminated"].into_iter().map(String::from).chain(names).collect();
    let (parser, assembler) = job.rows("features", header, sink)?;
    let mut assembler = assembler.by_step();
    for (number, episode) in episodes.enumerate() {
        let Trajectory { features, rewards, is_terminated } = episode?;
        let (rows, steps) = (rewards.len() + 1, rewards.len());
        if let Some(t) = rewards.iter().position(|r| !r.is_finite()) {
            let message = format!("rewards: entry {t} of episode {number} is no finite number, expected one");
            return Err(LabError::parse(job.path(), message).into());
        }
        let flags = (1..=steps).map(|t| i64::from(t == steps && is_terminated)).collect();
        let table = Table::new(vec![
            Block::new("episode", &[rows], Values::Whole(vec![number as i64; rows])),
            Block::new("reward", &[steps], Values::Float(rewards)),
            Block::new("terminated", &[steps], Values::Whole(flags)),
            Block::new("s", &[rows, width], Values::Float(features)),
        ]);
        table.feed(&mut assembler, &parser, Places::Steps, job.progress)?;
    }
    assembler.finish()
}
