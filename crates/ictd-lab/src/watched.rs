//! Long work of the mathematics as progress of a study.

use ictd::watch::{Stopped, Watch};

use crate::Progress;

/// Tells a study's progress, under the study's name, what the mathematics do.
pub(crate) struct Watched<'a> {
    progress: &'a Progress,
    study: &'a str,
}

impl<'a> Watched<'a> {
    /// Of the study of this name.
    pub fn new(progress: &'a Progress, study: &'a str) -> Self {
        Self { progress, study }
    }
}

impl Watch for Watched<'_> {
    fn begin(&self, work: &str, unit: &'static str, units: u64) -> Result<(), Stopped> {
        self.progress.begin(format!("{}: {work}", self.study), unit, units).map_err(|_| Stopped)
    }

    fn advance(&self, units: u64) -> Result<(), Stopped> {
        self.progress.step(units).map_err(|_| Stopped)
    }
}
