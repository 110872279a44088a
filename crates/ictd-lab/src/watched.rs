//! Progress as long work of the core sees it.

use ictd::watch::{Stopped, Watch};

use crate::Progress;

/// Shows work of the core as progress of a study that has begun, and stops it with the study.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// The study's.
    pub progress: &'a Progress,
    /// What the work is for: the part before the colon.
    pub prefix: &'a str,
}

impl Watch for Watched<'_> {
    fn begin(&self, work: &str, unit: &'static str, units: u64) -> Result<(), Stopped> {
        // The study has made its directory by now: nothing but a stop is left to go wrong.
        self.progress.begin(format!("{}: {work}", self.prefix), unit, units).map_err(|_| Stopped)
    }

    fn advance(&self, units: u64) -> Result<(), Stopped> {
        self.progress.step(units).map_err(|_| Stopped)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn work_is_shown_and_stopped_with_the_study() {
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Progress::new("study", stop.clone());
        let watched = Watched { progress: &progress, prefix: "forward" };
        watched.begin("layers", "rounds of blocks", 8).unwrap();
        watched.advance(3).unwrap();
        let seen = progress.standing();
        assert_eq!(
            (seen.name.as_str(), seen.unit, seen.done, seen.total),
            ("forward: layers", "rounds of blocks", 3, 8)
        );
        stop.store(true, Ordering::Relaxed);
        assert_eq!(watched.advance(1), Err(Stopped));
        assert_eq!(watched.begin("layers", "layers", 1), Err(Stopped));
    }
}
