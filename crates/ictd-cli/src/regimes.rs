//! `ictd regimes`.

use std::path::Path;

use clap::Args;
use ictd::task::Family;
use ictd_lab::LabError;
use ictd_lab::files::OutputDir;
use ictd_lab::studies::theory::regimes::{self, RegimeMap, Repair};

use crate::tasks::TaskArguments;
use crate::{Common, Outcome, message, print_data, print_json, table};

/// Arguments of `ictd regimes`.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    source: TaskArguments,
    /// Tasks per cell of the map
    #[arg(long, default_value_t = 20, allow_negative_numbers = true)]
    tasks: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let options = &arguments.source.options;
    for (name, given) in [
        ("gamma", options.gamma.is_some()),
        ("unit-norm", options.unit_norm),
        ("score-scale", options.score_scale.is_some()),
    ] {
        if given {
            return Err(LabError::Invalid(format!("{name}: expected without it, the map has all of them")));
        }
    }
    let family = arguments.source.tasks(Family::paper(), arguments.common.seed)?;
    let map = regimes::run(&family, arguments.tasks)?;
    let out = arguments.common.out.as_deref().unwrap_or(Path::new("out/regimes"));
    map.write(&OutputDir::create(out)?)?;
    if arguments.common.json {
        print_json(&map)?;
    } else {
        let header = RegimeMap::header();
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let mut text = String::new();
        for (repair, name) in [
            (Repair::None, "raw features"),
            (Repair::UnitNorm, "unit-norm features"),
            (Repair::StepPerState, "raw features, a step size per state"),
        ] {
            text += &format!("{name}: the commonest regime and its share\n\n");
            text += &table::render(&header, &map.rows(repair));
            text += "\n";
        }
        print_data(&text)?;
    }
    message(&format!("figure and table: {}", out.join("regimes.svg").display()));
    Ok(Outcome::Success)
}
