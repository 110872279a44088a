//! A family of one's own: walks on a ring with random rewards, which a Transformer is trained on.

use std::sync::Arc;

use ictd::matrix::Matrix;
use ictd::pretrain::{Metric, PretrainConfig, Trainer};
use ictd::random::Stream;
use ictd::task::{FiniteTask, Mrp, TaskError, TaskSource};

/// States on a ring; a step left or right with equal chance, or none; rewards U(-1, 1).
#[derive(Debug)]
struct Ring(usize);

impl TaskSource for Ring {
    fn describe(&self) -> String {
        format!("a ring of {} states", self.0)
    }
    fn num_states(&self) -> usize {
        self.0
    }
    fn feature_dim(&self) -> usize {
        2
    }
    fn gamma(&self) -> f64 {
        0.8
    }
    fn draw(&self, stream: &mut Stream) -> Result<FiniteTask, TaskError> {
        let m = self.0;
        let distance = |s: usize, t: usize| s.abs_diff(t).min(m - s.abs_diff(t));
        let p = |s, t| [0.2, 0.4].get(distance(s, t)).copied().unwrap_or(0.0);
        // Points on a circle of radius 3: near states attend to one another.
        let angle = |s: usize| 2.0 * std::f64::consts::PI * s as f64 / m as f64;
        let x = |s: usize, a: usize| 3.0 * if a == 0 { angle(s).cos() } else { angle(s).sin() };
        let (rewards, start) = (stream.uniform_vec(m, -1.0, 1.0), vec![1.0 / m as f64; m]);
        let mrp = Mrp::new(Matrix::from_fn(m, m, p), rewards, self.gamma(), start)?;
        FiniteTask::new(mrp, Matrix::from_fn(m, 2, x))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = PretrainConfig { epochs: 200, ..PretrainConfig::paper() };
    let mut trainer = Trainer::<f32>::with_source(&config, Arc::new(Ring(8)), 0)?;
    while !trainer.is_done() {
        trainer.epoch()?;
    }
    let loss = &trainer.state().history[Metric::EvalTdLoss];
    println!("trained on {} tasks: TD loss {:.3} at first, {:.3} at last", loss.len(), loss[0], loss[199]);
    Ok(())
}
