//! `ictd branches`.

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::studies::branches;

use crate::task_arguments::TaskArguments;
use crate::{Common, Outcome, message};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Seeds per setting, counted from --seed
    #[arg(long, default_value_t = 100, allow_negative_numbers = true)]
    seeds: u64,
    /// Change a key of every setting, as for `pretrain`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    #[command(flatten)]
    tasks: TaskArguments,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let seeds = arguments.common.seeds(arguments.seeds)?;
    let base = arguments.tasks.overrides(arguments.overrides)?;
    let map = branches::run(&seeds, &base, message)?;
    arguments.common.present(&map, Some("out/branches"))
}
