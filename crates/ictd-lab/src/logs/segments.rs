//! The rules by which the rows of an episode are transitions: where it ends, what is missing, what is refused.

use ictd::context::End;

use super::batch::{NONE, TERMINATED};
use super::cell::Failure;
use super::clock::Pace;
use super::mapping::Missing;
use super::rows::Rows;

/// Names of the columns, for messages.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    pub time: String,
    pub reward: String,
    pub state: String,
    pub next: String,
}

/// The rows of an episode in the order of time.
pub(crate) struct Segments<'a> {
    pub rows: &'a Rows,
    /// How far apart steps are where times count them: then one that is left out is a gap.
    pub pace: Option<&'a Pace>,
    pub missing: Missing,
    pub columns: &'a Columns,
}

/// What begins at a row: transitions without a gap, and where to go on.
#[derive(Debug)]
pub(crate) struct Cut {
    pub transitions: usize,
    /// The state after the last transition, where it is known.
    pub last: u32,
    pub end: End,
    pub dropped_rows: u64,
    pub dropped_transitions: u64,
    pub resume: usize,
}

impl<'a> Segments<'a> {
    /// The part of the episode that begins at row `first`; an error names a row.
    pub fn next(&self, first: usize) -> Result<Cut, (usize, Failure)> {
        let rows = self.rows;
        let cut = |transitions, last, dropped_rows, dropped_transitions, resume| {
            Ok(Cut { transitions, last, end: End::Truncated, dropped_rows, dropped_transitions, resume })
        };
        for k in first..rows.len() {
            let is_last = k + 1 == rows.len();
            if k > first && self.is_gap(k)? {
                return match self.next_of(k - 1) {
                    NONE => cut(k - first - 1, rows.states[k - 1], 0, 1, k),
                    next => cut(k - first, next, 0, 0, k),
                };
            }
            // A last row without a reward that is flagged itself is the terminal state.
            if is_last && k > first && rows.rewards[k].is_nan() && rows.flags[k] & TERMINATED != 0 {
                return self.ended(first, k - 1);
            }
            if rows.states[k] == NONE {
                // Only with rows to be dropped; before it a transition is lost too.
                let before = usize::from(k > first);
                let last = if before == 1 { rows.states[k - 1] } else { NONE };
                return cut((k - first).saturating_sub(1), last, 1, before as u64, k + 1);
            }
            if rows.rewards[k].is_nan() {
                if !is_last && self.missing != Missing::Drop {
                    let expected = "a number (only the last row of an episode may have none)";
                    return Err((k, Failure::cell(0, &self.columns.reward, b"", expected)));
                }
                return cut(k - first, rows.states[k], u64::from(!is_last), 0, k + 1);
            }
            if rows.flags[k] != 0 || is_last {
                return self.ended(first, k);
            }
        }
        cut(0, NONE, 0, 0, rows.len())
    }

    /// The part from `first` to `k`, which is the last transition.
    fn ended(&self, first: usize, k: usize) -> Result<Cut, (usize, Failure)> {
        let rows = self.rows;
        let all = k + 1 - first;
        // One more row without a reward has the state that the episode ended in.
        let after = (k + 1 < rows.len()).then(|| rows.rewards[k + 1].is_nan());
        let has_last_row = after == Some(true) && !self.is_gap(k + 1)?;
        let resume = k + 1 + usize::from(has_last_row);
        // Either of them may be flagged: the transition into the terminal state, or that state.
        let flags = rows.flags[k] | if has_last_row { rows.flags[k + 1] } else { 0 };
        let is_terminated = flags & TERMINATED != 0;
        if rows.flags[k] != 0 && resume < rows.len() {
            let (found, name) = match is_terminated {
                true => ("a row after the terminated end of its episode", "terminated"),
                false => ("a row after the truncated end of its episode", "truncated"),
            };
            let expected = format!("none, or another episode: row {} is {name}", rows.places[k]);
            return Err((resume, Failure::row(0, found, expected)));
        }
        let last = if has_last_row { rows.states[k + 1] } else { self.next_of(k) };
        let cut = |transitions, last, end, dropped| {
            Ok(Cut { transitions, last, end, dropped_rows: 0, dropped_transitions: dropped, resume })
        };
        match (is_terminated, last) {
            (true, _) => cut(all, last, End::Terminated, 0),
            // Nobody knows where the last transition led.
            (false, NONE) => cut(all - 1, rows.states[k], End::Truncated, 1),
            (false, _) => cut(all, last, End::Truncated, 0),
        }
    }

    /// The state after row `k`, where the table has such columns.
    fn next_of(&self, k: usize) -> u32 {
        self.rows.next.get(k).copied().unwrap_or(NONE)
    }

    /// Whether something is left out before row `k`; a time that is there twice is refused, and so is a gap unless rows are to
    /// be dropped.
    fn is_gap(&self, k: usize) -> Result<bool, (usize, Failure)> {
        let drops = self.missing == Missing::Drop;
        let next = self.next_of(k - 1);
        if next != NONE && next != self.rows.states[k] && self.rows.flags[k - 1] & TERMINATED == 0 {
            let found = "another state than the row after it has".into();
            let expected = "the same (--missing drop cuts the episode there)".into();
            let failure = Failure { row: 0, column: self.columns.next.clone(), found, expected };
            return if drops { Ok(true) } else { Err((k - 1, failure)) };
        }
        let times = &self.rows.times;
        if times.is_empty() {
            return Ok(false);
        }
        let (before, now) = (times[k - 1], times[k]);
        let fail = |expected: String| {
            Err((k, Failure { row: 0, column: self.columns.time.clone(), found: now.to_string(), expected }))
        };
        if !(now > before) && now.abs() >= 2f64.powi(53) {
            return fail(
                "another time: from 2^53 on neighbours are not told apart, count from a later one".into(),
            );
        }
        if !(now > before) {
            return fail(format!(
                "another time than that of row {} of the same episode",
                self.rows.places[k - 1]
            ));
        }
        match self.pace {
            Some(pace) if now - before < pace.stride => fail(format!(
                "{} after {before}, as steps are {} apart in episode {}",
                before + pace.stride,
                pace.stride,
                pace.episode
            )),
            Some(pace) if now - before > pace.stride && !drops => fail(format!(
                "{} after {before}: steps are missing (--missing drop cuts the episode there; a column called 'time' may be uneven)",
                before + pace.stride
            )),
            pace => Ok(pace.is_some_and(|pace| now - before != pace.stride)),
        }
    }
}
