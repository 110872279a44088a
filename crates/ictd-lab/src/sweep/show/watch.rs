//! Waiting for a sweep that goes on elsewhere.

use std::path::Path;
use std::time::Duration;

use crate::sweep::{Counter, Request};
use crate::{LabError, Moment, Progress};

/// Time between counts.
const BETWEEN: Duration = Duration::from_secs(1);
/// How often it is asked whether to stop.
const TICK: Duration = Duration::from_millis(50);

/// Returns when all runs of the sweep in a directory have a record; how many have one and how long the others will take is
/// said by `progress`.
pub fn watch(root: &Path, progress: &Progress) -> Result<(), LabError> {
    let request = Request::of_directory(root)?;
    if request.finished()?.is_some() {
        return Ok(());
    }
    let total = request.plan.num_settings() * request.plan.seeds.len();
    let mut counter = Counter::default();
    let before = counter.count(root)?.min(total);
    let name = match before {
        0 => format!("sweep {}", request.plan.name),
        done => format!("sweep {}, {done} done before", request.plan.name),
    };
    progress.begin(name, "runs", (total - before) as u64)?;
    let mut known = before;
    while known < total {
        let since = Moment::now();
        while since.elapsed() < BETWEEN {
            std::thread::sleep(TICK);
            progress.check()?;
        }
        let found = counter.count(root)?.min(total);
        progress.step((found - known) as u64)?;
        known = found;
    }
    Ok(())
}
