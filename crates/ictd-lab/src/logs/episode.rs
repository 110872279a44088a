//! Episodes as readers hand them on.

use ictd::context::End;
use ictd::evaluate::LogBuilder;

use crate::{LabError, memory};

/// One episode, or the part of one that lies between gaps.
#[derive(Clone, Copy, Debug)]
pub struct Episode<'a> {
    /// Its name in the file.
    pub name: &'a str,
    /// The number of its first step: 0, or more for what follows a gap.
    pub first_step: usize,
    /// A hash of the name: it decides with which episodes this one is held out, whatever the order of the file.
    pub key: u64,
    /// Numbers of the states that were left, and of the last state where it is known and asked for: T or T + 1.
    pub states: &'a [u32],
    /// T rewards, at least one.
    pub rewards: &'a [f64],
    /// How it ended. The last state of a truncated episode is always known.
    pub end: End,
    /// Times of the calendar, one for each of the states, where the file has them.
    pub times: Option<&'a [f64]>,
}

/// What takes episodes.
pub trait Sink: Send {
    /// Whether the terminal states of terminated episodes are wanted, where the file has them. They have no value to be
    /// estimated, so that the states of a log are better off without them.
    fn wants_terminal_states(&self) -> bool {
        false
    }

    /// Takes one.
    fn episode(&mut self, episode: Episode<'_>) -> Result<(), LabError>;
}

impl Sink for LogBuilder {
    fn episode(&mut self, episode: Episode<'_>) -> Result<(), LabError> {
        let Episode { first_step, key, states, rewards, end, times, .. } = episode;
        let times = times.and_then(|times| times.get(..rewards.len()));
        self.part(first_step, key, states, rewards, end, times)?;
        if self.num_episodes().is_power_of_two() {
            // Until the next time it is asked there may be more, and another copy when it is done.
            memory::admit(2.2 * self.memory() as f64, "the number of different states")?;
        }
        Ok(())
    }
}

/// An episode that is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedEpisode {
    /// Its name in the file.
    pub name: String,
    /// Numbers of states, T or T + 1.
    pub states: Vec<u32>,
    /// T rewards.
    pub rewards: Vec<f64>,
    /// How it ended.
    pub end: End,
    /// Times of the calendar.
    pub times: Option<Vec<f64>>,
}

/// Keeps all episodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept(pub Vec<OwnedEpisode>);

impl Sink for Kept {
    fn wants_terminal_states(&self) -> bool {
        true
    }

    fn episode(&mut self, episode: Episode<'_>) -> Result<(), LabError> {
        self.0.push(OwnedEpisode {
            name: episode.name.to_owned(),
            states: episode.states.to_vec(),
            rewards: episode.rewards.to_vec(),
            end: episode.end,
            times: episode.times.map(<[f64]>::to_vec),
        });
        if self.0.len().is_power_of_two() {
            let rows: usize = self.0.iter().map(|episode| episode.states.len()).sum();
            // Until the next time it is asked there are twice as many.
            memory::admit(2.0 * (20.0 * rows as f64 + 120.0 * self.0.len() as f64), "the number of rows")?;
        }
        Ok(())
    }
}
