//! `ictd reproduce`.

use std::path::Path;

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::studies::Verdict;
use ictd_lab::studies::reproduce;

use crate::{Common, Outcome, message, print_data, print_json, table};

/// Arguments of `ictd reproduce`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Run only these parts, separated by commas: fig1, fig2, fig3, fig3-stationary, fig3-gain,
    /// fig4, fig6, fig6-stationary, fig7 (fig3 draws Figure 5 too)
    #[arg(long, value_delimiter = ',', value_name = "ID,ID,…")]
    only: Vec<String>,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let studies = reproduce::select(&arguments.only)?;
    let out = arguments.common.out.as_deref().unwrap_or(Path::new("out/reproduce"));
    let outcomes = reproduce::run(&studies, arguments.common.seed, out, |outcome| {
        message(&format!("{:<15} {:>6.2} s  {}", outcome.id, outcome.seconds, outcome.verdict));
    })?;
    if arguments.common.json {
        print_json(&outcomes)?;
    } else {
        let mut text = String::from("\n");
        for outcome in &outcomes {
            text += &format!("{} — {}\n    {}\n", outcome.paper, outcome.verdict, outcome.measured);
        }
        let count = |verdict| outcomes.iter().filter(|o| o.verdict == verdict).count().to_string();
        let verdicts = [Verdict::Reproduced, Verdict::Partly, Verdict::NotReproduced, Verdict::NotTestable];
        let rows: Vec<Vec<String>> = verdicts.into_iter().map(|v| vec![v.to_string(), count(v)]).collect();
        text += "\n";
        text += &table::render(&["verdict", "parts"], &rows);
        print_data(&text)?;
    }
    message(&format!("figures and tables: {}", out.display()));
    // A verdict is a result, not a failure of the command.
    Ok(Outcome::Success)
}
