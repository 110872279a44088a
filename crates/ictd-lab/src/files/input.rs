//! Reading contexts and parameters from JSON.

use std::borrow::Cow;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use ictd::context::{Context, End};
use ictd::matrix::Matrix;
use ictd::transformer::{AttentionParams, Parameters};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::safetensors::Tensors;
use crate::{LabError, one_line};

/// Numbers of a file: `null`, and with it Python's `NaN` and `Infinity`, is kept as `None` so that
/// the error can name the place.
type Numbers = Vec<Option<f64>>;

/// A context as JSON: one trajectory (`features`, `rewards`) or several `episodes`, then `queries`.
///
/// A trajectory of n transitions has n + 1 feature rows and n rewards. `terminated` says that the
/// last state is terminal. `states` and `values` may be there for the reader's information.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "a context object")]
pub struct ContextFile {
    /// Feature rows of the only episode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<Numbers>>,
    /// Rewards of the only episode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewards: Option<Numbers>,
    /// Whether the only episode ended in a terminal state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminated: Option<bool>,
    /// Several episodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episodes: Option<Vec<EpisodeFile>>,
    /// Feature rows of states to evaluate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<Numbers>,
    /// Indices of the states, not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<Vec<usize>>,
    /// Exact values of the states, not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Numbers>,
}

/// One episode of a [`ContextFile`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "an episode object")]
pub struct EpisodeFile {
    /// T + 1 feature rows.
    pub features: Vec<Numbers>,
    /// T rewards.
    pub rewards: Numbers,
    /// Whether the last state is terminal; false when absent.
    #[serde(default)]
    pub terminated: bool,
}

/// Attention parameters as JSON: one pair (`V`, `A`) for all layers, or `layers` with a pair each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamsFile {
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

impl ContextFile {
    /// The context the file describes.
    pub fn into_context(self) -> Result<Context, LabError> {
        let episodes = match (self.features, self.rewards, self.episodes) {
            (Some(features), Some(rewards), None) => {
                vec![EpisodeFile { features, rewards, terminated: self.terminated.unwrap_or(false) }]
            }
            (None, None, Some(episodes)) if self.terminated.is_none() => episodes,
            (None, None, Some(_)) => {
                return Err(LabError::Invalid("terminated: expected inside each of the episodes".into()));
            }
            (_, _, Some(_)) => {
                return Err(LabError::Invalid(
                    "episodes: expected alone, found beside features or rewards".into(),
                ));
            }
            (None, _, None) => return Err(LabError::Invalid("features: missing".into())),
            (_, None, None) => return Err(LabError::Invalid("rewards: missing".into())),
        };
        let mut builder = Context::builder();
        for episode in episodes {
            let features: Vec<Vec<f64>> = episode.features.into_iter().map(plain).collect();
            let end = if episode.terminated { End::Terminated } else { End::Truncated };
            builder = builder.episode(&features, &plain(episode.rewards), end);
        }
        for query in self.queries {
            builder = builder.query(&plain(query));
        }
        Ok(builder.build()?)
    }
}

/// Missing numbers as NaN, which every check downstream refuses with its place.
fn plain(numbers: Numbers) -> Vec<f64> {
    numbers.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect()
}

impl ParamsFile {
    fn into_parameters(self) -> Result<Parameters, LabError> {
        match (self.value_matrix, self.score_matrix, self.layers) {
            (Some(v), Some(a), None) => Ok(Parameters::Tied(pair(v, a, "")?)),
            (None, None, Some(layers)) => {
                let pairs = layers.into_iter().enumerate();
                let pairs =
                    pairs.map(|(l, p)| pair(p.value_matrix, p.score_matrix, &format!("layers[{l}].")));
                Ok(Parameters::PerLayer(pairs.collect::<Result<_, _>>()?))
            }
            _ => Err(LabError::Invalid("params: expected either V and A, or layers".into())),
        }
    }
}

fn pair(v: Vec<Numbers>, a: Vec<Numbers>, place: &str) -> Result<AttentionParams, LabError> {
    let matrix = |name: &str, rows: Vec<Numbers>| {
        let rows: Vec<Vec<f64>> = rows.into_iter().map(plain).collect();
        Matrix::from_rows(&rows).map_err(|e| LabError::Invalid(format!("params: {place}{name}: {e}")))
    };
    AttentionParams::new(matrix("V", v)?, matrix("A", a)?)
        .map_err(|e| LabError::Invalid(format!("params: {place}{e}")))
}

/// Reads a context; `-` is standard input.
pub fn read_context(path: &Path) -> Result<Context, LabError> {
    let file: ContextFile = read_json(path)?;
    file.into_context().map_err(|e| at(path, e))
}

/// Reads attention parameters from JSON (`-` is standard input) or from a checkpoint in the safetensors
/// format.
pub fn read_params(path: &Path) -> Result<Parameters, LabError> {
    if path.extension().is_some_and(|e| e == "safetensors") {
        let bytes = fs::read(path).map_err(|source| LabError::Read { path: path.to_owned(), source })?;
        let failed = |message: String| at(path, LabError::Invalid(message));
        let tensors = Tensors::from_bytes(&bytes).map_err(failed)?;
        return checkpoint_params(&tensors).map_err(|e| at(path, e));
    }
    let file: ParamsFile = read_json(path)?;
    file.into_parameters().map_err(|e| at(path, e))
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
    if let (Some(v), Some(a)) = (matrix("V"), matrix("A")) {
        return Ok(Parameters::Tied(pair(v, a, "")?));
    }
    let layers =
        (0..).map_while(|l| Some((l, matrix(&format!("layers.{l}.V"))?, matrix(&format!("layers.{l}.A"))?)));
    let pairs = layers.map(|(l, v, a)| pair(v, a, &format!("layers.{l}."))).collect::<Result<Vec<_>, _>>()?;
    if pairs.is_empty() {
        return Err(LabError::Invalid("params: expected tensors V and A, or layers.0.V and so on".into()));
    }
    Ok(Parameters::PerLayer(pairs))
}

/// Names the file in an error about its contents.
fn at(path: &Path, error: LabError) -> LabError {
    match error {
        LabError::Invalid(message) => LabError::Parse { path: path.to_owned(), message: one_line(&message) },
        other => other,
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, LabError> {
    let read_failed = |source| LabError::Read { path: path.to_owned(), source };
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map_err(read_failed)?;
        bytes
    } else {
        fs::read(path).map_err(read_failed)?
    };
    let parse_failed = |message: String| at(path, LabError::Invalid(message));
    let text = std::str::from_utf8(&bytes).map_err(|e| parse_failed(format!("not UTF-8 text: {e}")))?;
    // Windows editors put a byte-order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with('{') {
        return Err(parse_failed("expected a JSON object, starting with {".into()));
    }
    let text = numbers_or_null(text);
    serde_json::from_str(&text).map_err(|error| {
        // Only now pay for tracking the path to the offending field.
        let mut reader = serde_json::Deserializer::from_str(&text);
        match serde_path_to_error::deserialize::<_, T>(&mut reader) {
            Err(located) if located.path().iter().len() > 0 => {
                parse_failed(format!("{}: {}", located.path(), located.inner()))
            }
            _ => parse_failed(error.to_string()),
        }
    })
}

/// The text with Python's `NaN`, `Infinity` and `-Infinity` outside strings replaced by `null`.
fn numbers_or_null(text: &str) -> Cow<'_, str> {
    if !text.contains("NaN") && !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(c) = rest.chars().next() {
        let literal =
            ["NaN", "-Infinity", "Infinity"].into_iter().find(|l| !in_string && rest.starts_with(l));
        if let Some(literal) = literal {
            out.push_str("null");
            rest = &rest[literal.len()..];
            continue;
        }
        let mut length = c.len_utf8();
        if c == '"' {
            in_string = !in_string;
        } else if c == '\\' && in_string {
            // Skip the escaped character, which may be a quote.
            length += rest[1..].chars().next().map_or(0, char::len_utf8);
        }
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(json: &str) -> Result<Context, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.json");
        fs::write(&path, json).unwrap();
        read_context(&path).map_err(|e| e.to_string().split_once("c.json: ").unwrap().1.to_owned())
    }

    #[test]
    fn both_forms_are_read() {
        let one = context(r#"{"features": [[1], [2]], "rewards": [3], "queries": [[4]]}"#).unwrap();
        assert_eq!((one.num_transitions(), one.num_columns()), (1, 3));
        let many = context(
            r#"{"episodes": [{"features": [[1], [2]], "rewards": [3], "terminated": true},
                             {"features": [[1], [2], [3]], "rewards": [3, 4]}]}"#,
        );
        assert_eq!(many.unwrap().num_columns(), 5);
    }

    #[test]
    fn each_mistake_names_its_field() {
        let message = |json: &str| context(json).unwrap_err();
        assert!(message(r#"{"features": [], "rewards": []}"#).starts_with("rewards: episode 0"));
        assert!(
            message(r#"{"features": [[1]], "rewards": []}"#).starts_with("rewards: the context is empty")
        );
        assert!(message(r#"{"features": [[1], [1, 2]], "rewards": [1]}"#).starts_with("features: row 1"));
        assert!(
            message(r#"{"features": [[1], [NaN]], "rewards": [1]}"#)
                .starts_with("features: entry 0 of row 1")
        );
        assert!(
            message(r#"{"features": [[1], [2]], "rewards": [-Infinity]}"#).starts_with("rewards: entry 0")
        );
        assert!(
            message(r#"{"features": [[1], [2]], "rewards": ["x"]}"#).starts_with("rewards[0]: invalid type")
        );
        assert!(message(r#"{"features": [[1], [2]]}"#).starts_with("rewards: missing"));
        assert!(message(r#"{"rewards": [1]}"#).starts_with("features: missing"));
        assert!(message(r#"{"feature": [[1]]}"#).contains("unknown field `feature`"));
        assert!(
            message(r#"{"features": [[1], [2]], "rewards": [1], "queries": [[1, 2]]}"#)
                .starts_with("queries: query 0")
        );
        assert!(message("{1").contains("line 1"));
        assert!(message("[[[1], [2]], [1]]").contains("expected a JSON object"));
    }

    #[test]
    fn nan_is_replaced_outside_strings_only() {
        assert_eq!(numbers_or_null(r#"{"a\"NaN": NaN, "b": -Infinity}"#), r#"{"a\"NaN": null, "b": null}"#);
    }

    #[test]
    fn parameters_are_read_tied_and_per_layer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.json");
        let zero = "[[0,0,0,0],[0,0,0,0],[0,0,0,0],[0,0,0,0]]";
        let read = |json: String| {
            fs::write(&path, json).unwrap();
            read_params(&path)
        };
        assert!(matches!(read(format!(r#"{{"V": {zero}, "A": {zero}}}"#)), Ok(Parameters::Tied(_))));
        let layers = format!(r#"{{"layers": [{{"V": {zero}, "A": {zero}}}, {{"V": {zero}, "A": {zero}}}]}}"#);
        assert!(matches!(read(layers), Ok(Parameters::PerLayer(p)) if p.len() == 2));
        assert!(
            read(format!(r#"{{"V": {zero}}}"#))
                .unwrap_err()
                .to_string()
                .contains("either V and A, or layers")
        );
        assert!(
            read(format!(r#"{{"V": {zero}, "A": [[1]]}}"#)).unwrap_err().to_string().contains("A is 1×1")
        );
    }
}
