//! The settings of a sweep: every combination of its plan, with its configuration.

use std::collections::HashMap;

use ictd::pretrain::SimdLevel;

use super::plan::{CASE, Choice, Metrics, Plan};
use crate::files::{process, sha256};
use crate::studies::pretrain::Settings;
use crate::{LabError, memory};

/// A sweep that can be run.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// What was asked for.
    pub plan: Plan,
    /// The columns that say which setting a row belongs to.
    pub varied: Vec<String>,
    /// All settings, in the order of the table.
    pub settings: Vec<Setting>,
    /// The vector instructions that all results are computed with, wherever that is.
    pub simd: SimdLevel,
    /// For every setting the first that is the same: cases may come to one configuration, and are trained once.
    firsts: Vec<usize>,
}

/// One combination of choices.
#[derive(Clone, Debug)]
pub struct Setting {
    /// A value for every varied column.
    pub values: Vec<String>,
    /// The configuration.
    pub settings: Settings,
    /// What decides its results: configuration, what is measured and kept, program and vector instructions.
    pub key: String,
}

impl Sweep {
    /// Resolves every setting of a plan, so that a mistake in any of them is found before the first run.
    pub fn of(plan: Plan, simd: SimdLevel) -> Result<Self, LabError> {
        plan.check()?;
        let varied = plan.varied();
        let setting = |k: usize| {
            // What is wrong in the first setting is wrong in what all have in common, most likely.
            Setting::of(&plan, k, &varied, simd).map_err(|error| match k {
                0 => error,
                _ => {
                    LabError::refused("PLAN", format!("setting {k} ({}): {error}", Setting::words(&plan, k)))
                }
            })
        };
        let settings = (0..plan.num_settings()).map(setting).collect::<Result<Vec<_>, _>>()?;
        let mut known = HashMap::new();
        let firsts: Vec<usize> =
            settings.iter().enumerate().map(|(k, s)| *known.entry(s.key.as_str()).or_insert(k)).collect();
        // Rows that nothing tells apart are no two settings.
        let same = |(k, first): (usize, &usize)| *first < k && settings[*first].values == settings[k].values;
        if let Some((k, first)) = firsts.iter().enumerate().find(|(k, first)| same((*k, first))) {
            let problem = format!(
                "settings {first} ({}) and {k} ({}) are the same, expected settings that differ",
                Setting::words(&plan, *first),
                Setting::words(&plan, k)
            );
            return Err(LabError::refused("PLAN", problem));
        }
        let sweep = Self { settings, varied, simd, plan, firsts };
        sweep.check_metrics()?;
        // Runs train one per thread, each on its own.
        let at_once = memory::threads(sweep.num_runs() as f64) as usize;
        sweep.settings.iter().try_for_each(|setting| setting.settings.admit(at_once, false))?;
        Ok(sweep)
    }

    /// Refuses curves without a single point.
    fn check_metrics(&self) -> Result<(), LabError> {
        let longest = self.settings.iter().map(|setting| setting.settings.config.epochs).max().unwrap_or(0);
        match self.plan.metrics {
            metrics @ Metrics::Every(epochs) if epochs > longest => {
                let expected = format!("at most the {longest} epochs of the longest run between two points");
                Err(LabError::value("metrics", format!("'{metrics}'"), expected))
            }
            _ => Ok(()),
        }
    }

    /// Settings times seeds.
    pub fn num_runs(&self) -> usize {
        self.settings.len() * self.plan.seeds.len()
    }

    /// The run that stands for this one: the same seed of the first setting that is the same.
    pub fn first(&self, run: usize) -> usize {
        let seeds = self.plan.seeds.len();
        self.firsts[run / seeds] * seeds + run % seeds
    }

    /// How many runs are computed: settings that are the same share theirs.
    pub fn num_computed(&self) -> usize {
        let own = self.firsts.iter().enumerate().filter(|(k, first)| k == *first).count();
        own * self.plan.seeds.len()
    }

    /// A run in words: its number, what makes its setting, its seed.
    pub(super) fn named(&self, run: usize) -> String {
        let (seeds, words) = (&self.plan.seeds, Setting::words(&self.plan, run / self.plan.seeds.len()));
        let gap = if words.is_empty() { "" } else { ", " };
        format!("run {run} ({words}{gap}seed {})", seeds[run % seeds.len()])
    }

    /// The setting and the seed of a run; runs are numbered by setting, then by seed.
    pub fn run(&self, run: usize) -> (&Setting, u64) {
        let seeds = &self.plan.seeds;
        (&self.settings[run / seeds.len()], seeds[run % seeds.len()])
    }

    /// What decides the whole table: sweeps of one digest are the same.
    pub fn digest(&self) -> String {
        let keys: Vec<&str> = self.settings.iter().map(|s| s.key.as_str()).collect();
        let values: Vec<String> = self.settings.iter().map(|s| s.values.join("\t")).collect();
        let words = [self.varied.join("\t"), keys.join(" "), values.join("\n"), self.plan.seeds.to_string()];
        sha256(words.join("\n\n").as_bytes())
    }
}

impl Setting {
    /// What makes a setting: titles of cases and changes.
    fn words(plan: &Plan, number: usize) -> String {
        let word = |choice: &Choice| choice.title.clone().unwrap_or_else(|| choice.set.join(" "));
        let words: Vec<String> = plan.choices(number).into_iter().map(word).collect();
        words.join(", ")
    }

    pub(super) fn of(
        plan: &Plan,
        number: usize,
        varied: &[String],
        simd: SimdLevel,
    ) -> Result<Self, LabError> {
        let choices = plan.choices(number);
        let chosen = choices.iter().flat_map(|choice| choice.set.iter());
        let changes: Vec<String> = plan.set.iter().chain(chosen).cloned().collect();
        let mut settings = match &plan.base.toml {
            Some(text) => Settings::written_among(&plan.base.name, text, &changes, &plan.tasks),
            None => Settings::preset_among(&plan.base.name, &changes, &plan.tasks),
        }?;
        settings.config.simd = simd;
        let title = choices.iter().find_map(|choice| choice.title.clone());
        let value = |column: &String| match &title {
            Some(title) if column == CASE => Ok(title.clone()),
            _ => settings.value_of(column),
        };
        let values = varied.iter().map(value).collect::<Result<_, _>>()?;
        let (metrics, checkpoints) = (plan.metrics, plan.checkpoints);
        let by = format!("{} {}", process::program_sha256(), simd.in_use());
        let words = format!("{}\n{metrics}\n{checkpoints}\n{by}", settings.to_toml()?);
        Ok(Self { values, key: sha256(words.as_bytes())[..16].to_owned(), settings })
    }
}
