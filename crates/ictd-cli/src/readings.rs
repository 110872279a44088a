//! `ictd readings`.

use clap::Args;
use ictd_lab::error::{LabError, check_range};
use ictd_lab::studies::readings::{self, Progress, Search};

use crate::{Common, Outcome, message};

/// Arguments of `ictd readings`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Seeds per reading, counted from --seed
    #[arg(long, default_value_t = 20, allow_negative_numbers = true)]
    seeds: u64,
    /// Change a key of every experiment, for instance --set states=16; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    changes: Vec<String>,
    /// Train everything again instead of continuing from finished experiments
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let first = arguments.common.seed;
    check_range("seeds", arguments.seeds, 1..=100_000)?;
    check_range("seed", first, 0..=u64::MAX - 100_000)?;
    let search = Search {
        seeds: (first..first + arguments.seeds).collect(),
        changes: arguments.changes,
        fresh: arguments.fresh,
    };
    let out = arguments.common.out_or(Some("out/readings")).unwrap_or_default();
    let found = readings::run(&search, &out, say)?;
    arguments.common.present(&found, Some("out/readings"))
}

fn say(progress: Progress<'_>) {
    let Some(row) = progress.rows.first() else { return };
    let p = row.prompt;
    let mixing = row.mixing.map_or_else(String::new, |m| format!(", {m}"));
    let figures: Vec<String> = progress
        .rows
        .iter()
        .map(|r| format!("Figure {} {}/{}", r.figure.name(), r.counts.shown, r.counts.seeds))
        .collect();
    let left = match progress.seconds_left {
        _ if progress.cached => "from an earlier search".into(),
        Some(seconds) => format!("{seconds:.0} s left"),
        None => String::new(),
    };
    message(&format!(
        "[{}/{}] {} query, {} columns, reward {}, {} target{mixing}: {}; {left}",
        progress.done,
        progress.total,
        p.query,
        p.columns,
        p.query_reward,
        p.target,
        figures.join(", ")
    ));
}
