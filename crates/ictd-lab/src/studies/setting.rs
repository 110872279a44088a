//! The settings in which the published pictures are looked for.

use super::claim::Scope;
use crate::studies::pretrain::{self, RunResult, Settings};
use crate::{LabError, Progress};

/// A setting, as changes of a preset. The first is the paper's; `docs/readings.md` and `docs/mirror.md` have the
/// searches that found the others.
pub struct Setting {
    /// What it is called in figures.
    pub title: &'static str,
    /// Appended to the names of files and, with a hyphen, of claims.
    pub suffix: &'static str,
    changes: &'static [&'static str],
    /// Further changes where attention is mixed with the identity.
    mixed: &'static [&'static str],
    /// What it is called in figures then.
    pub mixed_title: &'static str,
    /// Whose claim it is to hold there.
    pub scope: Scope,
    /// Whether the TD block's signs are given at the start, so that nothing that is found emerged.
    pub signs_given: bool,
}

/// The paper's equations.
pub const LITERAL: Setting = Setting {
    title: "the paper’s setting",
    suffix: "",
    changes: &[],
    mixed: &[],
    mixed_title: "the paper’s setting",
    scope: Scope::Paper,
    signs_given: false,
};

/// Attention in R^{n×n}: the query is the last source and its reward is visible; mixing on the columns before it.
pub const SOURCE: Setting = Setting {
    title: "the query a source",
    suffix: "_source",
    changes: &["query=source"],
    mixed: &["rho.query=unmixed"],
    mixed_title: "the query a source, its column unmixed",
    scope: Scope::OtherReading,
    ..LITERAL
};

/// Queries from the stationary law; no mixing.
pub const STATIONARY: Setting = Setting {
    title: "stationary queries, TD signs given",
    suffix: "_stationary",
    changes: &["query=stationary", "init.score_sign=td", "init.value_sign=td"],
    mixed: &["rho.start=0.0", "rho.end=0.0"],
    mixed_title: "stationary queries, TD signs given, ρ = 0",
    scope: Scope::ChangedSetting,
    signs_given: true,
};

/// Larger initial values.
pub const GAIN: Setting = Setting {
    title: "TD signs given, gain 1",
    suffix: "_gain",
    changes: &["init.gain=1.0", "init.score_sign=td", "init.value_sign=td"],
    mixed: &[],
    mixed_title: "TD signs given, gain 1",
    ..STATIONARY
};

impl Setting {
    /// A preset in this setting, with further changes.
    pub fn settings(&self, preset: &str, more: &[&str]) -> Result<Settings, LabError> {
        let changes: Vec<String> = self.changes.iter().chain(more).map(|&c| c.to_owned()).collect();
        Settings::preset(preset, &changes)
    }

    /// Trains a preset, with further changes.
    pub fn train(&self, preset: &str, more: &[&str], seeds: &[u64]) -> Result<RunResult, LabError> {
        pretrain::run_in_memory(&self.settings(preset, more)?, seeds, &Progress::default())
    }

    /// Trains a preset that mixes.
    pub fn train_mixed(&self, preset: &str, seeds: &[u64]) -> Result<RunResult, LabError> {
        self.train(preset, self.mixed, seeds)
    }

    /// The name of a claim in this setting.
    pub fn id(&self, name: &str) -> String {
        format!("{name}{}", self.suffix.replace('_', "-"))
    }

    /// The same where attention is mixed.
    pub fn mixed_place(&self, figure: &str) -> String {
        format!("{figure}, {}", self.mixed_title)
    }

    /// Where in the paper a figure stands, and in which setting it is looked for.
    pub fn place(&self, figure: &str) -> String {
        format!("{figure}, {}", self.title)
    }
}
