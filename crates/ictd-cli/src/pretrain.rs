//! `ictd pretrain`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ictd_lab::error::check_range;
use ictd_lab::studies::pretrain::{self, Earlier, Ending, RunOptions, Settings};
use ictd_lab::{LabError, Progress, Seeds};

use crate::task_arguments::TaskArguments;
use crate::{Outcome, SEEDS, message, present_in, print_data, results_in};

#[derive(Debug, Args)]
pub struct Arguments {
    /// TOML file with the keys that differ from the paper's setting
    config: Option<PathBuf>,
    /// Setting to start from: paper, mask-full, mask-relaxed or predecessor
    #[arg(long, conflicts_with = "config", default_value = "paper")]
    preset: String,
    /// Change a key, for instance --set query=skip --set optimizer.lr=3e-4; may be repeated; --print-config lists them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    #[command(flatten)]
    tasks: TaskArguments,
    #[arg(long, default_value = "0..5", help = SEEDS)]
    seeds: Seeds,
    /// Directory for run directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Continue from the last checkpoints instead of starting over, and repair finished seeds whose files are damaged
    #[arg(long)]
    resume: bool,
    /// Train finished seeds anew instead of taking their results as they are
    #[arg(long, conflicts_with = "resume")]
    fresh: bool,
    /// Epochs between checkpoints [default: every two seconds]
    #[arg(long, value_name = "EPOCHS")]
    checkpoint_every: Option<u64>,
    /// Threads [default: one per core]
    #[arg(long)]
    threads: Option<usize>,
    /// Print machine-readable JSON to stdout
    #[arg(long)]
    json: bool,
    /// Print the resolved configuration as TOML, every key explained, and stop
    #[arg(long)]
    print_config: bool,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let overrides = arguments.tasks.overrides(arguments.overrides)?;
    let settings = match &arguments.config {
        Some(path) => Settings::file(path, &overrides)?,
        None => Settings::preset(&arguments.preset, &overrides)?,
    };
    if arguments.print_config {
        print_data(&settings.to_commented_toml()?)?;
        return Ok(Outcome::Success);
    }
    if arguments.checkpoint_every == Some(0) {
        return Err(LabError::value("checkpoint-every", 0, "at least 1"));
    }
    let earlier = match (arguments.fresh, arguments.resume) {
        (true, _) => Earlier::Nothing,
        (_, true) => Earlier::Checkpoints,
        _ => Earlier::Results,
    };
    let options = RunOptions { earlier, checkpoint_every: arguments.checkpoint_every, notice: message };
    arguments.threads.map_or(Ok(()), |threads| check_range("threads", threads, 1..=1024))?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads.unwrap_or(0))
        .build()
        .map_err(|e| LabError::internal("threads", e))?;
    let ending =
        pool.install(|| pretrain::run(&settings, &arguments.seeds, &arguments.out, &options, progress));
    match ending? {
        Ending::Done { result, figures } => {
            // Where nothing was trained they are as they were.
            present_in(&*result, arguments.json, Some(results_in(&figures)?.keeping()), progress)
        }
        Ending::Stopped => {
            message("stopped; checkpoints are written, --resume continues from them");
            Ok(Outcome::Stopped)
        }
    }
}
