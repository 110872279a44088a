//! The regimes of depth over score scale and discount, and what repairs them.

use ictd::kernel::{Attention, KernelName};
use ictd::operator::StateOperator;
use ictd::task::{FiniteTask, Mrp};
use ictd::theory::{Regime, Stability};
use rayon::prelude::*;
use serde::Serialize;

use super::TaskFamily;
use crate::LabError;
use crate::figure::style::{GRID, INK, MUTED, PALETTE, TEXT_SIZE, TITLE_SIZE};
use crate::figure::{Anchor, Color, Scene, Stroke};
use crate::files::OutputDir;

/// Score scales, 1/τ in the paper's terms: columns of the map.
const SCALES: [f64; 12] = [0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 12.0, 20.0, 50.0, 200.0, 1000.0, 5000.0];
/// Discounts: rows of the map.
const GAMMAS: [f64; 7] = [0.99, 0.95, 0.9, 0.8, 0.6, 0.3, 0.0];

/// Most states: the map has 252 eigenvalue problems per task.
const MAX_STATES: usize = 500;

/// What is done to the layer: panels of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repair {
    /// Nothing: raw features, one step size.
    None,
    /// Feature vectors of length 1.
    UnitNorm,
    /// A step size per state, by kernel mass: the unnormalised kernel.
    StepPerState,
}

const REPAIRS: [(Repair, &str); 3] = [
    (Repair::None, "raw features"),
    (Repair::UnitNorm, "unit-norm features"),
    (Repair::StepPerState, "raw features, a step size per state"),
];

const REGIMES: [(Regime, &str, Color); 5] = [
    (Regime::Assumption, "Assumption 5.1 holds", PALETTE[0]),
    (Regime::Provable, "provably stable", PALETTE[2]),
    (Regime::InFact, "stable in fact", PALETTE[5]),
    (Regime::Marginal, "0 up to rounding", Color::rgb(200, 200, 200)),
    (Regime::Unstable, "unstable: no step size", PALETTE[1]),
];

/// How many tasks are in which regime.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// What is done to the layer.
    pub repair: Repair,
    /// Score scale.
    pub score_scale: f64,
    /// Discount.
    pub gamma: f64,
    /// Tasks.
    pub tasks: u64,
    /// Tasks where Assumption 5.1 holds.
    pub assumption: u64,
    /// Provably stable, without it.
    pub provable: u64,
    /// Stable by the eigenvalues alone.
    pub in_fact: u64,
    /// Real parts 0 up to rounding.
    pub marginal: u64,
    /// Unstable for every step size.
    pub unstable: u64,
}

/// The map.
#[derive(Clone, Debug, Serialize)]
pub struct RegimeMap {
    /// One entry per panel, discount and scale.
    pub cells: Vec<Cell>,
    #[serde(skip)]
    describe: String,
    #[serde(skip)]
    tasks: u64,
}

/// Examines `tasks` tasks of a family at every score scale and discount; the family's own scale, discount and
/// normalisation are not used.
pub fn run(family: &TaskFamily, tasks: u64) -> Result<RegimeMap, LabError> {
    if family.states > MAX_STATES {
        return Err(LabError::Invalid(format!("states is {}, expected at most {MAX_STATES}", family.states)));
    }
    family.check()?;
    if !(1..=10_000).contains(&tasks) {
        return Err(LabError::Invalid(format!("tasks is {tasks}, expected 1 to 10000")));
    }
    let mut points = Vec::new();
    for (repair, _) in REPAIRS {
        for gamma in GAMMAS {
            points.extend(SCALES.map(|scale| (repair, gamma, scale)));
        }
    }
    let cells = points
        .into_par_iter()
        .map(|(repair, gamma, scale)| cell(family, tasks, repair, gamma, scale))
        .collect::<Result<Vec<_>, LabError>>()?;
    let raw = TaskFamily { unit_norm: false, ..family.clone() };
    let describe = raw.describe();
    let describe = describe.split(", γ").next().unwrap_or_default().to_owned();
    Ok(RegimeMap { cells, describe, tasks })
}

fn cell(
    family: &TaskFamily,
    tasks: u64,
    repair: Repair,
    gamma: f64,
    score_scale: f64,
) -> Result<Cell, LabError> {
    let unit_norm = repair == Repair::UnitNorm;
    // Chains and features do not depend on γ, so every discount sees the same ones.
    let family = TaskFamily { unit_norm, score_scale, ..family.clone() };
    let attention = Attention::new(KernelName::Softmax.at(1.0)?, 0.0)?;
    let mut counts = [0; REGIMES.len()];
    for index in 0..tasks {
        let task = with_discount(&family.task(index)?, gamma)?;
        let mut operator = StateOperator::population(&task, &attention)?;
        if repair == Repair::StepPerState {
            operator = operator.with_steps_by_mass().unwrap_or(operator);
        }
        let regime = Stability::of(&operator)?.regime;
        let k = REGIMES.iter().position(|r| r.0 == regime).unwrap_or(REGIMES.len() - 1);
        counts[k] += 1;
    }
    let [assumption, provable, in_fact, marginal, unstable] = counts;
    Ok(Cell { repair, score_scale, gamma, tasks, assumption, provable, in_fact, marginal, unstable })
}

/// The same chain, rewards and features with another discount.
fn with_discount(task: &FiniteTask, gamma: f64) -> Result<FiniteTask, LabError> {
    let mrp = task.mrp();
    let (p, r, p0) = (mrp.transitions().matrix(), mrp.rewards(), mrp.initial_distribution());
    let mrp = Mrp::new(p.clone(), r.to_vec(), gamma, p0.to_vec()).map_err(ictd::task::TaskError::from)?;
    Ok(FiniteTask::new(mrp, task.features().clone())?)
}

impl RegimeMap {
    /// The map: every cell is a bar of the shares of the regimes.
    pub fn figure(&self) -> Scene {
        let (left, top, cell_width, cell_height, gap) = (64.0, 96.0, 28.0, 24.0, 34.0);
        let panel = SCALES.len() as f64 * cell_width;
        let width = left + 3.0 * panel + 2.0 * gap + 24.0;
        let height = top + GAMMAS.len() as f64 * cell_height + 74.0;
        let mut scene = Scene::new(width, height, "When depth converges");
        scene.text(0.5 * width, 22.0, "**When depth converges**", TITLE_SIZE, Anchor::Middle, INK);
        for (k, (_, name, color)) in REGIMES.into_iter().enumerate() {
            let x = left + k as f64 * 172.0;
            scene.rect([x, 40.0, 12.0, 12.0], Some(color), None);
            scene.text(x + 18.0, 50.0, name, TEXT_SIZE, Anchor::Start, INK);
        }
        for (p, (repair, name)) in REPAIRS.into_iter().enumerate() {
            let x0 = left + p as f64 * (panel + gap);
            scene.text(x0 + 0.5 * panel, top - 14.0, name, TEXT_SIZE + 1.0, Anchor::Middle, INK);
            for cell in self.cells.iter().filter(|c| c.repair == repair) {
                let column = SCALES.iter().position(|&s| s == cell.score_scale).unwrap_or(0);
                let row = GAMMAS.iter().position(|&g| g == cell.gamma).unwrap_or(0);
                let (x, y) = (x0 + column as f64 * cell_width, top + row as f64 * cell_height);
                let shares = [cell.assumption, cell.provable, cell.in_fact, cell.marginal, cell.unstable];
                let mut at = x;
                for (count, (_, _, color)) in shares.into_iter().zip(REGIMES) {
                    let part = cell_width * count as f64 / cell.tasks as f64;
                    scene.rect([at, y, part, cell_height], Some(color), None);
                    at += part;
                }
                scene.rect([x, y, cell_width, cell_height], None, Some(Stroke::solid(GRID, 0.8)));
            }
            let bottom = top + GAMMAS.len() as f64 * cell_height;
            for (column, scale) in SCALES.into_iter().enumerate() {
                let x = x0 + (column as f64 + 0.5) * cell_width;
                scene.text(x, bottom + 14.0, &scale.to_string(), TEXT_SIZE - 1.0, Anchor::Middle, INK);
            }
            scene.text(x0 + 0.5 * panel, bottom + 31.0, "score scale (1/τ)", TEXT_SIZE, Anchor::Middle, INK);
        }
        for (row, gamma) in GAMMAS.into_iter().enumerate() {
            let y = top + (row as f64 + 0.5) * cell_height + 3.5;
            scene.text(left - 6.0, y, &gamma.to_string(), TEXT_SIZE - 1.0, Anchor::End, INK);
        }
        let middle = top + 0.5 * GAMMAS.len() as f64 * cell_height;
        scene.turned_text(18.0, middle, "discount γ", TEXT_SIZE, Anchor::Middle, INK, -90.0);
        let note = format!(
            "{} tasks per cell ({}); a cell is divided by the share of tasks in each regime",
            self.tasks, self.describe
        );
        scene.text(0.5 * width, height - 12.0, &note, TEXT_SIZE - 2.0, Anchor::Middle, MUTED);
        scene
    }

    /// Writes the map and its numbers.
    pub fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        out.csv("regimes", &self.cells)?;
        out.figure("regimes", &self.figure())
    }

    /// A table for the terminal: the commonest regime of every cell, with its share.
    pub fn rows(&self, repair: Repair) -> Vec<Vec<String>> {
        GAMMAS
            .into_iter()
            .map(|gamma| {
                let mut row = vec![gamma.to_string()];
                for cell in self.cells.iter().filter(|c| c.repair == repair && c.gamma == gamma) {
                    let counts = [cell.assumption, cell.provable, cell.in_fact, cell.marginal, cell.unstable];
                    let (k, count) = counts.into_iter().enumerate().max_by_key(|c| c.1).unwrap_or_default();
                    let share = (100 * count).div_ceil(cell.tasks);
                    row.push(format!("{} {share}%", REGIMES[k].0.as_str()));
                }
                row
            })
            .collect()
    }

    /// The columns of [`rows`](Self::rows).
    pub fn header() -> Vec<String> {
        std::iter::once("gamma".to_owned()).chain(SCALES.iter().map(|s| format!("scale {s}"))).collect()
    }
}
