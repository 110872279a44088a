//! `ictd forward`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ictd::construction::Algorithm;
use ictd::kernel::{KernelName, Precision};
use ictd::transformer::Block;
use ictd_lab::files::{read_context, read_params};
use ictd_lab::studies::forward::{ConstructionOptions, Options, StepSizes, Wanted, report};
use ictd_lab::{LabError, Progress};

use crate::{Common, Outcome, judged, message};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Context as JSON or NPZ; - reads standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Another algorithm by linear attention, instead of weighted softmax TD: the values of the last row of one trajectory
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::as_str)).try_map(|name| name.parse::<Algorithm>()))]
    construction: Option<Algorithm>,
    /// Decay of traces of --construction td-lambda [default: 0.5]
    #[arg(long)]
    lambda: Option<f64>,
    /// Construction: tsm (one head and temporal shift) or dual (two heads) [default: the checkpoint's, or tsm]
    #[arg(long)]
    block: Option<Block>,
    /// Kernel [default: the checkpoint's, or softmax]
    #[arg(long, value_parser = crate::kernels())]
    kernel: Option<KernelName>,
    /// Depth L [default: that of --params, or 15]
    #[arg(long)]
    layers: Option<usize>,
    /// Discount [default: the checkpoint's, or 0.9; 1 with --construction average-reward]
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
    /// Also give the attention weights, and with --out a heat map of them
    #[arg(long)]
    attention: bool,
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

impl Arguments {
    fn options(&self) -> Options {
        let step_size = self.step_size.clone().map(StepSizes::Each);
        let Self { block, kernel, layers, gamma, temperature, diagonal_mix, .. } = *self;
        let Self { precision, tolerance, memory, tokens, attention, last, fixed_point, .. } = *self;
        Options {
            block,
            kernel,
            layers,
            gamma,
            temperature,
            step_size,
            diagonal_mix,
            precision,
            tolerance,
            memory,
            tokens,
            attention,
            last,
            fixed_point,
        }
    }
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    if let Some(algorithm) = arguments.construction {
        return constructed(&arguments, algorithm, progress);
    }
    if arguments.lambda.is_some() {
        return Err(LabError::refused("lambda", "expected --construction td-lambda beside it"));
    }
    let (options, common) = (arguments.options(), &arguments.common);
    let model = arguments.params.as_deref().map(read_params).transpose()?;
    for warning in model.iter().map(|model| model.remarks(None)).collect::<Result<Vec<_>, _>>()?.concat() {
        message(&format!("warning: {warning}"));
    }
    let is_fixed = model.as_ref().is_some_and(|m| m.description.is_some());
    let transformer = options.transformer(model)?.check()?;
    let context = read_context(&arguments.input)?;
    common.output.announce(progress, None);
    let wanted = Wanted { is_fixed, ..options.wanted(common.output.json, common.output.out.is_some()) };
    let report = report(&transformer, &context, wanted, progress)?;
    common.output.present(&report, None, progress)?;
    Ok(judged(report.judgement()))
}

/// Runs a construction in linear attention; what is about softmax attention has no meaning there.
fn constructed(
    arguments: &Arguments,
    algorithm: Algorithm,
    progress: &Arc<Progress>,
) -> Result<Outcome, LabError> {
    let common = &arguments.common;
    let linear = "whose attention is linear";
    let fixed = "whose parameters are known";
    let exact = "which needs no weights of attention and is computed exactly, in double precision";
    let given = [
        ("kernel", arguments.kernel.is_some(), linear),
        ("temperature", arguments.temperature.is_some(), linear),
        ("params", arguments.params.is_some(), fixed),
        ("block", arguments.block.is_some(), fixed),
        ("diagonal-mix", arguments.diagonal_mix.is_some(), fixed),
        ("fixed-point", arguments.fixed_point, "where JSON has the limit in any case"),
        (
            "attention",
            arguments.attention,
            "where products of tokens stand for weights: --tokens gives the tokens",
        ),
        ("last", arguments.last, "whose values are those of the last row in any case"),
        ("tolerance", arguments.tolerance.is_some(), exact),
        ("precision", arguments.precision.is_some(), exact),
        ("memory", arguments.memory.is_some(), exact),
    ];
    if let Some((name, _, why)) = given.iter().find(|(_, given, _)| *given) {
        return Err(LabError::refused(
            *name,
            format!("has no meaning beside --construction {algorithm}, {why}"),
        ));
    }
    let options = ConstructionOptions {
        algorithm,
        lambda: arguments.lambda,
        layers: arguments.layers,
        gamma: arguments.gamma,
        step_size: arguments.step_size.clone().map(StepSizes::Each),
        tokens: arguments.tokens,
    };
    options.construction()?;
    let context = read_context(&arguments.input)?;
    common.output.announce(progress, None);
    let report = options.report(&context, progress)?;
    common.output.present(&report, None, progress)?;
    Ok(judged(report.judgement()))
}
