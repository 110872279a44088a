//! `ictd certify`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ictd::CertificateConfig;
use ictd::evaluate::Level;
use ictd::kernel::KernelName;
use ictd::task::Family;
use ictd_lab::files::read_context;
use ictd_lab::studies::theory::certify::{self, LayerConfig};
use ictd_lab::{LabError, Progress};

use crate::task_arguments::TaskArguments;
use crate::{Common, Outcome, message};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Context as JSON or NPZ, as for `forward`; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["task", "tasks", "n", "states", "features", "free", "threshold", "one_hot", "continuous", "score_scale", "index"])]
    input: Option<PathBuf>,
    #[command(flatten)]
    tasks_of: TaskArguments,
    /// Which task of the seed's sequence [default: 0]
    #[arg(long, conflicts_with = "tasks")]
    index: Option<u64>,
    /// Count over the first N tasks instead of examining one
    #[arg(long, value_name = "N", conflicts_with = "n")]
    tasks: Option<u64>,
    /// Examine a sampled context of N transitions instead of the limit of long ones
    #[arg(long, value_name = "N")]
    n: Option<usize>,
    /// Kernel
    #[arg(long, default_value = "softmax", value_parser = crate::kernels())]
    kernel: KernelName,
    /// Temperature of the scores
    #[arg(long, default_value_t = 1.0)]
    temperature: f64,
    /// Step size of every layer
    #[arg(long, default_value_t = 1.0)]
    step_size: f64,
    /// Depth whose error is reported
    #[arg(long, default_value_t = 15)]
    layers: usize,
    /// Absolute tolerance for the number of layers needed
    #[arg(long, default_value_t = 1e-3)]
    tolerance: f64,
    /// Also give the attention weights between states, and with --out a heat map of them
    #[arg(long, conflicts_with = "tasks")]
    attention: bool,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { tasks_of, kernel, temperature, step_size, layers: num_layers, tolerance, common, .. } =
        arguments;
    let certificate = CertificateConfig { step_size, num_layers, tolerance };
    let config = LayerConfig {
        kernel,
        temperature,
        certificate,
        draw: common.out.is_some(),
        show_attention: arguments.attention,
        seed: common.seed,
    };
    let family = tasks_of.tasks(Family::paper(), common.seed)?;
    common.announce(progress, None);
    if let Some(tasks) = arguments.tasks {
        let counts = certify::count(&family, tasks, &config, progress)?;
        message(&family.describe());
        return common.present(&counts, None, progress);
    }
    let index = arguments.index.unwrap_or(0);
    let report = match (arguments.input, arguments.n) {
        (Some(path), _) => {
            let (gamma, unit_norm) = (tasks_of.options.gamma.unwrap_or(0.9), tasks_of.options.unit_norm);
            certify::context(&read_context(&path)?, gamma, unit_norm, &config, progress)?
        }
        (None, Some(n)) => certify::sampled(&family, index, n, &config, progress)?,
        (None, None) => certify::task(&family, index, &config, progress)?,
    };
    common.present(&report, None, progress)?;
    Ok(if report.judgement == Level::Refuse { Outcome::Refused } else { Outcome::Success })
}
