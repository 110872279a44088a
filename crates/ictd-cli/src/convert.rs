//! `ictd convert`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ictd_lab::logs::{Conversion, convert};
use ictd_lab::{LabError, Progress};

use crate::log_arguments::{LogOptions, say};
use crate::{Outcome, print_data, print_json};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Log: CSV, TSV, JSON lines, NPY, NPZ or HDF5 (Arrow and Parquet where they were built in), compressed with gzip or not, a Minari data set as folder or id, a context;
    /// - is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// File ending in .csv, .tsv, .jsonl, .npz, .parquet (where it was built in) or .json (a context); a name without an ending is a folder for Minari
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Show the first three transitions as they were understood
    #[arg(long)]
    explain: bool,
    /// Print machine-readable JSON to stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    columns: LogOptions,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { input, output, columns, explain, json } = arguments;
    let done = convert(&input, &output, &columns.wanted(), progress)?;
    say(&done.mapping, &done.warnings);
    if json {
        print_json(&done)?;
    } else {
        print_data(&text(&done, explain))?;
    }
    Ok(Outcome::Success)
}

fn text(done: &Conversion, explain: bool) -> String {
    let shown: String = done.first.iter().filter(|_| explain).map(|t| format!("{t}\n")).collect();
    let files: String = done.files.iter().map(|file| format!("{}\n", file.display())).collect();
    let counts = done.counts;
    format!(
        "{shown}{} episodes ({} terminated, {} truncated), {} transitions, {} states\n{files}",
        counts.episodes, counts.terminated, counts.truncated, counts.transitions, done.states
    )
}
