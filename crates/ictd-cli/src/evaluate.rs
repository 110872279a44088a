//! `ictd evaluate`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ictd::evaluate::Scaling;
use ictd::kernel::KernelName;
use ictd_lab::studies::evaluate::{self, EvaluateConfig, Logged};
use ictd_lab::{LabError, Progress};

use crate::log_arguments::{LogOptions, say};
use crate::{Common, Outcome, message};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Log: CSV, TSV, JSON lines, NPY, NPZ or HDF5, a Minari data set as folder or id, a context; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Discount; 1 where every episode terminates
    #[arg(long)]
    gamma: f64,
    /// Show the first three transitions as they were understood
    #[arg(long)]
    explain: bool,
    /// How features are scaled [default: standardize, none for labels]
    #[arg(long, value_parser = scalings())]
    scale: Option<Scaling>,
    /// Kernel
    #[arg(long, default_value = "rbf", value_parser = crate::kernels())]
    kernel: KernelName,
    /// Temperature of the kernel, instead of the best on held-out episodes
    #[arg(long)]
    temperature: Option<f64>,
    /// Depth, instead of the best on held-out episodes
    #[arg(long)]
    layers: Option<usize>,
    /// Fit other estimators beside it
    #[arg(long)]
    compare: bool,
    /// End with exit code 3 on a judgement of caution too
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    columns: LogOptions,
    #[command(flatten)]
    common: Common,
}

fn scalings() -> impl TypedValueParser<Value = Scaling> {
    PossibleValuesParser::new(["none", "standardize", "unit-norm"]).map(|name| match name.as_str() {
        "none" => Scaling::None,
        "unit-norm" => Scaling::UnitNorm,
        _ => Scaling::Standardize,
    })
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments {
        input,
        gamma,
        explain,
        scale,
        kernel,
        temperature,
        layers,
        compare,
        strict,
        columns,
        common,
    } = arguments;
    common.announce(progress, None);
    let logged = Logged::read(&input, &columns.wanted(), gamma, progress)?;
    let reading = logged.reading();
    say(&reading.mapping, &reading.warnings);
    if explain {
        reading.first.iter().for_each(|transition| message(&format!("  {transition}")));
    }
    let config = EvaluateConfig {
        gamma,
        scaling: scale,
        kernel,
        temperature,
        layers,
        compare,
        seed: common.seed,
        strict,
    };
    let evaluation = evaluate::run(&logged, &config, progress)?;
    common.present(&evaluation, None, progress)?;
    Ok(if evaluation.is_refused() { Outcome::Refused } else { Outcome::Success })
}
