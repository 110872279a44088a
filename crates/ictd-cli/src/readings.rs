//! `ictd readings`.

use std::sync::Arc;

use clap::Args;
use ictd_lab::studies::readings::{self, Search};
use ictd_lab::{LabError, Progress, Seeds};

use crate::{Outcome, Output, SEEDS, message};

/// Where results go.
const OUT: Option<&str> = Some("out/readings");

#[derive(Debug, Args)]
pub struct Arguments {
    #[arg(long, default_value = "0..20", help = SEEDS)]
    seeds: Seeds,
    /// Change a key of every experiment, for instance --set states=16; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,
    /// Train everything again instead of continuing from finished experiments
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    output: Output,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { seeds, changes, fresh, output } = arguments;
    let search = Search { seeds, changes, fresh };
    output.announce(progress, OUT);
    let out = output.out_or(OUT).unwrap_or_default();
    let found = readings::run(&search, &out, progress, message)?;
    output.present(&found, OUT, progress)
}
