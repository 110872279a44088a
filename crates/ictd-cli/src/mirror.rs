//! `ictd mirror`.

use std::sync::Arc;

use clap::Args;
use ictd_lab::studies::mirror::{self, MirrorConfig};
use ictd_lab::{LabError, Progress, Seeds};

use crate::{Outcome, Output, SEEDS, message};

/// Where results go.
const OUT: Option<&str> = Some("out/mirror");

#[derive(Debug, Args)]
pub struct Arguments {
    #[arg(long, default_value = "0..40", help = SEEDS)]
    seeds: Seeds,
    /// Epochs of every training run
    #[arg(long, default_value_t = 3000)]
    epochs: u64,
    /// Fresh tasks of what is measured at a point
    #[arg(long, default_value_t = 100)]
    tasks: u64,
    #[command(flatten)]
    output: Output,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { seeds, epochs, tasks, output } = arguments;
    output.announce(progress, OUT);
    let config = MirrorConfig { seeds, epochs, tasks };
    output.present(&mirror::run(&config, progress, message)?, OUT, progress)
}
