//! Sweeps of NEU as text and in files.

use std::path::Path;

use ictd::transformer::AttentionParams;
use serde::Serialize;

use super::super::slope_text;
use super::{
    Landscape, NeuConfig, NeuPoint, NeuReport, estimate, figure, landscape, last, looped, point, run,
};
use crate::LabError;
use crate::figure::Scene;
use crate::files::{OutputDir, read_params};
use crate::report::{Report, Table, wrapped};
use crate::studies::Tasks;

/// Sweeps over several families, and a plane through theta_* on the first; as JSON the sweeps.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct NeuSweeps {
    reports: Vec<NeuReport>,
    #[serde(skip)]
    plane: Landscape,
}

impl NeuSweeps {
    /// Runs the sweeps, unless one of them cannot be; tells `progress` about each family.
    pub fn run(configs: &[NeuConfig], mut progress: impl FnMut(&NeuConfig)) -> Result<Self, LabError> {
        let Some(first) = configs.first() else { return Err(LabError::value("families", 0, "at least 1")) };
        configs.iter().try_for_each(NeuConfig::check)?;
        let mut reports = Vec::new();
        for (k, config) in configs.iter().enumerate() {
            progress(config);
            reports.push(NeuReport { name: format!("neu{}", k + 1), ..run(config)? });
        }
        Ok(Self { reports, plane: landscape(&first.family, 100, 10, first.samples.min(200))? })
    }
}

impl Report for NeuSweeps {
    fn text(&self, width: usize) -> String {
        self.reports.text(width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("neu".into(), figure(&self.reports)), ("landscape".into(), self.plane.figure())]
    }

    fn tables(&self) -> Result<Vec<Table>, LabError> {
        Ok(vec![Table::of("landscape", &self.plane.points)?])
    }

    fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        self.reports.write(out)?;
        self.tables()?.iter().try_for_each(|table| out.table(table))?;
        self.figures().iter().try_for_each(|(name, figure)| out.figure(name, figure))
    }
}

impl Report for NeuReport {
    fn text(&self, width: usize) -> String {
        let margin = self.margin;
        let speaks = match self.threshold {
            Some(n) => {
                format!("Assumption 5.1 holds with margin {margin:.4}; Theorem 3 speaks from n = {n:.2e} on")
            }
            None => format!("premise fails: Assumption 5.1, margin {margin:.4}"),
        };
        let [by_length, by_depth] =
            [self.length_slope, self.depth_slope].map(|s| slope_text(s, 3, "none above noise"));
        let head = format!(
            "{}\n{speaks}\nslope of log J: {by_length} in log n, {by_depth} per layer\n\n",
            self.describe
        );
        // The table shows the edges of the grid; the CSV has all of it.
        let (deepest, longest) = (last(&self.config.layers), last(&self.config.lengths));
        let at_edge = |p: &&NeuPoint| p.layers == deepest || p.n == longest;
        wrapped(&head, width) + &table(self.points.iter().filter(at_edge), width)
    }

    fn tables(&self) -> Result<Vec<Table>, LabError> {
        Ok(vec![Table::of(&self.name, &self.points)?])
    }

    fn json_name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// J at a file's parameters beside theta_*; as JSON the two points.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct NeuComparison {
    points: Vec<NeuPoint>,
    #[serde(skip)]
    describe: String,
}

impl NeuComparison {
    /// Estimates J at theta_* and at the parameters in `file`, with the same tasks and trajectories.
    pub fn run(family: &Tasks, file: &Path, n: usize, layers: usize, samples: u64) -> Result<Self, LabError> {
        let theta = looped(&read_params(file)?.parameters)?;
        let star = AttentionParams::theta_star(family.feature_dim());
        let mut points = Vec::new();
        for (name, params) in [("theta_*".to_owned(), &star), (file.display().to_string(), &theta)] {
            let found = estimate(family, params, n, &[layers], samples)?;
            points.extend(found.iter().map(|f| point(&name, n, f, None)));
        }
        Ok(Self { points, describe: family.describe() })
    }
}

impl Report for NeuComparison {
    fn text(&self, width: usize) -> String {
        format!("{}\n\n{}", self.describe, table(&self.points, width))
    }

    fn tables(&self) -> Result<Vec<Table>, LabError> {
        Ok(vec![Table::of("neu", &self.points)?])
    }
}

/// The columns that a terminal shows.
fn table<'a>(points: impl IntoIterator<Item = &'a NeuPoint>, width: usize) -> String {
    let columns = ["theta", "n", "layers", "neu", "sem", "noise", "split", "split_sem", "same_prompt"];
    let columns = [&columns[..], &["bound_depth", "bound_sampling", "bound_events"]].concat();
    // Points are records of numbers, which always have a table.
    Table::of("neu", points).map_or_else(|e| e.to_string(), |table| table.only(&columns).text(width))
}
