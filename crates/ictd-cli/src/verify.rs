//! `ictd verify`.

use std::sync::Arc;

use clap::Args;
use ictd_lab::studies::theorem1::verify::{self, VerifyConfig};
use ictd_lab::{LabError, Progress};

use crate::{Common, Outcome};

/// Where results go.
const OUT: Option<&str> = Some("out/verify");

#[derive(Debug, Args)]
pub struct Arguments {
    /// Number of random prompts
    #[arg(long, default_value_t = VerifyConfig::default().num_trials)]
    trials: u64,
    /// Depth L
    #[arg(long, default_value_t = VerifyConfig::default().num_layers)]
    layers: usize,
    /// Context length n
    #[arg(long, default_value_t = VerifyConfig::default().context_len)]
    length: usize,
    /// Feature dimension d
    #[arg(long, default_value_t = VerifyConfig::default().feature_dim)]
    features: usize,
    /// States of the chain that prompts are drawn from
    #[arg(long, default_value_t = VerifyConfig::default().num_states)]
    states: usize,
    /// Discount
    #[arg(long, default_value_t = VerifyConfig::default().gamma)]
    gamma: f64,
    /// Largest discrepancy that counts as rounding
    #[arg(long, default_value_t = VerifyConfig::default().tolerance)]
    tolerance: f64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    arguments.common.output.announce(progress, OUT);
    let config = VerifyConfig {
        feature_dim: arguments.features,
        context_len: arguments.length,
        num_layers: arguments.layers,
        gamma: arguments.gamma,
        num_trials: arguments.trials,
        num_states: arguments.states,
        tolerance: arguments.tolerance,
        seed: arguments.common.seed,
    };
    arguments.common.output.present(&verify::run(&config, progress)?, OUT, progress)
}
