//! Speed of certificates and spectra. Run with `cargo xtask bench theory`.
#![allow(missing_docs)]

use std::hint::black_box;
use std::time::Instant;

use ictd::kernel::{Attention, KernelName};
use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::task::{Family, TaskSource as _};
use ictd::theory::{CertificateConfig, Spectrum, SuggestionConfig};

/// Median milliseconds of a closure.
fn milliseconds<T>(runs: usize, mut work: impl FnMut() -> T) -> f64 {
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            1e3 * start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn operator(num_states: usize) -> StateOperator {
    let task = Family { num_states, ..Family::paper() }.draw(&mut Stream::new(0, Purpose::Task, 0));
    let attention = Attention::new(KernelName::Softmax.at(1.0).expect("valid"), 0.0).expect("valid");
    StateOperator::population(&task.expect("valid"), &attention).expect("valid")
}

fn main() {
    let small = operator(64);
    let certificate = || CertificateConfig::default().certify(&small).expect("finite");
    let kernel_at = |t| KernelName::Softmax.at(t).ok();
    let known = certificate();
    let large = operator(1000);
    println!("| what | milliseconds |");
    println!("|---|---:|");
    println!("| certificate, 64 states | {:.2} |", milliseconds(51, certificate));
    let search = SuggestionConfig { num_layers: 15, temperature: 1.0, kernel_at: &kernel_at };
    let all = || search.suggest(&small, &known);
    println!("| all its suggestions, each with a certificate of its own | {:.2} |", milliseconds(21, all));
    println!("| spectrum, 1000 states | {:.0} |", milliseconds(3, || Spectrum::of(&large).expect("finite")));
}
