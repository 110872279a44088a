//! `ictd reproduce`.

use std::path::{Path, PathBuf};

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::files::process;
use ictd_lab::studies::Verdict;
use ictd_lab::studies::reproduce::{self, Plan, Reproduction, Scope};

use crate::{Outcome, message, print_data, print_json, table};

/// Arguments of `ictd reproduce`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Run only the studies of these claims, separated by commas, for instance thm1,fig3a; what an earlier run of the same
    /// options found stays in the report
    #[arg(long, value_delimiter = ',', value_name = "ID,ID,…")]
    only: Vec<String>,
    /// Fewer samples and seeds: half the time, wider intervals, and verdicts that may differ
    #[arg(long)]
    quick: bool,
    /// Pretraining seeds per setting [default: the paper's 5, and 10 for Figure 6]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seeds: Option<u64>,
    /// Run everything again instead of continuing from finished studies
    #[arg(long)]
    fresh: bool,
    /// Compare a fresh run with the stored values and fail when it drifts
    #[arg(long, conflicts_with_all = ["quick", "seeds", "seed"])]
    check: bool,
    /// Print machine-readable JSON to stdout
    #[arg(long)]
    json: bool,
    /// Seed of every random draw
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Directory for the report, figures and tables; empty, new, or of an earlier reproduction
    #[arg(long, value_name = "DIR", default_value = "out/reproduce")]
    out: PathBuf,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let studies = reproduce::select(&arguments.only)?;
    let plan = Plan { seed: arguments.seed, seeds: arguments.seeds, quick: arguments.quick };
    let fresh = arguments.fresh || arguments.check;
    let total = studies.len();
    let mut number = 0;
    let found = reproduce::run(&studies, &plan, &arguments.out, fresh, |study, result| match result {
        None => {
            number += 1;
            message(&format!("[{number}/{total}] {}: {}", study.id, study.claims.join(", ")));
        }
        Some((timing, claims)) => {
            let verdicts: Vec<String> = claims.iter().map(|c| format!("{} {}", c.id, c.verdict)).collect();
            let time =
                if timing.cached { "from an earlier run".into() } else { format!("{:.2} s", timing.seconds) };
            message(&format!("        {time}: {}", verdicts.join(", ")));
        }
    })?;
    if arguments.json {
        print_json(&found)?
    } else {
        print_data(&text(&found))?
    }
    finish(&found, &arguments.out);
    if !arguments.check {
        // A verdict is a result, not a failure of the command.
        return Ok(Outcome::Success);
    }
    let drifts = reproduce::drifts(&found.claims)?;
    drifts.iter().for_each(|d| message(&format!("drift: {}: {}", d.id, d.what)));
    message(&format!(
        "check: {} of {} claims as stored",
        found.claims.len() - drifts.len(),
        found.claims.len()
    ));
    Ok(if drifts.is_empty() { Outcome::Success } else { Outcome::ClaimFailed })
}

fn finish(found: &Reproduction, out: &Path) {
    let seconds: f64 = found.timings.iter().map(|t| t.seconds).sum();
    let memory = process::peak_rss_kib()
        .map_or_else(String::new, |kib| format!(", at most {:.0} MB of memory", kib as f64 / 1024.0));
    message(&format!("{seconds:.1} s{memory}; report: {}", out.join("report.html").display()));
}

fn text(found: &Reproduction) -> String {
    let seconds = |id: &str| {
        let timing = found.timings.iter().find(|t| t.claims.contains(&id));
        // The time of a study stands at its first claim.
        timing.filter(|t| t.claims[0] == id).map_or_else(String::new, |t| format!("{:.2}", t.seconds))
    };
    let shorten = |text: &str| match text.char_indices().nth(70) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let rows: Vec<Vec<String>> = found
        .claims
        .iter()
        .map(|c| vec![c.id.clone(), c.verdict.to_string(), shorten(&c.measured), seconds(&c.id)])
        .collect();
    let mut text = table::render(&["claim", "verdict", "measured", "seconds"], &rows);
    for (scope, name) in Scope::COUNTED {
        let count =
            |verdict| found.claims.iter().filter(|c| c.scope == scope && c.verdict == verdict).count();
        let parts: Vec<String> =
            Verdict::ALL.into_iter().filter(|v| count(*v) > 0).map(|v| format!("{} {v}", count(v))).collect();
        if !parts.is_empty() {
            text += &format!("\n{name}: {}", parts.join(", "));
        }
    }
    text += "\n";
    text
}
