//! `ictd certify`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ictd::evaluate::Level;
use ictd::kernel::KernelName;
use ictd::task::Family;
use ictd_lab::files::{read_context, read_params};
use ictd_lab::studies::theory::certify::{self, LayerConfig, Typed};
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
    /// Kernel [default: the checkpoint's, or softmax]
    #[arg(long, value_parser = crate::kernels())]
    kernel: Option<KernelName>,
    /// Temperature of the scores [default: the checkpoint's, or 1]
    #[arg(long)]
    temperature: Option<f64>,
    /// Step size of every layer [default: the checkpoint's, or 1]
    #[arg(long)]
    step_size: Option<f64>,
    /// Depth whose error is reported [default: the checkpoint's, or 15]
    #[arg(long)]
    layers: Option<usize>,
    /// Absolute tolerance for the number of layers needed [default: 0.001]
    #[arg(long)]
    tolerance: Option<f64>,
    /// Parameters that all layers share: a checkpoint of `pretrain` (.safetensors), or JSON with {"V": …, "A": …} [default: theta_*]
    #[arg(long, value_name = "FILE", conflicts_with = "tasks")]
    params: Option<PathBuf>,
    /// Also give the attention weights between states, and with --out a heat map of them
    #[arg(long, conflicts_with = "tasks")]
    attention: bool,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { tasks_of, kernel, temperature, step_size, layers, tolerance, common, .. } = arguments;
    let model = arguments.params.as_deref().map(read_params).transpose()?;
    let family = tasks_of.tasks(Family::paper(), common.seed)?;
    let of_family = arguments.input.is_none().then(|| family.family()).flatten();
    for warning in model.iter().map(|model| model.remarks(of_family)).collect::<Result<Vec<_>, _>>()?.concat()
    {
        message(&format!("warning: {warning}"));
    }
    let gamma = match arguments.input {
        Some(_) => tasks_of.options.gamma,
        None => Some(family.gamma()),
    };
    let (layer, gamma) = Typed { kernel, temperature, step_size, layers, gamma, tolerance }.layer(model)?;
    let (draw, show_attention) = (common.output.out.is_some(), arguments.attention);
    let config = LayerConfig { draw, show_attention, seed: common.seed, ..layer };
    common.output.announce(progress, None);
    if let Some(tasks) = arguments.tasks {
        let counts = certify::count(&family, tasks, &config, progress)?;
        message(&family.describe());
        return common.output.present(&counts, None, progress);
    }
    let index = arguments.index.unwrap_or(0);
    let report = match (arguments.input, arguments.n) {
        (Some(path), _) => {
            let unit_norm = tasks_of.options.unit_norm;
            certify::context(&read_context(&path)?, gamma, unit_norm, &config, progress)?
        }
        (None, Some(n)) => certify::sampled(&family, index, n, &config, progress)?,
        (None, None) => certify::task(&family, index, &config, progress)?,
    };
    common.output.present(&report, None, progress)?;
    Ok(if report.judgement == Level::Refuse { Outcome::Refused } else { Outcome::Success })
}
