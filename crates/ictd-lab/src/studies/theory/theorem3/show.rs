//! Sweeps of NEU as figures, as text and in files.

use ictd::kernel::Attention;
use ictd::statistics::fit::Slope;
use ictd::transformer::AttentionParams;
use serde::Serialize;

use super::super::slope_text;
use super::{
    Landscape, NeuConfig, NeuPoint, NeuReport, landscape, landscape_work, last, looped, points, run, softmax,
};
use crate::counted;
use crate::figure::{Axis, Chart, Grid, Scene, Series, Width, style::PALETTE};
use crate::files::{ModelFile, OutputDir, chosen};
use crate::report::{Records, Report, wrapped};
use crate::studies::Tasks;
use crate::{LabError, Progress};

/// Sweeps over several families, and a plane through theta_* on the first; as JSON the sweeps.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct NeuSweeps {
    reports: Vec<NeuReport>,
    #[serde(skip)]
    plane: Landscape,
}

impl NeuSweeps {
    /// Runs the sweeps, unless one of them cannot be; tells `tell` about each family.
    pub fn run(
        configs: &[NeuConfig],
        progress: &Progress,
        mut tell: impl FnMut(&NeuConfig),
    ) -> Result<Self, LabError> {
        let Some(first) = configs.first() else { return Err(LabError::value("families", 0, "at least 1")) };
        configs.iter().try_for_each(NeuConfig::check)?;
        let (n, samples) = (100, first.samples.min(200));
        let sweeps = configs.iter().map(NeuConfig::work).fold(0, u64::saturating_add);
        progress.begin("neu", "transitions", sweeps.saturating_add(landscape_work(n, samples)))?;
        let mut reports = Vec::new();
        for (k, config) in configs.iter().enumerate() {
            tell(config);
            progress.rename(format!("neu: {}", config.family.describe()));
            reports.push(NeuReport { name: format!("neu{}", k + 1), ..run(config, progress)? });
        }
        progress.rename("neu: a plane through theta_*");
        Ok(Self { reports, plane: landscape(&first.family, n, 10, samples, progress)? })
    }
}

impl Report for NeuSweeps {
    fn text(&self, width: usize) -> String {
        self.reports.text(width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("neu".into(), figure(&self.reports)), ("landscape".into(), self.plane.figure())]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![Records::of("landscape", &self.plane.points)?])
    }

    fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        self.reports.write(out)?;
        let (tables, figures) = (self.tables()?, self.figures());
        out.expect(tables.len(), figures.len(), 0);
        tables.iter().try_for_each(|table| out.records(table))?;
        figures.iter().try_for_each(|(name, figure)| out.figure(name, figure))
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

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![Records::of(&self.name, &self.points)?])
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
    /// Estimates J at theta_* and at the parameters of a name, with the same tasks, trajectories and kernel: the
    /// checkpoint's, and its depth and context length where none is asked for.
    pub fn run(
        family: &Tasks,
        (file, model): (&str, &ModelFile),
        n: Option<usize>,
        layers: Option<usize>,
        samples: u64,
        progress: &Progress,
    ) -> Result<Self, LabError> {
        let said = model.description.as_ref();
        let theta = looped(&model.parameters)?;
        let attention = match said {
            Some(said) => Attention::new(said.kernel.at(said.temperature)?, said.diagonal_mix)?,
            None => softmax()?,
        };
        let layers = chosen("layers", layers, said.map(|s| s.layers), 3)?;
        chosen("gamma", Some(family.gamma()), said.map(|s| s.gamma), 0.9)?;
        let n = n.or(said.map(|s| s.n)).unwrap_or(10);
        let star = AttentionParams::theta_star(family.feature_dim());
        let mut found = Vec::new();
        progress.begin("neu", "transitions", samples.saturating_mul(2 * n as u64))?;
        for (name, params) in [("theta_*".to_owned(), &star), (file.to_owned(), &theta)] {
            found.extend(points(family, &attention, (&name, params), n, &[layers], samples, progress)?);
        }
        let kernel =
            said.map_or_else(String::new, |s| format!(", {} at temperature {}", s.kernel, s.temperature));
        Ok(Self { points: found, describe: family.describe() + &kernel })
    }
}

impl Report for NeuComparison {
    fn text(&self, width: usize) -> String {
        format!("{}\n\n{}", self.describe, table(&self.points, width))
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![Records::of("neu", &self.points)?])
    }
}

/// The columns that a terminal shows.
fn table<'a>(points: impl IntoIterator<Item = &'a NeuPoint>, width: usize) -> String {
    let columns = ["theta", "n", "layers", "neu", "sem", "noise", "split", "split_sem", "same_prompt"];
    let columns = [&columns[..], &["bound_depth", "bound_sampling", "bound_events"]].concat();
    // Points are records of numbers, which always have a table.
    Records::of("neu", points).map_or_else(|e| e.to_string(), |table| table.only(&columns).text(width))
}

/// As many lines as there are colours, evenly chosen, with the first and the last.
fn some(list: &[usize]) -> Vec<usize> {
    let lines = PALETTE.len().min(list.len());
    (0..lines).map(|k| list[k * (list.len() - 1) / lines.saturating_sub(1).max(1)]).collect()
}

fn slope(slope: Option<Slope>, unit: &str) -> String {
    let Some(Slope { points, .. }) = slope else { return "no slope above noise".into() };
    format!("slope {} {unit}, {points} points", slope_text(slope, 3, "")).replace('-', "−")
}

impl NeuReport {
    /// J against n for several depths, and against L for several lengths.
    fn charts(&self) -> [Chart; 2] {
        let lines = |of: fn(&NeuPoint) -> usize, x: fn(&NeuPoint) -> usize, keys: &[usize], name: &str| {
            let line = |(&key, color): (&usize, _)| {
                // A logarithmic axis has no place for what is 0 or below up to noise.
                let mut own: Vec<&NeuPoint> =
                    self.points.iter().filter(|p| of(p) == key && p.split > 0.0).collect();
                own.sort_by_key(|p| x(p));
                let points = own.iter().map(|p| (x(p) as f64, p.split)).collect();
                let band =
                    |p: &&NeuPoint| ((p.split - p.split_sem).max(0.3 * p.split), p.split + p.split_sem);
                Series::new(format!("*{name}* = {key}"), color, points)
                    .with_band(own.iter().map(band).collect())
            };
            keys.iter().zip(PALETTE).map(line).collect::<Vec<_>>()
        };
        let chart = |over: &str, label: &str, series, note: String| {
            let (x, y) = (Axis::log(label), Axis::log("NEU *J* without noise"));
            Chart::new(format!("{over}: {}", self.kind()), x, y, series).noted(note)
        };
        let (lengths, layers) = (&self.config.lengths, &self.config.layers);
        let by_length = lines(|p| p.layers, |p| p.n, &some(layers), "L");
        let at_depth = format!("{} at L = {}", slope(self.length_slope, "in log n"), last(layers));
        let by_depth = lines(|p| p.n, |p| p.layers, &some(lengths), "n");
        let at_length = format!("{} at n = {}", slope(self.depth_slope, "per layer"), last(lengths));
        [
            chart("context length", "context length *n*", by_length, at_depth),
            chart("depth", "layers *L*", by_depth, at_length),
        ]
    }
}

/// The sweeps of several families, below one another.
pub(super) fn figure(reports: &[NeuReport]) -> Scene {
    let family = |r: &NeuReport| {
        format!("{}: at least {} per estimate", r.describe, counted(r.config.samples, "task"))
    };
    let families = reports.iter().map(family).collect::<Vec<_>>().join("; ");
    let note = format!("{families}; band: standard error, drawn down to 0.3 of J");
    let title = "The expected update at θ_{∗} over context length and depth";
    Grid::new(title, 2, reports.iter().flat_map(NeuReport::charts), note).scene()
}

/// The TD error and what the same prompt changes about it, over lengths in the deepest network.
pub(super) fn same_prompt_figure(reports: &[NeuReport]) -> Scene {
    let mut series = Vec::new();
    for (report, colors) in reports.iter().zip(PALETTE.chunks_exact(2)) {
        let (deepest, kind) = (last(&report.config.layers), report.kind());
        let lines: [(&str, fn(&NeuPoint) -> f64); 2] =
            [("mean |E[δ]|", |p| p.mean_error), ("gap", |p| p.prompt_gap)];
        for ((name, of), color) in lines.into_iter().zip(colors) {
            let own = report.points.iter().filter(|p| p.layers == deepest && of(p) > 0.0);
            let points = own.map(|p| (p.n as f64, of(p))).collect();
            let line = Series::new(format!("{kind}: {name}"), *color, points);
            series.push(if name == "gap" { line } else { line.dashed() });
        }
    }
    let title = "The successor's value on the same and on the shifted prompt";
    Chart::new(title, Axis::log("context length *n*"), Axis::log("mean over tasks"), series)
        .noted("deepest network at θ_{∗}; gap: the mean difference of E[δ] on the two prompts")
        .scene(Width::Column)
}
