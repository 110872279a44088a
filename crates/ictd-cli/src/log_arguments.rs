//! Options by which commands are told what the columns of a log are.

use clap::Args;
use ictd_lab::logs::{Missing, Wanted};

use crate::message;

#[derive(Debug, Args)]
#[command(next_help_heading = "Columns (guessed from their names unless given)")]
pub struct LogOptions {
    /// Column that says which episode a row belongs to
    #[arg(long, value_name = "COLUMN")]
    episode: Option<String>,
    /// Column by which the rows of an episode are ordered [default: t, time, step, … or the order of the file]
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// Columns of the state, separated by commas, or what their names begin with; NAME:label takes numbers for labels
    #[arg(long, value_name = "COLUMNS|PREFIX")]
    state: Option<String>,
    /// Column of rewards
    #[arg(long, value_name = "COLUMN")]
    reward: Option<String>,
    /// Column that says that the episode ended in a terminal state
    #[arg(long, value_name = "COLUMN")]
    terminated: Option<String>,
    /// Column that says that recording ended
    #[arg(long, value_name = "COLUMN")]
    truncated: Option<String>,
    /// Column of ids, of customers for instance: each gets the value of its last state
    #[arg(long, value_name = "COLUMN")]
    id: Option<String>,
    /// Rows that lack a value: refuse the file, drop the row (and cut the episode there), or take the mean of the feature
    #[arg(long, value_name = "refuse|drop|mean", default_value = "refuse")]
    missing: Missing,
}

impl LogOptions {
    /// What the user asked for.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            episode: self.episode.clone(),
            time: self.time.clone(),
            state: self.state.clone(),
            reward: self.reward.clone(),
            terminated: self.terminated.clone(),
            truncated: self.truncated.clone(),
            id: self.id.clone(),
            id_may_lack: false,
            missing: self.missing,
        }
    }
}

/// Says how columns were understood, and what should be known about the file.
pub fn say(mapping: &[String], warnings: &[String]) {
    mapping.iter().for_each(|line| message(&format!("  {line}")));
    warnings.iter().for_each(|line| message(&format!("warning: {line}")));
}
