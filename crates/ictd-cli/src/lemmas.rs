//! `ictd lemmas`.

use clap::Args;
use ictd::task::Family;
use ictd_lab::LabError;
use ictd_lab::files::OutputDir;
use ictd_lab::studies::theory::lemmas;

use crate::tasks::TaskArguments;
use crate::{Common, Outcome, print_data, print_json, table};

/// Arguments of `ictd lemmas`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Random inputs per lemma
    #[arg(long, default_value_t = 5000, allow_negative_numbers = true)]
    trials: u64,
    #[command(flatten)]
    tasks: TaskArguments,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let seed = arguments.common.seed;
    let given = match arguments.tasks.is_given() {
        true => Some(arguments.tasks.tasks(Family::certified(), seed)?),
        false => None,
    };
    let found = lemmas::run(seed, arguments.trials, given.as_ref())?;
    if let Some(out) = &arguments.common.out {
        lemmas::write(&found, &OutputDir::create(out)?)?;
    }
    if arguments.common.json {
        print_json(&found)?;
    } else {
        let rows: Vec<Vec<String>> = found
            .iter()
            .map(|r| {
                vec![
                    r.lemma.into(),
                    r.on.clone(),
                    r.trials.to_string(),
                    format!("{:.3e}", r.measured),
                    format!("{:.3e}", r.bound),
                    format!("{:.2e}", r.ratio),
                    r.premises.into(),
                ]
            })
            .collect();
        let header = ["lemma", "on", "trials", "measured", "bound", "largest ratio", "premise that fails"];
        print_data(&table::render(&header, &rows))?;
    }
    // Bounds whose premises hold must not be broken, up to rounding.
    let kept = found.iter().all(|r| !r.premises.is_empty() || r.ratio <= 1.0 + 1e-12);
    if kept { Ok(Outcome::Success) } else { Ok(Outcome::ClaimFailed) }
}
