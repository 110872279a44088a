//! `ictd runs`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ictd_lab::studies::pretrain;
use ictd_lab::{LabError, Progress};

use crate::{Outcome, message, present};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Directory that runs are looked for in, and in all directories below
    #[arg(default_value = "runs")]
    dir: PathBuf,
    /// Compare every file of finished seeds with its digest; without it their results alone are read
    #[arg(long)]
    verify: bool,
    /// Print machine-readable JSON to stdout
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let found = pretrain::index(&arguments.dir, arguments.verify, progress)?;
    if found.is_empty() {
        message(&format!("no runs in {}: `ictd pretrain` makes some", arguments.dir.display()));
    }
    present(&found, arguments.json, None, progress)
}
