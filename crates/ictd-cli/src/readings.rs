//! `ictd readings`.

use std::sync::Arc;

use clap::Args;
use ictd_lab::studies::readings::{self, Search};
use ictd_lab::{LabError, Progress};

use crate::{Common, Outcome, message};

/// Where results go.
const OUT: Option<&str> = Some("out/readings");

#[derive(Debug, Args)]
pub struct Arguments {
    /// Seeds per reading, counted from --seed
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// Change a key of every experiment, for instance --set states=16; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,
    /// Train everything again instead of continuing from finished experiments
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { seeds, changes, fresh, common } = arguments;
    let search = Search { seeds: common.seeds(seeds)?, changes, fresh };
    common.announce(progress, OUT);
    let out = common.out_or(OUT).unwrap_or_default();
    let found = readings::run(&search, &out, progress, message)?;
    common.present(&found, OUT, progress)
}
