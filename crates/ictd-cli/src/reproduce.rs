//! `ictd reproduce`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use ictd_lab::files::process;
use ictd_lab::studies::reproduce::{self, Drift, Reproduction};
use ictd_lab::studies::{Paper, Plan, Study};
use ictd_lab::{LabError, Progress, Seeds};

use crate::{Outcome, SEEDS, message, present};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Whose claims: main, or predecessor (arXiv 2405.13861)
    #[arg(long, default_value = "main")]
    paper: String,
    /// Run only the studies of these claims, separated by commas, for instance thm1,fig3a; what an earlier run of the same
    /// options found stays in the report
    #[arg(long, value_delimiter = ',', value_name = "ID,ID,…")]
    only: Vec<String>,
    /// Fewer samples and seeds: half the time, wider intervals, and verdicts that may differ
    #[arg(long)]
    quick: bool,
    #[arg(long, help = format!("{SEEDS} [default: the paper's 5, or 10 for Figure 6 and for the predecessor, counted from --seed]"))]
    seeds: Option<Seeds>,
    /// Run everything again instead of continuing from finished studies
    #[arg(long)]
    fresh: bool,
    /// Compare a fresh run with the stored values and fail when it drifts
    #[arg(long, conflicts_with_all = ["quick", "seeds", "seed"])]
    check: bool,
    /// Run every study with 20 seeds, count the verdicts, and fail when they are not the stored ones (minutes)
    #[arg(long, conflicts_with_all = ["quick", "seeds", "seed", "check"])]
    stability: bool,
    /// Print machine-readable JSON to stdout
    #[arg(long)]
    json: bool,
    /// Seed of every random draw
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Directory for the report, figures and tables; empty, new, or of an earlier reproduction of the same paper
    /// [default: out/reproduce, or out/predecessor]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let paper: Paper = arguments.paper.parse()?;
    let studies = reproduce::select(paper, &arguments.only)?;
    let out = arguments.out.clone().unwrap_or_else(|| match paper {
        Paper::Main => PathBuf::from("out/reproduce"),
        Paper::Predecessor => PathBuf::from("out/predecessor"),
    });
    if arguments.stability {
        if paper != Paper::Main {
            let problem = "no verdicts over seeds are stored for the predecessor, expected --paper main";
            return Err(LabError::refused("stability", problem));
        }
        return stability(&studies, &arguments, &out, progress);
    }
    let plan = Plan { seed: arguments.seed, seeds: arguments.seeds.clone(), quick: arguments.quick };
    let fresh = arguments.fresh || arguments.check;
    let total = studies.len();
    let mut number = 0;
    progress.begin("reproduce", "studies", total as u64)?;
    let found = reproduce::run(&studies, &plan, &out, fresh, |study, result| {
        match result {
            None => {
                number += 1;
                progress.rename(format!("reproduce: {}", study.id));
                message(&format!("[{number}/{total}] {}: {}", study.id, study.claims.join(", ")));
            }
            Some((timing, claims)) => {
                if timing.cached {
                    progress.skip(1)
                } else {
                    progress.advance(1)
                }
                let verdicts: Vec<String> =
                    claims.iter().map(|c| format!("{} {}", c.id, c.verdict)).collect();
                let time = if timing.cached {
                    "from an earlier run".into()
                } else {
                    format!("{:.2} s", timing.seconds)
                };
                message(&format!("        {time}: {}", verdicts.join(", ")));
            }
        }
        Ok(())
    })?;
    // The run wrote its files itself, study by study.
    present(&found, arguments.json, None, progress)?;
    finish(&found, &out);
    if !arguments.check {
        // A verdict is a result, not a failure of the command.
        return Ok(Outcome::Success);
    }
    Ok(compared("check", &reproduce::drifts(paper, &found.claims)?, found.claims.len()))
}

/// Verdicts over seeds, beside the stored ones.
fn stability(
    studies: &[Study],
    arguments: &Arguments,
    out: &Path,
    progress: &Arc<Progress>,
) -> Result<Outcome, LabError> {
    progress.begin("stability", "studies", reproduce::num_seeds() * studies.len() as u64)?;
    let found = reproduce::measure(studies, out, arguments.fresh, |seed, timing| {
        // What was there costs nothing; what is left is taken to cost as much as what was run.
        if timing.cached {
            progress.skip(1)
        } else {
            progress.advance(1)
        }
        progress.rename(format!("stability: seed {seed}, {}", timing.study));
        message(&progress.standing().to_string());
    })?;
    present(&found, arguments.json, Some(out), progress)?;
    Ok(compared("stability", &reproduce::stability_drifts(&found.claims)?, found.claims.len()))
}

/// Says what is not as stored, and fails where anything is.
fn compared(what: &str, drifts: &[Drift], total: usize) -> Outcome {
    drifts.iter().for_each(|d| message(&format!("drift: {}: {}", d.id, d.what)));
    message(&format!("{what}: {} of {total} claims as stored", total - drifts.len()));
    if drifts.is_empty() { Outcome::Success } else { Outcome::ClaimFailed }
}

fn finish(found: &Reproduction, out: &Path) {
    let seconds: f64 = found.timings.iter().map(|t| t.seconds).sum();
    let memory = process::peak_rss_kib()
        .map_or_else(String::new, |kib| format!(", at most {:.0} MB of memory", kib as f64 / 1024.0));
    message(&format!("{seconds:.1} s{memory}; report: {}", out.join("report.html").display()));
}
