//! `ictd branches`.

use std::sync::Arc;

use clap::Args;
use ictd_lab::studies::branches;
use ictd_lab::{LabError, Progress};

use crate::task_arguments::TaskArguments;
use crate::{Common, Outcome, message};

/// Where results go.
const OUT: Option<&str> = Some("out/branches");

#[derive(Debug, Args)]
pub struct Arguments {
    /// Seeds per setting, counted from --seed
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Change a key of every setting, as for `pretrain`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    #[command(flatten)]
    tasks: TaskArguments,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let seeds = arguments.common.seeds(arguments.seeds)?;
    let base = arguments.tasks.overrides(arguments.overrides)?;
    arguments.common.announce(progress, OUT);
    let map = branches::run(&seeds, &base, progress, message)?;
    arguments.common.present(&map, OUT, progress)
}
