//! `ictd regimes`.

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::studies::theory::TaskFamily;
use ictd_lab::studies::theory::regimes;

use crate::certify::{FamilyArguments, Kind};
use crate::{Common, Outcome};

/// Arguments of `ictd regimes`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Number of states
    #[arg(long, allow_negative_numbers = true)]
    states: Option<usize>,
    /// Feature dimension
    #[arg(long, allow_negative_numbers = true)]
    features: Option<usize>,
    /// Family of tasks
    #[arg(long)]
    task: Option<Kind>,
    /// Tasks per cell of the map
    #[arg(long, default_value_t = 20, allow_negative_numbers = true)]
    tasks: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let Arguments { task, states, features, .. } = arguments;
    let family = FamilyArguments { task, states, features, ..Default::default() };
    let family = family.family(TaskFamily::paper(arguments.common.seed));
    let map = regimes::run(&family, arguments.tasks)?;
    arguments.common.present(&map, Some("out/regimes"))
}
