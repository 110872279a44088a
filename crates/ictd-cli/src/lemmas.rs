//! `ictd lemmas`.

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::studies::theory::lemmas;

use crate::{Common, Outcome};

/// Arguments of `ictd lemmas`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Random inputs per lemma
    #[arg(long, default_value_t = 5000, allow_negative_numbers = true)]
    trials: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let found = lemmas::run(arguments.common.seed, arguments.trials)?;
    arguments.common.present(&found, None)
}
