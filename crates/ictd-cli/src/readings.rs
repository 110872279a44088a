//! `ictd readings`.

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::studies::readings::{self, Search};

use crate::{Common, Outcome, message};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Seeds per reading, counted from --seed
    #[arg(long, default_value_t = 20, allow_negative_numbers = true)]
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

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let Arguments { seeds, changes, fresh, common } = arguments;
    let search = Search { seeds: common.seeds(seeds)?, changes, fresh };
    let out = common.out_or(Some("out/readings")).unwrap_or_default();
    let found = readings::run(&search, &out, message)?;
    common.present(&found, Some("out/readings"))
}
