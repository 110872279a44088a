//! Damaged files for every reader: `cargo xtask fuzz`. Takes the seconds per reader, then the name of a reader, `all`, or `logs`
//! for those of logs and of queries, then the number of its first input, then how many inputs there are at most.
#![allow(missing_docs)]

#[path = "../tests/common/context_readers.rs"]
mod context_readers;
#[path = "../tests/common/fuzz.rs"]
mod fuzz;
#[path = "../tests/common/log_readers.rs"]
mod log_readers;
#[path = "../tests/common/npz.rs"]
mod npz;
#[path = "../tests/common/readers.rs"]
mod readers;
#[path = "../tests/common/sweep_readers.rs"]
mod sweep_readers;

use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |k: usize, default: u64| arguments.get(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let time = Duration::from_secs(number(0, 60));
    let Ok(dir) = fuzz::scratch() else { return ExitCode::FAILURE };
    // Panics are reported with the input that caused them.
    std::panic::set_hook(Box::new(|_| {}));
    eprintln!("inputs while they are read: {}", dir.path().display());
    let mut readers = readers::all(dir.path());
    if let Some(wanted) = arguments.get(1).filter(|name| *name != "all") {
        let is_of_logs = |name: &str| name.starts_with("log-") || name.starts_with("query-");
        readers.retain(|r| r.name == wanted || (wanted == "logs" && is_of_logs(r.name)));
    }
    let (mut sound, mut total) = (!readers.is_empty(), 0);
    println!("{:<20} {:>10} {:>10} {:>10} {:>9}", "reader", "inputs", "accepted", "refused", "failures");
    for reader in &mut readers {
        let outcome = fuzz::run(reader, number(2, 0), number(3, u64::MAX), time, dir.path());
        let fuzz::Outcome { inputs, accepted, refused, failures } = outcome;
        println!("{:<20} {inputs:>10} {accepted:>10} {refused:>10} {:>9}", reader.name, failures.len());
        failures.iter().for_each(|failure| println!("  {failure}"));
        sound &= failures.is_empty() && inputs > 0;
        total += inputs;
    }
    eprintln!("{total} inputs");
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
