//! `ictd lemmas`.

use std::sync::Arc;

use clap::Args;
use ictd::task::Family;
use ictd_lab::studies::theory::lemmas;
use ictd_lab::{LabError, Progress};

use crate::task_arguments::TaskArguments;
use crate::{Common, Outcome};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Random inputs per lemma
    #[arg(long, default_value_t = 5000)]
    trials: u64,
    #[command(flatten)]
    tasks: TaskArguments,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let seed = arguments.common.seed;
    let given = arguments.tasks.given(Family::certified(), seed)?;
    arguments.common.output.announce(progress, None);
    let found = lemmas::run(seed, arguments.trials, given.as_ref(), progress)?;
    arguments.common.output.present(&found, None, progress)
}
