//! `result.json` of a seed: what was found, with a digest of every other file of the run and of itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SeedResult;
use super::run_dir::checkpoint_files;
use crate::LabError;
use crate::files::{OutputDir, read_sealed, sha256};

/// The file's name.
pub(super) const RESULT: &str = "result.json";
/// What it says when it carries digests.
const SCHEMA_VERSION: u32 = 2;

#[derive(Serialize)]
struct ResultFile<'a> {
    schema_version: u32,
    #[serde(flatten)]
    result: &'a SeedResult,
    files: BTreeMap<String, String>,
}

/// The result of a finished run, and its files with their SHA-256.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Record {
    #[serde(flatten)]
    pub(super) result: SeedResult,
    pub(super) files: BTreeMap<String, String>,
}

/// What there is of a finished run.
#[derive(Debug, Clone)]
pub(super) enum Found {
    /// No result.
    Nothing,
    /// A result of an earlier version, which lists no digests.
    Undigested(Box<SeedResult>),
    /// Every file that was looked at as it was written.
    Intact(Box<Record>),
    /// These are not as they were written, or missing; and the record, where it can be trusted.
    Differs(Vec<String>, Option<Box<Record>>),
}

impl Record {
    /// The record of a directory, if it is there and undamaged.
    pub(super) fn read(root: &Path) -> Option<Self> {
        read_sealed(&root.join(RESULT))
    }
}

impl Found {
    /// Looks at the result alone: whether it is as it was written, and that of this seed and of a configuration whose
    /// SHA-256 begins with `hash`.
    pub(super) fn glance(root: &Path, seed: u64, hash: &str) -> Self {
        let path = root.join(RESULT);
        if !path.is_file() {
            return Self::Nothing;
        }
        if let Some(record) = Record::read(root) {
            let is_own = record.files.get("config.toml").is_some_and(|digest| digest.starts_with(hash));
            return match is_own && record.result.seed == seed {
                true => Self::Intact(Box::new(record)),
                false => Self::Differs(vec![RESULT.into()], None),
            };
        }
        let text = fs::read(&path).unwrap_or_default();
        // A damaged file of this version still has one of the two words.
        let is_old = |value: &Value| {
            value["schema_version"] == 1 && value.get("files").is_none() && value.get("sha256").is_none()
        };
        let old = serde_json::from_slice(&text).ok().filter(is_old);
        match old.and_then(|value| serde_json::from_value::<SeedResult>(value).ok()) {
            Some(result) if result.seed == seed => Self::Undigested(Box::new(result)),
            _ => Self::Differs(vec![RESULT.into()], None),
        }
    }

    /// Looks at every file of a run.
    pub(super) fn examine(root: &Path, seed: u64, hash: &str) -> Self {
        let record = match Self::glance(root, seed, hash) {
            Self::Intact(record) => record,
            other => return other,
        };
        let differs = |(name, digest): &(&String, &String)| !has_digest(&root.join(name), digest);
        let mut names: Vec<String> =
            record.files.iter().filter(differs).map(|(name, _)| name.clone()).collect();
        // A checkpoint that nobody listed would be taken for the newest.
        let listed = |name: &String| record.files.contains_key(name);
        let checkpoints = checkpoint_files(&root.join("ckpt")).unwrap_or_default();
        let others = checkpoints.iter().filter_map(|p| Some(format!("ckpt/{}", p.file_name()?.to_str()?)));
        names.extend(others.filter(|name| !listed(name)));
        if names.is_empty() { Self::Intact(record) } else { Self::Differs(names, Some(record)) }
    }

    /// The result, where it is there.
    pub(super) fn result(&self) -> Option<&SeedResult> {
        match self {
            Self::Intact(record) => Some(&record.result),
            Self::Undigested(result) => Some(result),
            Self::Nothing | Self::Differs(..) => None,
        }
    }
}

/// Whether a file is there and has this SHA-256.
pub(super) fn has_digest(path: &Path, digest: &str) -> bool {
    fs::read(path).is_ok_and(|bytes| sha256(&bytes) == digest)
}

/// Writes the result with the digests of the files named, which are all others of the run.
pub(super) fn write(work: &OutputDir, result: &SeedResult, names: &[String]) -> Result<(), LabError> {
    let digest = |name: &String| {
        let path = work.path().join(name);
        let bytes = fs::read(&path).map_err(|source| LabError::Read { path, source })?;
        Ok((name.clone(), sha256(&bytes)))
    };
    let files = names.iter().map(digest).collect::<Result<_, LabError>>()?;
    work.sealed_json("result", &ResultFile { schema_version: SCHEMA_VERSION, result, files })
}
