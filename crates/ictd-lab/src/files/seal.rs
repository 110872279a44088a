//! JSON files that carry a digest of themselves, so that damage is seen when they are read back.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::sha256;

/// What stands after the digest, which is the last field.
const END: &str = "\"\n}\n";
/// Hexadecimal digits of a digest.
const DIGITS: usize = 64;

#[derive(Serialize)]
struct Sealed<'a, T> {
    #[serde(flatten)]
    content: &'a T,
    sha256: &'static str,
}

/// A value with fields as indented JSON, with a last field `sha256`: that of the text with this field left empty.
pub(crate) fn sealed_json(value: &impl Serialize) -> serde_json::Result<String> {
    let empty = serde_json::to_string_pretty(&Sealed { content: value, sha256: "" })? + "\n";
    let digest = sha256(empty.as_bytes());
    Ok(format!("{}{digest}{END}", empty.trim_end_matches(END)))
}

/// What [`sealed_json`] wrote to a file; `None` where the file is anything else, if only in one byte.
pub(crate) fn read_sealed<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let text = fs::read_to_string(path).ok()?;
    let all = text.strip_suffix(END)?;
    let (content, digest) = all.split_at_checked(all.len().checked_sub(DIGITS)?)?;
    if sha256(format!("{content}{END}").as_bytes()) != digest {
        return None;
    }
    serde_json::from_str(&text).ok()
}
