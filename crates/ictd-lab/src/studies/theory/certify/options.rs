//! What may be asked about the layer of a context: the same words as on the command line.

use ictd::kernel::KernelName;
use ictd::theory::CertificateConfig;
use serde::Deserialize;

use super::LayerConfig;

/// Options of a certificate of a context, by the names and with the defaults of the command's flags.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Discount.
    pub gamma: f64,
    /// Divide feature vectors by their length.
    pub unit_norm: bool,
    /// Kernel.
    pub kernel: KernelName,
    /// Temperature of the scores.
    pub temperature: f64,
    /// Step size of every layer.
    pub step_size: f64,
    /// Depth whose error is reported.
    pub layers: usize,
    /// Absolute tolerance for the number of layers needed.
    pub tolerance: f64,
}

impl Default for Options {
    fn default() -> Self {
        let LayerConfig { kernel, temperature, certificate, .. } = LayerConfig::default();
        let CertificateConfig { step_size, num_layers, tolerance } = certificate;
        Self { gamma: 0.9, unit_norm: false, kernel, temperature, step_size, layers: num_layers, tolerance }
    }
}

impl Options {
    /// How the layer is built.
    pub fn config(&self) -> LayerConfig {
        let Self { kernel, temperature, step_size, layers: num_layers, tolerance, .. } = *self;
        let certificate = CertificateConfig { step_size, num_layers, tolerance };
        LayerConfig { kernel, temperature, certificate, ..LayerConfig::default() }
    }
}
