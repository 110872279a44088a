//! `ictd task`.

use std::sync::Arc;

use clap::Args;
use ictd_lab::studies::TaskChoice;
use ictd_lab::studies::task::{TaskRequest, make};
use ictd_lab::{LabError, Progress};

use crate::task_arguments::TaskOptions;
use crate::{Common, Outcome};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Kind of task: boyan, loop, figure-1, dense, coin or cartpole; or a task file, to be checked and completed
    #[arg(value_name = "NAME|FILE")]
    task: String,
    #[command(flatten)]
    options: TaskOptions,
    /// Which task of the seed's sequence
    #[arg(long, default_value_t = 0)]
    index: u64,
    /// Give a trajectory of N transitions instead of the task; with --json it is input for `forward`
    #[arg(long, value_name = "N")]
    trajectory: Option<usize>,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { task, options, index, trajectory, common } = arguments;
    let task = options.said().choice(TaskChoice::named(&task)?)?;
    common.output.announce(progress, None);
    let made = make(&TaskRequest { task, seed: common.seed, index, trajectory }, progress)?;
    common.output.present(&made, None, progress)
}
