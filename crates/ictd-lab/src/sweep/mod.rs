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
//! OUT/tasks/….json                    copies of the task files that the plan names
//! OUT/checkpoints.csv                 which of these belong to which run, with their digests
//! ```

mod blame;
mod checkpoints;
pub mod engine;
mod estimate;
mod grid;
mod journal;
mod manifest;
mod outlook;
mod plan;
mod plan_file;
mod results;
mod row;
mod setting;
pub mod show;
mod worker;

pub use checkpoints::{CHECKPOINTS, LIST as CHECKPOINTS_LIST};
pub use estimate::Estimate;
pub use journal::{Counter, Index, OpenFiles, Record};
pub use manifest::Manifest;
pub use outlook::Outlook;
pub(crate) use plan::key_of;
pub use plan::{Axis, Base, CASE, Checkpoints, Choice, Metrics, Plan};
pub use plan_file::SHIPPED;
pub use results::{CURVES, Finished, TABLE, curve_file, table};
pub use row::{DIVERGED, columns, curve_columns};
pub use setting::{Setting, Sweep};

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ictd::pretrain::SimdLevel;

use crate::error::check_range;
use crate::files::{DirLock, Mode, OutputDir, TaskFiles};
use crate::studies::pretrain::simd_level;
use crate::{LabError, Progress, Seeds, counted, shell_word};

/// How long a worker waits for the others' directory: whoever looks whether it is in use has it for a moment.
const PATIENCE: Duration = Duration::from_secs(5);

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
    /// A plan with what is said beside it: where it is swept, unless in `out/sweep/NAME`, further changes of every setting, and seeds
    /// in the place of its own.
    pub fn of_plan(
        mut plan: Plan,
        out: Option<PathBuf>,
        set: Vec<String>,
        seeds: Option<Seeds>,
    ) -> Result<Self, LabError> {
        plan.change(&set)?;
        if let Some(seeds) = seeds {
            plan.seeds = seeds.sorted();
        }
        plan.check()?;
        let out = out.unwrap_or_else(|| Path::new("out/sweep").join(&plan.name));
        Ok(Self { plan, out, fresh: false, extend: false })
    }

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

    /// Its settings as those who compute its records know them; an error where another build does.
    pub(crate) fn begun(&self) -> Result<Sweep, LabError> {
        let known = Manifest::read(&self.out)?;
        // Records are found by the key of their setting, which another build makes otherwise.
        known.as_ref().map_or(Ok(()), |known| known.same_program(&self.out))?;
        Sweep::of(self.plan.clone(), self.simd(known.as_ref())?)
    }

    /// What there is to do of some runs and what to expect of it, before anything is done; refuses what [`open`](Self::open) would.
    pub fn outlook(
        &self,
        runs: &Range<usize>,
        threads: usize,
        progress: &Progress,
    ) -> Result<Outlook, LabError> {
        let is_finished = self.finished()?.is_some();
        let known = if is_finished { Manifest::read(&self.out)? } else { self.admitted()? };
        let sweep = Sweep::of(self.plan.clone(), self.simd(known.as_ref())?)?;
        let index = match known {
            Some(_) if is_finished => Index::full(&sweep),
            Some(_) => Index::read(&self.out, &sweep, runs)?,
            None => Index::empty(&sweep),
        };
        // The table says so; the journal may be that of another build.
        let left = if is_finished {
            Vec::new()
        } else {
            checkpoints::left(&sweep, &self.out, &index, runs, progress)?
        };
        let outlook = Outlook::of(&sweep, runs, &index, &left, threads, true, progress)?;
        Ok(if self.fresh { outlook.after_removing(left_in(&self.out, &removed())) } else { outlook })
    }

    /// What is finished already and needs nothing: whoever computed it.
    pub fn finished(&self) -> Result<Option<Finished>, LabError> {
        Ok(self.table()?.filter(|finished| finished.has_checkpoints(&self.out)))
    }

    /// What has a table that can be looked at, whatever became of parameters.
    pub(crate) fn table(&self) -> Result<Option<Finished>, LabError> {
        match Manifest::read(&self.out) {
            Ok(Some(known)) if known.plan.difference(&self.plan).is_none() && !self.fresh => {
                Finished::read(&self.out, &known)
            }
            _ => Ok(None),
        }
    }

    /// What was begun in the directory and is gone on with; an error where it is another sweep's, or no sweep's.
    pub(crate) fn admitted(&self) -> Result<Option<Manifest>, LabError> {
        let place = self.out.display();
        let others = left_in(&self.out, &OWN[1..]);
        // Names first: whoever begins a sweep in this moment writes its manifest before anything else.
        if let Some(name) = others.first().filter(|_| !self.out.join(manifest::FILE).exists()) {
            let problem = format!(
                "{place} has no {} but '{name}', which a sweep would replace, expected the directory of a sweep or another one",
                manifest::FILE
            );
            return Err(LabError::refused("out", problem));
        }
        if self.fresh {
            engine::refuse_to_forget(&self.out)?;
            return Ok(None);
        }
        let Some(known) = Manifest::read(&self.out)? else { return Ok(None) };
        // What another plan left is kept only where that is asked for, as far as its runs are the same; of another program none is.
        if let Some(difference) = self.plan.difference(&known.plan)
            && !self.extend
        {
            let problem = format!(
                "{place} has another sweep, '{}': {difference}; expected its plan, another directory, --extend to keep its runs for this plan, or --fresh",
                known.plan.name
            );
            return Err(LabError::refused("out", problem));
        }
        known.same_program(&self.out)?;
        Ok(Some(known))
    }

    /// The vector instructions of a sweep that was begun, or of one that begins here.
    fn simd(&self, known: Option<&Manifest>) -> Result<SimdLevel, LabError> {
        known.map_or_else(|| simd_level().map(SimdLevel::in_use), |known| known.simd(&self.out))
    }

    /// Opens the directory for work on all runs, or together with other workers for work on some of them.
    pub fn open(&self, alone: bool) -> Result<Opened, LabError> {
        if self.fresh && !alone {
            // Nobody else is there while something is removed; after that the directory is shared.
            drop(self.open(true)?);
            return Self { fresh: false, ..self.clone() }.open(false);
        }
        // The plan is checked before a directory is made.
        let known = self.admitted()?;
        let simd = self.simd(known.as_ref())?;
        let sweep = Sweep::of(self.plan.clone(), simd)?;
        let is_same = known.as_ref().is_some_and(|known| known.plan.difference(&self.plan).is_none());
        if alone || !is_same {
            // Its workers would find the directory in use, or another plan.
            engine::refuse_to_forget(&self.out)?;
        }
        let tasks = self.plan.tasks.contents()?;
        // The table is written by one process, while nobody else is there.
        let (out, shared) = if alone {
            (OutputDir::locked(&self.out, Duration::ZERO)?, None)
        } else {
            let out = OutputDir::create(&self.out)?;
            (out, Some(DirLock::acquire(&self.out, Mode::Shared, PATIENCE)?))
        };
        out.probe()?;
        if self.fresh {
            clear(&self.out)?;
        }
        if !tasks.is_empty() {
            TaskFiles::write(&tasks, &out.below(manifest::TASKS)?)?;
        }
        let own = Manifest::new(&self.plan, simd);
        let manifest = match known {
            Some(known) if is_same => known,
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

/// What a sweep has in its directory; the manifest, which tells it from other directories, first.
const OWN: [&str; 10] = [
    manifest::FILE,
    manifest::TASKS,
    journal::FOLDER,
    results::DONE,
    TABLE,
    results::PARQUET,
    CHECKPOINTS_LIST,
    CURVES,
    CHECKPOINTS,
    engine::FOLDER,
];

/// Which of these names are there.
fn left_in(root: &Path, names: &[&str]) -> Vec<String> {
    names.iter().filter(|name| root.join(name).exists()).map(|name| (*name).to_owned()).collect()
}

/// What `--fresh` removes, in this order. The manifest goes last: where this is interrupted it says whose files the others are.
fn removed() -> Vec<&'static str> {
    OWN.into_iter().rev().collect()
}

/// Removes everything that a sweep wrote to its directory.
fn clear(root: &Path) -> Result<(), LabError> {
    removed().into_iter().try_for_each(|name| crate::studies::remove(root.join(name)))
}

/// Removes what killed processes left half-written, of a sweep whose runs are all done.
fn clean_up(root: &Path) {
    checkpoints::remove_unfinished(root);
    journal::remove_locks(root);
    manifest::remove_unfinished(root);
    engine::forget(root);
}

impl Opened {
    /// Where it is.
    pub fn root(&self) -> &Path {
        self.out.path()
    }

    /// What is left to do of some runs, and what to expect of it where `is_timed`.
    pub fn outlook(
        &self,
        runs: &Range<usize>,
        threads: usize,
        is_timed: bool,
        progress: &Progress,
    ) -> Result<Outlook, LabError> {
        let (index, left) = self.left(runs, progress)?;
        Outlook::of(&self.sweep, runs, &index, &left, threads, is_timed, progress)
    }

    /// What there is of some runs, and which of them are left to do.
    fn left(&self, runs: &Range<usize>, progress: &Progress) -> Result<(Index, Vec<usize>), LabError> {
        let index = Index::read(self.root(), &self.sweep, runs)?;
        let left = checkpoints::left(&self.sweep, self.root(), &index, runs, progress)?;
        Ok((index, left))
    }

    /// Does some of the runs.
    pub fn work(&self, runs: &Range<usize>, progress: &Progress) -> Result<(), LabError> {
        check_range("index", runs.end, runs.start + 1..=self.sweep.num_runs())?;
        let _unit = engine::lock_unit(self.root(), runs, progress)?;
        worker::work(&self.sweep, self.root(), runs, progress)
    }

    /// Writes the table once all runs are done.
    pub fn finish(&self, progress: &Progress, tell: fn(&str)) -> Result<Finished, LabError> {
        let (index, left) = self.left(&(0..self.sweep.num_runs()), progress)?;
        let (missing, lost): (Vec<usize>, Vec<usize>) = left.into_iter().partition(|&run| !index.has(run));
        let without = [(missing, "a record in the journal"), (lost, "the parameters that were kept")];
        for (runs, what) in without {
            let Some(&first) = runs.first() else { continue };
            let problem = format!(
                "{} without {what}, {} the first, expected none: ictd sweep {} does what is missing",
                counted(runs.len(), "run"),
                self.sweep.named(first),
                shell_word(&self.root().to_string_lossy())
            );
            return Err(LabError::internal("sweep", problem));
        }
        if index.damaged > 0 {
            let (lines, are) =
                (counted(index.damaged, "line"), if index.damaged == 1 { "is" } else { "are" });
            tell(&format!("warning: {lines} of the journal {are} cut short or damaged, and not counted"));
        }
        if index.repeated > 0 {
            let were = if index.repeated == 1 { "was" } else { "were" };
            tell(&format!("{} {were} done twice, with the same results", counted(index.repeated, "run")));
        }
        let finished = results::merge(&self.sweep, &self.manifest, &self.out, &index, progress, tell)?;
        clean_up(self.root());
        Ok(finished)
    }
}
