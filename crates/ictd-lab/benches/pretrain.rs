//! What the measurement after every epoch costs beside training. Run with `cargo xtask bench pretrain`.
#![allow(missing_docs)]

use std::time::{Duration, Instant};

use ictd::pretrain::{PretrainConfig, Trainer};

/// Rounds, and epochs or measurements per round: rounds alternate, so that both meet the same noise.
const ROUNDS: u32 = 20;
const CALLS: u32 = 100;

fn main() {
    let mut trainer = Trainer::<f32>::new(&PretrainConfig::paper(), 0).expect("the preset is valid");
    let (mut epochs, mut measurements) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        (0..CALLS).for_each(|_| trainer.epoch().expect("the preset trains"));
        epochs += start.elapsed();
        let start = Instant::now();
        (0..CALLS).for_each(|_| trainer.measure().expect("the preset can be measured"));
        measurements += start.elapsed();
    }
    let calls = f64::from(ROUNDS * CALLS);
    let (epoch, measurement) = (epochs.as_secs_f64() / calls, measurements.as_secs_f64() / calls);
    let training = epoch - measurement;
    println!("| one thread, per epoch | microseconds |");
    println!("|---|---:|");
    println!("| training: a task, a trajectory, 5 minibatches | {:.1} |", 1e6 * training);
    println!("| measurement on a fresh task | {:.1} |", 1e6 * measurement);
    println!("| measurement / training | {:.2} |", measurement / training);
    println!();
}
