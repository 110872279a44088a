//! `ictd mirror`.

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::studies::mirror::{self, MirrorConfig};

use crate::{Common, Outcome, message};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Seeds of the path, counted from --seed; half as many per end, a quarter with A held
    #[arg(long, default_value_t = 40, allow_negative_numbers = true)]
    seeds: u64,
    /// Epochs of every training run
    #[arg(long, default_value_t = 3000, allow_negative_numbers = true)]
    epochs: u64,
    /// Fresh tasks of what is measured at a point
    #[arg(long, default_value_t = 100, allow_negative_numbers = true)]
    tasks: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let Arguments { seeds, epochs, tasks, common } = arguments;
    let found = mirror::run(&MirrorConfig { seed: common.seed, seeds, epochs, tasks }, message)?;
    common.present(&found, Some("out/mirror"))
}
