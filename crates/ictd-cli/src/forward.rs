//! `ictd forward`.

use std::path::PathBuf;

use clap::Args;
use ictd::kernel::{Attention, KernelName};
use ictd::transformer::{Block, Parameters, TransformerConfig};
use ictd_lab::LabError;
use ictd_lab::files::{read_context, read_params};
use ictd_lab::studies::forward::report;

use crate::{Common, Outcome};

/// Arguments of `ictd forward`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Context as JSON; - reads standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Construction: tsm (one head and temporal shift) or dual (two heads)
    #[arg(long, default_value = "tsm")]
    block: String,
    /// Kernel: softmax, relu, elu1, rbf, linear or tabular
    #[arg(long, default_value = "softmax")]
    kernel: String,
    /// Depth L
    #[arg(long, default_value_t = 15, allow_negative_numbers = true)]
    layers: usize,
    /// Discount
    #[arg(long, default_value_t = 0.9, allow_negative_numbers = true)]
    gamma: f64,
    /// Temperature of the scores
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    temperature: f64,
    /// Step size: one number, or one for each layer separated by commas
    #[arg(long, default_value = "1", value_delimiter = ',', allow_hyphen_values = true)]
    step_size: Vec<f64>,
    /// Diagonal mixing rho
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    diagonal_mix: f64,
    /// Parameters: a checkpoint of `pretrain` (.safetensors), or JSON with {"V": …, "A": …} for all layers or
    /// {"layers": [{"V", "A"}, …]} [default: theta_*]
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// Also give every layer's full token matrix Z
    #[arg(long)]
    tokens: bool,
    /// Also give the values after infinitely many layers, and the rate of convergence (theta_* only)
    #[arg(long)]
    fixed_point: bool,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let block: Block = arguments.block.parse()?;
    let kernel: KernelName = arguments.kernel.parse()?;
    let attention = Attention::new(kernel.at(arguments.temperature)?, arguments.diagonal_mix)?;
    let parameters = arguments.params.as_deref().map_or(Ok(Parameters::ThetaStar), read_params)?;
    let config = TransformerConfig {
        block,
        attention,
        parameters,
        num_layers: arguments.layers,
        gamma: arguments.gamma,
        step_sizes: arguments.step_size,
    };
    let transformer = config.check()?;
    let context = read_context(&arguments.input)?;
    let report = report(&transformer, &context, arguments.tokens, arguments.fixed_point)?;
    arguments.common.present(&report, None)
}
