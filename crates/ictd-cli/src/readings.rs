//! `ictd readings`.

use clap::Args;
use ictd_lab::error::{LabError, check_range};
use ictd_lab::studies::readings::{self, Search};

use crate::{Common, Outcome, message};

/// Arguments of `ictd readings`.
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
    let first = arguments.common.seed;
    check_range("seeds", arguments.seeds, 1..=100_000)?;
    check_range("seed", first, 0..=u64::MAX - 100_000)?;
    let search = Search {
        seeds: (first..first + arguments.seeds).collect(),
        changes: arguments.changes,
        fresh: arguments.fresh,
    };
    let out = arguments.common.out_or(Some("out/readings")).unwrap_or_default();
    let found = readings::run(&search, &out, message)?;
    arguments.common.present(&found, Some("out/readings"))
}
