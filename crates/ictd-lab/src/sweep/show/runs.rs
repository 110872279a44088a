//! The runs of a sweep that are done, as columns.

use std::ops::Range;
use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord};
use ictd::pretrain::SimdLevel;

use crate::sweep::Request;
use crate::sweep::journal::{Index, OpenFiles};
use crate::sweep::plan::Plan;
use crate::sweep::results::{TABLE, curve_file};
use crate::sweep::row::{self, DIVERGED, is_number};
use crate::sweep::setting::Sweep;
use crate::{LabError, Progress, counted};

/// What runs end in, in the order of all counts.
pub(super) const ENDS: [&str; 4] = ["td", "mirror", "none", DIVERGED];

/// A number that is known of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its column in the table.
    pub name: String,
    /// By run; NaN where it is not known.
    pub values: Vec<f64>,
}

/// The runs of a sweep that are done.
#[derive(Debug)]
pub struct Runs {
    /// What is swept.
    pub plan: Plan,
    /// The keys that vary.
    pub varied: Vec<String>,
    /// Their values, by setting.
    pub settings: Vec<Vec<String>>,
    /// The runs: their numbers, in order.
    pub numbers: Vec<usize>,
    /// What each ended in, as a place in `ENDS`.
    pub ends: Vec<u8>,
    /// What is known of them, without what is known of none; `v_em` always.
    pub metrics: Vec<Metric>,
    source: Source,
}

/// Where rows and curves are read.
#[derive(Debug)]
enum Source {
    /// The files of a finished sweep.
    Table(PathBuf),
    /// The records of one that goes on.
    Journal(Index),
}

/// Points of one run: step and every metric of curves, NaN where it is not known.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its seed.
    pub seed: u64,
    /// The points.
    pub points: Vec<Vec<f64>>,
}

impl Runs {
    /// Reads what is done of the sweep in a directory.
    pub fn read(root: &Path, progress: &Progress) -> Result<Self, LabError> {
        let request = Request::of_directory(root)?;
        let runs = if request.table()?.is_some() {
            Self::of_table(root, request.plan, progress)?
        } else {
            Self::of_journal(&request, progress)?
        };
        if runs.numbers.is_empty() {
            let problem = format!(
                "none of {} is done yet, expected one at least; --watch waits",
                counted(runs.num_runs(), "run")
            );
            return Err(LabError::refused(root.display().to_string(), problem));
        }
        Ok(runs)
    }

    fn of_table(root: &Path, plan: Plan, progress: &Progress) -> Result<Self, LabError> {
        let path = root.join(TABLE);
        let damaged = |message: String| LabError::parse(&path, message);
        let (keys, seeds, total) = (plan.varied().len(), plan.seeds.len(), plan.num_runs());
        progress.begin("reading the table", "runs", total as u64)?;
        let mut reader = ReaderBuilder::new().from_path(&path).map_err(|e| damaged(e.to_string()))?;
        let (mut rows, mut settings, mut row) = (Rows::default(), Vec::new(), StringRecord::new());
        while reader.read_record(&mut row).map_err(|e| damaged(e.to_string()))? {
            let run = rows.numbers.len();
            if run % seeds == 0 {
                settings.push(row.iter().take(keys).map(String::from).collect());
            }
            // After the keys comes the seed.
            rows.push(run, row.iter().skip(keys + 1)).map_err(damaged)?;
            progress.step(1)?;
        }
        if rows.numbers.len() != total {
            return Err(damaged(format!("{} rows, expected {total}", rows.numbers.len())));
        }
        Ok(Self::of(plan, settings, rows, Source::Table(root.to_owned())))
    }

    fn of_journal(request: &Request, progress: &Progress) -> Result<Self, LabError> {
        let root = &request.out;
        let sweep = request.begun()?;
        let all = 0..sweep.num_runs();
        progress.begin("reading the journal", "runs", all.len() as u64)?;
        let index = Index::read(root, &sweep, &all)?;
        let (mut rows, mut row, mut open) = (Rows::default(), StringRecord::new(), OpenFiles::default());
        for run in all {
            if index.has(run) {
                let cells = index.record(&mut open, run)?.cells;
                let damaged = |message: String| LabError::parse(root, format!("run {run}: {message}"));
                let mut reader = ReaderBuilder::new().has_headers(false).from_reader(cells.as_bytes());
                reader.read_record(&mut row).map_err(|e| damaged(e.to_string()))?;
                rows.push(run, row.iter()).map_err(damaged)?;
            }
            progress.step(1)?;
        }
        let settings = sweep.settings.into_iter().map(|setting| setting.values).collect();
        Ok(Self::of(sweep.plan, settings, rows, Source::Journal(index)))
    }

    fn of(plan: Plan, settings: Vec<Vec<String>>, rows: Rows, source: Source) -> Self {
        let Rows { numbers, ends, mut metrics, .. } = rows;
        metrics.retain(|m| m.name == "v_em" || m.values.iter().any(|value| !value.is_nan()));
        Self { varied: plan.varied(), plan, settings, numbers, ends, metrics, source }
    }

    /// Of how many, when all are done.
    pub fn num_runs(&self) -> usize {
        self.plan.num_runs()
    }

    /// The place of a run's setting.
    pub fn setting(&self, row: usize) -> usize {
        self.numbers[row] / self.plan.seeds.len()
    }

    /// The rows of a setting.
    pub fn rows(&self, setting: usize) -> Range<usize> {
        let seeds = self.plan.seeds.len();
        let first = |setting: usize| self.numbers.partition_point(|&run| run < setting * seeds);
        first(setting)..first(setting + 1)
    }

    /// How many of a setting's runs ended in the TD block, in the mirror block, in neither, and diverged.
    pub fn counts(&self, setting: usize) -> [u64; 4] {
        let mut counts = [0; 4];
        self.ends[self.rows(setting)].iter().for_each(|&end| counts[usize::from(end)] += 1);
        counts
    }

    /// The smaller of two numbers, by run of a setting; NaN where one is not known.
    pub fn smaller_of(&self, setting: usize, names: [&str; 2]) -> impl Iterator<Item = f64> {
        let [a, b] = names.map(|name| self.metrics.iter().find(|metric| metric.name == name));
        let of = |metric: Option<&Metric>, row: usize| metric.map_or(f64::NAN, |metric| metric.values[row]);
        // A minimum of two that passes NaN on.
        self.rows(setting).map(move |row| match (of(a, row), of(b, row)) {
            (x, y) if x.is_nan() || y.is_nan() => f64::NAN,
            (x, y) => x.min(y),
        })
    }

    /// The curves of a setting's runs.
    pub fn curves(&self, setting: usize) -> Result<Vec<Curve>, LabError> {
        let seeds = &self.plan.seeds;
        match &self.source {
            Source::Journal(index) => {
                let mut open = OpenFiles::default();
                let curve = |row: usize| {
                    let run = self.numbers[row];
                    let points = index.record(&mut open, run)?.curve;
                    Ok(Curve {
                        seed: seeds[run % seeds.len()],
                        points: points.iter().map(|p| point(p)).collect(),
                    })
                };
                self.rows(setting).map(curve).collect()
            }
            Source::Table(root) => {
                let path = root.join(curve_file(setting));
                let text = std::fs::read_to_string(&path)
                    .map_err(|source| LabError::Read { path: path.clone(), source })?;
                let mut curves: Vec<Curve> = Vec::new();
                for line in text.lines().skip(1) {
                    let parsed =
                        line.split_once(',').and_then(|(seed, rest)| Some((seed.parse().ok()?, point(rest))));
                    let (seed, point) = parsed
                        .ok_or_else(|| LabError::parse(&path, "a line without a seed, expected one"))?;
                    match curves.last_mut().filter(|curve| curve.seed == seed) {
                        Some(curve) => curve.points.push(point),
                        None => curves.push(Curve { seed, points: vec![point] }),
                    }
                }
                Ok(curves)
            }
        }
    }

    /// The configurations of all settings, wherever they were computed.
    pub fn sweep(&self) -> Result<Sweep, LabError> {
        Sweep::of(self.plan.clone(), SimdLevel::Best)
    }
}

/// Rows that are being read.
#[derive(Debug)]
struct Rows {
    numbers: Vec<usize>,
    ends: Vec<u8>,
    metrics: Vec<Metric>,
    /// Which cells after the seed are numbers: the others are words and lists.
    is_metric: Vec<bool>,
}

impl Default for Rows {
    fn default() -> Self {
        let columns = row::columns();
        let metric = |name: &String| Metric { name: name.clone(), values: Vec::new() };
        Self {
            numbers: Vec::new(),
            ends: Vec::new(),
            metrics: columns.iter().filter(|name| is_number(name)).map(metric).collect(),
            is_metric: columns.iter().map(|name| is_number(name)).collect(),
        }
    }
}

impl Rows {
    /// Adds a run with the cells of its row after the seed.
    fn push<'a>(&mut self, run: usize, cells: impl Iterator<Item = &'a str>) -> Result<(), String> {
        let cells: Vec<&str> = cells.collect();
        if cells.len() != self.is_metric.len() {
            return Err(format!("a row has {} cells, expected {}", cells.len(), self.is_metric.len()));
        }
        let end = ENDS.iter().position(|end| *end == cells[0]);
        let end =
            end.ok_or_else(|| format!("branch is '{}', expected one of {}", cells[0], ENDS.join(", ")))?;
        let numbers = cells.iter().zip(&self.is_metric).filter(|(_, is_metric)| **is_metric);
        for ((cell, _), metric) in numbers.zip(&mut self.metrics) {
            let value = if cell.is_empty() { Ok(f64::NAN) } else { cell.parse() };
            metric.values.push(value.map_err(|_| format!("'{cell}' is no number, expected one"))?);
        }
        self.ends.push(end as u8);
        self.numbers.push(run);
        Ok(())
    }
}

/// A point of all curves.
fn point(cells: &str) -> Vec<f64> {
    cells.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect()
}
