//! `ictd readings`.

use std::path::Path;

use clap::Args;
use ictd_lab::error::{LabError, check_range};
use ictd_lab::files::OutputDir;
use ictd_lab::studies::readings::{self, Figure, Progress, Readings, Search};

use crate::branches::gradient_table;
use crate::{Common, Outcome, message, print_data, print_json, table};

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
    let out = arguments.common.out.as_deref().unwrap_or(Path::new("out/readings"));
    let found = readings::run(&search, out, say)?;
    found.write(&OutputDir::create(out)?)?;
    if arguments.common.json {
        print_json(&found)?
    } else {
        print_data(&text(&found))?
    }
    message(&format!("figure and tables: {}", out.display()));
    Ok(Outcome::Success)
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

fn text(found: &Readings) -> String {
    let rows: Vec<Vec<String>> = found
        .readings()
        .map(|(prompt, mixing)| {
            let words = [prompt.query, prompt.columns, prompt.query_reward, prompt.target, mixing];
            let cells = found.of(&prompt, mixing).into_iter().map(|row| {
                let counts = row.counts;
                let share = format!("{}/{} ({:.2}–{:.2})", counts.shown, counts.seeds, row.low, row.high);
                let ends = if row.mixing.is_some() { format!(", {} td", counts.td) } else { String::new() };
                let lost = counts.diverged;
                share + &ends + &if lost > 0 { format!(", {lost} diverged") } else { String::new() }
            });
            words.into_iter().map(String::from).chain(cells).collect()
        })
        .collect();
    let figures = Figure::ALL.map(|f| format!("Figure {}", f.name()));
    let mut header = vec!["query", "columns", "its reward", "target", "its column under ρ"];
    header.extend(figures.iter().map(String::as_str));
    let mut text = table::render(&header, &rows);
    text += "\nseeds that show a figure, of all, and the 95 % interval of their share (Wilson); td: seeds that end in the TD block\n";
    let best = found.best();
    if best.is_empty() {
        text += "no reading shows a figure on every seed\n";
    }
    for (prompt, mixing, figures) in best {
        let names: Vec<&str> = figures.iter().map(|f| f.name()).collect();
        text += &format!(
            "on every seed Figures {}: {} query, {} columns, reward {}, {} target, its column {mixing}\n",
            names.join("; "),
            prompt.query,
            prompt.columns,
            prompt.query_reward,
            prompt.target
        );
    }
    text + "\n" + &gradient_table(&found.gradients)
}
