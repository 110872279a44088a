//! What a reader makes of a file.

use std::fmt::{Display, Formatter, Result as FmtResult};

use ictd::context::End;
use serde::Serialize;

use super::episode::Episode;
use super::ids::LastSeen;
use super::mapping::{Mapping, ROLE};
use super::states::States;

/// Everything about a log but its episodes, which went to the sink.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// How each column was understood, one line each.
    pub mapping: Vec<String>,
    /// The columns of the state.
    pub state_columns: Vec<String>,
    /// The states, by their numbers.
    pub states: States,
    /// How many of them episodes speak of: the first ones. Others are last states of ids whose rows could not be used.
    pub visited: usize,
    /// Means of the features over all rows, where missing ones were to be replaced by them.
    pub means: Vec<f64>,
    /// Whether the log says which episodes terminated.
    pub tells_ends: bool,
    /// Every id with its last state, in the order of the file.
    pub ids: Vec<LastSeen>,
    /// The first transitions as they were understood.
    pub first: Vec<Transition>,
    /// How much there was.
    pub counts: Counts,
    /// What the reader of a result should know about the file.
    pub warnings: Vec<String>,
}

/// A transition in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transition {
    /// The name of its episode.
    pub episode: String,
    /// Its number in the episode, from 0.
    pub step: usize,
    /// The state that was left.
    pub state: String,
    /// The reward.
    pub reward: f64,
    /// The state that followed, or `(end)`.
    pub next: String,
}

/// Transitions that are shown as they were understood.
const SHOWN: usize = 3;

impl Transition {
    /// Adds those of an episode until there are enough; `describe` says a state in words.
    pub(super) fn show(shown: &mut Vec<Self>, episode: &Episode<'_>, describe: impl Fn(u32) -> String) {
        let steps = episode.rewards.len();
        for step in 0..steps.min(SHOWN.saturating_sub(shown.len())) {
            let next = match episode.end {
                End::Terminated if step + 1 == steps => "(end)".into(),
                _ => describe(episode.states[step + 1]),
            };
            let (episode, state, reward) =
                (episode.name.into(), describe(episode.states[step]), episode.rewards[step]);
            shown.push(Self { episode, step, state, reward, next });
        }
    }
}

impl Display for Transition {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let Self { episode, step, state, reward, next } = self;
        write!(f, "episode {episode}, step {step}: state {state}, reward {reward}, next state {next}")
    }
}

/// How much was read and left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Rows of the file.
    pub rows: u64,
    /// Names of episodes.
    pub episodes: u64,
    /// Transitions that were handed on.
    pub transitions: u64,
    /// Episodes, or parts of one, that ended in a terminal state.
    pub terminated: u64,
    /// Those that did not.
    pub truncated: u64,
    /// Rows that were left out because a value is missing.
    pub dropped_rows: u64,
    /// Transitions that were left out because nobody knows where they led.
    pub dropped_transitions: u64,
    /// Places at which episodes were cut.
    pub cuts: u64,
    /// Episodes without a transition that could be used.
    pub without_transition: u64,
    /// Ends that were marked by `done` and by a flag for the end of recording, and are taken for the latter.
    pub limits: u64,
    /// Steps of a calendar that are not as long as others.
    pub uneven: u64,
    /// Features that were replaced by the mean of their column.
    pub replaced: u64,
}

impl Reading {
    pub(super) fn new(
        states: States,
        visited: usize,
        counts: Counts,
        first: Vec<Transition>,
        ids: Vec<LastSeen>,
    ) -> Self {
        let mut reading = Self {
            mapping: Vec::new(),
            state_columns: Vec::new(),
            states,
            visited,
            means: Vec::new(),
            tells_ends: true,
            ids,
            first,
            counts,
            warnings: Vec::new(),
        };
        let Counts {
            dropped_rows,
            dropped_transitions,
            cuts,
            without_transition,
            replaced,
            episodes,
            limits,
            uneven,
            ..
        } = counts;
        let said = [
            (dropped_rows, "rows without a value were left out"),
            (replaced, "missing features were replaced by the mean of their column"),
            (cuts, "gaps cut an episode in two"),
            (
                limits,
                "ends are marked as done and as truncated, and are taken for truncated: done marks time limits too",
            ),
            (uneven, "steps in time are longer or shorter than others, and each counts as one"),
            (
                dropped_transitions,
                "transitions were left out because the state they led to is not in the file (a last row with an empty reward \
                 would tell)",
            ),
        ];
        let mut say = |line: String| reading.warnings.push(line);
        said.iter().filter(|(n, _)| *n > 0).for_each(|(n, what)| say(format!("{n} {what}")));
        if without_transition > 0 {
            say(format!("{without_transition} of {episodes} episodes have no transition that can be used"));
        }
        reading
    }

    /// What columns were taken for, in one line each.
    pub fn columns(&self) -> Vec<String> {
        // Roles are as wide as the widest of them.
        let words = |line: &String| match line.split_at_checked(ROLE) {
            Some((role, columns)) => format!("{}: {}", role.trim(), columns.trim()),
            None => line.clone(),
        };
        self.mapping.iter().map(words).collect()
    }

    /// Adds what the columns were taken for.
    pub(super) fn explain(&mut self, mapping: &Mapping) {
        self.mapping = mapping.lines();
        self.tells_ends = mapping.terminated.is_some();
        self.state_columns = mapping.state_names();
        self.warnings.splice(0..0, mapping.warnings.iter().cloned());
    }
}
