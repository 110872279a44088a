//! What there is to do of a sweep, and what to expect of it.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use serde::Serialize;

use super::estimate::Estimate;
use super::journal::Index;
use super::setting::Sweep;
use crate::progress::{bytes_in_words, in_words};
use crate::{LabError, Progress, counted};

/// What is known before a sweep, or a part of it, is begun.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlook {
    name: String,
    settings: usize,
    seeds: usize,
    /// Rows of the table.
    runs: usize,
    /// The runs that are asked for: the first, and the one after the last.
    first: usize,
    end: usize,
    /// How many of these have a record, and the parameters that it speaks of.
    done: usize,
    /// How many of these share the result of another, as their settings are the same.
    shared: usize,
    /// How many of these will be computed.
    left: usize,
    /// By how many threads.
    threads: usize,
    /// How long that takes and what it writes, by a trial; nothing where nothing is left.
    seconds: Option<f64>,
    bytes: Option<f64>,
    /// What is removed before.
    removed: Vec<String>,
    /// The trial.
    #[serde(skip)]
    pub(super) estimate: Option<Estimate>,
}

impl Outlook {
    /// Of some runs, of which those in the index are done but for those that are `left`; with a trial where `is_timed` and there
    /// are any.
    pub fn of(
        sweep: &Sweep,
        runs: &Range<usize>,
        index: &Index,
        left: &[usize],
        threads: usize,
        is_timed: bool,
        progress: &Progress,
    ) -> Result<Self, LabError> {
        let is_tried = is_timed && !left.is_empty();
        let estimate = is_tried.then(|| Estimate::of(sweep, runs, progress)).transpose()?;
        let own = runs.clone().filter(|&run| sweep.first(run) == run).count();
        let is_done = |run: &usize| index.has(*run) && left.binary_search(&sweep.first(*run)).is_err();
        let done = runs.clone().filter(is_done).count();
        let left = left.len();
        Ok(Self {
            name: sweep.plan.name.clone(),
            settings: sweep.settings.len(),
            seeds: sweep.plan.seeds.len(),
            runs: sweep.num_runs(),
            first: runs.start,
            end: runs.end,
            done,
            shared: runs.len() - own,
            left,
            threads,
            seconds: estimate.map(|e| (e.run * left as f64 / threads.min(left) as f64).min(1e9)),
            bytes: estimate.map(|e| e.bytes * left as f64),
            removed: Vec::new(),
            estimate,
        })
    }

    /// The same of a directory that these are removed from before.
    #[must_use]
    pub fn after_removing(self, removed: Vec<String>) -> Self {
        Self { removed, ..self }
    }
}

/// `gains: 18 settings × 6 seeds = 108 runs, 20 done before; about 3 s on 2 threads, 120 kB on disk`.
impl fmt::Display for Outlook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, settings, seeds, runs, first, end, .. } = self;
        let [settings, seeds, all] =
            [(settings, "setting"), (seeds, "seed"), (runs, "run")].map(|(count, of)| counted(*count, of));
        write!(f, "{name}: {settings} × {seeds} = {all}")?;
        if end - first < *runs {
            write!(f, ", {first} to {end} here")?;
        }
        if self.done > 0 {
            write!(f, ", {} done before", self.done)?;
        }
        if self.shared > 0 {
            write!(f, ", {} with the result of another", self.shared)?;
        }
        if let Some((seconds, bytes)) = self.seconds.zip(self.bytes) {
            let (time, bytes) = (in_words(Duration::from_secs_f64(seconds)), bytes_in_words(bytes));
            write!(f, "; about {time} on {}, {bytes} on disk", counted(self.threads, "thread"))?;
        }
        if !self.removed.is_empty() {
            write!(f, "; --fresh removes {}", self.removed.join(", "))?;
        }
        Ok(())
    }
}
