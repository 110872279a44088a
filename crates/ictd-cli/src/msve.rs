//! `ictd msve`.

use clap::Args;
use ictd::kernel::KernelName;
use ictd::task::{Family, Kind};
use ictd_lab::LabError;
use ictd_lab::studies::fig1::{self, MsveConfig};

use crate::task_arguments::TaskArguments;
use crate::{Common, Outcome};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Number of random tasks
    #[arg(long, default_value_t = MsveConfig::default().num_tasks, allow_negative_numbers = true)]
    tasks: u64,
    /// Depth L
    #[arg(long, default_value_t = MsveConfig::default().num_layers, allow_negative_numbers = true)]
    layers: usize,
    /// Context lengths, separated by commas [default: 1,3,…,39 for the verdict, and 60 to 1000 beside]
    #[arg(long, value_delimiter = ',', value_name = "N,N,…")]
    lengths: Option<Vec<usize>>,
    /// Kernel
    #[arg(long, default_value = "softmax", value_parser = crate::kernels())]
    kernel: KernelName,
    /// Temperature of the scores
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    temperature: f64,
    /// Step size of every layer
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    step_size: f64,
    #[command(flatten)]
    source: TaskArguments,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let default = MsveConfig::default();
    let (context_lens, longer_lens) = match arguments.lengths {
        Some(lengths) => (lengths, Vec::new()),
        None => (default.context_lens, default.longer_lens),
    };
    let curve = fig1::run(&MsveConfig {
        tasks: arguments.source.tasks(Family::of(Kind::Figure1), arguments.common.seed)?,
        num_tasks: arguments.tasks,
        context_lens,
        longer_lens,
        num_layers: arguments.layers,
        kernel: arguments.kernel.to_string(),
        temperature: arguments.temperature,
        step_size: arguments.step_size,
    })?;
    arguments.common.present(&curve, Some("out/msve"))
}
