//! The layer that is certified: that of theta_*, or one with trained parameters.

use ictd::context::ContextStatistics;
use ictd::kernel::{Attention, KernelName};
use ictd::operator::{StateOperator, TrainedLayer};
use ictd::theory::CertificateConfig;
use ictd::transformer::{AttentionParams, Block, Parameters};
use serde::Serialize;

use super::LayerConfig;
use crate::files::{ModelFile, chosen};
use crate::{LabError, counted};

/// Trained parameters that all layers share, and the construction that they were trained in.
#[derive(Clone, Debug)]
pub struct Trained {
    params: AttentionParams,
    block: Block,
    /// Whether a checkpoint says kernel, step size and depth, so that no option can.
    is_said: bool,
}

/// What a trained layer is as a step of TD: what stands in the certificate, and what it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct AsTd {
    /// The discount as trained; the certificate's is γ·p_t/|p_v|.
    gamma: f64,
    /// The step size as trained; the certificate's is α·|p_v|.
    step_size: f64,
    /// |p_v|.
    pub step_factor: f64,
}

/// What was typed about a layer; what was not is the checkpoint's, or a default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Typed {
    /// Kernel.
    pub kernel: Option<KernelName>,
    /// Temperature of the scores.
    pub temperature: Option<f64>,
    /// Step size of every layer.
    pub step_size: Option<f64>,
    /// Depth whose error is reported.
    pub layers: Option<usize>,
    /// Discount.
    pub gamma: Option<f64>,
    /// Absolute tolerance for the number of layers needed.
    pub tolerance: Option<f64>,
}

impl Typed {
    /// How the layer is built, and the discount; refuses what contradicts a checkpoint, and parameters that depth has no meaning for.
    pub fn layer(self, model: Option<ModelFile>) -> Result<(LayerConfig, f64), LabError> {
        let default = LayerConfig::default();
        let CertificateConfig { step_size, num_layers, tolerance } = default.certificate;
        let (parameters, said) = model.map_or((None, None), |m| (Some(m.parameters), m.description));
        let said = said.as_ref();
        if let Some(mix) = said.map(|s| s.diagonal_mix).filter(|&mix| mix != 0.0) {
            let expected = "0: with mixing a layer is no operator on states";
            return Err(LabError::value("diagonal mix of the checkpoint", mix, expected));
        }
        let trained = match parameters {
            None | Some(Parameters::ThetaStar) => None,
            Some(Parameters::Tied(params)) => Some(Trained {
                params,
                block: said.map_or(Block::TemporalShift, |s| s.block),
                is_said: said.is_some(),
            }),
            Some(Parameters::PerLayer(layers)) => {
                let found = format!("V and A of {}", counted(layers.len(), "layer"));
                let expected = "one V and A for all layers: others have no limit of depth";
                return Err(LabError::value("params", found, expected));
            }
        };
        let config = LayerConfig {
            kernel: chosen("kernel", self.kernel, said.map(|s| s.kernel), default.kernel)?,
            temperature: chosen(
                "temperature",
                self.temperature,
                said.map(|s| s.temperature),
                default.temperature,
            )?,
            certificate: CertificateConfig {
                step_size: chosen("step size", self.step_size, said.map(|s| s.step_size), step_size)?,
                num_layers: chosen("layers", self.layers, said.map(|s| s.layers), num_layers)?,
                tolerance: self.tolerance.unwrap_or(tolerance),
            },
            trained,
            ..default
        };
        Ok((config, chosen("gamma", self.gamma, said.map(|s| s.gamma), 0.9)?))
    }
}

impl LayerConfig {
    /// Whether options can change the layer: a checkpoint is what it is.
    pub(super) fn has_options(&self) -> bool {
        self.trained.as_ref().is_none_or(|trained| !trained.is_said)
    }

    /// The layer on the states of given statistics.
    pub(super) fn operator(
        &self,
        statistics: ContextStatistics,
        attention: &Attention,
        gamma: f64,
    ) -> Result<(StateOperator, Option<AsTd>), LabError> {
        let Some(Trained { params, block, .. }) = &self.trained else {
            return Ok((StateOperator::of(statistics, attention, gamma)?, None));
        };
        let TrainedLayer { operator, step_factor } =
            TrainedLayer::of(statistics, attention, gamma, params, *block)?;
        let step_size = self.certificate.step_size;
        Ok((operator, Some(AsTd { gamma, step_size, step_factor })))
    }
}
