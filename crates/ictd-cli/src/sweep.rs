//! `ictd sweep`.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ictd_lab::error::{LabError, check_range};
use ictd_lab::sweep::{self, Finished, Manifest, Plan, Request};
use ictd_lab::{Progress, Seeds};

use crate::{Outcome, message, print_data, print_json};

#[derive(Debug, Args)]
pub struct Arguments {
    /// TOML file, a plan of the program (branches, kernels or quick), or the directory of a sweep to go on with
    plan: PathBuf,
    /// Directory of the sweep [default: out/sweep/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Change a key of every setting, as for `pretrain`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Seeds instead of the plan's: a number of seeds N for 0..N, a range A..B (B not included), or a list of both
    #[arg(long)]
    seeds: Option<Seeds>,
    /// Do these runs only, A to B-1 in the order of the table, and leave the table to others: for any scheduler
    #[arg(long, value_name = "A..B")]
    index: Option<String>,
    /// Threads [default: one per core]
    #[arg(long)]
    threads: Option<usize>,
    /// Say how many runs there are, how long they will take and what they will write, and stop
    #[arg(long)]
    dry_run: bool,
    /// Remove what an earlier sweep left in the directory
    #[arg(long)]
    fresh: bool,
    /// Keep runs of an earlier sweep in the directory that this plan has too
    #[arg(long, conflicts_with = "fresh")]
    extend: bool,
    /// Print machine-readable JSON to stdout
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    arguments.threads.map_or(Ok(()), |threads| check_range("threads", threads, 1..=1024))?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads.unwrap_or(0))
        .build()
        .map_err(|e| LabError::internal("threads", e))?;
    pool.install(|| sweep(&arguments, progress))
}

fn sweep(arguments: &Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let request = request(arguments)?;
    let threads = rayon::current_num_threads();
    if arguments.dry_run {
        let simd = ictd_lab::studies::pretrain::simd_level()?.in_use();
        let sweep = sweep::Sweep::of(request.plan, simd)?;
        let all = 0..sweep.num_runs();
        print_data(&(sweep::outlook(&sweep, &all, 0, threads, progress)? + "\n"))?;
        return Ok(Outcome::Success);
    }
    if arguments.index.is_none()
        && let Some(finished) = request.finished()?
    {
        message(&format!("finished before, in {}", request.out.display()));
        return show(arguments, &request, &finished);
    }
    let opened = request.open(arguments.index.is_none())?;
    let all = 0..opened.sweep.num_runs();
    let runs = arguments.index.as_deref().map_or(Ok(all.clone()), |text| range(text, all.len()))?;
    message(&opened.outlook(&runs, threads, progress)?);
    opened.work(&runs, progress).inspect_err(|error| {
        if matches!(error, LabError::Stopped) {
            message("stopped; what is done is kept, the same command goes on");
        }
    })?;
    if arguments.index.is_some() {
        return Ok(Outcome::Success);
    }
    match opened.finish(progress)? {
        Ok(finished) => show(arguments, &request, &finished),
        Err(missing) => Err(LabError::internal("sweep", format!("{missing} runs have no record"))),
    }
}

/// The plan with what was typed beside it, and where it is swept.
fn request(arguments: &Arguments) -> Result<Request, LabError> {
    let Arguments { plan, out, overrides, seeds, fresh, extend, .. } = arguments;
    if plan.is_dir() {
        if out.is_some() || !overrides.is_empty() || seeds.is_some() {
            let problem =
                "the directory of a sweep has its plan, expected no --out, --set or --seeds beside it";
            return Err(LabError::refused("PLAN", problem));
        }
        return Ok(Request { fresh: *fresh, extend: *extend, ..Request::of_directory(plan)? });
    }
    let mut plan = Plan::read(plan)?;
    plan.set.extend(overrides.iter().cloned());
    if let Some(seeds) = seeds {
        plan.seeds = seeds.clone().sorted();
    }
    plan.check()?;
    let out = out.clone().unwrap_or_else(|| PathBuf::from("out/sweep").join(&plan.name));
    Ok(Request { plan, out, fresh: *fresh, extend: *extend })
}

/// `A..B`, inside a sweep of so many runs.
fn range(text: &str, runs: usize) -> Result<Range<usize>, LabError> {
    let parsed =
        text.split_once("..").and_then(|(a, b)| Some(a.trim().parse().ok()?..b.trim().parse().ok()?));
    match parsed {
        Some(range) if !range.is_empty() && range.end <= runs => Ok(range),
        _ => Err(LabError::value("index", format!("'{text}'"), format!("A..B within 0..{runs}"))),
    }
}

fn show(arguments: &Arguments, request: &Request, finished: &Finished) -> Result<Outcome, LabError> {
    if arguments.json {
        print_json(finished)?;
    } else {
        print_data(&format!("{} runs in {}\n", finished.runs, request.out.join(sweep::TABLE).display()))?;
    }
    let _ = Manifest::read;
    Ok(if finished.diverged > 0 { Outcome::ClaimFailed } else { Outcome::Success })
}
