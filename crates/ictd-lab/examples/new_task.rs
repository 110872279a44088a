//! A task of one's own: a random walk on a ring, evaluated in context.

use ictd::kernel::{Attention, KernelName};
use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::task::{FiniteTask, Mrp};
use ictd::transformer::TransformerConfig;

/// m states on a ring; a step left or right with equal chance, or none; reward 1 at state 0.
fn ring(m: usize, gamma: f64) -> Result<FiniteTask, Box<dyn std::error::Error>> {
    let p = Matrix::from_fn(m, m, |s, t| match (t + m - s) % m {
        0 => 0.2,
        1 => 0.4,
        d if d == m - 1 => 0.4,
        _ => 0.0,
    });
    let rewards = (0..m).map(|s| if s == 0 { 1.0 } else { 0.0 }).collect();
    let angle = |s: usize| 2.0 * std::f64::consts::PI * s as f64 / m as f64;
    // Points on a circle of radius 3: near states attend to one another.
    let features = Matrix::from_fn(m, 2, |s, a| 3.0 * if a == 0 { angle(s).cos() } else { angle(s).sin() });
    Ok(FiniteTask::new(Mrp::new(p, rewards, gamma, vec![1.0 / m as f64; m])?, features)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let task = ring(8, 0.8)?;
    let (context, states) = task.sample_context(500, &mut Stream::new(0, Purpose::Trajectory, 0));
    let attention = Attention::new(KernelName::Softmax.at(1.0)?, 0.0)?;
    let transformer = TransformerConfig::theta_star(attention, 40, 0.8).check()?;
    let estimate = transformer.values(&context)?.output();
    println!("state {}: in context {estimate:.3}, exact {:.3}", states[500], task.values()[states[500]]);
    Ok(())
}
