//! A trained network as the forward pass takes it: its parameters, and the options that belong to them.

use std::path::Path;

use ictd::kernel::KernelName;
use ictd::transformer::Block;
use serde::Serialize;

use crate::LabError;
use crate::files::{Description, ModelFile, ParamsFile, params_of};

/// Parameters and options of a forward pass.
#[derive(Clone, Debug, Serialize)]
pub struct Model {
    /// (V, A) of the layers.
    pub params: ParamsFile,
    /// What it was trained with; empty where the file does not say.
    options: Options,
    /// What a user of the file should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
struct Options {
    #[serde(flatten)]
    said: Option<TrainedOptions>,
}

/// Options of a forward pass that a checkpoint decides.
#[derive(Clone, Debug, Serialize)]
struct TrainedOptions {
    layers: usize,
    gamma: f64,
    kernel: KernelName,
    temperature: f64,
    diagonal_mix: f64,
    block: Block,
    step_size: f64,
}

impl Model {
    /// The parameters and options of a file that was read.
    pub(super) fn of(file: ModelFile) -> Result<Self, LabError> {
        let said = file.description.map(|said| {
            let Description { layers, gamma, kernel, temperature, diagonal_mix, block, step_size, .. } = said;
            TrainedOptions { layers, gamma, kernel, temperature, diagonal_mix, block, step_size }
        });
        let params = ParamsFile::of(&file.parameters)
            .ok_or_else(|| LabError::refused("params", "expected matrices, found theta_*"))?;
        Ok(Self { params, options: Options { said }, warning: file.warning })
    }

    /// Reads a checkpoint of `ictd pretrain`, or parameters as JSON.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, LabError> {
        Self::of(params_of(Path::new(name), bytes)?)
    }
}
