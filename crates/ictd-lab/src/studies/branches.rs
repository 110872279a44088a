//! Which solution pretraining finds, setting by setting: the branch map and the first gradient.

use ictd::pretrain::emergence_of;
use ictd::statistics::wilson;
use serde::Serialize;

use super::fig3_5::emerged;
use super::first_gradient::FirstGradientSign;
use super::pretrain::{self, Settings};
use crate::error::{LabError, check_range};
use crate::figure::style::{GRID, INK, MUTED, PALETTE, TEXT_SIZE, TITLE_SIZE};
use crate::figure::{Anchor, Color, Scene, Stroke};
use crate::report::{Report, Table};

/// Query positions: the columns of the map.
const QUERIES: [&str; 3] = ["next", "skip", "stationary"];

/// Changes of the paper's setting: the rows of the map, and the overrides that make them.
const CHANGES: [(&str, &[&str]); 11] = [
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

/// How many seeds of a setting took which branch.
#[derive(Clone, Debug, Serialize)]
pub struct BranchCount {
    /// The change of the paper's setting.
    pub change: String,
    /// The query position.
    pub query: &'static str,
    /// Overrides that make the setting.
    pub overrides: String,
    /// Seeds.
    pub seeds: u64,
    /// Seeds that ended in the TD block.
    pub td: u64,
    /// Seeds that ended in its mirror image.
    pub mirror: u64,
    /// Seeds that ended in neither.
    pub none: u64,
    /// 95 % interval of the share of the TD block (Wilson).
    pub td_low: f64,
    /// Its upper end.
    pub td_high: f64,
    /// Seeds with min(V_em, A_em) ≥ ½ at their best step.
    pub emerged: u64,
}

/// The map and the gradients.
#[derive(Clone, Debug, Serialize)]
pub struct BranchMap {
    /// One entry per setting.
    pub counts: Vec<BranchCount>,
    /// One entry per query position.
    pub gradients: Vec<FirstGradientSign>,
}

/// Trains `seeds` of every setting; tells `progress` about each.
pub fn run(seeds: &[u64], mut progress: impl FnMut(&BranchCount)) -> Result<BranchMap, LabError> {
    check_range("seeds", seeds.len(), 1..=100_000)?;
    let gradient = |query: &str| FirstGradientSign::measure(query, &settings(query, &[])?, seeds);
    let gradients = QUERIES.into_iter().map(gradient).collect::<Result<Vec<_>, _>>()?;
    let mut counts = Vec::new();
    for (change, overrides) in CHANGES {
        for query in QUERIES {
            let found = count(change, query, overrides, seeds)?;
            progress(&found);
            counts.push(found);
        }
    }
    Ok(BranchMap { counts, gradients })
}

fn settings(query: &str, overrides: &[&str]) -> Result<Settings, LabError> {
    let all: Vec<String> =
        [format!("query={query}")].into_iter().chain(overrides.iter().map(|s| s.to_string())).collect();
    Settings::preset("paper", &all)
}

fn count(
    change: &str,
    query: &'static str,
    overrides: &[&str],
    seeds: &[u64],
) -> Result<BranchCount, LabError> {
    let settings = settings(query, overrides)?;
    let shape = settings.config.shape();
    let states = pretrain::train(&settings, seeds, false)?;
    if let Some(k) = states.iter().position(Option::is_none) {
        let message = format!("{change}, query {query}: training of seed {} diverged", seeds[k]);
        return Err(LabError::diverged(message));
    }
    let branches: Vec<&str> =
        states.iter().flatten().map(|s| emergence_of(&shape, &s.params).branch.as_str()).collect();
    let of = |branch| branches.iter().filter(|found| **found == branch).count() as u64;
    let (td, total) = (of("td"), seeds.len() as u64);
    let (td_low, td_high) = wilson(td, total);
    Ok(BranchCount {
        change: change.replace('*', ""),
        query,
        overrides: settings.overrides.join(" "),
        seeds: total,
        td,
        mirror: of("mirror"),
        none: of("none"),
        td_low,
        td_high,
        emerged: states.iter().flatten().filter(|s| emerged(s)).count() as u64,
    })
}

impl BranchMap {
    /// The map: a bar of shares per setting, the interval of the TD share marked.
    pub fn figure(&self) -> Scene {
        let (left, top, cell_width, row_height) = (200.0, 96.0, 200.0, 34.0);
        let rows = CHANGES.len() as f64;
        let width = left + 3.0 * cell_width + 20.0;
        let mut scene = Scene::new(width, top + rows * row_height + 44.0, "Which solution pretraining finds");
        scene.text(
            0.5 * width,
            22.0,
            "**Which solution pretraining finds**",
            TITLE_SIZE,
            Anchor::Middle,
            INK,
        );
        let colors = [PALETTE[0], PALETTE[1], Color::rgb(200, 200, 200)];
        for (k, (name, color)) in ["TD block", "mirror block", "neither"].into_iter().zip(colors).enumerate()
        {
            let x = left + k as f64 * 130.0;
            scene.rect([x, 40.0, 12.0, 12.0], Some(color), None);
            scene.text(x + 18.0, 50.0, name, TEXT_SIZE, Anchor::Start, INK);
        }
        for (k, query) in QUERIES.into_iter().enumerate() {
            let x = left + (k as f64 + 0.5) * cell_width - 10.0;
            scene.text(x, top - 12.0, &format!("query: {query}"), TEXT_SIZE, Anchor::Middle, INK);
        }
        for (k, count) in self.counts.iter().enumerate() {
            let (row, column) = ((k / QUERIES.len()) as f64, (k % QUERIES.len()) as f64);
            let (x, y) = (left + column * cell_width, top + row * row_height);
            if column == 0.0 {
                let name = CHANGES[k / QUERIES.len()].0;
                scene.text(left - 10.0, y + 16.0, name, TEXT_SIZE, Anchor::End, INK);
            }
            let bar = cell_width - 50.0;
            let mut at = x;
            for (number, color) in [count.td, count.mirror, count.none].into_iter().zip(colors) {
                let part = bar * number as f64 / count.seeds as f64;
                scene.rect([at, y + 4.0, part, 16.0], Some(color), None);
                at += part;
            }
            scene.rect([x, y + 4.0, bar, 16.0], None, Some(Stroke::solid(GRID, 0.6)));
            let whisker = [(x + bar * count.td_low, y + 23.0), (x + bar * count.td_high, y + 23.0)];
            scene.polyline(&whisker, Stroke::solid(INK, 1.2));
            let label = format!("{}/{}", count.td, count.seeds);
            scene.text(x + bar + 5.0, y + 16.0, &label, TEXT_SIZE - 1.0, Anchor::Start, INK);
        }
        let seeds = self.counts.first().map_or(0, |c| c.seeds);
        let note = format!(
            "{seeds} seeds per setting; the number and the line below a bar: share of the TD block and its 95 % interval (Wilson)"
        );
        scene.text(0.5 * width, scene.height - 12.0, &note, TEXT_SIZE - 2.0, Anchor::Middle, MUTED);
        scene
    }
}

impl Report for BranchMap {
    fn text(&self, width: usize) -> String {
        self.shown(&["branches", "first_gradient"], width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("branches".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Table>, LabError> {
        Ok(vec![Table::of("branches", &self.counts)?, Table::of("first_gradient", &self.gradients)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_a_valid_setting() {
        for (_, overrides) in CHANGES {
            for query in QUERIES {
                settings(query, overrides).unwrap();
            }
        }
    }
}
