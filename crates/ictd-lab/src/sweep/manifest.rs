//! `sweep.json`: what is swept in a directory, and what computes it.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use ictd::pretrain::SimdLevel;
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use crate::LabError;
use crate::files::{OutputDir, process, read_sealed, sha256};

/// The file's name.
pub const FILE: &str = "sweep.json";
/// Where copies of the task files are that the plan names.
pub const TASKS: &str = "tasks";
const SCHEMA: &str = "ictd.sweep/1";

/// Removes manifests that killed processes had not put in their place yet.
pub fn remove_unfinished(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let moment = name.to_str().and_then(|name| name.strip_prefix(FILE)?.strip_prefix('.'));
        if moment.and_then(|rest| rest.strip_suffix(".json")).is_some_and(process::is_moment) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A sweep that was begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    schema: String,
    /// What is swept.
    pub plan: Plan,
    /// SHA-256 of the program.
    program: String,
    /// The vector instructions of all its workers.
    simd: String,
}

impl Manifest {
    /// Of a sweep that this program begins.
    pub fn new(plan: &Plan, simd: SimdLevel) -> Self {
        let (program, simd) = (process::program_sha256().to_owned(), simd.in_use().as_str().to_owned());
        Self { schema: SCHEMA.to_owned(), plan: plan.clone(), program, simd }
    }

    /// The one in a directory, if there is one.
    pub fn read(root: &Path) -> Result<Option<Self>, LabError> {
        let path = root.join(FILE);
        if !path.is_file() {
            return Ok(None);
        }
        let damaged = || {
            LabError::parse(&path, "not as it was written, expected an undamaged file; --fresh starts over")
        };
        let mut found: Self = read_sealed(&path).ok_or_else(damaged)?;
        if found.schema != SCHEMA {
            return Err(LabError::parse(&path, format!("schema is '{}', expected '{SCHEMA}'", found.schema)));
        }
        found.plan.tasks = std::mem::take(&mut found.plan.tasks).copied_to(&root.join(TASKS));
        Ok(Some(found))
    }

    /// SHA-256 of all it says: tables of one digest are the same.
    pub fn digest(&self) -> String {
        // A plan has names, numbers and lists, which all have JSON.
        sha256(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }

    /// The vector instructions that results of this sweep are computed with; an error where this machine lacks them.
    pub fn simd(&self, root: &Path) -> Result<SimdLevel, LabError> {
        let level = self.simd.parse::<SimdLevel>().or_else(|e| match self.simd.as_str() {
            "best" => Ok(SimdLevel::Best),
            _ => Err(LabError::parse(&root.join(FILE), e.to_string())),
        })?;
        if level.is_available() {
            return Ok(level);
        }
        let problem = format!(
            "the sweep was begun with {level}, which this CPU lacks, expected ICTD_SIMD set where it began to what all CPUs have"
        );
        Err(LabError::refused("sweep", problem))
    }

    /// Refuses to go on with another build: its results may differ in their last places.
    pub fn same_program(&self, root: &Path) -> Result<(), LabError> {
        if self.program == process::program_sha256() {
            return Ok(());
        }
        let problem = format!(
            "{} was begun by another build of ictd, expected that one, or --fresh to start over",
            root.display()
        );
        Err(LabError::refused("sweep", problem))
    }

    /// Begins the sweep in its directory, unless another worker did so in this moment; the manifest that stands there then.
    pub fn begin(self, out: &OutputDir) -> Result<Self, LabError> {
        let own = format!("{FILE}.{}", process::moment());
        let (own_path, path) = (out.path().join(format!("{own}.json")), out.path().join(FILE));
        out.sealed_json(&own, &self)?;
        // Linking is refused where the name is taken, other than renaming.
        let linked = fs::hard_link(&own_path, &path);
        let placed = match linked {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
            // A file system without links.
            Err(_) => fs::copy(&own_path, &path).map(|_| ()),
            Ok(()) => Ok(()),
        };
        let _ = fs::remove_file(&own_path);
        placed.map_err(|source| LabError::Write { path: path.clone(), source })?;
        Self::read(out.path())?.ok_or_else(|| LabError::parse(&path, "gone, expected no other process"))
    }

    /// Takes the place of an earlier one.
    pub fn replace(&self, out: &OutputDir) -> Result<(), LabError> {
        out.sealed_json(FILE.trim_end_matches(".json"), self)
    }
}
