//! `ictd sweep show` (to be written).

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ictd_lab::{LabError, Progress};

use crate::Outcome;

#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of a sweep
    dir: PathBuf,
}

pub fn run(arguments: Arguments, _: &Arc<Progress>) -> Result<Outcome, LabError> {
    Err(LabError::refused("show", format!("{} cannot be shown yet", arguments.dir.display())))
}
