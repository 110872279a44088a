//! Sweeps of NEU as figures.

use ictd::statistics::fit::Slope;

use super::{NeuPoint, NeuReport};
use crate::figure::style::{INK, MUTED, PALETTE, TEXT_SIZE, TITLE_SIZE};
use crate::figure::{Anchor, Axis, Chart, Scale, Scene, Series};

/// As many lines as there are colours, evenly chosen, with the first and the last.
fn some(list: &[usize]) -> Vec<usize> {
    let lines = PALETTE.len().min(list.len());
    (0..lines).map(|k| list[k * (list.len() - 1) / lines.saturating_sub(1).max(1)]).collect()
}

fn slope(slope: Option<Slope>, unit: &str) -> String {
    slope.map_or_else(
        || "no slope above noise".into(),
        |s| format!("slope {:.3} ± {:.3} {unit}, {} points", s.slope, s.half_width, s.points),
    )
}

impl NeuReport {
    /// J against n for several depths, and against L for several lengths.
    fn draw(&self, scene: &mut Scene, top: f64) {
        let lines = |of: fn(&NeuPoint) -> usize, x: fn(&NeuPoint) -> usize, keys: &[usize], name: &str| {
            let line = |(&key, color): (&usize, _)| {
                // A logarithmic axis has no place for what is 0 or below up to noise.
                let mut own: Vec<&NeuPoint> =
                    self.points.iter().filter(|p| of(p) == key && p.split > 0.0).collect();
                own.sort_by_key(|p| x(p));
                Series {
                    name: format!("*{name}* = {key}"),
                    color,
                    dash: Vec::new(),
                    points: own.iter().map(|p| (x(p) as f64, p.split)).collect(),
                    band: own
                        .iter()
                        .map(|p| ((p.split - p.split_sem).max(0.3 * p.split), p.split + p.split_sem))
                        .collect(),
                }
            };
            keys.iter().zip(PALETTE).map(line).collect::<Vec<_>>()
        };
        let y = || Axis { label: "NEU *J* without noise".into(), scale: Scale::Log, range: None };
        let deepest = self.config.layers.iter().max().copied().unwrap_or(0);
        let longest = self.config.lengths.iter().max().copied().unwrap_or(0);
        Chart {
            title: "context length".into(),
            x: Axis { label: "context length *n*".into(), scale: Scale::Log, range: None },
            y: y(),
            series: lines(|p| p.layers, |p| p.n, &some(&self.config.layers), "L"),
            note: format!("{} at L = {deepest}", slope(self.length_slope, "in log n")),
        }
        .draw(scene, [0.0, top, 470.0, 300.0]);
        Chart {
            title: "depth".into(),
            x: Axis { label: "layers *L*".into(), scale: Scale::Log, range: None },
            y: y(),
            series: lines(|p| p.n, |p| p.layers, &some(&self.config.lengths), "n"),
            note: format!("{} at n = {longest}", slope(self.depth_slope, "per layer")),
        }
        .draw(scene, [470.0, top, 470.0, 300.0]);
        let note = format!(
            "{}; at least {} tasks per estimate, band: standard error, drawn down to 0.3 of J",
            self.describe, self.config.samples
        );
        scene.text(470.0, top + 314.0, &note, TEXT_SIZE - 2.0, Anchor::Middle, MUTED);
    }
}

/// The sweeps of several families, below one another.
pub fn figure(reports: &[NeuReport]) -> Scene {
    let mut scene = Scene::new(940.0, 330.0 * reports.len() as f64 + 30.0, "NEU at theta_*");
    scene.text(
        470.0,
        20.0,
        "**The expected update at θ_{∗} over context length and depth**",
        TITLE_SIZE,
        Anchor::Middle,
        INK,
    );
    for (k, report) in reports.iter().enumerate() {
        report.draw(&mut scene, 30.0 + 330.0 * k as f64);
    }
    scene
}

/// The TD error and what the same prompt changes about it, over lengths in the deepest network.
pub fn same_prompt_figure(reports: &[NeuReport]) -> Scene {
    let mut series = Vec::new();
    for (report, colors) in reports.iter().zip(PALETTE.chunks_exact(2)) {
        let deepest = report.config.layers.iter().max().copied().unwrap_or(0);
        let kind = report.describe.split(", ").next().unwrap_or_default();
        let lines: [(&str, fn(&NeuPoint) -> f64); 2] =
            [("mean |E[δ]|", |p| p.mean_error), ("gap", |p| p.prompt_gap)];
        for ((name, of), color) in lines.into_iter().zip(colors) {
            let own = report.points.iter().filter(|p| p.layers == deepest && of(p) > 0.0);
            series.push(Series {
                name: format!("{kind}: {name}"),
                color: *color,
                dash: if name == "gap" { Vec::new() } else { vec![4.0, 3.0] },
                points: own.map(|p| (p.n as f64, of(p))).collect(),
                band: Vec::new(),
            });
        }
    }
    Chart {
        title: "The successor's value on the same and on the shifted prompt".into(),
        x: Axis { label: "context length *n*".into(), scale: Scale::Log, range: None },
        y: Axis { label: "mean over tasks".into(), scale: Scale::Log, range: None },
        series,
        note: "deepest network at θ_{∗}; gap: the mean difference of E[δ] on the two prompts".into(),
    }
    .scene(560.0, 340.0)
}
