//! `ictd evaluate`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ictd::evaluate::Scaling;
use ictd::kernel::KernelName;
use ictd_lab::logs::{Wanted, queries};
use ictd_lab::studies::evaluate::{self, Estimator, EvaluateConfig, Logged, self_test};
use ictd_lab::{LabError, Progress};

use crate::log_arguments::{LogOptions, say};
use crate::{Common, Outcome, message};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Log: CSV, TSV, JSON lines, NPY, NPZ or HDF5 (Arrow and Parquet where they were built in), a Minari data set as folder or id, a context; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "self_test")]
    input: Option<PathBuf>,
    /// Discount; 1 where every episode terminates
    #[arg(long, required_unless_present = "self_test")]
    gamma: Option<f64>,
    /// Show the first three transitions as they were understood
    #[arg(long)]
    explain: bool,
    /// Values at the states of this file (CSV, JSON lines, NPZ or NPY; Arrow and Parquet where they were built in) instead of those of the log
    #[arg(long, value_name = "FILE")]
    query: Option<PathBuf>,
    /// Estimator
    #[arg(long, default_value = "softmax-td", value_parser = estimators())]
    estimator: Estimator,
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
    /// Ridge of least squares, as a share of the number of transitions, instead of the best on held-out episodes
    #[arg(long)]
    ridge: Option<f64>,
    /// Decay of the traces of LSTD(λ), which --compare leaves out without it [default of lstd-lambda: 0.9]
    #[arg(long)]
    lambda: Option<f64>,
    /// Fit other estimators beside it
    #[arg(long)]
    compare: bool,
    /// Test how often intervals hold the truth, on simulated logs of processes whose values are known (minutes)
    #[arg(long, conflicts_with_all = ["input", "gamma", "query", "compare", "strict", "explain"])]
    self_test: bool,
    /// Simulated logs of every kind
    #[arg(long, default_value_t = 20, requires = "self_test")]
    logs: u64,
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

fn estimators() -> impl TypedValueParser<Value = Estimator> {
    PossibleValuesParser::new(Estimator::ALL.map(Estimator::as_str)).try_map(|name| name.parse::<Estimator>())
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { query, explain, columns, common, .. } = &arguments;
    common.output.announce(progress, None);
    let (Some(input), Some(gamma)) = (&arguments.input, arguments.gamma) else {
        let found = self_test(arguments.logs, common.seed, progress)?;
        return common.output.present(&found, None, progress);
    };
    let config = EvaluateConfig {
        gamma,
        estimator: arguments.estimator,
        scaling: arguments.scale,
        kernel: arguments.kernel,
        temperature: arguments.temperature,
        layers: arguments.layers,
        ridge: arguments.ridge,
        lambda: arguments.lambda,
        compare: arguments.compare,
        seed: common.seed,
        strict: arguments.strict,
    };
    let wanted = Wanted { id_may_lack: query.is_some(), ..columns.wanted() };
    let logged = Logged::read(input, &wanted, &config, progress)?;
    let reading = logged.reading();
    say(&reading.mapping, &reading.warnings);
    if *explain {
        reading.first.iter().for_each(|transition| message(&format!("  {transition}")));
    }
    let queries = query.as_ref().map(|path| queries(path, reading, &wanted)).transpose()?;
    let evaluation = evaluate::run(&logged, queries.as_ref(), &config, progress)?;
    common.output.present(&evaluation, None, progress)?;
    Ok(if evaluation.is_refused() { Outcome::Refused } else { Outcome::Success })
}
