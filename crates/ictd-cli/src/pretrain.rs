//! `ictd pretrain`.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use ictd_lab::error::{LabError, check_range};
use ictd_lab::studies::pretrain::{self, Ending, Monitor, RunOptions, Settings};

use crate::screen::QUIET;
use crate::task_arguments::TaskArguments;
use crate::{Outcome, message, present, print_data};

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
    /// Seeds: a range A..B (B not included), or numbers separated by commas
    #[arg(long, default_value = "0..5")]
    seeds: String,
    /// Directory for run directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Continue from the last checkpoints instead of starting over
    #[arg(long)]
    resume: bool,
    /// Epochs between checkpoints [default: every two seconds]
    #[arg(long, value_name = "EPOCHS", allow_negative_numbers = true)]
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

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let overrides = arguments.tasks.overrides(arguments.overrides)?;
    let settings = match &arguments.config {
        Some(path) => Settings::file(path, &overrides)?,
        None => Settings::preset(&arguments.preset, &overrides)?,
    };
    if arguments.print_config {
        print_data(&settings.to_commented_toml()?)?;
        return Ok(Outcome::Success);
    }
    let seeds = parse_seeds(&arguments.seeds)?;
    if arguments.checkpoint_every == Some(0) {
        return Err(LabError::value("checkpoint-every", 0, "at least 1"));
    }
    let Arguments { resume, checkpoint_every, .. } = arguments;
    let options = RunOptions { resume, checkpoint_every, notice: message };
    arguments.threads.map_or(Ok(()), |threads| check_range("threads", threads, 1..=1024))?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads.unwrap_or(0))
        .build()
        .map_err(|e| LabError::internal("threads", e))?;
    let monitor = Arc::new(Monitor::default());
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Without a handler a signal ends the process as usual; checkpoints stay valid either way. A second
        // signal does not wait for the current epochs.
        let _ = signal_hook::flag::register_conditional_shutdown(signal, 124, monitor.stop.clone());
        let _ = signal_hook::flag::register(signal, monitor.stop.clone());
    }
    let total = settings.config.epochs * seeds.len() as u64;
    let finished = Arc::new(AtomicBool::new(false));
    let watcher = {
        let (monitor, finished) = (monitor.clone(), finished.clone());
        std::thread::spawn(move || watch(&monitor, &finished, total))
    };
    let ending = pool.install(|| pretrain::run(&settings, &seeds, &arguments.out, &options, &monitor));
    finished.store(true, Ordering::Relaxed);
    // The watcher only prints.
    let _ = watcher.join();
    match ending? {
        Ending::Done { result, figures } => present(&*result, arguments.json, Some(&figures)),
        Ending::Stopped => {
            message("stopped; checkpoints are written, --resume continues from them");
            Ok(Outcome::Stopped)
        }
    }
}

/// Shows progress: a bar on a terminal, ten lines otherwise.
fn watch(monitor: &Monitor, finished: &AtomicBool, total: u64) {
    if QUIET.load(Ordering::Relaxed) {
        return;
    }
    let start = Instant::now();
    let terminal = std::io::stderr().is_terminal();
    let mut shown = 0;
    while !finished.load(Ordering::Relaxed) {
        let done = monitor.epochs.load(Ordering::Relaxed).min(total);
        let tenth = 10 * done / total;
        if done > 0 && (terminal || tenth > shown) {
            shown = tenth;
            let rate = done as f64 / start.elapsed().as_secs_f64();
            let left = (total - done) as f64 / rate;
            let line = format!("{done}/{total} epochs, {rate:.0} per second, {left:.1} s left");
            if terminal {
                let filled = (30 * done / total) as usize;
                eprint_part(&format!("\r[{}{}] {line}   ", "=".repeat(filled), " ".repeat(30 - filled)));
            } else {
                message(&line);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if terminal {
        eprint_part("\r\x1b[K");
    }
}

fn eprint_part(text: &str) {
    let _ = write!(std::io::stderr(), "{text}");
}

/// `0..5`, or `1,4,7`.
fn parse_seeds(text: &str) -> Result<Vec<u64>, LabError> {
    let bad = |why: &str| {
        LabError::value("seeds", format!("'{text}' ({why})"), "a range like 0..5 or numbers like 1,4,7")
    };
    let number = |s: &str| s.trim().parse::<u64>().map_err(|_| bad("not a number"));
    let seeds: Vec<u64> = match text.split_once("..") {
        Some((first, end)) => {
            let (first, end) = (number(first)?, number(end)?);
            if end.saturating_sub(first) > 1_000_000 {
                return Err(bad("more than a million"));
            }
            (first..end).collect()
        }
        None => text.split(',').map(number).collect::<Result<_, _>>()?,
    };
    let unique: BTreeSet<&u64> = seeds.iter().collect();
    match (seeds.len(), unique.len()) {
        (0, _) => Err(bad("empty")),
        (all, different) if all > different => Err(bad("a seed is given twice")),
        _ => Ok(seeds),
    }
}
