//! `ictd sweep`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use ictd_lab::error::{LabError, check_range};
use ictd_lab::sweep::engine::{self, EngineName, Options};
use ictd_lab::sweep::{self, Finished, Plan, Request};
use ictd_lab::{Progress, Seeds, shell_word};

use crate::{Outcome, SEEDS, message, print_data, print_json, sweep_show};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    sweep: Sweep,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at a sweep: a table per setting, figures, a page in which axes are chosen; also while it runs
    Show(sweep_show::Arguments),
}

#[derive(Debug, Args)]
struct Sweep {
    /// TOML file, a plan of the program (branches, kernels or quick), or the directory of a sweep to go on with
    #[arg(required = true)]
    plan: Option<PathBuf>,
    /// Directory of the sweep [default: out/sweep/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Change a key of every setting, as for `pretrain`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    #[arg(long, help = format!("{SEEDS} [default: those of the plan]"))]
    seeds: Option<Seeds>,
    /// Threads, of every worker where an engine starts them [default: one per core, one with an engine]
    #[arg(long)]
    threads: Option<usize>,
    /// Do these runs only, A to B-1 in the order of the table, and leave the table to others: for any scheduler
    #[arg(long, value_name = "A..B")]
    index: Option<String>,
    /// What does the runs: threads of this machine, or workers that Slurm or HyperQueue start
    #[arg(long, default_value = "local", value_parser = engines(), conflicts_with_all = ["index", "dry_run"])]
    engine: EngineName,
    /// Runs per unit of work that an engine starts [default: some minutes of work]
    #[arg(long, value_name = "RUNS")]
    chunk: Option<usize>,
    /// Units that Slurm may run at once
    #[arg(long, value_name = "UNITS")]
    array_limit: Option<usize>,
    /// Time limit of a unit, as the engine writes it [default: four times what a trial says, and five minutes]
    #[arg(long)]
    time: Option<String>,
    /// Option of sbatch or of hq submit, for instance --job-option=--partition=long; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    job_option: Vec<String>,
    /// Write what the engine would be given to DIR/engine, and submit nothing
    #[arg(long)]
    write_job: bool,
    /// Say how many runs there are, how many of them are done, how long the others will take and what they will write, and stop
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

/// The engines by name.
fn engines() -> impl TypedValueParser<Value = EngineName> {
    let names = PossibleValuesParser::new(EngineName::ALL.map(|(name, _)| name));
    names.map(|name| {
        EngineName::ALL
            .into_iter()
            .find(|(known, _)| *known == name)
            .map_or(EngineName::Local, |(_, engine)| engine)
    })
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let arguments = match arguments.command {
        Some(Command::Show(arguments)) => return sweep_show::run(arguments, progress),
        None => arguments.sweep,
    };
    arguments.threads.map_or(Ok(()), |threads| check_range("threads", threads, 1..=1024))?;
    let options = Options {
        engine: arguments.engine,
        chunk: arguments.chunk,
        threads: arguments.threads.unwrap_or(1),
        limit: arguments.array_limit,
        time: arguments.time.clone(),
        extra: arguments.job_option.clone(),
        write_only: arguments.write_job,
    };
    options.check()?;
    if arguments.fresh && arguments.index.is_some() {
        let problem = "every worker would remove what the others did, expected it without --index";
        return Err(LabError::refused("fresh", problem));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads.unwrap_or(0))
        .build()
        .map_err(|e| LabError::internal("threads", e))?;
    pool.install(|| sweep(&arguments, &options, progress))
}

fn sweep(arguments: &Sweep, options: &Options, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let request = request(arguments)?;
    let (part, is_local) = (arguments.index.as_deref(), options.engine == EngineName::Local);
    let all = 0..request.plan.num_runs();
    let runs = part.map_or(Ok(all.clone()), |text| range(text, all.len()))?;
    let threads = if is_local { rayon::current_num_threads() } else { options.threads };
    if arguments.dry_run {
        let outlook = request.outlook(&runs, threads, progress)?;
        if arguments.json {
            print_json(&outlook)?
        } else {
            print_data(&format!("{outlook}\n"))?
        }
        return Ok(Outcome::Success);
    }
    if part.is_none()
        && let Some(finished) = request.finished()?
    {
        message(&format!("finished before, in {}", request.out.display()));
        show(arguments, &request, &finished)?;
        // Runs that diverged were told of when they were done: nothing is left to fail.
        return Ok(Outcome::Success);
    }
    let opened = request.open(part.is_none() && is_local)?;
    // Workers of one sweep are many: whoever starts them has tried how long runs take.
    let outlook = opened.outlook(&runs, threads, part.is_none(), progress)?;
    message(&outlook.to_string());
    let finished = if is_local {
        opened.work(&runs, progress).and_then(|()| match part {
            Some(_) => Ok(None),
            None => opened.finish(progress, message).map(Some),
        })
    } else {
        engine::run(&opened, options, &outlook, progress, message)
    };
    let finished = finished.inspect_err(|error| {
        if matches!(error, LabError::Stopped) {
            let goes_on = options.engine.goes_on();
            let said = if goes_on { "what was submitted goes on" } else { "what is done is kept" };
            message(&format!("{said}; the same command goes on where this one was"));
        }
    })?;
    let Some(finished) = finished else {
        if arguments.json {
            // What the directory has by now of the runs that were asked for.
            print_json(&opened.outlook(&runs, threads, false, progress)?)?;
        }
        return Ok(Outcome::Success);
    };
    show(arguments, &request, &finished)?;
    Ok(if finished.diverged > 0 { Outcome::ClaimFailed } else { Outcome::Success })
}

/// The plan with what was typed beside it, and where it is swept.
fn request(arguments: &Sweep) -> Result<Request, LabError> {
    let Sweep { plan, out, overrides, seeds, fresh, extend, .. } = arguments;
    // clap asks for it.
    let plan = plan.as_deref().unwrap_or(Path::new(""));
    if plan.is_dir() {
        if out.is_some() || !overrides.is_empty() || seeds.is_some() {
            let problem =
                "the directory of a sweep has its plan, expected no --out, --set or --seeds beside it";
            return Err(LabError::refused("PLAN", problem));
        }
        return Ok(Request { fresh: *fresh, extend: *extend, ..Request::of_directory(plan)? });
    }
    let asked = Request::of_plan(Plan::read(plan)?, out.clone(), overrides.clone(), seeds.clone())?;
    Ok(Request { fresh: *fresh, extend: *extend, ..asked })
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

/// Says where the table is, and what is to be said of it.
fn show(arguments: &Sweep, request: &Request, finished: &Finished) -> Result<(), LabError> {
    let table = request.out.join(sweep::TABLE);
    if arguments.json {
        print_json(finished)?;
    } else {
        print_data(&format!("{}\n", table.display()))?;
    }
    if finished.diverged > 0 {
        message(&format!(
            "warning: {} of {} runs diverged; the branch says {}",
            finished.diverged,
            finished.runs,
            sweep::DIVERGED
        ));
    }
    message(&format!("ictd sweep show {} looks at it", shell_word(&request.out.to_string_lossy())));
    Ok(())
}
