//! `ictd task`.

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::studies::TaskChoice;
use ictd_lab::studies::task::{TaskRequest, make};

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
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    index: u64,
    /// Give a trajectory of N transitions instead of the task; with --json it is input for `forward`
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    trajectory: Option<usize>,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let Arguments { task, options, index, trajectory, common } = arguments;
    let task = options.choice(TaskChoice::named(&task)?)?;
    common.present(&make(&TaskRequest { task, seed: common.seed, index, trajectory })?, None)
}
