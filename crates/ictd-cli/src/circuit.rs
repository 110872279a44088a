//! `ictd circuit`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ictd_lab::files::read_params;
use ictd_lab::studies::circuit::{CircuitConfig, CircuitName};
use ictd_lab::{LabError, Progress};

use crate::{Common, Outcome, message};

/// Where results go.
const OUT: Option<&str> = Some("out/circuit");

#[derive(Debug, Args)]
pub struct Arguments {
    /// The circuit: constructed, or trained, which is what --params holds
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(CircuitName::ALL.map(CircuitName::as_str)).try_map(|name| name.parse::<CircuitName>()))]
    name: CircuitName,
    /// Feature dimension d [default: 4, or the parameters']
    #[arg(long)]
    features: Option<usize>,
    /// Depth L [default: 4, 200 for lstd, or that of --params]
    #[arg(long)]
    layers: Option<usize>,
    /// Discount [default: 0.9, or the checkpoint's]
    #[arg(long)]
    gamma: Option<f64>,
    /// Step size [default: 1, 2 for lstd, or the checkpoint's]
    #[arg(long)]
    step_size: Option<f64>,
    /// Parameters of a trained circuit: a checkpoint of `pretrain` (.safetensors), or JSON as `forward` takes it
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { name, features, layers, gamma, step_size, params, common } = arguments;
    let model = params.as_deref().map(read_params).transpose()?;
    let says_nothing = model.as_ref().is_some_and(|model| model.description.is_none());
    let remarks = model.iter().map(|model| model.remarks(None)).collect::<Result<Vec<_>, _>>()?.concat();
    let config = CircuitConfig { features, layers, gamma, step_size, seed: common.seed };
    common.output.announce(progress, OUT);
    let circuit = config.circuit(name, model)?;
    // Of what cannot be used nobody needs to know more.
    for warning in remarks {
        message(&format!("warning: {warning}"));
    }
    if says_nothing {
        message(
            "warning: the file does not say its kernel, temperature and block: softmax, 1 and tsm are taken",
        );
    }
    common.output.present(&circuit, OUT, progress)
}
