//! `ictd branches`.

use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ictd_lab::studies::branches::{self, Map};
use ictd_lab::{LabError, Progress};

use crate::task_arguments::TaskArguments;
use crate::{Common, Outcome, message};

/// Where results go.
const OUT: Option<&str> = Some("out/branches");

#[derive(Debug, Args)]
pub struct Arguments {
    /// What is mapped, for every query position
    #[arg(long, default_value = "settings", value_parser = maps())]
    map: Map,
    /// Seeds per setting, counted from --seed
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// Change a key of every setting, as for `pretrain`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    #[command(flatten)]
    tasks: TaskArguments,
    #[command(flatten)]
    common: Common,
}

/// The maps by name.
fn maps() -> impl TypedValueParser<Value = Map> {
    let names = PossibleValuesParser::new(Map::ALL.map(|(name, _)| name));
    names.map(|name| {
        Map::ALL.into_iter().find(|(known, _)| *known == name).map_or(Map::Settings, |(_, map)| map)
    })
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let seeds = arguments.common.seeds(arguments.seeds)?;
    let base = arguments.tasks.overrides(arguments.overrides)?;
    arguments.common.announce(progress, OUT);
    let map = branches::run(arguments.map, &seeds, &base, progress, message)?;
    arguments.common.present(&map, OUT, progress)
}
