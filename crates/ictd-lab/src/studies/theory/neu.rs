//! NEU: the pretraining objective at theta_*, at a checkpoint, over depth and context length, and as a
//! landscape.

use ictd::kernel::{Attention, KernelName};
use ictd::operator::StateOperator;
use ictd::theory::{Constants, LoopedParams, Neu, NeuError, NeuSampler, Stability, Theorem3};
use ictd::transformer::Parameters;
use rayon::prelude::*;
use serde::Serialize;

use super::TaskFamily;
use super::fit::{self, Slope};
use crate::LabError;
use crate::figure::style::{INK, MUTED, PALETTE, TEXT_SIZE, TITLE_SIZE};
use crate::figure::{Anchor, Axis, Chart, Color, Scale, Scene, Series, Stroke};
use crate::files::OutputDir;

/// Tasks that uniform constants are taken over.
const CONSTANT_TASKS: u64 = 200;
/// Points of the landscape in each direction.
const GRID: usize = 17;

/// What to estimate.
#[derive(Clone, Debug, Serialize)]
pub struct NeuConfig {
    /// Tasks.
    pub family: TaskFamily,
    /// Context lengths of the sweep.
    pub lengths: Vec<usize>,
    /// Depths of the sweep.
    pub layers: Vec<usize>,
    /// Samples per estimate.
    pub samples: u64,
}

/// An estimate.
#[derive(Clone, Debug, Serialize)]
pub struct NeuPoint {
    /// `theta_*` or the name of a file.
    pub theta: String,
    /// Context length n.
    pub n: usize,
    /// Depth L.
    pub layers: usize,
    /// J.
    pub neu: f64,
    /// Its standard error.
    pub sem: f64,
    /// What J would show if it were 0.
    pub noise: f64,
    /// J with the successor's value read off the same prompt, as the proof does.
    pub same_prompt: f64,
    /// Theorem 3's terms: depth, sampling, bad events.
    pub bound_depth: Option<f64>,
    /// Second term.
    pub bound_sampling: Option<f64>,
    /// Third term.
    pub bound_events: Option<f64>,
    /// Samples.
    pub samples: u64,
    /// Whether the point is in the fit of the slope against n, and in that against L.
    pub in_length_fit: bool,
    /// In the fit against L.
    pub in_depth_fit: bool,
}

/// What was found on a family.
#[derive(Clone, Debug, Serialize)]
pub struct NeuReport {
    /// What was estimated.
    pub config: NeuConfig,
    describe: String,
    /// Over lengths at the largest depth, then over depths at the largest length.
    pub points: Vec<NeuPoint>,
    /// Slope of log J against log n at the largest depth, over the points above three times their noise.
    pub length_slope: Option<Slope>,
    /// Slope of log J against L at the largest length, from the largest J to three times the floor.
    pub depth_slope: Option<Slope>,
    /// The smallest margin of Assumption 5.1 over the first tasks.
    pub margin: f64,
    /// From which n on Theorem 3 speaks.
    pub threshold: Option<f64>,
    theorem: TheoremJson,
}

#[derive(Clone, Debug, Serialize)]
struct TheoremJson {
    /// C₂, the factor of depth and sampling.
    depth_factor: Option<f64>,
    /// C₃, the factor of bad events.
    context_factor: Option<f64>,
    constants_over_tasks: u64,
}

fn neu_error(error: NeuError) -> LabError {
    match error {
        NeuError::Task(e) => e.into(),
        other => LabError::Failed(other.to_string()),
    }
}

/// Estimates J for one setting.
pub fn estimate(
    family: &TaskFamily,
    params: &LoopedParams,
    n: usize,
    layers: usize,
    samples: u64,
) -> Result<Neu, LabError> {
    family.check()?;
    let d = family.feature_dim();
    if params.score_block.num_rows() != d {
        let found = params.score_block.num_rows();
        return Err(LabError::Invalid(format!(
            "params: the parameters are for {found} features, the tasks have {d}"
        )));
    }
    for (name, value, high) in
        [("n", n as u64, 1_000_000), ("layers", layers as u64, 10_000), ("samples", samples, 10_000_000)]
    {
        let low = if name == "samples" { 2 } else { 1 };
        if !(low..=high).contains(&value) {
            return Err(LabError::Invalid(format!("{name} is {value}, expected {low} to {high}")));
        }
    }
    let sampler = NeuSampler {
        task: |index| family.task(index),
        context_len: n,
        num_layers: layers,
        samples,
        seed: family.seed,
    };
    sampler.estimate(params).map_err(neu_error)
}

/// Parameters from a file, as a point of Θ^Looped.
pub fn looped(parameters: &Parameters) -> Result<LoopedParams, LabError> {
    let Parameters::Tied(params) = parameters else {
        return Err(LabError::Invalid("params: expected one V and A for all layers".into()));
    };
    LoopedParams::of(params).ok_or_else(|| {
        LabError::Invalid(
            "params: expected scores that depend on features alone (masks full or looped) and a V that writes the memory rows only"
                .into(),
        )
    })
}

/// The sweep at theta_*.
pub fn run(config: &NeuConfig) -> Result<NeuReport, LabError> {
    let mut config = config.clone();
    for list in [&mut config.lengths, &mut config.layers] {
        list.sort_unstable();
        list.dedup();
    }
    let config = &config;
    let (Some(&longest), Some(&deepest)) = (config.lengths.iter().max(), config.layers.iter().max()) else {
        return Err(LabError::Invalid("lengths and layers: expected at least one each".into()));
    };
    config.family.check()?;
    let d = config.family.feature_dim();
    let uniform = uniform_constants(&config.family)?;
    let theorem = Theorem3::of(&uniform, d);
    let star = LoopedParams::theta_star(d);
    let mut points = Vec::new();
    let over_lengths = config.lengths.iter().map(|&n| (n, deepest));
    let over_layers = config.layers.iter().filter(|l| **l != deepest).map(|&l| (longest, l));
    for (n, layers) in over_lengths.chain(over_layers) {
        let found = estimate(&config.family, &star, n, layers, config.samples)?;
        points.push(point("theta_*", n, layers, &found, theorem.as_ref()));
    }
    // Against n: what stands out of noise. Against L: from the depth with the largest J on, as far as the floor of the longest
    // context, at least three times what the deepest network leaves. Points say whether they are in.
    let peak = points
        .iter()
        .filter(|p| p.n == longest)
        .max_by(|a, b| a.neu.total_cmp(&b.neu))
        .map_or(0, |p| p.layers);
    let floor = points.iter().find(|p| p.n == longest && p.layers == deepest).map_or(0.0, |p| p.neu);
    for p in &mut points {
        p.in_length_fit = p.layers == deepest && p.neu > 3.0 * p.noise;
        p.in_depth_fit = p.n == longest && p.layers >= peak && p.neu > 3.0 * floor.max(p.noise);
    }
    let chosen = |of: fn(&NeuPoint) -> bool| points.iter().filter(move |p| of(p));
    let by_length: Vec<(f64, f64)> = chosen(|p| p.in_length_fit).map(|p| (p.n as f64, p.neu)).collect();
    let by_depth: Vec<(f64, f64)> =
        chosen(|p| p.in_depth_fit).map(|p| (p.layers as f64, p.neu.ln())).collect();
    let (length_slope, depth_slope) = (fit::power(&by_length), fit::line(&by_depth));
    Ok(NeuReport {
        describe: config.family.describe(),
        config: config.clone(),
        points,
        length_slope,
        depth_slope,
        margin: uniform.margin,
        threshold: theorem.map(|t| t.threshold()).filter(|n| n.is_finite()),
        theorem: TheoremJson {
            depth_factor: theorem.map(|t| t.depth_factor),
            context_factor: theorem.map(|t| t.context_factor),
            constants_over_tasks: CONSTANT_TASKS,
        },
    })
}

/// A point of a table.
pub fn point(theta: &str, n: usize, layers: usize, found: &Neu, theorem: Option<&Theorem3>) -> NeuPoint {
    let terms = theorem.map(|t| t.terms(layers as f64, n as f64)).filter(|t| t.iter().all(|x| x.is_finite()));
    NeuPoint {
        theta: theta.to_owned(),
        n,
        layers,
        neu: found.norm,
        sem: found.norm_sem,
        noise: found.noise,
        same_prompt: found.norm_same_prompt,
        bound_depth: terms.map(|t| t[0]),
        bound_sampling: terms.map(|t| t[1]),
        bound_events: terms.map(|t| t[2]),
        samples: found.samples,
        in_length_fit: false,
        in_depth_fit: false,
    }
}

fn uniform_constants(family: &TaskFamily) -> Result<Constants, LabError> {
    let attention = Attention::new(KernelName::Softmax.at(1.0)?, 0.0)?;
    let constants = |index| -> Result<Constants, LabError> {
        let task = family.task(index)?;
        let margin = Stability::of(&StateOperator::population(&task, &attention)?)?.margin;
        Ok(Constants::of(&task, margin)?)
    };
    let all = (0..CONSTANT_TASKS).into_par_iter().map(constants).collect::<Result<Vec<_>, LabError>>()?;
    let uniform = all.into_iter().reduce(Constants::worse);
    uniform.ok_or_else(|| LabError::Invalid("tasks: expected at least one".into()))
}

impl NeuReport {
    /// J against n at the largest depth, and against L at the largest length.
    fn draw(&self, scene: &mut Scene, top: f64) {
        let deepest = self.config.layers.iter().max().copied().unwrap_or(0);
        let longest = self.config.lengths.iter().max().copied().unwrap_or(0);
        let series = |points: Vec<&NeuPoint>, x: fn(&NeuPoint) -> f64| {
            let line = |name: &str, color, dash: &[f64], y: fn(&NeuPoint) -> f64, band: bool| Series {
                name: name.into(),
                color,
                dash: dash.to_vec(),
                points: points.iter().map(|p| (x(p), y(p))).collect(),
                band: if band {
                    points.iter().map(|p| ((p.neu - p.sem).max(0.1 * p.neu), p.neu + p.sem)).collect()
                } else {
                    Vec::new()
                },
            };
            vec![
                line("*J*", PALETTE[0], &[], |p| p.neu, true),
                line("same prompt", PALETTE[1], &[4.0, 3.0], |p| p.same_prompt, false),
                line("noise", PALETTE[3], &[2.0, 2.0], |p| p.noise, false),
            ]
        };
        let slope = |s: Option<Slope>, unit: &str| {
            s.map_or_else(
                || "no slope above noise".into(),
                |s| format!("slope {:.3} ± {:.3} {unit}, {} points", s.slope, s.half_width, s.points),
            )
        };
        let mut by_length: Vec<&NeuPoint> = self.points.iter().filter(|p| p.layers == deepest).collect();
        by_length.sort_by_key(|p| p.n);
        Chart {
            title: format!("context length, *L* = {deepest}"),
            x: Axis { label: "context length *n*".into(), scale: Scale::Log, range: None },
            y: Axis { label: "NEU *J* at θ_{∗}".into(), scale: Scale::Log, range: None },
            series: series(by_length, |p| p.n as f64),
            note: slope(self.length_slope, "in log n"),
        }
        .draw(scene, [0.0, top, 470.0, 300.0]);
        let mut by_depth: Vec<&NeuPoint> = self.points.iter().filter(|p| p.n == longest).collect();
        by_depth.sort_by_key(|p| p.layers);
        Chart {
            title: format!("depth, *n* = {longest}"),
            x: Axis { label: "layers *L*".into(), scale: Scale::Linear, range: None },
            y: Axis { label: "NEU *J* at θ_{∗}".into(), scale: Scale::Log, range: None },
            series: series(by_depth, |p| p.layers as f64),
            note: slope(self.depth_slope, "per layer"),
        }
        .draw(scene, [470.0, top, 470.0, 300.0]);
        let note =
            format!("{}; {} tasks per estimate, band: standard error", self.describe, self.config.samples);
        scene.text(470.0, top + 314.0, &note, TEXT_SIZE - 2.0, Anchor::Middle, MUTED);
    }

    /// Writes the numbers under a name.
    pub fn write(&self, out: &OutputDir, name: &str) -> Result<(), LabError> {
        out.csv(name, &self.points)?;
        out.json(name, self)
    }

    /// The point at a length and a depth.
    pub fn at(&self, n: usize, layers: usize) -> Option<&NeuPoint> {
        self.points.iter().find(|p| p.n == n && p.layers == layers)
    }

    /// In words.
    pub fn describe(&self) -> &str {
        &self.describe
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

/// J over scalings of V and A through theta_*.
#[derive(Clone, Debug, Serialize)]
pub struct Landscape {
    describe: String,
    n: usize,
    layers: usize,
    samples: u64,
    /// One entry per point.
    pub points: Vec<LandscapePoint>,
}

/// J at α·V, β·A.
#[derive(Clone, Debug, Serialize)]
pub struct LandscapePoint {
    /// α.
    pub value_scale: f64,
    /// β.
    pub score_scale: f64,
    /// J; `None` where layers diverge.
    pub neu: Option<f64>,
    /// Its standard error.
    pub sem: Option<f64>,
}

/// Estimates J on a plane through theta_*: V scaled by 0 to 2, A by 0 to 2, the same samples everywhere.
pub fn landscape(family: &TaskFamily, n: usize, layers: usize, samples: u64) -> Result<Landscape, LabError> {
    let d = family.feature_dim();
    let scales: Vec<f64> = (0..GRID).map(|k| 2.0 * k as f64 / (GRID - 1) as f64).collect();
    let mut points = Vec::new();
    for &score_scale in &scales {
        for &value_scale in &scales {
            let mut theta = LoopedParams::theta_star(d);
            theta.value_row = theta.value_row.map(|u| value_scale * u);
            for i in 0..d {
                theta.score_block[(i, i)] *= score_scale;
            }
            let found = match estimate(family, &theta, n, layers, samples) {
                Ok(found) => Some(found),
                Err(LabError::Failed(_)) => None,
                Err(error) => return Err(error),
            };
            points.push(LandscapePoint {
                value_scale,
                score_scale,
                neu: found.as_ref().map(|f| f.norm),
                sem: found.map(|f| f.norm_sem),
            });
        }
    }
    Ok(Landscape { describe: family.describe(), n, layers, samples, points })
}

impl Landscape {
    /// The plane as coloured cells, dark where J is small.
    pub fn figure(&self) -> Scene {
        let (left, top, cell) = (80.0, 60.0, 20.0);
        let side = cell * GRID as f64;
        let mut scene = Scene::new(left + side + 130.0, top + side + 76.0, "NEU around theta_*");
        let width = scene.width;
        scene.text(0.5 * width, 24.0, "**NEU on a plane through θ_{∗}**", TITLE_SIZE, Anchor::Middle, INK);
        let logs: Vec<f64> =
            self.points.iter().filter_map(|p| p.neu).filter(|j| *j > 0.0).map(f64::log10).collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
        // Divergence would hide everything else.
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).min(low + 5.0);
        let color = |j: Option<f64>| match j {
            None => Color::rgb(200, 200, 200),
            Some(j) => shade((j.max(1e-300).log10() - low) / (high - low)),
        };
        for (k, point) in self.points.iter().enumerate() {
            let (row, column) = ((k / GRID) as f64, (k % GRID) as f64);
            let corner = [left + column * cell, top + side - (row + 1.0) * cell, cell, cell];
            scene.rect(corner, Some(color(point.neu)), None);
        }
        scene.rect([left, top, side, side], None, Some(Stroke::solid(INK, 0.8)));
        let star = (left + 0.5 * side, top + 0.5 * side);
        scene.circle(star.0, star.1, 5.0, None, Some(Stroke::solid(Color::rgb(255, 255, 255), 2.0)));
        for (k, label) in ["0", "0.5", "1", "1.5", "2"].into_iter().enumerate() {
            let at = (k as f64 * (GRID - 1) as f64 / 4.0 + 0.5) * cell;
            scene.text(left + at, top + side + 15.0, label, TEXT_SIZE - 1.0, Anchor::Middle, INK);
            scene.text(left - 6.0, top + side - at + 3.5, label, TEXT_SIZE - 1.0, Anchor::End, INK);
        }
        scene.text(left + 0.5 * side, top + side + 33.0, "scale of *V*", TEXT_SIZE, Anchor::Middle, INK);
        scene.turned_text(
            left - 42.0,
            top + 0.5 * side,
            "scale of *A*",
            TEXT_SIZE,
            Anchor::Middle,
            INK,
            -90.0,
        );
        let bar = left + side + 22.0;
        for k in 0..50 {
            let share = (k as f64 + 0.5) / 50.0;
            let y = top + side * (1.0 - (k as f64 + 1.0) / 50.0);
            scene.rect([bar, y, 12.0, side / 50.0 + 0.4], Some(shade(share)), None);
        }
        for k in 0..=4 {
            let share = k as f64 / 4.0;
            let label = format!("10^{{{:.1}}}", low + share * (high - low)).replace('-', "−");
            scene.text(
                bar + 17.0,
                top + side * (1.0 - share) + 3.5,
                &label,
                TEXT_SIZE - 1.0,
                Anchor::Start,
                INK,
            );
        }
        scene.text(bar, top - 10.0, "*J*", TEXT_SIZE, Anchor::Start, INK);
        scene.text(0.5 * width, top + side + 52.0, &self.describe, TEXT_SIZE - 2.0, Anchor::Middle, MUTED);
        let note = format!(
            "n = {}, L = {}, {} tasks; circle: θ_{{∗}}; grey: layers diverge",
            self.n, self.layers, self.samples
        );
        scene.text(0.5 * width, top + side + 66.0, &note, TEXT_SIZE - 2.0, Anchor::Middle, MUTED);
        scene
    }

    /// Writes the figure and its numbers.
    pub fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        out.csv("landscape", &self.points)?;
        out.figure("landscape", &self.figure())
    }
}

/// Dark blue for 0 to light yellow for 1: lightness alone carries the number.
fn shade(share: f64) -> Color {
    let t = share.clamp(0.0, 1.0);
    let mix = |a: f64, b: f64| (a + (b - a) * t).round() as u8;
    Color::rgb(mix(12.0, 253.0), mix(44.0, 231.0), mix(95.0, 150.0))
}
