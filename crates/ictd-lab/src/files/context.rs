//! Contexts as JSON, and what all readers of JSON share.

use std::borrow::Cow;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use ictd::context::{Context, End};
use ictd::matrix::Matrix;
use ictd::pretrain::MEMORY_LIMIT;
use ictd::transformer::AttentionParams;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{context_npz, npy, zip};
use crate::{LabError, memory};

/// Numbers of a file: `null`, and with it Python's `NaN` and `Infinity`, is kept as `None` so that
/// the error can name the place.
pub(crate) type Numbers = Vec<Option<f64>>;

/// A context as JSON: one trajectory (`features`, `rewards`) or several `episodes`, then `queries`.
///
/// A trajectory of n transitions has n + 1 feature rows and n rewards. `terminated` says that the
/// last state is terminal. `states` and `values` may be there for the reader's information.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "a context object", default)]
pub struct ContextFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) features: Option<Vec<Numbers>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rewards: Option<Numbers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) terminated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) episodes: Option<Vec<EpisodeFile>>,
    /// Feature rows of states to evaluate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) queries: Vec<Numbers>,
    /// Indices of the states, not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) states: Option<Vec<usize>>,
    /// Exact values of the states, not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) values: Option<Numbers>,
}

/// One episode of a [`ContextFile`].
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "an episode object")]
pub(crate) struct EpisodeFile {
    /// T + 1 feature rows.
    pub(crate) features: Vec<Numbers>,
    /// T rewards.
    pub(crate) rewards: Numbers,
    /// Whether the last state is terminal; false when absent.
    #[serde(default)]
    pub(crate) terminated: bool,
}

impl ContextFile {
    /// The episodes of the file, in either of its forms.
    pub(crate) fn into_episodes(self) -> Result<Vec<EpisodeFile>, LabError> {
        let refused = |name: &str, why: &str| Err(LabError::refused(name, why));
        Ok(match (self.features, self.rewards, self.episodes) {
            (Some(features), Some(rewards), None) => {
                vec![EpisodeFile { features, rewards, terminated: self.terminated.unwrap_or(false) }]
            }
            (None, None, Some(episodes)) if self.terminated.is_none() => episodes,
            (None, None, Some(_)) => return refused("terminated", "expected inside each of the episodes"),
            (_, _, Some(_)) => {
                return refused("episodes", "expected alone, found beside features or rewards");
            }
            (None, _, None) => return refused("features", "missing"),
            (_, None, None) => return refused("rewards", "missing"),
        })
    }

    /// The context the file describes.
    pub fn into_context(mut self) -> Result<Context, LabError> {
        let queries = std::mem::take(&mut self.queries);
        let mut builder = Context::builder();
        for episode in self.into_episodes()? {
            let features: Vec<Vec<f64>> = episode.features.into_iter().map(plain).collect();
            let end = if episode.terminated { End::Terminated } else { End::Truncated };
            builder = builder.episode(&features, &plain(episode.rewards), end);
        }
        for query in queries {
            builder = builder.query(&plain(query));
        }
        Ok(builder.build()?)
    }
}

/// Missing numbers as NaN, which every check downstream refuses with its place.
pub(super) fn plain(numbers: Numbers) -> Vec<f64> {
    numbers.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect()
}

/// The parameters of a layer; `place` names them in errors.
pub(super) fn pair(v: Vec<Numbers>, a: Vec<Numbers>, place: &str) -> Result<AttentionParams, LabError> {
    let [v, a] = [("V", v), ("A", a)].map(|(name, rows)| matrix(&format!("params: {place}{name}"), rows));
    AttentionParams::new(v?, a?).map_err(|e| LabError::refused("params", format!("{place}{e}")))
}

/// Rows as a matrix; `name` names it in errors.
pub(super) fn matrix(name: &str, rows: Vec<Numbers>) -> Result<Matrix, LabError> {
    let rows: Vec<Vec<f64>> = rows.into_iter().map(plain).collect();
    Matrix::from_rows(&rows).map_err(|e| LabError::refused(name, e.to_string()))
}

/// A matrix as rows.
pub(crate) fn rows(matrix: &Matrix) -> Vec<Numbers> {
    matrix.rows().map(|row| row.iter().copied().map(Some).collect()).collect()
}

/// Reads a context as JSON or NPZ, whichever the file begins as; `-` is standard input.
pub fn read_context(path: &Path) -> Result<Context, LabError> {
    let bytes = read_bytes(path)?;
    if zip::is_archive(&bytes) {
        return context_npz::read(path, bytes);
    }
    if npy::is_array(&bytes) {
        let expected = "an archive with the arrays features and rewards (numpy.savez writes it)";
        return Err(LabError::parse(path, format!("found a single array, expected {expected}")));
    }
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npz")) {
        return Err(LabError::parse(path, "found no signature of NPZ, expected an archive of arrays"));
    }
    let file: ContextFile = parse_json(path, &bytes)?;
    file.into_context().map_err(|e| at(path, e))
}

/// Names the file in an error about its contents.
pub(crate) fn at(path: &Path, error: LabError) -> LabError {
    LabError::Content { path: path.to_owned(), source: Box::new(error) }
}

/// The content of a file, which fits into memory; `-` is standard input.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, LabError> {
    let failed = |source| LabError::Read { path: path.to_owned(), source };
    let admit = |length: u64| memory::admit(length as f64, "the size of the file").map_err(|e| at(path, e));
    if path != Path::new("-") {
        // What cannot be found has no length, and is refused for what it is.
        admit(fs::metadata(path).map_or(0, |file| file.len()))?;
        return fs::read(path).map_err(failed);
    }
    let mut bytes = Vec::new();
    std::io::stdin().take(MEMORY_LIMIT as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    admit(bytes.len() as u64)?;
    Ok(bytes)
}

pub(crate) fn parse_json<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, LabError> {
    // The reader's word for a number is the type that it reads.
    let parse_failed =
        |message: String| LabError::parse(path, message.replace("expected f64", "expected a number"));
    let text = std::str::from_utf8(bytes).map_err(|e| parse_failed(format!("not UTF-8 text: {e}")))?;
    // Windows editors put a byte-order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().is_empty() {
        return Err(parse_failed("the file is empty, expected a JSON object".into()));
    }
    if !text.trim_start().starts_with('{') {
        return Err(parse_failed("expected a JSON object, starting with {".into()));
    }
    let text = numbers_or_null(text);
    serde_json::from_str(&text).map_err(|error| {
        if cfg!(target_family = "wasm") {
            // In a page what tracks the path to the offending field would be larger than what reads it.
            return parse_failed(error.to_string());
        }
        // Only now pay for tracking it.
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
pub(crate) fn numbers_or_null(text: &str) -> Cow<'_, str> {
    replaced(text, [("NaN", "null"), ("-Infinity", "null"), ("Infinity", "null")])
}

/// Only `NaN` as `null`: infinities become texts, which nobody takes for numbers.
pub(crate) fn nan_or_null(text: &str) -> Cow<'_, str> {
    replaced(text, [("NaN", "null"), ("-Infinity", "\"-Infinity\""), ("Infinity", "\"Infinity\"")])
}

/// The text with words that stand outside of strings replaced.
fn replaced<'a>(text: &'a str, words: [(&str, &str); 3]) -> Cow<'a, str> {
    if !text.contains("NaN") && !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(c) = rest.chars().next() {
        let found = words.into_iter().find(|(word, _)| !in_string && rest.starts_with(word));
        if let Some((word, instead)) = found {
            out.push_str(instead);
            rest = &rest[word.len()..];
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
