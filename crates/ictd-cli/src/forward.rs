//! `ictd forward`.

use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ictd::kernel::{Attention, KernelName, Precision};
use ictd::transformer::{Block, Parameters, TransformerConfig};
use ictd_lab::files::{chosen, read_context, read_params};
use ictd_lab::studies::forward::{Asked, Wanted, report};
use ictd_lab::{LabError, Progress};

use crate::{Common, Outcome, judged, message};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Context as JSON or NPZ; - reads standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Construction: tsm (one head and temporal shift) or dual (two heads) [default: the checkpoint's, or tsm]
    #[arg(long)]
    block: Option<Block>,
    /// Kernel [default: the checkpoint's, or softmax]
    #[arg(long, value_parser = crate::kernels())]
    kernel: Option<KernelName>,
    /// Depth L [default: the checkpoint's, or 15]
    #[arg(long)]
    layers: Option<usize>,
    /// Discount [default: the checkpoint's, or 0.9]
    #[arg(long)]
    gamma: Option<f64>,
    /// Temperature of the scores [default: the checkpoint's, or 1]
    #[arg(long)]
    temperature: Option<f64>,
    /// Step size: one number, or one for each layer separated by commas [default: the checkpoint's, or 1]
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    step_size: Option<Vec<f64>>,
    /// Diagonal mixing rho [default: the checkpoint's, or 0]
    #[arg(long)]
    diagonal_mix: Option<f64>,
    /// Parameters: a checkpoint of `pretrain` (.safetensors), or JSON with {"V": …, "A": …} for all layers or
    /// {"layers": [{"V", "A"}, …]} [default: theta_*]
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// Also give every layer's full token matrix Z
    #[arg(long)]
    tokens: bool,
    /// Give the values of the queries only (of the last column where there are none)
    #[arg(long)]
    last: bool,
    /// Compute weights exactly, in this arithmetic [default: double, or pivots where that takes over ten seconds]
    #[arg(long, value_parser = PossibleValuesParser::new(["single", "double"]).try_map(|name| name.parse::<Precision>()))]
    precision: Option<Precision>,
    /// Compute weights through pivots where that is faster, no column of them being off by more than this in all; elsewhere exactly, as
    /// --precision says
    #[arg(long, value_name = "T")]
    tolerance: Option<f64>,
    /// Gigabytes that pivots may take [default: 8]
    #[arg(long, value_name = "GB")]
    memory: Option<f64>,
    /// Also give the values after infinitely many layers, and the rate of convergence (theta_* only)
    #[arg(long)]
    fixed_point: bool,
    #[command(flatten)]
    common: Common,
}

/// Step sizes as typed.
#[derive(PartialEq)]
struct StepSizes(Vec<f64>);

impl Display for StepSizes {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let texts: Vec<String> = self.0.iter().map(f64::to_string).collect();
        f.write_str(&texts.join(","))
    }
}

/// The Transformer that the flags and the checkpoint describe.
fn transformer_config(arguments: &Arguments) -> Result<TransformerConfig, LabError> {
    let model = arguments.params.as_deref().map(read_params).transpose()?;
    if let Some(warning) = model.as_ref().and_then(|m| m.warning) {
        message(&format!("warning: {warning}"));
    }
    let (parameters, said) = model.map_or((Parameters::ThetaStar, None), |m| (m.parameters, m.description));
    let said = said.as_ref();
    let kernel = chosen("kernel", arguments.kernel, said.map(|s| s.kernel), KernelName::Softmax)?;
    let temperature = chosen("temperature", arguments.temperature, said.map(|s| s.temperature), 1.0)?;
    let mix = chosen("diagonal mix", arguments.diagonal_mix, said.map(|s| s.diagonal_mix), 0.0)?;
    let typed = arguments.step_size.clone().map(StepSizes);
    let step_sizes =
        chosen("step size", typed, said.map(|s| StepSizes(vec![s.step_size])), StepSizes(vec![1.0]))?;
    Ok(TransformerConfig {
        block: chosen("block", arguments.block, said.map(|s| s.block), Block::TemporalShift)?,
        attention: Attention::new(kernel.at(temperature)?, mix)?,
        parameters,
        num_layers: chosen("layers", arguments.layers, said.map(|s| s.layers), 15)?,
        gamma: chosen("gamma", arguments.gamma, said.map(|s| s.gamma), 0.9)?,
        step_sizes: step_sizes.0,
    })
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let config = transformer_config(&arguments)?;
    let transformer = config.check()?;
    let context = read_context(&arguments.input)?;
    arguments.common.announce(progress, None);
    let Arguments { tokens, fixed_point, last, precision, tolerance, memory, ref common, .. } = arguments;
    let asked = Asked { precision, tolerance, memory };
    let wanted = Wanted { asked, last, tokens, fixed_point, json: common.json, files: common.out.is_some() };
    let report = report(&transformer, &context, wanted, progress)?;
    arguments.common.present(&report, None, progress)?;
    Ok(judged(report.judgement()))
}
