//! What may be said about a forward pass beside its context: the same words on the command line and in the page.

use std::fmt::{Display, Formatter};

use ictd::kernel::{Attention, KernelName, Precision};
use ictd::transformer::{Block, Parameters, TransformerConfig};
use serde::Deserialize;

use super::show::short;
use super::{Asked, Wanted};
use crate::LabError;
use crate::files::{ModelFile, chosen};

/// Options of a forward pass; what is not given is the checkpoint's, or a default.
///
/// | option | default | range |
/// |---|---|---|
/// | `block` | tsm | tsm, dual |
/// | `kernel` | softmax | softmax, relu, elu1, rbf, linear, tabular |
/// | `layers` | 15, or as many as the parameters have | ≥ 0 |
/// | `gamma` | 0.9 | \[0, 1) |
/// | `temperature` | 1 | > 0 |
/// | `step_size` | 1 | a finite number, or one for each layer |
/// | `diagonal_mix` | 0 | \[0, 1\] |
/// | `precision`, `tolerance`, `memory` | how weights are computed, see [`Asked`] | |
/// | `tokens`, `attention`, `last`, `fixed_point` | what is given besides values, see [`Wanted`] | |
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the table above")]
pub struct Options {
    pub block: Option<Block>,
    pub kernel: Option<KernelName>,
    pub layers: Option<usize>,
    pub gamma: Option<f64>,
    pub temperature: Option<f64>,
    pub step_size: Option<StepSizes>,
    pub diagonal_mix: Option<f64>,
    pub precision: Option<Precision>,
    pub tolerance: Option<f64>,
    pub memory: Option<f64>,
    pub tokens: bool,
    pub attention: bool,
    pub last: bool,
    pub fixed_point: bool,
}

/// Step sizes as given: one for all layers, or a list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a number or a list of numbers")]
pub enum StepSizes {
    /// For all layers.
    All(f64),
    /// One for each, or a single one for all.
    Each(Vec<f64>),
}

impl StepSizes {
    pub(super) fn list(&self) -> &[f64] {
        match self {
            Self::All(size) => std::slice::from_ref(size),
            Self::Each(sizes) => sizes,
        }
    }
}

impl Display for StepSizes {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let texts: Vec<String> = self.list().iter().map(short).collect();
        f.write_str(&texts.join(","))
    }
}

impl Options {
    /// The Transformer that the options and the parameters describe: θ_* where there are none.
    pub fn transformer(&self, model: Option<ModelFile>) -> Result<TransformerConfig, LabError> {
        let (parameters, said) =
            model.map_or((Parameters::ThetaStar, None), |m| (m.parameters, m.description));
        let said = said.as_ref();
        // Parameters by layer say how many there are.
        let depth = match &parameters {
            Parameters::PerLayer(layers) => layers.len(),
            _ => 15,
        };
        let kernel = chosen("kernel", self.kernel, said.map(|s| s.kernel), KernelName::Softmax)?;
        let temperature = chosen("temperature", self.temperature, said.map(|s| s.temperature), 1.0)?;
        let mix = chosen("diagonal mix", self.diagonal_mix, said.map(|s| s.diagonal_mix), 0.0)?;
        let trained = said.map(|s| StepSizes::All(s.step_size));
        // A list of one says the same as a number.
        let typed = self.step_size.clone().map(|sizes| match sizes.list() {
            [size] => StepSizes::All(*size),
            _ => sizes,
        });
        let step_sizes = chosen("step size", typed, trained, StepSizes::All(1.0))?;
        Ok(TransformerConfig {
            block: chosen("block", self.block, said.map(|s| s.block), Block::TemporalShift)?,
            attention: Attention::new(kernel.at(temperature)?, mix)?,
            parameters,
            num_layers: chosen("layers", self.layers, said.map(|s| s.layers), depth)?,
            gamma: chosen("gamma", self.gamma, said.map(|s| s.gamma), 0.9)?,
            step_sizes: step_sizes.list().to_vec(),
        })
    }

    /// What is wanted besides values, as JSON or as text, and to files or not.
    pub fn wanted(&self, json: bool, files: bool) -> Wanted {
        let Self { precision, tolerance, memory, tokens, attention, last, fixed_point, .. } = *self;
        let asked = Asked { precision, tolerance, memory };
        Wanted { asked, last, tokens, attention, fixed_point, json, files, is_fixed: false }
    }
}
