//! Speed of the forward pass: contexts per second, long contexts, growth with n and L.
//!
//! Data is built outside the timed closures, answers are compared while timing, and every number is
//! the median of several runs. Run with `cargo xtask bench forward`.
#![allow(missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use ictd::context::{Context, ContextStatistics, End};
use ictd::kernel::{Attention, KernelName};
use ictd::random::{Purpose, Stream};
use ictd::task::{Family, TaskSource as _};
use ictd::transformer::{Evaluator, Path, Transformer, TransformerConfig};

fn main() {
    println!("machine: {}, {} threads\n", cpu_name(), rayon::current_num_threads());
    small_contexts();
    long_contexts();
    growth();
}

fn transformer(num_layers: usize) -> Transformer {
    let attention = Attention::new(KernelName::Softmax.at(1.0).unwrap(), 0.0).unwrap();
    TransformerConfig::theta_star(attention, num_layers, 0.9).check().unwrap()
}

/// A trajectory of n transitions over distinct random states.
fn distinct(seed: u64, d: usize, n: usize) -> Context {
    let mut stream = Stream::new(seed, Purpose::Prompt, 0);
    let features: Vec<Vec<f64>> = (0..=n).map(|_| stream.uniform_vec(d, -1.0, 1.0)).collect();
    Context::builder().episode(&features, &stream.uniform_vec(n, -1.0, 1.0), End::Truncated).build().unwrap()
}

/// A trajectory of n transitions of the paper's 64-state Boyan chain.
fn boyan(n: usize) -> Context {
    let task = Family::paper().draw(&mut Stream::new(1, Purpose::Task, 0)).unwrap();
    task.sample_context(n, &mut Stream::new(1, Purpose::Trajectory, 0)).0
}

/// Median seconds of a closure over at least five runs and a fifth of a second.
fn seconds<T>(mut work: impl FnMut() -> T) -> f64 {
    black_box(work());
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 5 || (start.elapsed().as_secs_f64() < 0.2 && times.len() < 1000) {
        let begin = Instant::now();
        black_box(work());
        times.push(begin.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn small_contexts() {
    println!("## Short contexts of distinct states, one thread\n");
    println!("| d | n | L | contexts/s, values | contexts/s, full Z | ratio |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for (d, n, layers) in [(4, 10, 3), (8, 20, 10), (5, 40, 15)] {
        let contexts: Vec<Context> = (0..200).map(|seed| distinct(seed, d, n)).collect();
        let transformer = transformer(layers);
        let mut evaluator = Evaluator::default();
        for context in &contexts {
            let plain = transformer.tokens(context).unwrap()[layers].values()[n];
            let fast = evaluator.output(&transformer, context).unwrap();
            assert!((plain - fast).abs() < 1e-12, "paths disagree: {plain} {fast}");
        }
        let fast =
            seconds(|| contexts.iter().map(|c| evaluator.output(&transformer, c).unwrap()).sum::<f64>());
        let plain = seconds(|| contexts.iter().map(|c| transformer.tokens(c).unwrap().len()).sum::<usize>());
        let rate = |time: f64| contexts.len() as f64 / time;
        println!("| {d} | {n} | {layers} | {:.0} | {:.0} | {:.1} |", rate(fast), rate(plain), plain / fast);
    }
    println!();
}

fn long_contexts() {
    println!("## Long contexts of 64 states, 15 layers (d = 4)\n");
    println!("| n | path | grouping, ms | per layer, µs | all, ms |");
    println!("|---:|---|---:|---:|---:|");
    let mut evaluator = Evaluator::default();
    for n in [1_000, 10_000, 1_000_000] {
        let context = boyan(n);
        let mut reference = None;
        for path in [Path::States, Path::Columns] {
            // One group per column is quadratic in n: out of reach for the longest context.
            if path == Path::Columns && n > 10_000 {
                continue;
            }
            let mut all = |layers: usize| {
                let transformer = transformer(layers);
                seconds(|| evaluator.evaluate_along(path, &transformer, &context).unwrap())
            };
            // Enough further layers that they stand out from the grouping.
            let further = if path == Path::States { 10_000 } else { 50 };
            let (short, long) = (all(15), all(15 + further));
            let grouping = seconds(|| match path {
                Path::States => ContextStatistics::per_state(&context),
                _ => ContextStatistics::per_column(&context),
            });
            let output = evaluator.evaluate_along(path, &transformer(15), &context).unwrap().output();
            let expected = *reference.get_or_insert(output);
            assert!((output - expected).abs() < 1e-9, "paths disagree: {output} {expected}");
            let per_layer = (long - short) / further as f64;
            println!(
                "| {n} | {path:?} | {:.3} | {:.1} | {:.3} |",
                1e3 * grouping,
                1e6 * per_layer,
                1e3 * short
            );
        }
    }
    println!();
}

fn growth() {
    println!("## Growth with n and L: milliseconds of a forward pass, distinct states (d = 4)\n");
    let depths = [1, 5, 15, 50];
    println!("| n | {} |", depths.map(|l| format!("L = {l}")).join(" | "));
    println!("|---:|{}", "---:|".repeat(depths.len()));
    let mut evaluator = Evaluator::default();
    for n in [10, 30, 100, 300, 1000, 3000] {
        let context = distinct(1, 4, n);
        let cells = depths.map(|layers| {
            let transformer = transformer(layers);
            format!("{:.4}", 1e3 * seconds(|| evaluator.output(&transformer, &context).unwrap()))
        });
        println!("| {n} | {} |", cells.join(" | "));
    }
}

fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.to_owned())
}
