//! Doing runs of a sweep: every thread trains one at a time, whole, and adds its record to the journal.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use ictd::pretrain::{TrainError, Trainer};

use super::checkpoints;
use super::journal::{self, Index, OpenFiles, Record, Writer};
use super::plan::Metrics;
use super::row;
use super::setting::{Setting, Sweep};
use crate::studies::pretrain::{seed_result, unmeasured_result};
use crate::{LabError, Progress};

/// Does those of `runs` that are not done, on all threads; what was done stays when it is stopped.
pub fn work(sweep: &Sweep, root: &Path, runs: &Range<usize>, progress: &Progress) -> Result<(), LabError> {
    let index = Index::read(root, sweep, runs)?;
    let left = checkpoints::left(sweep, root, &index, runs, progress)?;
    let own = runs.clone().filter(|&run| sweep.first(run) == run).count();
    let name = match own - left.len() {
        0 => format!("sweep {}", sweep.plan.name),
        done => format!("sweep {}, {done} done before", sweep.plan.name),
    };
    progress.begin(name, "runs", left.len() as u64)?;
    if left.is_empty() {
        return Ok(());
    }
    let writer = Mutex::new(Writer::begin(root, sweep, runs)?);
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    let do_run = |run: usize| {
        let (setting, seed) = sweep.run(run);
        let record = train(sweep, setting, seed, root, progress)?;
        if !index.has(run) {
            lock(&writer).add(&journal::line(&record))?;
        } else if index.record(&mut OpenFiles::default(), run)? != record {
            // Its parameters were gone, and are there again with those of another run.
            let problem = "was done again with different results, expected the same";
            return Err(LabError::internal("sweep", format!("{} {problem}", sweep.named(run))));
        }
        progress.step(1)
    };
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(left.len()) {
            scope.spawn(|_| {
                while lock(&failure).is_none() {
                    let Some(&run) = left.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    if let Err(error) = do_run(run) {
                        lock(&failure).get_or_insert(error);
                    }
                }
            });
        }
    });
    let finished = writer.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => finished,
    }
}

/// Trains one run and says what the table and the curves will say of it.
fn train(
    sweep: &Sweep,
    setting: &Setting,
    seed: u64,
    root: &Path,
    progress: &Progress,
) -> Result<Record, LabError> {
    let (settings, plan) = (&setting.settings, &sweep.plan);
    let mut trainer = Trainer::<f32>::new(&settings.config, seed)?;
    let record =
        |cells, curve, note, kept| Record { key: setting.key.clone(), seed, cells, curve, note, kept };
    let mut curve = Vec::new();
    while !trainer.is_done() {
        progress.check()?;
        let epoch = trainer.state().epoch + 1;
        let is_point = matches!(plan.metrics, Metrics::Every(epochs) if epoch % epochs == 0);
        let trained = if is_point { trainer.epoch() } else { trainer.epoch_unmeasured() };
        match trained {
            // A result like any other: the table says so, and training again would end in the same way.
            Err(error @ TrainError::Diverged { .. }) => {
                return Ok(record(row::diverged(), curve, error.to_string(), Vec::new()));
            }
            other => other?,
        }
        if is_point {
            curve.push(row::curve_point(&trainer.state().history));
        }
    }
    let state = trainer.into_state();
    let result = match plan.metrics {
        Metrics::None => unmeasured_result(settings, seed, &state),
        _ => seed_result(settings, seed, &state)?,
    };
    // Before the record, so that where that is they are.
    let kept = checkpoints::keep(plan.checkpoints, setting, seed, &state, root)?;
    Ok(record(row::cells(&result), curve, String::new(), kept))
}

/// A thread that panicked while holding a lock has already ended the sweep.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
