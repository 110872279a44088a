//! The column of times: whether it counts steps, and how far apart they are.

use std::sync::Arc;

use super::cell::Failure;
use super::names;
use super::rows::Rows;

/// How far apart steps are in a file.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    pub stride: f64,
    /// The episode that says so.
    pub episode: Arc<str>,
    /// Whether times count steps, so that one that is left out is a gap.
    is_counter: bool,
}

/// What the times of a file say. Episodes are handed on before the next is read, so that the first one with two rows decides:
/// steps of a log that was thinned out evenly are farther apart than 1.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    column: String,
    pace: Option<Pace>,
    /// Whether some times were dates: those are never evenly spaced, not even months.
    pub has_dates: bool,
    /// Steps of a calendar that are longer or shorter than the first episode's smallest.
    pub uneven: u64,
}

impl Clock {
    pub fn new(column: &str) -> Self {
        Self { column: column.into(), pace: None, has_dates: false, uneven: 0 }
    }

    /// Takes the rows of an episode in the order of time, and says what the steps of a counter must be; `None` where times are
    /// those of a calendar. An error names a row.
    pub fn pace(&mut self, rows: &Rows, episode: &str) -> Result<Option<&Pace>, (usize, Failure)> {
        let times = rows.times.as_slice();
        if times.len() < 2 {
            return Ok(None);
        }
        let steps = || times.windows(2).map(|pair| pair[1] - pair[0]);
        let pace = self.pace.get_or_insert_with(|| {
            // Most of the times of a counter are whole: among them a fraction is a mistake.
            let whole = times.iter().filter(|t| t.fract() == 0.0).count();
            let is_counter =
                names::may_count_steps(&self.column) && !self.has_dates && 2 * whole > times.len();
            // A time that is there twice is refused later.
            let stride = steps().filter(|step| *step > 0.0).fold(f64::INFINITY, f64::min);
            Pace { stride, episode: episode.into(), is_counter }
        });
        if !pace.is_counter {
            self.uneven += steps().filter(|step| *step != pace.stride).count() as u64;
            return Ok(None);
        }
        match times.iter().position(|t| t.fract() != 0.0) {
            Some(k) => {
                let found = times[k].to_string();
                let expected = "a whole number as the others are".into();
                Err((k, Failure { row: 0, column: self.column.clone(), found, expected }))
            }
            None => Ok(Some(pace)),
        }
    }
}
