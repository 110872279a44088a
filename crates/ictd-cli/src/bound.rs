//! `ictd bound`.

use std::sync::Arc;

use clap::Args;
use ictd::task::Family;
use ictd_lab::studies::theory::theorem2::{self, BoundConfig};
use ictd_lab::{LabError, Progress};

use crate::task_arguments::TaskArguments;
use crate::{Common, Outcome};

/// Where results go.
const OUT: Option<&str> = Some("out/bound");

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    tasks: TaskArguments,
    /// Which task of the seed's sequence [default: 0]
    #[arg(long)]
    index: Option<u64>,
    /// Context lengths, separated by commas; the threshold of the contraction lemma is added where it can be
    /// sampled [default: 1000,30000]
    #[arg(long, value_delimiter = ',', value_name = "N,N,…")]
    lengths: Option<Vec<usize>>,
    /// Contexts per length
    #[arg(long, default_value_t = 1000)]
    contexts: u64,
    /// Confidence: statements hold with probability 1 - DELTA
    #[arg(long, default_value_t = 0.1)]
    delta: f64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { tasks, index, lengths, contexts, delta, common } = arguments;
    let given = tasks.given(Family::certified(), common.seed)?;
    let settings = BoundConfig::settings(given, index, lengths, contexts, delta, common.seed);
    settings.iter().try_for_each(BoundConfig::check)?;
    common.output.announce(progress, OUT);
    let reports = theorem2::run_all(&settings, progress)?;
    common.output.present(&reports, OUT, progress)
}
