//! `ictd mirror`.

use std::sync::Arc;

use clap::Args;
use ictd_lab::studies::mirror::{self, MirrorConfig};
use ictd_lab::{LabError, Progress};

use crate::{Common, Outcome, message};

/// Where results go.
const OUT: Option<&str> = Some("out/mirror");

#[derive(Debug, Args)]
pub struct Arguments {
    /// Seeds of the path, counted from --seed; half as many per end, a quarter with A held
    #[arg(long, default_value_t = 40)]
    seeds: u64,
    /// Epochs of every training run
    #[arg(long, default_value_t = 3000)]
    epochs: u64,
    /// Fresh tasks of what is measured at a point
    #[arg(long, default_value_t = 100)]
    tasks: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { seeds, epochs, tasks, common } = arguments;
    common.announce(progress, OUT);
    let config = MirrorConfig { seed: common.seed, seeds, epochs, tasks };
    common.present(&mirror::run(&config, progress, message)?, OUT, progress)
}
