//! `ictd branches`.

use std::path::Path;

use clap::Args;
use ictd_lab::error::{LabError, check_range};
use ictd_lab::files::OutputDir;
use ictd_lab::studies::branches;
use ictd_lab::studies::first_gradient::FirstGradientSign;

use crate::{Common, Outcome, message, print_data, print_json, table};

/// Arguments of `ictd branches`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Seeds per setting, counted from --seed
    #[arg(long, default_value_t = 100, allow_negative_numbers = true)]
    seeds: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let first = arguments.common.seed;
    check_range("seeds", arguments.seeds, 1..=100_000)?;
    let seeds: Vec<u64> = (first..first.saturating_add(arguments.seeds)).collect();
    let map = branches::run(&seeds, |count| {
        message(&format!(
            "{}, query {}: {} td, {} mirror, {} none",
            count.change, count.query, count.td, count.mirror, count.none
        ));
    })?;
    let out = arguments.common.out.as_deref().unwrap_or(Path::new("out/branches"));
    map.write(&OutputDir::create(out)?)?;
    if arguments.common.json {
        print_json(&map)?;
    } else {
        let counts: Vec<Vec<String>> = map
            .counts
            .iter()
            .map(|c| {
                let interval = format!("{:.2} to {:.2}", c.td_low, c.td_high);
                let numbers = [c.td, c.mirror, c.none].map(|n| n.to_string());
                [c.change.clone(), c.query.into()].into_iter().chain(numbers).chain([interval]).collect()
            })
            .collect();
        let header = ["change", "query", "td", "mirror", "none", "share of td, 95 %"];
        print_data(&(table::render(&header, &counts) + "\n" + &gradient_table(&map.gradients)))?;
    }
    message(&format!("figure and tables: {}", out.display()));
    Ok(Outcome::Success)
}

/// The first gradients, one row each.
pub fn gradient_table(gradients: &[FirstGradientSign]) -> String {
    let rows: Vec<Vec<String>> = gradients
        .iter()
        .map(|g| {
            vec![
                g.query.clone(),
                format!("{:.4} ± {:.4}", g.gradient, g.gradient_sem),
                format!("{:.4} ± {:.4}", g.predicted, g.predicted_sem),
                format!("{:.4} ± {:.4}", g.value_correlation, g.value_correlation_sem),
            ]
        })
        .collect();
    table::render(&["query", "first gradient", "predicted", "E[v(query) mean R]"], &rows)
}
