//! `ictd lemmas`.

use clap::Args;
use ictd::task::Family;
use ictd_lab::LabError;
use ictd_lab::studies::theory::lemmas;

use crate::task_arguments::TaskArguments;
use crate::{Common, Outcome};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Random inputs per lemma
    #[arg(long, default_value_t = 5000, allow_negative_numbers = true)]
    trials: u64,
    #[command(flatten)]
    tasks: TaskArguments,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let seed = arguments.common.seed;
    let tasks = || arguments.tasks.tasks(Family::certified(), seed);
    let given = arguments.tasks.is_given().then(tasks).transpose()?;
    arguments.common.present(&lemmas::run(seed, arguments.trials, given.as_ref())?, None)
}
