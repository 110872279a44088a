//! `ictd forward`.

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
