//! Which solution pretraining finds, setting by setting: the branch map and the first gradient.

use ictd::pretrain::{Branch, emergence_of};
use ictd::statistics::wilson;
use serde::Serialize;

use super::fig3_5::emerged;
use super::first_gradient::FirstGradientSign;
use super::pretrain::{self, Settings};
use crate::Progress;
use crate::error::{LabError, check_range};
use crate::figure::style::{GRAY, PALETTE};
use crate::figure::{Cell, Cells, Grid, Legend, Scene};
use crate::report::{Records, Report};

/// What is mapped, for every query position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Map {
    /// Sizes, temperatures and initial signs, beside the paper's setting.
    Settings,
    /// Kernels, each with initial signs as drawn, those of the TD block and those of the mirror block.
    Kernels,
}

/// A row of a map: its title and the overrides that make it.
type Change = (&'static str, &'static [&'static str]);

/// Changes of the paper's setting.
const SETTINGS: [Change; 11] = [
    ("the paper’s setting", &[]),
    ("*n* = 5", &["n=5"]),
    ("*n* = 20", &["n=20"]),
    ("*m* = 16", &["states=16"]),
    ("*m* = 256", &["states=256"]),
    ("τ = 0.6", &["tau=0.6"]),
    ("τ = 2.4", &["tau=2.4"]),
    ("*A* starts positive", &["init.score_sign=td"]),
    ("*A* starts negative", &["init.score_sign=mirror"]),
    ("*V* and *A* start with TD signs", &["init.score_sign=td", "init.value_sign=td"]),
    ("the same, gain 1", &["init.score_sign=td", "init.value_sign=td", "init.gain=1"]),
];

/// Kernels in the paper's setting, by their initial signs.
const KERNELS: [Change; 15] = [
    ("softmax", &["kernel=softmax"]),
    ("softmax, TD signs", &["kernel=softmax", "init.score_sign=td", "init.value_sign=td"]),
    ("softmax, mirror signs", &["kernel=softmax", "init.score_sign=mirror", "init.value_sign=mirror"]),
    ("rbf", &["kernel=rbf"]),
    ("rbf, TD signs", &["kernel=rbf", "init.score_sign=td", "init.value_sign=td"]),
    ("rbf, mirror signs", &["kernel=rbf", "init.score_sign=mirror", "init.value_sign=mirror"]),
    ("elu1", &["kernel=elu1"]),
    ("elu1, TD signs", &["kernel=elu1", "init.score_sign=td", "init.value_sign=td"]),
    ("elu1, mirror signs", &["kernel=elu1", "init.score_sign=mirror", "init.value_sign=mirror"]),
    ("relu", &["kernel=relu"]),
    ("relu, TD signs", &["kernel=relu", "init.score_sign=td", "init.value_sign=td"]),
    ("relu, mirror signs", &["kernel=relu", "init.score_sign=mirror", "init.value_sign=mirror"]),
    ("linear", &["kernel=linear"]),
    ("linear, TD signs", &["kernel=linear", "init.score_sign=td", "init.value_sign=td"]),
    ("linear, mirror signs", &["kernel=linear", "init.score_sign=mirror", "init.value_sign=mirror"]),
];

impl Map {
    /// Both, by name.
    pub const ALL: [(&'static str, Map); 2] = [("settings", Self::Settings), ("kernels", Self::Kernels)];

    /// The columns: query positions.
    fn queries(self) -> &'static [&'static str] {
        match self {
            Self::Settings => &["next", "skip", "stationary"],
            Self::Kernels => &["next", "skip", "stationary", "source"],
        }
    }

    /// Keys that name what is mapped: another value would make a row something else than its title says.
    fn own_keys(self) -> &'static [&'static str] {
        match self {
            Self::Settings => &["query", "init.score_sign", "init.value_sign"],
            Self::Kernels => &["query", "init.score_sign", "init.value_sign", "kernel"],
        }
    }

    fn changes(self) -> &'static [Change] {
        match self {
            Self::Settings => &SETTINGS,
            Self::Kernels => &KERNELS,
        }
    }
}

/// How many seeds of a setting took which branch.
#[derive(Clone, Debug, Serialize)]
struct BranchCount {
    change: String,
    /// The change with its markup, for figures.
    #[serde(skip)]
    title: &'static str,
    query: &'static str,
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

/// Trains `seeds` of every setting of a map, each with the changes `base` (of the tasks, for instance) before its own; tells
/// `tell` about each. Settings that only change the number of states are left out where a file says it or nobody counts
/// them, and queries from a stationary law where it is not known.
pub fn run(
    map: Map,
    seeds: &[u64],
    base: &[String],
    progress: &Progress,
    mut tell: impl FnMut(&str),
) -> Result<BranchMap, LabError> {
    check_range("seeds", seeds.len(), 1..=100_000)?;
    let sets = |change: &&String| {
        let key = change.split('=').next().unwrap_or_default().trim();
        map.own_keys().contains(&key)
    };
    if let Some(change) = base.iter().find(sets) {
        let problem = format!(
            "'{change}' is what the map varies, expected other keys than {}",
            map.own_keys().join(", ")
        );
        return Err(LabError::refused("set", problem));
    }
    let config = settings(base, map.queries()[0], &[])?.config;
    // A query from the stationary law needs to know it; states that are not counted cannot be more or fewer.
    let is_exact = config.source()?.is_exact();
    let fixed_size = config.own.is_some() || !is_exact;
    let queries: Vec<&'static str> =
        map.queries().iter().copied().filter(|q| is_exact || *q != "stationary").collect();
    queries.iter().try_for_each(|query| settings(base, query, &[])?.admit(seeds.len(), false))?;
    let mut all = Vec::new();
    for &(change, overrides) in map.changes() {
        if fixed_size && overrides.iter().any(|o| o.starts_with("states=")) {
            continue;
        }
        let change = if overrides.is_empty() && !base.is_empty() { "as given" } else { change };
        for &query in &queries {
            all.push((change, query, settings(base, query, overrides)?));
        }
    }
    let epochs = |(.., settings): &(_, _, Settings)| settings.config.epochs;
    let total = all.iter().map(epochs).fold(0, u64::saturating_add).saturating_mul(seeds.len() as u64);
    // The first gradient is that of the paper's kernel, which the other map varies.
    let measured = if map == Map::Settings { &queries[..] } else { &[] };
    progress.begin("branches: first gradients", "seeds", (measured.len() * seeds.len()) as u64)?;
    let gradient =
        |query: &str| FirstGradientSign::measure(query, &settings(base, query, &[])?, seeds, progress);
    let gradients = measured.iter().map(|query| gradient(query)).collect::<Result<Vec<_>, _>>()?;
    progress.begin("branches", "epochs", total)?;
    let mut counts = Vec::new();
    for (k, (change, query, settings)) in all.iter().enumerate() {
        let place = format!("[{}/{}]", k + 1, all.len());
        progress.rename(format!("branches {place} {}, query {query}", change.replace('*', "")));
        let found = count(change, query, settings, seeds, progress)?;
        let BranchCount { change, td, mirror, none, diverged, .. } = &found;
        let lost = if *diverged > 0 { format!(", {diverged} diverged") } else { String::new() };
        tell(&format!("{place} {change}, query {query}: {td} td, {mirror} mirror, {none} none{lost}"));
        counts.push(found);
    }
    Ok(BranchMap { counts, gradients })
}

fn settings(base: &[String], query: &str, overrides: &[&str]) -> Result<Settings, LabError> {
    let own = [format!("query={query}")].into_iter().chain(overrides.iter().map(|s| s.to_string()));
    let all: Vec<String> = base.iter().cloned().chain(own).collect();
    Settings::preset("paper", &all)
}

fn count(
    title: &'static str,
    query: &'static str,
    settings: &Settings,
    seeds: &[u64],
    progress: &Progress,
) -> Result<BranchCount, LabError> {
    let shape = settings.config.shape();
    let states = pretrain::train(settings, seeds, false, progress)?.states;
    let diverged = states.iter().filter(|state| state.is_none()).count() as u64;
    let branches: Vec<Branch> =
        states.iter().flatten().map(|s| emergence_of(&shape, &s.params).branch).collect();
    let of = |branch| branches.iter().filter(|found| **found == branch).count() as u64;
    let (td, mirror, none) = (of(Branch::Td), of(Branch::Mirror), of(Branch::None));
    let emerged = states.iter().flatten().filter(|s| emerged(s)).count() as u64;
    let (change, overrides) = (title.replace('*', ""), settings.overrides.join(" "));
    let seeds = seeds.len() as u64;
    let (td_low, td_high) = wilson(td, seeds);
    Ok(BranchCount {
        change,
        title,
        query,
        overrides,
        seeds,
        td,
        mirror,
        none,
        diverged,
        td_low,
        td_high,
        emerged,
    })
}

impl BranchMap {
    fn queries(&self) -> Vec<&'static str> {
        let first = self.counts.first().map(|c| &c.change);
        self.counts.iter().take_while(|c| Some(&c.change) == first).map(|c| c.query).collect()
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
            rows: self.counts.chunks(queries.len()).map(|row| row[0].title.to_owned()).collect(),
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
        self.shown(&["branches", "first_gradient"], width)
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
