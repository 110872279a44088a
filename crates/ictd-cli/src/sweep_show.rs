//! `ictd sweep show`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ictd_lab::sweep::show::{self, Asked, Overview, PAGE, Runs, Statistic};
use ictd_lab::{LabError, Progress};

use crate::{Outcome, message, present};

#[derive(Debug, Args)]
pub struct Arguments {
    /// The directory of a sweep, finished or not
    dir: PathBuf,
    /// A column of the table [default: msve where it was measured, otherwise v_em]
    #[arg(long)]
    metric: Option<String>,
    /// What is said of the runs of a cell: a share of them, or IQM, median or mean of the metric [default: td, or iqm beside --metric]
    #[arg(long, value_parser = statistics())]
    statistic: Option<Statistic>,
    /// The key across [default: the second that the plan varies, or the only one]
    #[arg(long, value_name = "KEY")]
    x: Option<String>,
    /// The key down, or none to put everything but the key across together [default: the first that the plan varies]
    #[arg(long, value_name = "KEY")]
    y: Option<String>,
    /// Wait until all runs are done, saying how far they are
    #[arg(long)]
    watch: bool,
    /// Directory for tables, pictures and the page [default: DIR/show]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the runs for TensorBoard, too
    #[arg(long, value_name = "LOGDIR")]
    tensorboard: Option<PathBuf>,
    /// Print machine-readable JSON to stdout
    #[arg(long)]
    json: bool,
}

/// Statistics by name.
fn statistics() -> impl TypedValueParser<Value = Statistic> {
    let names = PossibleValuesParser::new(Statistic::ALL.map(|(name, _)| name));
    names.try_map(|name| name.parse::<Statistic>())
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { dir, metric, statistic, x, y, watch, out, tensorboard, json } = arguments;
    if watch {
        show::watch(&dir, progress)?;
    }
    let runs = Runs::read(&dir, progress)?;
    if let Some(logdir) = tensorboard {
        let written = show::tensorboard(&runs, &logdir, progress)?;
        message(&format!("{written} runs for TensorBoard: {}", logdir.display()));
    }
    let overview = Overview::new(runs, &Asked { metric, statistic, x, y }, progress)?;
    let out = out.unwrap_or_else(|| dir.join("show"));
    let outcome = present(&overview, json, Some(&out), progress)?;
    message(&format!("page: {}", out.join(PAGE).display()));
    Ok(outcome)
}
