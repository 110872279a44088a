//! A kernel of one's own: trained through the reference pass, then certified on one of the paper's tasks.

use std::ops::ControlFlow;
use std::sync::Arc;

use ictd::kernel::{Attention, Kernel, Normalization, Similarity};
use ictd::operator::StateOperator;
use ictd::pretrain::{ParamsView, PretrainConfig, Trainer};
use ictd::random::{Purpose, Stream};
use ictd::task::{Family, TaskSource as _};
use ictd::theory::CertificateConfig;

/// Softplus log(1 + exp(G)), normalised by column.
#[derive(Debug)]
struct Softplus;

impl Kernel for Softplus {
    fn similarity(&self) -> Similarity {
        Similarity::InnerProduct
    }
    fn normalization(&self) -> Normalization {
        Normalization::ByColumn
    }
    fn weigh(&self, column: &mut [f64]) {
        column.iter_mut().for_each(|g| *g = g.max(0.0) + (-g.abs()).exp().ln_1p());
    }
    /// The derivative is the logistic function.
    fn slope(&self, similarity: f64, _: f64) -> Option<f64> {
        Some(1.0 / (1.0 + (-similarity).exp()))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = PretrainConfig { epochs: 100, ..PretrainConfig::paper() };
    let mut trainer = Trainer::with_kernel(&config, Arc::new(Softplus), 0)?;
    trainer.train(|_| ControlFlow::Continue(()))?;
    let view = ParamsView::new(&config.shape(), &trainer.state().params);
    println!("trained: V's last row {:.3?}", view.value_row(0));
    let task = Family::paper().draw(&mut Stream::new(0, Purpose::Task, 0))?;
    let attention = Attention::new(Arc::new(Softplus), 0.0)?;
    let certificate = CertificateConfig::default().certify(&StateOperator::population(&task, &attention)?)?;
    println!("theta_* with it: {}", certificate.status.as_str());
    Ok(())
}
