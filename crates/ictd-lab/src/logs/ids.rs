//! Ids, of customers for instance, with the last state of each.

use super::batch::{NONE, TERMINATED};
use super::interner::Interner;
use super::rows::Rows;

/// Ids in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Ids {
    names: Interner,
    /// The time of the last state so far, and the state.
    last: Vec<(f64, u32)>,
}

impl Ids {
    /// The number of an id.
    pub fn number(&mut self, name: &[u8]) -> u32 {
        let (number, is_new) = self.names.intern(name);
        if is_new {
            self.last.push((f64::NEG_INFINITY, NONE));
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
            if rows.states[k] != NONE && !is_terminal && time >= known.0 {
                *known = (time, rows.states[k]);
            }
        }
    }

    /// Every id that has a state, with the number that `number` gives it.
    pub fn finish(self, mut number: impl FnMut(u32) -> u32) -> Vec<(String, u32)> {
        let known = self.last.iter().enumerate().filter(|(_, (_, state))| *state != NONE);
        let name = |k: usize| String::from_utf8_lossy(self.names.key(k)).into_owned();
        known.map(|(k, &(_, state))| (name(k), number(state))).collect()
    }
}
