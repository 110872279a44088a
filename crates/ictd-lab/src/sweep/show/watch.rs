//! Waiting for a sweep that goes on elsewhere.

use std::path::Path;
use std::time::Duration;

use crate::files::DirLock;
use crate::sweep::engine::is_at_work;
use crate::sweep::{Counter, Manifest, Request};
use crate::{LabError, Moment, Progress, counted, shell_word};

/// Time between counts.
const BETWEEN: Duration = Duration::from_secs(1);
/// Counts in a row that find nobody at work before that is believed: one may be about to begin.
const QUIET: u32 = 3;
/// How often it is asked whether to stop.
const TICK: Duration = Duration::from_millis(50);

/// Returns when all runs of the sweep in a directory have a record; how many have one and how long the others will take is
/// said by `progress`. An error where nobody works on it any more.
pub fn watch(root: &Path, progress: &Progress) -> Result<(), LabError> {
    let request = Request::of_directory(root)?;
    if request.table()?.is_some() {
        return Ok(());
    }
    let sweep = request.sweep()?;
    let total = sweep.num_computed();
    // Records are known by keys that another build does not know.
    let is_own = Manifest::read(root)?.is_some_and(|known| known.same_program(root).is_ok());
    let mut counter = if is_own { Counter::of(&sweep) } else { Counter::default() };
    let before = counter.count(root)?.min(total);
    let name = match before {
        0 => format!("sweep {}", request.plan.name),
        done => format!("sweep {}, {done} done before", request.plan.name),
    };
    progress.begin(name, "runs", (total - before) as u64)?;
    let mut known = before;
    let mut alone = 0;
    while known < total {
        let since = Moment::now();
        while since.elapsed() < BETWEEN {
            std::thread::sleep(TICK);
            progress.check()?;
        }
        let found = counter.count(root)?.min(total);
        progress.step(found.saturating_sub(known) as u64)?;
        alone = if DirLock::is_held(root) || found > known { 0 } else { alone + 1 };
        known = found;
        // A job of an engine may wait for its turn with nobody there.
        if alone >= QUIET && is_at_work(root) {
            alone = 0;
        }
        if alone >= QUIET && known < total {
            let problem = format!(
                "{known} of {} are done and no process works on the others, expected one: ictd sweep {} goes on",
                counted(total, "run"),
                shell_word(&root.to_string_lossy())
            );
            return Err(LabError::refused("watch", problem));
        }
    }
    Ok(())
}
