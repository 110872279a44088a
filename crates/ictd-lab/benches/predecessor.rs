//! The predecessor's nine experiments, timed one after the other. Run with `cargo xtask bench predecessor`.
#![allow(missing_docs)]

use std::time::Instant;

use ictd::parallel;
use ictd::predecessor::PredecessorTrainer;
use ictd_lab::studies::predecessor::EXPERIMENTS;

/// The seeds of every experiment.
const SEEDS: u64 = 10;

fn main() {
    println!("| 10 seeds × 5000 tasks | seconds |\n|---|---:|");
    let mut total = 0.0;
    for experiment in &EXPERIMENTS[..9] {
        let config = experiment.config();
        let start = Instant::now();
        let alphas = parallel::map(SEEDS as usize, |seed| {
            let mut trainer =
                PredecessorTrainer::<f32>::new(&config, seed as u64).expect("the setting is valid");
            (0..config.mrps).for_each(|_| trainer.train_mrp().expect("the setting trains"));
            trainer.alpha()
        });
        let seconds = start.elapsed().as_secs_f64();
        // What is timed is the experiment: its comparator has moved from where it began.
        assert!(alphas.iter().all(|alpha| alpha.is_finite() && *alpha != 1.0));
        total += seconds;
        println!("| {} | {seconds:.2} |", experiment.title);
    }
    println!("| all nine | {total:.2} |");
    // For the ratio to other software.
    println!("\n{{\"seconds\": {total}}}");
}
