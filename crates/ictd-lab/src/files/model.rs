//! Parameters in files, and what a checkpoint says of the Transformer they belong to.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use ictd::kernel::KernelName;
use ictd::matrix::Matrix;
use ictd::pretrain::{Mask, PretrainConfig, QueryMix, QueryPosition};
use ictd::task::{Family, FeatureMap};
use ictd::transformer::{AttentionParams, Block, Parameters};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::context::{Numbers, at, pair, parse_json, read_bytes, rows};
use super::safetensors::{FORMAT, SEALED_FORMAT, Tensors};
use crate::LabError;

/// The metadata entry `format` of a circuit.
pub(crate) const CIRCUIT: &str = "ictd.circuit";

/// What a checkpoint of format 2 or 3, or a circuit, says of its Transformer, each field under its name in the metadata.
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
    /// Diagonal mixing at the step of the parameters.
    pub diagonal_mix: f64,
    /// Which state a training window asked about.
    pub query: QueryPosition,
    /// What diagonal mixing did to that state's column.
    pub query_mix: QueryMix,
    /// What scores of the tasks were multiplied by: features had its root as a factor.
    #[serde(default = "unscaled")]
    pub score_scale: f64,
    /// What else was done to the features of the tasks.
    #[serde(default = "untouched")]
    pub feature_map: FeatureMap,
}

/// What checkpoints that do not say it were trained on.
fn unscaled() -> f64 {
    1.0
}

fn untouched() -> FeatureMap {
    FeatureMap::Raw
}

impl Description {
    /// That of the parameters that a training run has after so many steps. Its mixing is the one that the next step trains them with, and that
    /// measurements of them use, here as in [`PretrainConfig::transformer`]: on a ramp the one at the end of the run is that of no other
    /// parameters but the last.
    pub fn of(config: &PretrainConfig, step: u64) -> Self {
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
            diagonal_mix: config.rho.at(step),
            query: config.query,
            query_mix: config.rho.query,
            score_scale: config.task.score_scale,
            feature_map: config.task.feature_map,
        }
    }

    /// Refuses tasks whose features are made in another way than those of training.
    fn check_tasks(&self, family: &Family) -> Result<(), LabError> {
        let (scale, expected) = (family.score_scale, self.score_scale);
        chosen("score-scale", Some(scale), Some(expected), expected)?;
        if family.feature_map != self.feature_map {
            let said = format!("{} as the checkpoint was trained with", word(self.feature_map));
            return Err(LabError::value("features of tasks", word(family.feature_map), said));
        }
        Ok(())
    }

    /// What was done to features in training, where somebody who brings features has to do it too.
    fn preparation(&self) -> Option<String> {
        let scale = (self.score_scale != 1.0).then(|| {
            format!(
                "multiplied by {:.6}, the root of the score scale {}",
                self.score_scale.sqrt(),
                self.score_scale
            )
        });
        let length = (self.feature_map == FeatureMap::UnitNorm).then(|| "divided by their length".to_owned());
        let done: Vec<String> = length.into_iter().chain(scale).collect();
        let text = "the checkpoint was trained on feature vectors that were";
        (!done.is_empty())
            .then(|| format!("{text} {}: those given here are taken as they are", done.join(" and ")))
    }

    /// Refuses what was trained on other columns than a context has here, where a query is no source and its attention
    /// is (1 - ρ)·K.
    pub(crate) fn check_columns(&self) -> Result<(), LabError> {
        if self.query == QueryPosition::Source {
            let expected = "a query that is no source (next, skip or stationary): contexts have no other";
            return Err(LabError::value("query in training", "source", expected));
        }
        self.check_mixing()
    }

    /// Refuses diagonal mixing that a context does not have here.
    pub(crate) fn check_mixing(&self) -> Result<(), LabError> {
        if self.query_mix == QueryMix::Unmixed && self.diagonal_mix != 0.0 {
            let expected = "mixed or scaled: the diagonal mixing of contexts scales a query's column";
            return Err(LabError::value("rho.query in training", "unmixed", expected));
        }
        Ok(())
    }

    /// Refuses parameters that are not what is described: other layers, another size, or entries that the mask forbids.
    fn check_parameters(&self, parameters: &Parameters) -> Result<(), LabError> {
        let (pairs, expected) = match parameters {
            Parameters::Tied(pair) if self.tied => (std::slice::from_ref(pair), 1),
            Parameters::PerLayer(pairs) if !self.tied => (pairs.as_slice(), self.layers),
            _ => {
                return Err(LabError::value(
                    "tied",
                    self.tied,
                    format!("{}, as the tensors are", !self.tied),
                ));
            }
        };
        if pairs.len() != expected {
            return Err(LabError::value(
                "layers",
                expected,
                format!("{}, as many as have tensors", pairs.len()),
            ));
        }
        for pair in pairs {
            let d = pair.feature_dim();
            if d != self.features {
                return Err(LabError::value("features", self.features, format!("{d}, as the tensors have")));
            }
            let (value, score) = (pair.value_matrix(), pair.score_matrix());
            for (i, j) in (0..d + 3).flat_map(|i| (0..d + 3).map(move |j| (i, j))) {
                let forbidden = [
                    ("V", value, self.mask.trains_value(d, i, j)),
                    ("A", score, self.mask.trains_score(d, i, j)),
                ];
                let wrong = |(_, matrix, trained): &(_, &Matrix, bool)| !trained && matrix[(i, j)] != 0.0;
                if let Some((name, matrix, _)) = forbidden.into_iter().find(wrong) {
                    let expected = "0, as the mask says";
                    return Err(LabError::value(
                        format!("{name}: entry ({i}, {j})"),
                        matrix[(i, j)],
                        expected,
                    ));
                }
            }
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
        match metadata.get(FORMAT).map(String::as_str) {
            None | Some("1") => return Ok(None),
            Some("2" | SEALED_FORMAT) => {}
            Some(other) => {
                return Err(format!("metadata {FORMAT} is {other}, expected 1, 2 or {SEALED_FORMAT}"));
            }
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
    /// What a user of the file should know.
    pub warning: Option<&'static str>,
}

impl ModelFile {
    /// What a user should know who applies it to tasks of this family, or to contexts of their own. Refuses tasks whose features are made in
    /// another way than those of training.
    pub fn remarks(&self, family: Option<&Family>) -> Result<Vec<String>, LabError> {
        let preparation = match (&self.description, family) {
            (Some(said), Some(family)) => {
                said.check_tasks(family)?;
                None
            }
            (said, _) => said.as_ref().and_then(Description::preparation),
        };
        Ok(self.warning.map(str::to_owned).into_iter().chain(preparation).collect())
    }
}

/// A map of features as it is written.
fn word(map: FeatureMap) -> String {
    serde_json::to_value(map).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// What was typed, or what the checkpoint says, or a default; refuses what contradicts the checkpoint.
pub fn chosen<T: PartialEq + Display>(
    flag: &str,
    typed: Option<T>,
    said: Option<T>,
    default: T,
) -> Result<T, LabError> {
    match (typed, said) {
        (Some(typed), Some(said)) if typed != said => {
            Err(LabError::value(flag, typed, format!("{said} as the checkpoint was trained with")))
        }
        (typed, said) => Ok(typed.or(said).unwrap_or(default)),
    }
}

/// Attention parameters as JSON: one pair (`V`, `A`) for all layers, or `layers` with a pair each.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "an object with V and A, or with layers", default)]
pub struct ParamsFile {
    #[serde(rename = "V", skip_serializing_if = "Option::is_none")]
    value_matrix: Option<Vec<Numbers>>,
    #[serde(rename = "A", skip_serializing_if = "Option::is_none")]
    score_matrix: Option<Vec<Numbers>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Vec<LayerFile>>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct LayerFile {
    #[serde(rename = "V")]
    value_matrix: Vec<Numbers>,
    #[serde(rename = "A")]
    score_matrix: Vec<Numbers>,
}

impl ParamsFile {
    /// The file of parameters; `None` for θ_*, which has no sizes of its own.
    pub fn of(parameters: &Parameters) -> Option<Self> {
        let layer = |pair: &AttentionParams| LayerFile {
            value_matrix: rows(pair.value_matrix()),
            score_matrix: rows(pair.score_matrix()),
        };
        match parameters {
            Parameters::ThetaStar => None,
            Parameters::Tied(pair) => {
                let LayerFile { value_matrix, score_matrix } = layer(pair);
                Some(Self {
                    value_matrix: Some(value_matrix),
                    score_matrix: Some(score_matrix),
                    layers: None,
                })
            }
            Parameters::PerLayer(pairs) => {
                Some(Self { layers: Some(pairs.iter().map(layer).collect()), ..Self::default() })
            }
        }
    }

    /// The parameters, of which nothing else is known.
    pub fn into_model(self) -> Result<ModelFile, LabError> {
        Ok(ModelFile { parameters: self.into_parameters()?, description: None, warning: None })
    }

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
/// format, whatever the file is called; refuses checkpoints of training on other columns than contexts have.
pub fn read_params(path: &Path) -> Result<ModelFile, LabError> {
    let file = params_of(path, &read_bytes(path)?)?;
    file.description.as_ref().map_or(Ok(()), Description::check_columns).map_err(|e| at(path, e))?;
    Ok(file)
}

/// As [`read_params`], of a file whose content is in memory; also of training on other columns.
pub(crate) fn params_of(path: &Path, bytes: &[u8]) -> Result<ModelFile, LabError> {
    if bytes.is_empty() {
        return Err(LabError::parse(path, "the file is empty, expected parameters as JSON or safetensors"));
    }
    if !is_checkpoint(path, bytes) {
        let file: ParamsFile = parse_json(path, bytes)?;
        return file.into_model().map_err(|e| at(path, e));
    }
    let failed = |message| LabError::parse(path, message);
    let tensors = Tensors::from_bytes(bytes).map_err(failed)?;
    check_circuit(&tensors).map_err(|e| at(path, e))?;
    let description = Description::read(&tensors.metadata).map_err(failed)?;
    let parameters = checkpoint_params(&tensors).map_err(|e| at(path, e))?;
    if let Some(said) = &description {
        said.check_parameters(&parameters).map_err(|e| at(path, e))?;
    }
    let warning = match &description {
        None => Some(
            "the checkpoint is of format 1: it carries no digest and does not say what it was trained with, flags and defaults are used",
        ),
        Some(_) if !tensors.is_sealed() => {
            Some("the checkpoint is of format 2 and carries no digest: damage would not be seen")
        }
        Some(_) => None,
    };
    Ok(ModelFile { parameters, description, warning })
}

/// Refuses circuits that are no layers with V and A, and those of versions that did not say which.
fn check_circuit(tensors: &Tensors) -> Result<(), LabError> {
    if tensors.metadata.get("format").is_none_or(|format| format != CIRCUIT) {
        return Ok(());
    }
    if tensors.tensors.contains_key("P") {
        let problem = "a circuit of linear attention, with P and Q, expected V and A: `forward --construction` has its layers";
        return Err(LabError::refused("params", problem));
    }
    if !tensors.metadata.contains_key(FORMAT) {
        let problem = "a circuit of an earlier version, which does not say its kernel and depth: write it again with `ictd circuit`";
        return Err(LabError::refused("params", problem));
    }
    Ok(())
}

/// Whether a file is in the safetensors format: its first eight bytes are a length, of which the last are 0, and no text has
/// three such bytes in a row. Of what is neither, the name says what it was meant to be.
fn is_checkpoint(path: &Path, bytes: &[u8]) -> bool {
    let is_text = bytes.first_chunk::<8>().is_none_or(|length| length[5..] != [0; 3]);
    let is_object = is_text && bytes.trim_ascii_start().starts_with(b"{");
    !is_text || !is_object && path.extension().is_some_and(|e| e == "safetensors")
}

/// `V` and `A`, or `layers.l.V` and `layers.l.A` for l = 0, 1, …, none left out.
fn checkpoint_params(tensors: &Tensors) -> Result<Parameters, LabError> {
    let refused = |problem: String| Err(LabError::refused("params", problem));
    let matrix = |name: String| {
        let (shape, numbers) = tensors
            .tensors
            .get(&name)
            .ok_or_else(|| LabError::refused("params", format!("tensor {name} is missing")))?;
        let &[_, columns] = shape.as_slice() else {
            return Err(LabError::value(
                format!("params: shape of {name}"),
                format!("{shape:?}"),
                "two numbers",
            ));
        };
        let rows =
            numbers.chunks(columns.max(1)).map(|row| row.iter().map(|&x| Some(f64::from(x))).collect());
        Ok(rows.collect::<Vec<Numbers>>())
    };
    let layer = |place: &str| pair(matrix(format!("{place}V"))?, matrix(format!("{place}A"))?, place);
    let names = || tensors.tensors.keys().map(String::as_str);
    let is_tied = names().any(|name| name == "V" || name == "A");
    // A layer of which only one matrix is there, or that is missing between others, is asked for and not found.
    let number = |name: &str| name.strip_prefix("layers.")?.split_once('.')?.0.parse::<usize>().ok();
    match (is_tied, names().filter_map(number).max()) {
        (true, None) => Ok(Parameters::Tied(layer("")?)),
        (false, Some(last)) if last < tensors.tensors.len() => {
            let pairs = (0..=last).map(|l| layer(&format!("layers.{l}.")));
            Ok(Parameters::PerLayer(pairs.collect::<Result<_, _>>()?))
        }
        (false, Some(last)) => {
            refused(format!("tensors of layer {last} are there, and layers before it are missing"))
        }
        (true, Some(_)) => refused("expected tensors V and A, or layers.0.V and so on, found both".into()),
        (false, None) => refused("expected tensors V and A, or layers.0.V and so on".into()),
    }
}
