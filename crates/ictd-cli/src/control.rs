//! `ictd control`.

use std::sync::Arc;

use clap::Args;
use ictd_lab::studies::control::{self, ControlStudyConfig};
use ictd_lab::{LabError, Progress};

use crate::{Common, Outcome};

/// Where results go.
const OUT: Option<&str> = Some("out/control");

#[derive(Debug, Args)]
pub struct Arguments {
    /// Random decision processes on which policies are improved
    #[arg(long, default_value_t = ControlStudyConfig::default().mdps)]
    mdps: u64,
    /// Updates of values and policy, each of one layer
    #[arg(long, default_value_t = ControlStudyConfig::default().updates)]
    updates: usize,
    /// Transitions that every update is shown
    #[arg(long, default_value_t = ControlStudyConfig::default().transitions)]
    transitions: usize,
    /// Random decision processes with exact expectations
    #[arg(long, default_value_t = ControlStudyConfig::default().exact_mdps)]
    exact_mdps: u64,
    /// Layers with exact expectations
    #[arg(long, default_value_t = ControlStudyConfig::default().sweeps)]
    sweeps: usize,
    /// Prompts on which attention is compared with the algorithms
    #[arg(long, default_value_t = ControlStudyConfig::default().trials)]
    trials: u64,
    /// Compare attention with the algorithms and do nothing else
    #[arg(long, conflicts_with_all = ["mdps", "updates", "transitions", "exact_mdps", "sweeps"])]
    verify: bool,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments, progress: &Arc<Progress>) -> Result<Outcome, LabError> {
    let Arguments { mdps, updates, transitions, exact_mdps, sweeps, trials, verify, common } = arguments;
    common.output.announce(progress, OUT);
    let seed = common.seed;
    let config = ControlStudyConfig { seed, mdps, updates, transitions, exact_mdps, sweeps, trials, verify };
    common.output.present(&control::run(&config, progress)?, OUT, progress)
}
