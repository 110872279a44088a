//! Which solution pretraining finds, setting by setting: the branch map and the first gradient.

use std::path::Path;
use std::time::Duration;

use ictd::statistics::wilson;
use serde::{Deserialize, Serialize};

use super::fig3_5::EMERGED;
use super::first_gradient::FirstGradientSign;
use super::pretrain::Settings;
use crate::error::LabError;
use crate::figure::style::{GRAY, PALETTE};
use crate::figure::{Cell, Cells, Grid, Legend, Scene};
use crate::files::{OutputDir, read_sealed, sha256};
use crate::report::{Records, Report};
use crate::sweep::show::Runs;
use crate::sweep::{Choice, Plan, Request, Setting, key_of};
use crate::{Progress, Seeds};

/// What is mapped, for every query position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// Sizes, temperatures and initial signs, beside the paper's setting.
    Settings,
    /// Kernels, each with initial signs as drawn, those of the TD block and those of the mirror block.
    Kernels,
}

impl Map {
    /// Both, by name.
    pub const ALL: [(&'static str, Map); 2] = [("settings", Self::Settings), ("kernels", Self::Kernels)];

    /// The plan of its sweep.
    fn plan(self) -> Result<Plan, LabError> {
        let name = match self {
            Self::Settings => "branches",
            Self::Kernels => "kernels",
        };
        Plan::shipped(name).unwrap_or_else(|| Err(LabError::internal("plan", format!("{name} is not there"))))
    }

    /// Keys that name what is mapped: another value would make a row something else than its title says.
    fn own_keys(self) -> &'static [&'static str] {
        match self {
            Self::Settings => &["query", "init.score_sign", "init.value_sign"],
            Self::Kernels => &["query", "init.score_sign", "init.value_sign", "kernel"],
        }
    }
}

/// What is printed of a setting: its overrides, which are long and without spaces, are left to the files.
const SHOWN: [&str; 10] =
    ["change", "query", "seeds", "td", "mirror", "none", "diverged", "td_low", "td_high", "emerged"];

/// How many seeds of a setting took which branch.
#[derive(Clone, Debug, Serialize)]
struct BranchCount {
    change: String,
    /// The change with its markup, for figures.
    #[serde(skip)]
    title: String,
    query: String,
    /// Overrides that make the setting.
    overrides: String,
    seeds: u64,
    td: u64,
    mirror: u64,
    none: u64,
    /// Seeds whose parameters or losses left the range of numbers; they are in no branch.
    diverged: u64,
    /// 95 % interval of the share of the TD block (Wilson).
    td_low: f64,
    td_high: f64,
    /// Seeds with min(V_em, A_em) ≥ ½ at their best step.
    emerged: u64,
}

/// The map and the gradients.
#[derive(Clone, Debug, Serialize)]
pub struct BranchMap {
    counts: Vec<BranchCount>,
    gradients: Vec<FirstGradientSign>,
}

/// A map as a command asks for it.
#[derive(Clone, Debug)]
pub struct Search {
    /// What is mapped.
    pub map: Map,
    /// Seeds of every setting.
    pub seeds: Seeds,
    /// Changes of every setting before its own, `key=value`: of the tasks, for instance.
    pub changes: Vec<String>,
    /// Removes what an earlier map or sweep left in the directory.
    pub fresh: bool,
    /// Goes on with those of its runs that this map has too.
    pub extend: bool,
}

/// Sweeps a map in the directory `out` and tells `tell` about each setting. What an earlier run of the same program left of this
/// map is taken up, and a finished map is not computed again. Settings that only change the number of states are left out where a
/// file says it or nobody counts them, and queries from a stationary law where it is not known.
pub fn run(
    search: &Search,
    out: &Path,
    progress: &Progress,
    mut tell: impl FnMut(&str),
) -> Result<BranchMap, LabError> {
    let Search { map, seeds, changes: base, fresh, extend } = search;
    let sets = |change: &&String| map.own_keys().contains(&key_of(change));
    if let Some(change) = base.iter().find(sets) {
        let problem = format!(
            "'{change}' is what the map varies, expected other keys than {}",
            map.own_keys().join(", ")
        );
        return Err(LabError::refused("set", problem));
    }
    let plan = fitted(map.plan()?, seeds, base)?;
    let request = Request { plan, out: out.to_owned(), fresh: *fresh, extend: *extend };
    let is_finished = request.finished()?.is_some();
    if !is_finished {
        // Before minutes of gradients.
        request.admitted()?;
    }
    let sweep = request.sweep()?;
    // The first gradient is that of the paper's kernel, which the other map varies.
    let measured: Vec<&Setting> = match map {
        Map::Settings => sweep.settings.iter().take(sweep.plan.axes[1].choices.len()).collect(),
        Map::Kernels => Vec::new(),
    };
    let gradients = Gradients::of(&measured, seeds, out, progress)?;
    if !is_finished {
        let opened = request.open(true)?;
        opened.work(&(0..opened.sweep.num_runs()), progress)?;
        opened.finish(progress, |_| {})?;
    }
    let runs = Runs::read(out, progress)?;
    let mut counts = Vec::new();
    for (k, setting) in sweep.settings.iter().enumerate() {
        let found = count(&sweep.plan, setting, &runs, k);
        let BranchCount { change, query, td, mirror, none, diverged, .. } = &found;
        let lost = if *diverged > 0 { format!(", {diverged} diverged") } else { String::new() };
        let place = format!("[{}/{}]", k + 1, sweep.settings.len());
        tell(&format!("{place} {change}, query {query}: {td} td, {mirror} mirror, {none} none{lost}"));
        counts.push(found);
    }
    Ok(BranchMap { counts, gradients })
}

/// First gradients as they are kept in the directory of a map.
#[derive(Serialize, Deserialize)]
struct Gradients {
    /// What decides them: settings, program and vector instructions, seeds.
    of: String,
    gradients: Vec<FirstGradientSign>,
}

impl Gradients {
    /// Where they are.
    const FILE: &str = "first_gradient.json";

    /// Those of some settings: what was measured before is not measured again.
    fn of(
        settings: &[&Setting],
        seeds: &Seeds,
        out: &Path,
        progress: &Progress,
    ) -> Result<Vec<FirstGradientSign>, LabError> {
        if settings.is_empty() {
            return Ok(Vec::new());
        }
        // The keys of settings say which program computes them.
        let keys: Vec<&str> = settings.iter().map(|setting| setting.key.as_str()).collect();
        let of = sha256(format!("{}\n{seeds}", keys.join(" ")).as_bytes());
        let kept: Option<Self> = read_sealed(&out.join(Self::FILE));
        if let Some(kept) = kept.filter(|kept| kept.of == of) {
            return Ok(kept.gradients);
        }
        progress.begin("branches: first gradients", "seeds", (settings.len() * seeds.len()) as u64)?;
        let gradient = |setting: &&Setting| {
            FirstGradientSign::measure(query(setting), &setting.settings, seeds, progress)
        };
        let gradients = settings.iter().map(gradient).collect::<Result<Vec<_>, _>>()?;
        let own = Self { of, gradients };
        let out = OutputDir::locked(out, Duration::ZERO)?;
        out.sealed_json(Self::FILE.trim_end_matches(".json"), &own)?;
        Ok(own.gradients)
    }
}

/// The plan with these seeds and changes, without the settings that these tasks have no use for.
fn fitted(mut plan: Plan, seeds: &Seeds, base: &[String]) -> Result<Plan, LabError> {
    plan.seeds = seeds.clone().sorted();
    plan.change(base)?;
    let config = Settings::preset_among(&plan.base.name, &plan.set, &plan.tasks)?.config;
    // A query from the stationary law needs to know it; states that are not counted cannot be more or fewer.
    let is_exact = config.source()?.is_exact();
    let fixed_size = config.own.is_some() || !is_exact;
    let of = |choice: &Choice, change: &str| choice.set.iter().any(|own| own.starts_with(change));
    for axis in &mut plan.axes {
        axis.choices.retain(|choice| {
            !(fixed_size && of(choice, "states=") || !is_exact && of(choice, "query=stationary"))
        });
        for choice in axis.choices.iter_mut().filter(|choice| choice.set.is_empty() && !base.is_empty()) {
            choice.title = Some("as given".into());
        }
    }
    Ok(plan)
}

/// The value of the last axis.
fn query(setting: &Setting) -> &str {
    setting.values.last().map_or("", String::as_str)
}

fn count(plan: &Plan, setting: &Setting, runs: &Runs, number: usize) -> BranchCount {
    let [td, mirror, none, diverged] = runs.counts(number);
    let emerged =
        runs.smaller_of(number, ["best.v_em", "best.a_em"]).filter(|x| *x >= EMERGED).count() as u64;
    let title = setting.values.first().cloned().unwrap_or_default();
    let seeds = plan.seeds.len() as u64;
    let (td_low, td_high) = wilson(td, seeds);
    BranchCount {
        change: title.replace('*', ""),
        title,
        query: query(setting).to_owned(),
        overrides: setting.settings.overrides.join(" "),
        seeds,
        td,
        mirror,
        none,
        diverged,
        td_low,
        td_high,
        emerged,
    }
}

impl BranchMap {
    fn queries(&self) -> Vec<&str> {
        let first = self.counts.first().map(|c| &c.change);
        self.counts.iter().take_while(|c| Some(&c.change) == first).map(|c| c.query.as_str()).collect()
    }

    /// The map: a bar of shares per setting, the interval of the TD share marked.
    pub fn figure(&self) -> Scene {
        let colors = [PALETTE[0], PALETTE[1], GRAY];
        let cell = |count: &BranchCount| {
            let shares = [count.td, count.mirror, count.none].map(|k| k as f64 / count.seeds as f64);
            Cell::Bar {
                shares: shares.into_iter().zip(colors).collect(),
                interval: (count.td_low, count.td_high),
                text: format!("{}/{}", count.td, count.seeds),
            }
        };
        let seeds = self.counts.first().map_or(0, |c| c.seeds);
        let queries = self.queries();
        let map = Cells {
            columns: queries.iter().map(|query| format!("query: {query}")).collect(),
            rows: self.counts.chunks(queries.len()).map(|row| row[0].title.clone()).collect(),
            cells: self.counts.chunks(queries.len()).map(|row| row.iter().map(cell).collect()).collect(),
            row_height: 20.0,
            ..Cells::default()
        };
        let legend = Legend::squares(["TD block", "mirror block", "neither"].into_iter().zip(colors));
        let note = format!(
            "{seeds} seeds per setting; the number and the line below a bar: share of the TD block and its 95 % interval (Wilson)"
        );
        Grid { legend, ..Grid::new("Which solution pretraining finds", 1, [map], note) }.scene()
    }
}

impl Report for BranchMap {
    fn text(&self, width: usize) -> String {
        let tables = self.tables().unwrap_or_default();
        let shown = tables.iter().map(|records| match records.name() {
            "branches" => records.only(&SHOWN),
            _ => records.table(),
        });
        shown.map(|table| table.text(width) + "\n").collect()
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("branches".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        let mut tables = vec![Records::of("branches", &self.counts)?];
        if !self.gradients.is_empty() {
            tables.push(Records::of("first_gradient", &self.gradients)?);
        }
        Ok(tables)
    }

    /// Seeds that diverged are in no branch, and shares are of all.
    fn holds(&self) -> bool {
        self.counts.iter().all(|count| count.diverged == 0)
    }
}
