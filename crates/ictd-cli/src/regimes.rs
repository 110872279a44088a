//! `ictd regimes`.

use std::path::Path;

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::files::OutputDir;
use ictd_lab::studies::theory::TaskFamily;
use ictd_lab::studies::theory::regimes::{self, RegimeMap, Repair};

use crate::certify::{FamilyArguments, Kind};
use crate::{Common, Outcome, message, print_data, print_json, table};

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
