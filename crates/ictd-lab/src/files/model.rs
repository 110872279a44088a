//! Parameters in files, and what a checkpoint says of the Transformer they belong to.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use ictd::kernel::KernelName;
use ictd::pretrain::{Mask, PretrainConfig, QueryMix, QueryPosition};
use ictd::transformer::{Block, Parameters};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::context::{Numbers, at, pair, read_json};
use super::safetensors::Tensors;
use crate::LabError;

/// What a checkpoint of format 2 says of its Transformer, each field under its name in the metadata.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Construction of the layer.
    pub block: Block,
    /// Attention kernel.
    pub kernel: KernelName,
    /// Temperature of the scores.
    pub temperature: f64,
    /// Discount.
    pub gamma: f64,
    /// Depth.
    pub layers: usize,
    /// Step size of every layer.
    pub step_size: f64,
    /// Trained entries.
    pub mask: Mask,
    /// One (V, A) for all layers.
    pub tied: bool,
    /// Feature dimension.
    pub features: usize,
    /// Context length in training.
    pub n: usize,
    /// Diagonal mixing at the end of training.
    pub diagonal_mix: f64,
    /// Which state a training window asked about.
    pub query: QueryPosition,
    /// What diagonal mixing did to that state's column.
    pub query_mix: QueryMix,
}

impl Description {
    /// That of a training run.
    pub fn of(config: &PretrainConfig) -> Self {
        Self {
            block: config.block,
            kernel: config.kernel,
            temperature: config.temperature,
            gamma: config.task.gamma,
            layers: config.num_layers,
            step_size: 1.0,
            mask: config.mask,
            tied: config.tied,
            features: config.shape().feature_dim,
            n: config.context_len,
            diagonal_mix: config.rho.at(config.num_steps()),
            query: config.query,
            query_mix: config.rho.query,
        }
    }

    /// Refuses what was trained on other columns than a context has here, where a query is no source and its attention
    /// is (1 - ρ)·K.
    fn check_columns(&self) -> Result<(), LabError> {
        if self.query == QueryPosition::Source {
            let expected = "a query that is no source (next, skip or stationary): contexts have no other";
            return Err(LabError::value("query in training", "source", expected));
        }
        if self.query_mix == QueryMix::Unmixed && self.diagonal_mix != 0.0 {
            let expected = "mixed or scaled: the diagonal mixing of contexts scales a query's column";
            return Err(LabError::value("rho.query in training", "unmixed", expected));
        }
        Ok(())
    }

    /// As metadata: every field by its name, words and numbers as they are.
    pub fn metadata(&self) -> Result<BTreeMap<String, String>, String> {
        let Value::Object(fields) = serde_json::to_value(self).map_err(|e| e.to_string())? else {
            return Err("the description has no fields".into());
        };
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Ok(fields.into_iter().map(|(key, value)| (key, text(value))).collect())
    }

    /// From the metadata of a checkpoint; `None` where it is of format 1, which said nothing.
    pub fn read(metadata: &BTreeMap<String, String>) -> Result<Option<Self>, String> {
        match metadata.get("schema_version").map(String::as_str) {
            None | Some("1") => return Ok(None),
            Some("2") => {}
            Some(other) => return Err(format!("metadata schema_version is {other}, expected 1 or 2")),
        }
        let value = |text: &String| {
            serde_json::from_str(text)
                .ok()
                .filter(|v: &Value| !v.is_string())
                .unwrap_or(Value::from(text.as_str()))
        };
        let fields = metadata.iter().map(|(key, text)| (key.clone(), value(text))).collect();
        let found = serde_json::from_value(Value::Object(fields)).map_err(|e| format!("metadata: {e}"))?;
        Ok(Some(found))
    }
}

/// Parameters from a file.
#[derive(Clone, Debug)]
pub struct ModelFile {
    /// (V, A) of the layers.
    pub parameters: Parameters,
    /// What a checkpoint says of them.
    pub description: Option<Description>,
    /// Whether the file is a checkpoint that says nothing.
    pub is_undescribed_checkpoint: bool,
}

/// What was typed, or what the checkpoint says, or a default; refuses what contradicts the checkpoint.
pub fn chosen<T: PartialEq + Display>(
    flag: &str,
    typed: Option<T>,
    said: Option<T>,
    default: T,
) -> Result<T, LabError> {
    match (typed, said) {
        (Some(typed), Some(said)) if typed != said => Err(LabError::value(
            flag,
            typed,
            format!("{said} as the checkpoint was trained with: leave the flag out"),
        )),
        (typed, said) => Ok(typed.or(said).unwrap_or(default)),
    }
}

/// Attention parameters as JSON: one pair (`V`, `A`) for all layers, or `layers` with a pair each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ParamsFile {
    #[serde(rename = "V")]
    value_matrix: Option<Vec<Numbers>>,
    #[serde(rename = "A")]
    score_matrix: Option<Vec<Numbers>>,
    layers: Option<Vec<LayerFile>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerFile {
    #[serde(rename = "V")]
    value_matrix: Vec<Numbers>,
    #[serde(rename = "A")]
    score_matrix: Vec<Numbers>,
}

impl ParamsFile {
    fn into_parameters(self) -> Result<Parameters, LabError> {
        match (self.value_matrix, self.score_matrix, self.layers) {
            (Some(v), Some(a), None) => Ok(Parameters::Tied(pair(v, a, "")?)),
            (None, None, Some(layers)) => {
                let layer = |(l, p): (usize, LayerFile)| {
                    pair(p.value_matrix, p.score_matrix, &format!("layers[{l}]."))
                };
                Ok(Parameters::PerLayer(layers.into_iter().enumerate().map(layer).collect::<Result<_, _>>()?))
            }
            _ => Err(LabError::refused("params", "expected either V and A, or layers")),
        }
    }
}

/// Reads attention parameters from JSON (`-` is standard input) or from a checkpoint in the safetensors
/// format; refuses checkpoints of training on other columns than contexts have.
pub fn read_params(path: &Path) -> Result<ModelFile, LabError> {
    if path.extension().is_none_or(|e| e != "safetensors") {
        let file: ParamsFile = read_json(path)?;
        let parameters = file.into_parameters().map_err(|e| at(path, e))?;
        return Ok(ModelFile { parameters, description: None, is_undescribed_checkpoint: false });
    }
    let bytes = fs::read(path).map_err(|source| LabError::Read { path: path.to_owned(), source })?;
    let failed = |message| LabError::parse(path, message);
    let tensors = Tensors::from_bytes(&bytes).map_err(failed)?;
    let description = Description::read(&tensors.metadata).map_err(failed)?;
    description.as_ref().map_or(Ok(()), Description::check_columns).map_err(|e| at(path, e))?;
    let parameters = checkpoint_params(&tensors).map_err(|e| at(path, e))?;
    Ok(ModelFile { parameters, is_undescribed_checkpoint: description.is_none(), description })
}

/// `V` and `A`, or `layers.l.V` and `layers.l.A` for l = 0, 1, ….
fn checkpoint_params(tensors: &Tensors) -> Result<Parameters, LabError> {
    let matrix = |name: &str| {
        let (shape, numbers) = tensors.tensors.get(name)?;
        let &[_, columns] = shape.as_slice() else { return None };
        let rows =
            numbers.chunks(columns.max(1)).map(|row| row.iter().map(|&x| Some(f64::from(x))).collect());
        Some(rows.collect::<Vec<Numbers>>())
    };
    let layer = |place: &str| {
        let (v, a) = (matrix(&format!("{place}V"))?, matrix(&format!("{place}A"))?);
        Some(pair(v, a, place))
    };
    if let Some(tied) = layer("") {
        return Ok(Parameters::Tied(tied?));
    }
    let pairs = (0..).map_while(|l| layer(&format!("layers.{l}."))).collect::<Result<Vec<_>, _>>()?;
    if pairs.is_empty() {
        return Err(LabError::refused("params", "expected tensors V and A, or layers.0.V and so on"));
    }
    Ok(Parameters::PerLayer(pairs))
}
