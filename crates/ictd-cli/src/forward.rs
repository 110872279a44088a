//! `ictd forward`.

use std::fmt::{Display, Formatter};
use std::path::PathBuf;

use clap::Args;
use ictd::kernel::{Attention, KernelName};
use ictd::transformer::{Block, Parameters, TransformerConfig};
use ictd_lab::LabError;
use ictd_lab::files::{OutputDir, read_context, read_params};
use ictd_lab::studies::forward::{ForwardReport, report};

use crate::{Common, Outcome, message, print_data, print_json, table};

/// Arguments of `ictd forward`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Context as JSON; - reads standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Construction: tsm (one head and temporal shift) or dual (two heads) [default: the checkpoint's, or tsm]
    #[arg(long)]
    block: Option<Block>,
    /// Kernel: softmax, relu, elu1, rbf, linear or tabular [default: the checkpoint's, or softmax]
    #[arg(long)]
    kernel: Option<KernelName>,
    /// Depth L [default: the checkpoint's, or 15]
    #[arg(long, allow_negative_numbers = true)]
    layers: Option<usize>,
    /// Discount [default: the checkpoint's, or 0.9]
    #[arg(long, allow_negative_numbers = true)]
    gamma: Option<f64>,
    /// Temperature of the scores [default: the checkpoint's, or 1]
    #[arg(long, allow_negative_numbers = true)]
    temperature: Option<f64>,
    /// Step size: one number, or one for each layer separated by commas [default: the checkpoint's, or 1]
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    step_size: Option<Vec<f64>>,
    /// Diagonal mixing rho [default: the checkpoint's, or 0]
    #[arg(long, allow_negative_numbers = true)]
    diagonal_mix: Option<f64>,
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

/// What was typed, or what the checkpoint says, or a default; refuses what contradicts the checkpoint.
fn choose<T: PartialEq + Display>(
    flag: &str,
    typed: Option<T>,
    said: Option<T>,
    default: T,
) -> Result<T, LabError> {
    match (typed, said) {
        (Some(typed), Some(said)) if typed != said => Err(LabError::Invalid(format!(
            "{flag} is {typed}, but the checkpoint was trained with {said}: leave the flag out"
        ))),
        (typed, said) => Ok(typed.or(said).unwrap_or(default)),
    }
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
    if model.as_ref().is_some_and(|m| m.is_undescribed_checkpoint) {
        message(
            "warning: the checkpoint is of format 1 and does not say what it was trained with: flags and defaults are used",
        );
    }
    let (parameters, said) = model.map_or((Parameters::ThetaStar, None), |m| (m.parameters, m.description));
    let said = said.as_ref();
    let kernel = choose("kernel", arguments.kernel, said.map(|s| s.kernel), KernelName::Softmax)?;
    let temperature = choose("temperature", arguments.temperature, said.map(|s| s.temperature), 1.0)?;
    let mix = choose("diagonal mix", arguments.diagonal_mix, said.map(|s| s.diagonal_mix), 0.0)?;
    let typed = arguments.step_size.clone().map(StepSizes);
    let step_sizes =
        choose("step size", typed, said.map(|s| StepSizes(vec![s.step_size])), StepSizes(vec![1.0]))?;
    Ok(TransformerConfig {
        block: choose("block", arguments.block, said.map(|s| s.block), Block::TemporalShift)?,
        attention: Attention::new(kernel.at(temperature)?, mix)?,
        parameters,
        num_layers: choose("layers", arguments.layers, said.map(|s| s.layers), 15)?,
        gamma: choose("gamma", arguments.gamma, said.map(|s| s.gamma), 0.9)?,
        step_sizes: step_sizes.0,
    })
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let config = transformer_config(&arguments)?;
    let transformer = config.check()?;
    let context = read_context(&arguments.input)?;
    let report = report(&transformer, &context, arguments.tokens, arguments.fixed_point)?;
    if let Some(out) = &arguments.common.out {
        report.write(&OutputDir::create(out)?)?;
        message(&format!("figure and tables: {}", out.display()));
    }
    if arguments.common.json {
        print_json(&report)?
    } else {
        print_data(&text(&report))?
    }
    Ok(Outcome::Success)
}

/// Columns shown in the terminal before the rest is left to --json and --out.
const SHOWN: usize = 12;

/// Six decimals for ordinary numbers, powers of ten for very large and very small ones.
fn number(x: &f64) -> String {
    if *x == 0.0 || (1e-4..1e6).contains(&x.abs()) { format!("{x:.6}") } else { format!("{x:.5e}") }
}

fn text(report: &ForwardReport) -> String {
    let columns = report.values[0].len();
    let first = columns.saturating_sub(SHOWN);
    let mut header: Vec<String> = vec!["layer".into()];
    header.extend((first..columns).map(|j| format!("v[{j}]")));
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows: Vec<Vec<String>> = report
        .values
        .iter()
        .enumerate()
        .map(|(l, row)| [l.to_string()].into_iter().chain(row[first..].iter().map(number)).collect())
        .collect();
    let mut out = table::render(&header, &rows);
    if first > 0 {
        out += &format!("(columns 0 to {} left out here; --json and --out give all)\n", first - 1);
    }
    if let Some(fixed) = &report.fixed_point {
        let last: Vec<String> = fixed.values[first..].iter().map(number).collect();
        out += &format!("\ninfinitely many layers: {}\n", last.join("  "));
        out += &format!(
            "spectral radius {:.6}, {}: the iteration {}\n",
            fixed.spectral_radius,
            fixed.status,
            if fixed.converges {
                "converges to these values"
            } else if fixed.spectral_radius < 1.0 {
                "may not converge to them, rounding decides"
            } else {
                "does not converge to them"
            }
        );
    }
    for (layer, z) in report.tokens.iter().flatten().enumerate() {
        out += &format!("\nZ_{layer}\n");
        let rows: Vec<Vec<String>> = z
            .iter()
            .zip(&report.row_names)
            .map(|(row, name)| [name.clone()].into_iter().chain(row.iter().map(number)).collect())
            .collect();
        let names: Vec<String> = (0..columns).map(|j| j.to_string()).collect();
        let header: Vec<&str> = ["row"].into_iter().chain(names.iter().map(String::as_str)).collect();
        out += &table::render(&header, &rows);
    }
    out
}
