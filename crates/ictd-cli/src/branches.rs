//! `ictd branches`.

use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ictd_lab::studies::branches::{self, Map};
use ictd_lab::{LabError, Progress, Seeds};

use crate::task_arguments::TaskArguments;
use crate::{Outcome, Output, SEEDS, message};

/// Where results go.
const OUT: Option<&str> = Some("out/branches");

#[derive(Debug, Args)]
pub struct Arguments {
    /// What is mapped, for every query position
    #[arg(long, default_value = "settings", value_parser = maps())]
    map: Map,
    #[arg(long, default_value = "0..100", help = SEEDS)]
    seeds: Seeds,
    /// Change a key of every setting, as for `pretrain`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Remove what an earlier map or sweep left in the directory
    #[arg(long)]
    fresh: bool,
    /// Keep runs of an earlier map in the directory that this one has too: with more seeds, for instance
    #[arg(long, conflicts_with = "fresh")]
    extend: bool,
    #[command(flatten)]
    tasks: TaskArguments,
    #[command(flatten)]
    output: Output,
}

/// The maps by name.
fn maps() -> impl TypedValueParser<Value = Map> {
    let names = PossibleValuesParser::new(Map::ALL.map(|(name, _)| name));
    names.map(|name| {
        Map::ALL.into_iter().find(|(known, _)| *known == name).map_or(Map::Settings, |(_, map)| map)
    })
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let changes = arguments.tasks.overrides(arguments.overrides)?;
    arguments.output.announce(progress, OUT);
    let out = arguments.output.out_or(OUT).unwrap_or_default();
    let Arguments { map, seeds, fresh, extend, .. } = arguments;
    let search = branches::Search { map, seeds, changes, fresh, extend };
    let map = branches::run(&search, &out, progress, message)?;
    arguments.output.present(&map, OUT, progress)
}
