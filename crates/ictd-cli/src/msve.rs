//! `ictd msve`.

use std::sync::Arc;

use clap::Args;
use ictd::kernel::KernelName;
use ictd::task::{Family, Kind};
use ictd_lab::studies::fig1::{self, MsveConfig};
use ictd_lab::{LabError, Progress};

use crate::task_arguments::TaskArguments;
use crate::{Common, Outcome};

/// Where results go.
const OUT: Option<&str> = Some("out/msve");

#[derive(Debug, Args)]
pub struct Arguments {
    /// Number of random tasks
    #[arg(long, default_value_t = MsveConfig::default().num_tasks)]
    tasks: u64,
    /// Depth L
    #[arg(long, default_value_t = MsveConfig::default().num_layers)]
    layers: usize,
    /// Context lengths, separated by commas [default: 1,3,…,39 for the verdict, and 60 to 1000 beside]
    #[arg(long, value_delimiter = ',', value_name = "N,N,…")]
    lengths: Option<Vec<usize>>,
    /// Kernel
    #[arg(long, default_value = "softmax", value_parser = crate::kernels())]
    kernel: KernelName,
    /// Temperature of the scores
    #[arg(long, default_value_t = 1.0)]
    temperature: f64,
    /// Step size of every layer
    #[arg(long, default_value_t = 1.0)]
    step_size: f64,
    #[command(flatten)]
    source: TaskArguments,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    arguments.common.output.announce(progress, OUT);
    let config = MsveConfig {
        tasks: arguments.source.tasks(Family::of(Kind::Figure1), arguments.common.seed)?,
        num_tasks: arguments.tasks,
        num_layers: arguments.layers,
        kernel: arguments.kernel.to_string(),
        temperature: arguments.temperature,
        step_size: arguments.step_size,
        ..MsveConfig::default()
    };
    let config = config.with_lengths(arguments.lengths);
    arguments.common.output.present(&fig1::run(&config, progress)?, OUT, progress)
}
