//! J on a plane through theta_*.

use ictd::matrix::Matrix;
use ictd::transformer::AttentionParams;
use serde::Serialize;

use super::{estimate, softmax, unless_diverged};
use crate::figure::style::GRAY;
use crate::figure::{Cell, Cells, ColorBar, Grid, Scene, Width, sequential};
use crate::studies::Tasks;
use crate::{LabError, Progress};

/// Points of the landscape in each direction.
const POINTS: usize = 17;

/// J over scalings of V and A through theta_*.
#[derive(Clone, Debug)]
pub(super) struct Landscape {
    note: String,
    pub(super) points: Vec<LandscapePoint>,
}

/// J at α·V, β·A.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LandscapePoint {
    value_scale: f64,
    score_scale: f64,
    /// J; `None` where layers diverge.
    neu: Option<f64>,
    sem: Option<f64>,
}

/// Transitions that a landscape samples.
pub(super) fn landscape_work(n: usize, samples: u64) -> u64 {
    (POINTS * POINTS * n) as u64 * samples
}

/// Estimates J on a plane through theta_*: V scaled by 0 to 2, A by 0 to 2, the same samples everywhere.
pub(super) fn landscape(
    family: &Tasks,
    n: usize,
    layers: usize,
    samples: u64,
    progress: &Progress,
) -> Result<Landscape, LabError> {
    let d = family.feature_dim();
    let scales: Vec<f64> = (0..POINTS).map(|k| 2.0 * k as f64 / (POINTS - 1) as f64).collect();
    let mut points = Vec::new();
    for &score_scale in &scales {
        for &value_scale in &scales {
            let value_row = [1.0, 1.0, -1.0].map(|u| value_scale * u);
            let theta = AttentionParams::looped(value_row, &Matrix::diag(&vec![score_scale; d]));
            let found =
                unless_diverged(estimate(family, softmax()?, &theta, n, &[layers], samples, progress))?;
            let found = found.and_then(|mut found| found.pop());
            points.push(LandscapePoint {
                value_scale,
                score_scale,
                neu: found.as_ref().map(|f| f.norm),
                sem: found.map(|f| f.norm_sem),
            });
        }
    }
    let describe = family.describe();
    let note =
        format!("{describe}; n = {n}, L = {layers}, {samples} tasks; circle: θ_{{∗}}; grey: layers diverge");
    Ok(Landscape { note, points })
}

impl Landscape {
    /// The plane as coloured cells, dark where J is small.
    pub(super) fn figure(&self) -> Scene {
        let logs: Vec<f64> =
            self.points.iter().filter_map(|p| p.neu).filter(|j| *j > 0.0).map(f64::log10).collect();
        // Where no J is above 0, or only one, there is a decade to show it in.
        let low = logs.iter().copied().reduce(f64::min).unwrap_or(0.0);
        // Divergence would hide everything else.
        let high = logs.iter().copied().fold(low, f64::max).min(low + 5.0);
        let high = if high > low { high } else { low + 1.0 };
        let cell = |point: &LandscapePoint| {
            let share = |j: f64| (j.max(1e-300).log10() - low) / (high - low);
            let color = point.neu.map_or(GRAY, |j| sequential(share(j)));
            Cell::Tile { color, text: String::new(), rows: 1 }
        };
        // Every fourth point has a name: 0, ½, … 2.
        let name = |k: usize| if k.is_multiple_of(4) { (k as f64 / 8.0).to_string() } else { String::new() };
        let tick = |log: f64| ((log - low) / (high - low), format!("10^{{{log}}}").replace('-', "−"));
        let decades = (low.ceil() as i32..=high.floor() as i32).map(f64::from);
        let map = Cells {
            title: "NEU on a plane through θ_{∗}".into(),
            x: "scale of *V*".into(),
            y: "scale of *A*".into(),
            columns: (0..POINTS).map(name).collect(),
            rows: (0..POINTS).rev().map(name).collect(),
            cells: self.points.chunks(POINTS).rev().map(|row| row.iter().map(cell).collect()).collect(),
            ring: Some((POINTS / 2, POINTS / 2)),
            bar: Some(ColorBar {
                color: sequential,
                label: "*J*".into(),
                ticks: decades.map(tick).collect(),
            }),
            note: self.note.clone(),
            ..Cells::default()
        };
        Grid { width: Width::Column, ..Grid::new("", 1, [map], String::new()) }.scene()
    }
}
