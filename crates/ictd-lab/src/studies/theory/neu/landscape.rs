//! J on a plane through theta_*.

use ictd::matrix::Matrix;
use ictd::transformer::AttentionParams;
use serde::Serialize;

use super::estimate;
use crate::LabError;
use crate::figure::style::{INK, MUTED, TEXT_SIZE, TITLE_SIZE};
use crate::figure::{Anchor, Color, Scene, Stroke};
use crate::files::OutputDir;
use crate::studies::theory::TaskFamily;

/// Points of the landscape in each direction.
const GRID: usize = 17;

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
            let value_row = [1.0, 1.0, -1.0].map(|u| value_scale * u);
            let theta = AttentionParams::looped(value_row, &Matrix::diag(&vec![score_scale; d]));
            let found = match estimate(family, &theta, n, &[layers], samples) {
                Ok(mut found) => found.pop(),
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
