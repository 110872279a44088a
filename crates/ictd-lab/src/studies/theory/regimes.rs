//! The regimes of depth over score scale and discount, and what repairs them.

use ictd::task::{FiniteTask, Mrp};
use ictd::theory::{Regime, Stability};
use serde::Serialize;

use super::{Tasks, population};
use crate::Progress;
use crate::counted;
use crate::error::{LabError, check_range};
use crate::figure::style::{GRAY, INK, PALETTE};
use crate::figure::{self, Cells, Color, Grid, Legend, Scene};
use crate::memory::{self, DOUBLE};
use crate::report::{Records, Report, Table};
use crate::studies::{TaskOptions, in_parallel};

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

const REGIMES: [(Regime, &str, Color); 6] = [
    (Regime::Assumption, "Assumption 5.1 holds", PALETTE[0]),
    (Regime::Provable, "provably stable", PALETTE[2]),
    (Regime::InFact, "stable in fact", PALETTE[5]),
    (Regime::Marginal, "0 up to rounding", GRAY),
    (Regime::Unstable, "unstable: no step size", PALETTE[1]),
    (Regime::Undecided, "undecided", INK),
];

/// How many tasks are in which regime.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    repair: Repair,
    score_scale: f64,
    gamma: f64,
    tasks: u64,
    assumption: u64,
    /// Provably stable, without it.
    provable: u64,
    /// Stable by the eigenvalues alone.
    in_fact: u64,
    /// Real parts 0 up to rounding.
    marginal: u64,
    unstable: u64,
    /// The eigenvalues could not be found.
    undecided: u64,
}

/// The map.
#[derive(Clone, Debug, Serialize)]
pub struct RegimeMap {
    cells: Vec<Cell>,
    /// Tasks in all cells together whose eigenvalues could not be found.
    undecided: u64,
    #[serde(skip)]
    describe: String,
    #[serde(skip)]
    tasks: u64,
}

/// Refuses what the map has all of.
pub fn check_options(options: &TaskOptions) -> Result<(), LabError> {
    match options.given().find(|(name, _)| matches!(*name, "gamma" | "unit-norm" | "score-scale")) {
        Some((name, _)) => Err(LabError::refused(name, "expected without it, the map has all of them")),
        None => Ok(()),
    }
}

/// Examines `tasks` tasks at every score scale and discount, instead of their own: processes, rewards and features
/// are those of the source.
pub fn run(family: &Tasks, tasks: u64, progress: &Progress) -> Result<RegimeMap, LabError> {
    check_range("states", family.num_states(), 1..=MAX_STATES)?;
    family.check()?;
    check_range("tasks", tasks, 1..=10_000)?;
    let (m, d) = (family.num_states(), family.feature_dim());
    let thread = 2.0 * memory::task(m, d) + DOUBLE * (10 * m * m + d * d) as f64;
    memory::admit(memory::threads(252.0) * thread, "--states or --features")?;
    let mut points = Vec::new();
    for (repair, _) in REPAIRS {
        for gamma in GAMMAS {
            points.extend(SCALES.map(|scale| (repair, gamma, scale)));
        }
    }
    progress.begin("regimes", "eigenvalue problems", points.len() as u64 * tasks)?;
    let cells =
        in_parallel(points, |(repair, gamma, scale)| cell(family, tasks, repair, gamma, scale, progress))?;
    let describe = family.describe().split(", γ").next().unwrap_or_default().to_owned();
    let undecided = cells.iter().map(|cell| cell.undecided).sum();
    Ok(RegimeMap { cells, undecided, describe, tasks })
}

fn cell(
    family: &Tasks,
    tasks: u64,
    repair: Repair,
    gamma: f64,
    score_scale: f64,
    progress: &Progress,
) -> Result<Cell, LabError> {
    let unit_norm = repair == Repair::UnitNorm;
    // Chains and features do not depend on γ, so every discount sees the same ones.
    let family = family.rescaled(unit_norm, score_scale);
    let mut regimes = Vec::new();
    for index in 0..tasks {
        let task = with_discount(&family.task(index)?, gamma)?;
        let mut operator = population(&task)?;
        if repair == Repair::StepPerState {
            operator = operator.with_steps_by_mass().unwrap_or(operator);
        }
        regimes.push(Stability::of(&operator)?.regime);
        progress.step(1)?;
    }
    Ok(Cell::of(repair, gamma, score_scale, &regimes))
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
        let shares = |cell: &Cell| {
            let shares = cell.counts().into_iter().map(|count| count as f64 / cell.tasks as f64);
            figure::Cell::Shares(shares.zip(REGIMES.map(|r| r.2)).collect())
        };
        let panel = |(repair, name): (Repair, &str)| {
            let own: Vec<_> = self.cells.iter().filter(|c| c.repair == repair).map(shares).collect();
            Cells {
                title: name.into(),
                x: "score scale (1/τ)".into(),
                y: "discount γ".into(),
                columns: SCALES.map(|scale| scale.to_string()).to_vec(),
                rows: GAMMAS.map(|gamma| gamma.to_string()).to_vec(),
                cells: own.chunks(SCALES.len()).map(<[_]>::to_vec).collect(),
                row_height: 17.0,
                ..Cells::default()
            }
        };
        let note = format!(
            "{} per cell ({}); a cell is divided by the share of tasks in each regime",
            counted(self.tasks, "task"),
            self.describe
        );
        let met = |regime| regime != Regime::Undecided || self.undecided > 0;
        let legend = REGIMES.iter().filter(|r| met(r.0)).map(|&(_, name, color)| (name, color));
        let legend = Legend::squares(legend);
        Grid { legend, ..Grid::new("When depth converges", 3, REPAIRS.map(panel), note) }.scene()
    }
}

impl Report for RegimeMap {
    fn text(&self, width: usize) -> String {
        let header: Vec<String> =
            std::iter::once("gamma".to_owned()).chain(SCALES.iter().map(|s| format!("scale {s}"))).collect();
        let panel = |(repair, name): (Repair, &str)| {
            let rows = GAMMAS.map(|gamma| {
                let own = self.cells.iter().filter(|c| c.repair == repair && c.gamma == gamma);
                std::iter::once(gamma.to_string()).chain(own.map(Cell::commonest)).collect()
            });
            let table = Table::new(&header, rows).words(1..=SCALES.len());
            format!("{name}: the commonest regime and its share\n\n{}\n", table.text(width))
        };
        let total = self.tasks * self.cells.len() as u64;
        let foot = format!("{} of {total} tasks undecided: no eigenvalues found\n", self.undecided);
        REPAIRS.map(panel).concat() + &foot
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("regimes".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![Records::of("regimes", &self.cells)?])
    }
}

impl Cell {
    /// A cell whose tasks are in these regimes.
    fn of(repair: Repair, gamma: f64, score_scale: f64, regimes: &[Regime]) -> Self {
        let counts = REGIMES.map(|(regime, ..)| regimes.iter().filter(|r| **r == regime).count() as u64);
        let [assumption, provable, in_fact, marginal, unstable, undecided] = counts;
        let tasks = regimes.len() as u64;
        Self {
            repair,
            score_scale,
            gamma,
            tasks,
            assumption,
            provable,
            in_fact,
            marginal,
            unstable,
            undecided,
        }
    }

    fn counts(&self) -> [u64; REGIMES.len()] {
        [self.assumption, self.provable, self.in_fact, self.marginal, self.unstable, self.undecided]
    }

    /// The commonest regime with its share.
    fn commonest(&self) -> String {
        let (k, count) = self.counts().into_iter().enumerate().max_by_key(|c| c.1).unwrap_or_default();
        format!("{} {}%", REGIMES[k].0.as_str(), (100 * count).div_ceil(self.tasks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task without a spectrum is counted apart, and the others stand.
    #[test]
    fn undecided_tasks_are_counted() {
        let regimes = [Regime::Undecided, Regime::Provable, Regime::Undecided, Regime::Unstable];
        let cell = Cell::of(Repair::None, 0.9, 1.0, &regimes);
        assert_eq!((cell.tasks, cell.undecided, cell.provable, cell.unstable), (4, 2, 1, 1));
        assert_eq!(cell.commonest(), "undecided 50%");
        let row = |gamma: f64| SCALES.map(|scale| (gamma, scale));
        let cells = REPAIRS.into_iter().flat_map(|(repair, _)| {
            GAMMAS
                .into_iter()
                .flat_map(row)
                .map(move |(gamma, scale)| Cell::of(repair, gamma, scale, &regimes))
        });
        let map = RegimeMap { cells: cells.collect(), undecided: 504, describe: String::new(), tasks: 4 };
        assert!(map.text(80).ends_with("504 of 1008 tasks undecided: no eigenvalues found\n"));
        assert!(map.figure().shapes.len() > 252);
    }
}
