//! Searches difficult contexts for a certificate that claims too much: `cargo xtask search`. Takes the number of
//! contexts and a seed.
#![allow(missing_docs)]

#[path = "../tests/common/double_double.rs"]
mod double_double;
#[path = "../tests/common/search.rs"]
mod search;

use std::process::ExitCode;

fn main() -> ExitCode {
    let number =
        |k: usize, default: u64| std::env::args().nth(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let outcome = search::run(number(2, 0), number(1, 20_000));
    let [certified, estimated, refused] = outcome.by_status;
    println!("contexts             {}, {} of them with queries", outcome.cases, outcome.with_queries);
    println!("certificates         {certified} certified, {estimated} estimated, {refused} refused");
    println!("without certificate  {}", outcome.errors);
    println!(
        "error bounds         {}, of which {} are false, {} of them by more than rounding",
        outcome.bounds, outcome.false_bounds, outcome.grossly_false
    );
    println!("                     {} below the error printed beside them", outcome.below_own_error);
    println!(
        "bound / error        at least 1 + {:.1e}; at least 1 + {:.1e} where errors are rounding",
        outcome.tightest, outcome.tightest_of_small
    );
    let [half, most, all] = outcome.quantiles;
    println!("                     below {half:.3} for half, {most:.3} for nine of ten, {all:.1e} for all");
    println!(
        "layers said enough   {}, of which {} are not",
        outcome.layer_claims, outcome.false_layer_claims
    );
    println!("error / tolerance    at most {:.6} after them", outcome.closest_layers);
    outcome.examples.iter().for_each(|e| println!("{e}"));
    let holds = outcome.false_bounds + outcome.false_layer_claims + outcome.below_own_error == 0;
    if holds && outcome.bounds > 0 && outcome.layer_claims > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
