//! A training callback: stops as soon as the loss on fresh tasks has not fallen for a while.

use std::ops::ControlFlow;

use ictd::pretrain::{Metric, PretrainConfig, Trainer};

/// Epochs over which losses are averaged, and compared with the same number before.
const PATIENCE: usize = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = PretrainConfig::paper();
    let mut trainer = Trainer::<f32>::new(&config, 0)?;
    trainer.train(|trainer| {
        let losses = &trainer.state().history[Metric::EvalTdLoss];
        let mean = |from: usize| losses[from..from + PATIENCE].iter().sum::<f32>() / PATIENCE as f32;
        let start = losses.len().saturating_sub(2 * PATIENCE);
        let is_due = losses.len() >= 2 * PATIENCE && losses.len() % PATIENCE == 0;
        if is_due && mean(start + PATIENCE) >= mean(start) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    let (done, of) = (trainer.state().epoch, config.epochs);
    println!("{} after {done} of {of} epochs", if done < of { "stopped" } else { "ran through" });
    Ok(())
}
