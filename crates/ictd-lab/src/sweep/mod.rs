//! Sweeps: every combination of what a plan varies, trained with every seed, one table at the end.
//!
//! A [`Plan`] says what is varied; a [`Sweep`] has the configuration of every setting; workers do runs and add a record of each to
//! a journal; when all are there the table is written. Where a run is done, in which order and by how many workers changes nothing.
//!
//! ```text
//! OUT/sweep.json                      what is swept, and what computes it
//! OUT/journal/….log                   a record per finished run, a file per worker
//! OUT/results.csv  OUT/results.json   the table; that it is whole, and of what
//! OUT/curves/00000.csv                curves of a setting, where the plan asks for them
//! OUT/checkpoints/KEY/seed_0000.…     parameters of a run, where the plan asks for them
//! ```

pub mod engine;
mod estimate;
mod journal;
mod manifest;
mod plan;
mod plan_file;
mod results;
mod row;
mod setting;
pub mod show;
mod worker;

pub use estimate::Estimate;
pub use journal::{Counter, Index, OpenFiles, Record};
pub use manifest::Manifest;
pub(crate) use plan::key_of;
pub use plan::{Axis, Base, CASE, Checkpoints, Choice, Metrics, Plan};
pub use plan_file::SHIPPED;
pub use results::{CURVES, Finished, TABLE, curve_file, table};
pub use row::{DIVERGED, columns, curve_columns};
pub use setting::{Setting, Sweep};
pub use worker::CHECKPOINTS;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::error::check_range;
use crate::files::{DirLock, Mode, OutputDir};
use crate::studies::pretrain::simd_level;
use crate::{LabError, Progress, counted};

/// A sweep as a command asks for it.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is swept.
    pub plan: Plan,
    /// Its directory.
    pub out: PathBuf,
    /// Removes what an earlier sweep left there.
    pub fresh: bool,
    /// Goes on with the runs of an earlier sweep there that this plan has too.
    pub extend: bool,
}

/// A sweep in its directory, ready to be worked on.
#[derive(Debug)]
pub struct Opened {
    /// Every setting.
    pub sweep: Sweep,
    manifest: Manifest,
    out: OutputDir,
    /// Held where other workers may be there too.
    _shared: Option<Arc<DirLock>>,
}

impl Request {
    /// The sweep that was begun in a directory.
    pub fn of_directory(out: &Path) -> Result<Self, LabError> {
        let manifest = Manifest::read(out)?.ok_or_else(|| {
            let problem =
                format!("{} has no {}, expected the directory of a sweep", out.display(), manifest::FILE);
            LabError::refused("PLAN", problem)
        })?;
        Ok(Self { plan: manifest.plan, out: out.to_owned(), fresh: false, extend: false })
    }

    /// Its settings, as this machine would compute them.
    pub fn sweep(&self) -> Result<Sweep, LabError> {
        Sweep::of(self.plan.clone(), simd_level()?.in_use())
    }

    /// How many runs there are and what to expect of them, before anything is done.
    pub fn outlook(&self, threads: usize, progress: &Progress) -> Result<String, LabError> {
        let sweep = self.sweep()?;
        outlook(&sweep, &(0..sweep.num_runs()), 0, threads, progress)
    }

    /// What is finished already and needs nothing: whoever computed it.
    pub fn finished(&self) -> Result<Option<Finished>, LabError> {
        match Manifest::read(&self.out) {
            Ok(Some(known)) if known.plan == self.plan && !self.fresh => Finished::read(&self.out, &known),
            _ => Ok(None),
        }
    }

    /// Opens the directory for work on all runs, or together with other workers for work on some of them.
    pub fn open(&self, alone: bool) -> Result<Opened, LabError> {
        // The plan is checked before a directory is made.
        let known = if self.fresh { None } else { Manifest::read(&self.out)? };
        // What another plan or program left is kept only where that is asked for, as far as its runs are the same.
        let known = match known {
            Some(known) if self.extend => Some(known).filter(|known| known.same_program(&self.out).is_ok()),
            Some(known) if known.plan != self.plan => {
                let problem = format!(
                    "{} has another sweep, '{}', expected its plan, another directory, --extend to keep its runs for this plan, or --fresh",
                    self.out.display(),
                    known.plan.name
                );
                return Err(LabError::refused("out", problem));
            }
            Some(known) => {
                known.same_program(&self.out)?;
                Some(known)
            }
            None => None,
        };
        let simd =
            known.as_ref().map_or_else(|| simd_level().map(|level| level.in_use()), |k| k.simd(&self.out))?;
        let sweep = Sweep::of(self.plan.clone(), simd)?;
        // The table is written by one process, while nobody else is there.
        let (out, shared) = if alone {
            (OutputDir::locked(&self.out, Duration::ZERO)?, None)
        } else {
            let out = OutputDir::create(&self.out)?;
            (out, Some(DirLock::acquire(&self.out, Mode::Shared, Duration::ZERO)?))
        };
        out.probe()?;
        if known.is_none() && (self.fresh || self.extend) {
            clear(&self.out)?;
        }
        let own = Manifest::new(&self.plan, simd);
        let manifest = match known {
            Some(known) if known.plan == self.plan => known,
            Some(_) => {
                own.replace(&out)?;
                own
            }
            None => {
                let begun = own.clone().begin(&out)?;
                if begun != own {
                    let problem = format!(
                        "{} was begun by another worker with another plan, program or CPU, expected one sweep per directory",
                        self.out.display()
                    );
                    return Err(LabError::refused("out", problem));
                }
                begun
            }
        };
        Ok(Opened { sweep, manifest, out, _shared: shared })
    }
}

/// Removes everything that a sweep wrote to its directory.
fn clear(root: &Path) -> Result<(), LabError> {
    journal::clear(root)?;
    let names =
        [manifest::FILE, results::DONE, TABLE, "results.parquet", "settings.csv", CURVES, CHECKPOINTS];
    names.into_iter().try_for_each(|name| crate::studies::remove(root.join(name)))
}

impl Opened {
    /// Where it is.
    pub fn root(&self) -> &Path {
        self.out.path()
    }

    /// What is left to do and what to expect of it, in a line.
    pub fn outlook(
        &self,
        runs: &Range<usize>,
        threads: usize,
        progress: &Progress,
    ) -> Result<String, LabError> {
        let index = Index::read(self.root(), &self.sweep, runs)?;
        let done = runs.clone().filter(|&run| index.has(run)).count();
        outlook(&self.sweep, runs, done, threads, progress)
    }

    /// Does some of the runs.
    pub fn work(&self, runs: &Range<usize>, progress: &Progress) -> Result<(), LabError> {
        check_range("index", runs.end, runs.start + 1..=self.sweep.num_runs())?;
        let _unit = engine::lock_unit(self.root(), runs, progress)?;
        worker::work(&self.sweep, self.root(), runs, progress)
    }

    /// Writes the table once all runs are done.
    pub fn finish(&self, progress: &Progress, tell: fn(&str)) -> Result<Finished, LabError> {
        let all = 0..self.sweep.num_runs();
        let index = Index::read(self.root(), &self.sweep, &all)?;
        let missing = all.len() - index.done();
        if missing > 0 {
            return Err(LabError::internal("sweep", format!("{} have no record", counted(missing, "run"))));
        }
        if index.damaged > 0 {
            let lines = counted(index.damaged, "line");
            tell(&format!(
                "warning: {lines} of the journal were cut short or damaged; their runs were done again"
            ));
        }
        if index.repeated > 0 {
            tell(&format!("{} were done twice, with the same results", counted(index.repeated, "run")));
        }
        results::merge(&self.sweep, &self.manifest, &self.out, &index, progress)
    }
}

/// How many runs there are and what to expect of those that are not done.
fn outlook(
    sweep: &Sweep,
    runs: &Range<usize>,
    done: usize,
    threads: usize,
    progress: &Progress,
) -> Result<String, LabError> {
    let left = runs.len() - done;
    let count = format!(
        "{}: {} × {} = {}",
        sweep.plan.name,
        counted(sweep.settings.len(), "setting"),
        counted(sweep.plan.seeds.len(), "seed"),
        counted(sweep.num_runs(), "run")
    );
    let part = if runs.len() < sweep.num_runs() {
        format!(", {} to {} here", runs.start, runs.end)
    } else {
        String::new()
    };
    let before = if done > 0 { format!(", {done} done before") } else { String::new() };
    if left == 0 {
        return Ok(format!("{count}{part}{before}"));
    }
    let estimate = Estimate::of(sweep, runs, progress)?;
    let seconds = estimate.run * left as f64 / threads.min(left) as f64;
    let time = crate::progress::in_words(Duration::from_secs_f64(seconds.min(1e9)));
    let bytes = crate::progress::bytes_in_words(estimate.bytes * left as f64);
    Ok(format!("{count}{part}{before}; about {time} on {}, {bytes} on disk", counted(threads, "thread")))
}
