//! A trained network as the forward pass takes it: its parameters, and the options that belong to them.

use std::path::Path;

use ictd::kernel::KernelName;
use ictd::pretrain::QueryPosition;
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
    /// How a context differs from the prompts that it was trained on.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// What a network that was asked about a source does in a context, where it can run but is not asked the same.
const ASKED_A_SOURCE: &str = "in training the query was the last source, with no state after it; \
    here the last source is followed by one more column, the query, from which nothing is read";

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
    /// The parameters and options of a file that was read; refuses one that was trained with attention that contexts do not have.
    pub(super) fn of(file: ModelFile) -> Result<Self, LabError> {
        let described = file.description.as_ref();
        described.map_or(Ok(()), Description::check_mixing)?;
        let note = described.and_then(|said| (said.query == QueryPosition::Source).then_some(ASKED_A_SOURCE));
        let said = file.description.map(|said| {
            let Description { layers, gamma, kernel, temperature, diagonal_mix, block, step_size, .. } = said;
            TrainedOptions { layers, gamma, kernel, temperature, diagonal_mix, block, step_size }
        });
        let params = ParamsFile::of(&file.parameters)
            .ok_or_else(|| LabError::refused("params", "expected matrices, found theta_*"))?;
        Ok(Self { params, options: Options { said }, warning: file.warning, note })
    }

    /// Reads a checkpoint of `ictd pretrain`, or parameters as JSON.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, LabError> {
        Self::of(params_of(Path::new(name), bytes)?)
    }
}
