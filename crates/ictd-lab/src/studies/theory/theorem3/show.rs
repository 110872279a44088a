//! Sweeps of NEU as figures.

use ictd::statistics::fit::Slope;

use super::{NeuPoint, NeuReport, last};
use crate::figure::{Axis, Chart, Grid, Scene, Series, Width, style::PALETTE};

/// As many lines as there are colours, evenly chosen, with the first and the last.
fn some(list: &[usize]) -> Vec<usize> {
    let lines = PALETTE.len().min(list.len());
    (0..lines).map(|k| list[k * (list.len() - 1) / lines.saturating_sub(1).max(1)]).collect()
}

fn slope(slope: Option<Slope>, unit: &str) -> String {
    slope.map_or_else(
        || "no slope above noise".into(),
        |s| {
            let slope = format!("{:.3}", s.slope).replace('-', "−");
            format!("slope {slope} ± {:.3} {unit}, {} points", s.half_width, s.points)
        },
    )
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
        let chart = |over: &str, label: &str, series, note| Chart {
            title: format!("{over}: {}", self.kind()),
            x: Axis::log(label),
            y: Axis::log("NEU *J* without noise"),
            series,
            note,
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
    let family = |r: &NeuReport| format!("{}: at least {} tasks per estimate", r.describe, r.config.samples);
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
    Chart {
        title: "The successor's value on the same and on the shifted prompt".into(),
        x: Axis::log("context length *n*"),
        y: Axis::log("mean over tasks"),
        series,
        note: "deepest network at θ_{∗}; gap: the mean difference of E[δ] on the two prompts".into(),
    }
    .scene(Width::Column)
}
