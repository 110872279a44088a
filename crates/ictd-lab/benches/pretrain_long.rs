//! Pretraining on long contexts, by state and by the pass for short ones, and what a window costs by kernel. Run with
//! `cargo xtask bench pretrain long`.
//!
//! Every measurement runs in a process of its own, so that its peak of memory is its own.
#![allow(missing_docs)]

use std::process::Command;
use std::time::Instant;

use ictd::kernel::KernelName;
use ictd::pretrain::{Metric, PretrainConfig, Trainer};

/// Context lengths, and epochs that are timed: as they are trained, and by position where that can be waited for.
const SIZES: [(usize, u64, Option<u64>); 6] = [
    (30, 300, Some(300)),
    (64, 200, Some(100)),
    (100, 200, Some(50)),
    (1000, 100, Some(1)),
    (10_000, 30, None),
    (100_000, 5, None),
];

/// Kernels, each with the power of n that a layer by position costs.
const KERNELS: [(KernelName, i32); 5] = [
    (KernelName::Softmax, 2),
    (KernelName::Linear, 1),
    (KernelName::Relu, 2),
    (KernelName::Elu1, 2),
    (KernelName::Rbf, 2),
];

/// Context lengths at which a window's cost is told, and epochs that are timed.
const WINDOWS: [(usize, u64); 3] = [(10, 600), (30, 300), (100, 60)];

/// Processes of each kind: the fastest counts, which met the least noise.
const ROUNDS: usize = 5;

/// What one process found.
struct Found {
    seconds: f64,
    megabytes: Option<f64>,
    loss: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, which, kernel, n, epochs] = &arguments[..] {
        let number = |text: &str| text.parse::<u64>().expect("the parent passes numbers");
        let kernel = kernel.parse().expect("the parent passes a kernel");
        return measure(which == "position", kernel, number(n) as usize, number(epochs));
    }
    long();
    println!();
    by_kernel();
}

/// What a window costs, forward and back with its share of the task and the trajectory, and how that grows.
fn by_kernel() {
    println!(
        "| kernel | passes | n = 10, µs per window | n = 30 | n = 100 | 30 to 100 | 1.2 × what a layer must do |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|");
    for (kernel, power) in KERNELS {
        for which in ["position", "trained"] {
            let found = WINDOWS.map(|(n, epochs)| {
                let config = PretrainConfig::paper();
                let windows = (config.batch * config.batches) as f64;
                1e6 * fastest(which, kernel, n, epochs).seconds / windows
            });
            let [short, middle, long] = found;
            let limit = 1.2 * (100.0_f64 / 30.0).powi(power);
            let passes = if which == "position" { "by position" } else { "as trained" };
            println!(
                "| {kernel} | {passes} | {short:.3} | {middle:.3} | {long:.3} | {:.1} | {limit:.1} |",
                long / middle
            );
        }
    }
}

/// Contexts of any length, as they are trained and by position.
fn long() {
    println!("| n | by position, ms per epoch | peak MB | as trained, ms per epoch | peak MB | ratio |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for (n, epochs, by_position) in SIZES {
        let new = fastest("trained", KernelName::Softmax, n, epochs);
        let old = by_position.map(|epochs| fastest("position", KernelName::Softmax, n, epochs));
        if let Some(old) = &old {
            // The same prediction up to the rounding of sums over n sources in single precision.
            assert!((old.loss - new.loss).abs() <= 1e-4 * new.loss.abs(), "{} {}", old.loss, new.loss);
        }
        let cells = |found: &Found| {
            let memory = found.megabytes.map_or("?".to_owned(), |mb| format!("{mb:.0}"));
            format!("{:.3} | {memory}", 1e3 * found.seconds)
        };
        let ratio = old.as_ref().map_or("—".to_owned(), |old| format!("{:.1}", old.seconds / new.seconds));
        let old = old.as_ref().map_or("— | —".to_owned(), cells);
        println!("| {n} | {old} | {} | {ratio} |", cells(&new));
    }
}

/// Trains one seed on one thread and prints seconds per epoch, the peak of memory and the loss of the first step.
fn measure(by_position: bool, kernel: KernelName, n: usize, epochs: u64) {
    let mut config = PretrainConfig { kernel, context_len: n, epochs, ..PretrainConfig::paper() };
    if by_position {
        // Mixing too small for single precision to see, but columns with mixing do not collapse by state.
        (config.rho.start, config.rho.end) = (f64::MIN_POSITIVE, f64::MIN_POSITIVE);
    }
    let mut trainer = Trainer::<f32>::new(&config, 0).expect("the sizes are valid");
    let start = Instant::now();
    trainer.train(|_| std::ops::ControlFlow::Continue(())).expect("the preset trains");
    let seconds = start.elapsed().as_secs_f64() / epochs as f64;
    println!("{seconds} {} {}", peak().unwrap_or(f64::NAN), trainer.state().history[Metric::TdLoss][0]);
}

/// The largest resident size of this process in megabytes, where the system says.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? * 1.024e-3)
}

fn fastest(which: &str, kernel: KernelName, n: usize, epochs: u64) -> Found {
    let found = (0..ROUNDS).map(|_| child(which, kernel, n, epochs));
    found.min_by(|a, b| a.seconds.total_cmp(&b.seconds)).expect("there are rounds")
}

fn child(which: &str, kernel: KernelName, n: usize, epochs: u64) -> Found {
    let program = std::env::current_exe().expect("a program knows where it is");
    let arguments = [which, kernel.as_str(), &n.to_string(), &epochs.to_string()];
    let output = Command::new(program).args(arguments).output().expect("it can be started again");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [seconds, megabytes, loss] = numbers[..] else { panic!("three numbers, found {text}") };
    Found { seconds, megabytes: megabytes.is_finite().then_some(megabytes), loss }
}
