//! Ids, of customers for instance, with the last state of each.

use super::batch::{NONE, TERMINATED};
use super::interner::Interner;
use super::rows::Rows;

/// Ids in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Ids {
    names: Interner,
    last: Vec<Last>,
}

/// The last state so far.
#[derive(Clone, Copy, Debug)]
struct Last {
    time: f64,
    state: u32,
    ended: bool,
}

/// An id, and where it was seen last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastSeen {
    /// Its name in the file.
    pub id: String,
    /// The number of the state.
    pub state: u32,
    /// Whether the episode terminated there: what followed is known, and nothing more follows.
    pub ended: bool,
}

impl Ids {
    /// The number of an id.
    pub fn number(&mut self, name: &[u8]) -> u32 {
        let (number, is_new) = self.names.intern(name);
        if is_new {
            self.last.push(Last { time: f64::NEG_INFINITY, state: NONE, ended: false });
        }
        number
    }

    /// Remembers the last states in an episode: by time of the calendar where there is one, otherwise by the order of the
    /// file. A terminal state is none: its value is known.
    pub fn remember(&mut self, rows: &Rows, is_calendar: bool) {
        for (k, &id) in rows.ids.iter().enumerate() {
            let before = if k > 0 { rows.flags[k - 1] } else { 0 };
            let is_terminal = rows.rewards[k].is_nan() && (before | rows.flags[k]) & TERMINATED != 0;
            let time = if is_calendar { rows.times[k] } else { 0.0 };
            let known = &mut self.last[id as usize];
            if time >= known.time && is_terminal {
                known.ended = true;
            } else if time >= known.time && rows.states[k] != NONE {
                *known = Last { time, state: rows.states[k], ended: rows.flags[k] & TERMINATED != 0 };
            }
        }
    }

    /// Every id that has a state, with the number that `number` gives it.
    pub fn finish(self, mut number: impl FnMut(u32) -> u32) -> Vec<LastSeen> {
        let known = self.last.iter().enumerate().filter(|(_, last)| last.state != NONE);
        let name = |k: usize| String::from_utf8_lossy(self.names.key(k)).into_owned();
        known
            .map(|(k, last)| LastSeen { id: name(k), state: number(last.state), ended: last.ended })
            .collect()
    }
}
