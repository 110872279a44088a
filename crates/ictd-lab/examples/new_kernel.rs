//! A kernel of one's own: inverse distance weights, certified on one of the paper's tasks.

use std::sync::Arc;

use ictd::kernel::{Attention, Kernel, Normalization, Similarity};
use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::task::Boyan;
use ictd::theory::CertificateConfig;

/// 1 / (1 + ‖x_i - x_j‖² / scale), normalised by column.
#[derive(Debug)]
struct InverseDistance {
    scale: f64,
}

impl Kernel for InverseDistance {
    fn similarity(&self) -> Similarity {
        Similarity::SquaredDistance
    }
    fn normalization(&self) -> Normalization {
        Normalization::ByColumn
    }
    fn weigh(&self, column: &mut [f64]) {
        column.iter_mut().for_each(|d2| *d2 = 1.0 / (1.0 + *d2 / self.scale));
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let task = Boyan::paper().generate(&mut Stream::new(0, Purpose::Task, 0))?;
    for scale in [1.0, 1e-2, 1e-4] {
        let attention = Attention::new(Arc::new(InverseDistance { scale }), 0.0)?;
        let certificate =
            CertificateConfig::default().certify(&StateOperator::population(&task, &attention)?)?;
        println!(
            "scale {scale}: {}, spectral radius {:.4}",
            certificate.status.as_str(),
            certificate.contraction.spectral_radius
        );
    }
    Ok(())
}
