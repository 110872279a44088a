//! `ictd regimes`.

use std::sync::Arc;

use clap::Args;
use ictd::task::Family;
use ictd_lab::studies::theory::regimes;
use ictd_lab::{LabError, Progress};

use crate::task_arguments::TaskArguments;
use crate::{Common, Outcome};

/// Where results go.
const OUT: Option<&str> = Some("out/regimes");

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    source: TaskArguments,
    /// Tasks per cell of the map
    #[arg(long, default_value_t = 20)]
    tasks: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    regimes::check_options(&arguments.source.options.said())?;
    let family = arguments.source.tasks(Family::paper(), arguments.common.seed)?;
    arguments.common.output.announce(progress, OUT);
    let map = regimes::run(&family, arguments.tasks, progress)?;
    arguments.common.output.present(&map, OUT, progress)
}
