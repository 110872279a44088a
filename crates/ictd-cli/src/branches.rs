//! `ictd branches`.

use clap::Args;
use ictd_lab::error::{LabError, check_range};
use ictd_lab::studies::branches;

use crate::{Common, Outcome, message};

/// Arguments of `ictd branches`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Seeds per setting, counted from --seed
    #[arg(long, default_value_t = 100, allow_negative_numbers = true)]
    seeds: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let first = arguments.common.seed;
    check_range("seeds", arguments.seeds, 1..=100_000)?;
    let seeds: Vec<u64> = (first..first.saturating_add(arguments.seeds)).collect();
    let map = branches::run(&seeds, |count| {
        message(&format!(
            "{}, query {}: {} td, {} mirror, {} none",
            count.change, count.query, count.td, count.mirror, count.none
        ));
    })?;
    arguments.common.present(&map, Some("out/branches"))
}
