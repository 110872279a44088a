//! `ictd neu`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ictd::task::Family;
use ictd_lab::files::read_params;
use ictd_lab::studies::theory::theorem3::{NeuComparison, NeuConfig, NeuSweeps};
use ictd_lab::{LabError, Progress};

use crate::task_arguments::TaskArguments;
use crate::{Common, Outcome, message};

/// Where results go.
const OUT: Option<&str> = Some("out/neu");

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    tasks: TaskArguments,
    /// A checkpoint of `pretrain` or JSON parameters to compare with theta_*, at the first length and depth
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// Context lengths, separated by commas [default: 30,100,300,1000,3000; with --params the checkpoint's, or 10]
    #[arg(long, value_delimiter = ',', value_name = "N,N,…")]
    lengths: Option<Vec<usize>>,
    /// Depths, separated by commas [default: 1,2,3,4,5,6,8,10,12,15,40; with --params the checkpoint's, or 3]
    #[arg(long, value_delimiter = ',', value_name = "L,L,…")]
    layers: Option<Vec<usize>>,
    /// Tasks per estimate, one trajectory each; short contexts get up to four times as many
    #[arg(long, default_value_t = 2000)]
    samples: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { tasks, params, lengths, layers, samples, common } = arguments;
    if let Some(file) = &params {
        let family = tasks.tasks(Family::paper(), common.seed)?;
        let first = |list: &Option<Vec<usize>>| list.as_ref().and_then(|l| l.first().copied());
        common.output.announce(progress, None);
        let (n, layers) = (first(&lengths), first(&layers));
        let model = read_params(file)?;
        for warning in model.remarks(family.family())? {
            message(&format!("warning: {warning}"));
        }
        let name = file.display().to_string();
        let found = NeuComparison::run(&family, (&name, &model), n, layers, samples, progress)?;
        return common.output.present(&found, None, progress);
    }
    let given = tasks.given(Family::certified(), common.seed)?;
    let configs = NeuConfig::settings(given, lengths, layers, samples, common.seed);
    common.output.announce(progress, OUT);
    let found = NeuSweeps::run(&configs, progress, |config| {
        message(&format!("{}: {samples} tasks per estimate", config.family.describe()));
    })?;
    common.output.present(&found, OUT, progress)
}
