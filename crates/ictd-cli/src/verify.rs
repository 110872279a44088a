//! `ictd verify`.

use std::path::Path;

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::files::OutputDir;
use ictd_lab::studies::Verdict;
use ictd_lab::studies::theorem1::verify::{self, VerifyConfig};

use crate::{Common, Outcome, message, print_data, print_json, table};

/// Arguments of `ictd verify`.
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
    let out = arguments.common.out.as_deref().unwrap_or(Path::new("out/verify"));
    found.write(&OutputDir::create(out)?)?;
    if arguments.common.json {
        print_json(&found)?;
    } else {
        let config = &found.config;
        let mut text = format!(
            "Largest discrepancy over {} prompts × {} layers, float64 (d = {}, n = {}, γ = {}):\n\n",
            config.num_trials, config.num_layers, config.feature_dim, config.context_len, config.gamma
        );
        let number = |x: f64| format!("{x:.1e}");
        let rows: Vec<Vec<String>> = found
            .kernels
            .iter()
            .map(|row| [row.kernel.clone()].into_iter().chain(row.entries().map(number)).collect())
            .collect();
        let header = ["kernel", "dual vs tsm", "tsm vs direct TD", "full Z vs fast", "plain vs states"];
        text += &table::render(&header, &rows);
        text += "\n";
        let rows: Vec<Vec<String>> =
            found.special_cases.iter().map(|c| vec![c.name.clone(), number(c.discrepancy)]).collect();
        text += &table::render(&["special case", "discrepancy"], &rows);
        text += &format!(
            "\nworst {:.1e}, rounding level is ≤ {:.0e}: {}\n",
            found.worst, config.tolerance, found.verdict
        );
        print_data(&text)?;
    }
    message(&format!("figure and tables: {}", out.join("fig7.svg").display()));
    Ok(if found.verdict == Verdict::Reproduced { Outcome::Success } else { Outcome::ClaimFailed })
}
