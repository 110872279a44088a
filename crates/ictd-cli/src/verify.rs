//! `ictd verify`.

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::studies::theorem1::verify::{self, VerifyConfig};

use crate::{Common, Outcome};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Number of random prompts
    #[arg(long, default_value_t = VerifyConfig::default().num_trials, allow_negative_numbers = true)]
    trials: u64,
    /// Depth L
    #[arg(long, default_value_t = VerifyConfig::default().num_layers, allow_negative_numbers = true)]
    layers: usize,
    /// Context length n
    #[arg(long, default_value_t = VerifyConfig::default().context_len, allow_negative_numbers = true)]
    length: usize,
    /// Feature dimension d
    #[arg(long, default_value_t = VerifyConfig::default().feature_dim, allow_negative_numbers = true)]
    features: usize,
    /// States of the chain that prompts are drawn from
    #[arg(long, default_value_t = VerifyConfig::default().num_states, allow_negative_numbers = true)]
    states: usize,
    /// Discount
    #[arg(long, default_value_t = VerifyConfig::default().gamma, allow_negative_numbers = true)]
    gamma: f64,
    /// Largest discrepancy that counts as rounding
    #[arg(long, default_value_t = VerifyConfig::default().tolerance, allow_negative_numbers = true)]
    tolerance: f64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let found = verify::run(&VerifyConfig {
        feature_dim: arguments.features,
        context_len: arguments.length,
        num_layers: arguments.layers,
        gamma: arguments.gamma,
        num_trials: arguments.trials,
        num_states: arguments.states,
        tolerance: arguments.tolerance,
        seed: arguments.common.seed,
    })?;
    arguments.common.present(&found, Some("out/verify"))
}
