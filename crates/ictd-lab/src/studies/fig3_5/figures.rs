//! Figures 3, 5 and 6: what emerges during pretraining.

use ictd::pretrain::TrainState;
use serde::Serialize;

use super::trend::{Bin, CurvePoint, SMOOTHING, Trend, bins, curves, shown};
use crate::LabError;
use crate::figure::style::{INK, MUTED, PALETTE, TEXT_SIZE, TITLE_SIZE};
use crate::figure::{Anchor, Axis, Chart, Heatmap, Scale, Scene, Series};
use crate::files::OutputDir;
use crate::report::Table;
use crate::studies::pretrain::Settings;

/// Points drawn of a curve over steps: more cannot be told apart at the figure's size.
const DRAWN: usize = 150;

/// The statistics behind the figures, over the seeds of a run.
#[derive(Clone, Debug)]
pub struct EmergenceFigures {
    title: String,
    num_seeds: usize,
    row_names: Vec<String>,
    value_matrix: Vec<Vec<f64>>,
    score_matrix: Vec<Vec<f64>>,
    curves: Vec<CurvePoint>,
    bins: Vec<Bin>,
    trend: Trend,
}

#[derive(Serialize)]
struct Entry<'a> {
    matrix: &'static str,
    row: &'a str,
    column: &'a str,
    value: f64,
}

impl EmergenceFigures {
    /// How the curves go.
    pub fn trend(&self) -> Trend {
        self.trend
    }

    /// The statistics of a run.
    pub fn new(settings: &Settings, title: &str, states: &[TrainState<f32>]) -> Self {
        let shape = settings.config.shape();
        let (d, rows) = (shape.feature_dim, shape.num_rows());
        let mut row_names: Vec<String> = (1..=d).map(|i| format!("*x*_{{{i}}}")).collect();
        row_names.extend(["*r*", "γ*v*′", "*v*"].map(String::from));
        let average = |start: usize| {
            let mean = |k: usize| {
                states.iter().map(|s| f64::from(shown(s).1[start + k])).sum::<f64>() / states.len() as f64
            };
            let entries: Vec<f64> = (0..rows * rows).map(mean).collect();
            let largest = entries.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
            entries.chunks(rows).map(|row| row.iter().map(|x| x / largest).collect()).collect()
        };
        let (curves, bins) = (curves(states), bins(settings.config.batches, states));
        Self {
            title: title.to_owned(),
            num_seeds: states.len(),
            row_names,
            value_matrix: average(0),
            score_matrix: average(rows * rows),
            trend: Trend::new(&bins, &curves, states),
            curves,
            bins,
        }
    }

    fn heatmaps(&self, scene: &mut Scene, x: f64, y: f64, cell: f64) {
        let map = |title: &str, entries: &[Vec<f64>]| Heatmap {
            title: title.into(),
            row_names: self.row_names.clone(),
            column_names: self.row_names.clone(),
            entries: entries.to_vec(),
        };
        let width = cell * self.row_names.len() as f64;
        map("*V*_{0}", &self.value_matrix).draw(scene, x, y, cell);
        map("*A*_{0}", &self.score_matrix).draw(scene, x + width + 44.0, y, cell);
        Heatmap::draw_scale(scene, x + 2.0 * width + 58.0, y, width);
    }

    fn against_diagonal(&self, title: &str) -> Chart {
        let line =
            |name: &str, color, dash: &[f64], value: fn(&Bin) -> f64, band: fn(&Bin) -> (f64, f64)| Series {
                name: name.into(),
                color,
                dash: dash.to_vec(),
                points: self.bins.iter().map(|b| (b.centre(), value(b))).collect(),
                band: if dash.is_empty() { self.bins.iter().map(band).collect() } else { Vec::new() },
            };
        Chart {
            title: title.into(),
            x: Axis { label: "kernel diagonal mean *d*_{*t*}".into(), scale: Scale::Linear, range: None },
            y: Axis { label: "emergence score".into(), scale: Scale::Linear, range: Some((-1.05, 1.05)) },
            series: vec![
                line("*V*_{em}", PALETTE[0], &[], |b| b.v_em, |b| (b.v_em_q25, b.v_em_q75)),
                line("*A*_{em}", PALETTE[1], &[], |b| b.a_em, |b| (b.a_em_q25, b.a_em_q75)),
                line("signed *V*", PALETTE[0], &[4.0, 3.0], |b| b.v_em_signed, |_| (0.0, 0.0)),
                line("signed *A*", PALETTE[1], &[4.0, 3.0], |b| b.a_em_signed, |_| (0.0, 0.0)),
            ],
            note: String::new(),
        }
    }

    fn over_steps(&self, title: &str) -> [Chart; 2] {
        let every = self.curves.len().div_ceil(DRAWN).max(1);
        let drawn: Vec<&CurvePoint> = self.curves.iter().step_by(every).collect();
        let line = |name: &str, color, dash: &[f64], value: fn(&CurvePoint) -> (f64, f64)| Series {
            name: name.into(),
            color,
            dash: dash.to_vec(),
            points: drawn.iter().map(|p| (p.step as f64, value(p).0)).collect(),
            band: drawn.iter().map(|p| (value(p).0 - value(p).1, value(p).0 + value(p).1)).collect(),
        };
        let steps = || Axis { label: "gradient step".into(), scale: Scale::Linear, range: None };
        [
            Chart {
                title: title.into(),
                x: steps(),
                y: Axis { label: "emergence score".into(), scale: Scale::Linear, range: Some((-1.05, 1.05)) },
                series: vec![
                    line("*V*_{em}", PALETTE[0], &[], |p| (p.v_em, p.v_em_sem)),
                    line("*A*_{em}", PALETTE[1], &[], |p| (p.a_em, p.a_em_sem)),
                    line("signed *V*", PALETTE[0], &[4.0, 3.0], |p| (p.v_em_signed, p.v_em_signed_sem)),
                    line("signed *A*", PALETTE[1], &[4.0, 3.0], |p| (p.a_em_signed, p.a_em_signed_sem)),
                ],
                note: String::new(),
            },
            Chart {
                title: String::new(),
                x: steps(),
                y: Axis { label: "*d*_{*t*}".into(), scale: Scale::Linear, range: None },
                series: vec![line("*d*_{*t*}", PALETTE[2], &[], |p| (p.diag_mean, p.diag_mean_sem))],
                note: String::new(),
            },
        ]
    }

    /// Figure 3: learned matrices, and emergence against kernel diagonality.
    pub fn figure_3(&self) -> Scene {
        let mut scene = Scene::new(940.0, 360.0, &format!("What pretraining finds: {}", self.title));
        scene.text(
            470.0,
            20.0,
            &format!("**What pretraining finds — {}**", self.title),
            TITLE_SIZE,
            Anchor::Middle,
            INK,
        );
        scene.text(215.0, 48.0, "(a) learned matrices", TEXT_SIZE, Anchor::Middle, INK);
        self.heatmaps(&mut scene, 36.0, 100.0, 25.0);
        self.against_diagonal("").draw(&mut scene, [500.0, 40.0, 430.0, 290.0]);
        scene.text(730.0, 48.0, "(b) scores against kernel diagonality", TEXT_SIZE, Anchor::Middle, INK);
        let note = format!(
            "{} seeds; (a) mean over seeds at the best step (final step where V_em or A_em stays 0), divided by the largest entry; (b) mean per bin, band: 25–75 % of points",
            self.num_seeds
        );
        scene.text(470.0, 350.0, &note, TEXT_SIZE - 2.0, Anchor::Middle, MUTED);
        scene
    }

    /// Figure 5: emergence and kernel diagonality over training.
    pub fn figure_5(&self) -> Scene {
        let mut scene = Scene::new(520.0, 500.0, &format!("Scores over training: {}", self.title));
        let [scores, diagonal] = self.over_steps(&format!("Scores over training — {}", self.title));
        scores.draw(&mut scene, [0.0, 0.0, 520.0, 290.0]);
        diagonal.draw(&mut scene, [0.0, 270.0, 520.0, 205.0]);
        let note = format!(
            "mean ± s.e.m. over {} seeds, trailing mean of {SMOOTHING} steps, up to the best step (the end where a score stays 0)",
            self.num_seeds
        );
        scene.text(260.0, 490.0, &note, TEXT_SIZE - 2.0, Anchor::Middle, MUTED);
        scene
    }

    /// Writes Figures 3 and 5 and their numbers under names that start with `name`.
    pub fn write(&self, out: &OutputDir, figure_3: &str, figure_5: &str) -> Result<(), LabError> {
        self.tables(figure_3, figure_5)?.iter().try_for_each(|table| out.table(table))?;
        out.figure(figure_3, &self.figure_3())?;
        out.figure(figure_5, &self.figure_5())
    }

    /// The numbers behind them: matrices, bins and curves.
    pub fn tables(&self, figure_3: &str, curves: &str) -> Result<Vec<Table>, LabError> {
        let named = [("V_0", &self.value_matrix), ("A_0", &self.score_matrix)];
        let plain: Vec<String> = (0..self.row_names.len() - 3)
            .map(|i| format!("s_{i}"))
            .chain(["reward", "target", "value"].map(String::from))
            .collect();
        let entries = named.into_iter().flat_map(|(matrix, rows)| {
            let plain = &plain;
            rows.iter().zip(plain).flat_map(move |(row, name)| {
                let cells = row.iter().zip(plain);
                cells.map(move |(&value, column)| Entry { matrix, row: name, column, value })
            })
        });
        Ok(vec![
            Table::of(&format!("{figure_3}_a"), entries)?,
            Table::of(&format!("{figure_3}_b"), &self.bins)?,
            Table::of(curves, &self.curves)?,
        ])
    }
}

/// Figure 6: full mask on the left, relaxed mask on the right; trajectories, diagonality, matrices.
pub fn figure_6(full: &EmergenceFigures, relaxed: &EmergenceFigures) -> Scene {
    let (width, top) = (470.0, 30.0);
    let mut scene = Scene::new(2.0 * width, 1080.0, "Mask relaxation");
    scene.text(
        width,
        20.0,
        &format!("**Mask relaxation on Boyan’s chain — {}**", full.title),
        TITLE_SIZE,
        Anchor::Middle,
        INK,
    );
    for (column, (figures, name, panels)) in
        [(full, "full mask", ["a", "c", "e"]), (relaxed, "relaxed mask", ["b", "d", "f"])]
            .into_iter()
            .enumerate()
    {
        let x = column as f64 * width;
        let [scores, diagonal] = figures.over_steps(&format!("({}) {name}: training", panels[0]));
        scores.draw(&mut scene, [x, top, width, 280.0]);
        diagonal.draw(&mut scene, [x, top + 262.0, width, 190.0]);
        figures
            .against_diagonal(&format!("({}) {name}: against diagonality", panels[1]))
            .draw(&mut scene, [x, top + 462.0, width, 290.0]);
        let title = format!("**({}) {name}: learned matrices**", panels[2]);
        scene.text(x + 0.5 * width, top + 782.0, &title, TITLE_SIZE, Anchor::Middle, INK);
        figures.heatmaps(&mut scene, x + 30.0, top + 836.0, 24.0);
    }
    let note = format!(
        "{} and {} seeds, 9000 steps; mean ± s.e.m. over seeds (a, b), mean and 25–75 % of points per bin (c, d), means divided by the largest entry (e, f)",
        full.num_seeds, relaxed.num_seeds
    );
    scene.text(width, 1066.0, &note, TEXT_SIZE - 2.0, Anchor::Middle, MUTED);
    scene
}

/// Writes Figure 6 and its numbers under names that start with `name`.
pub fn write_figure_6(
    out: &OutputDir,
    name: &str,
    full: &EmergenceFigures,
    relaxed: &EmergenceFigures,
) -> Result<(), LabError> {
    for (mask, figures) in [("full", full), ("relaxed", relaxed)] {
        let tables = figures.tables(&format!("{name}_{mask}"), &format!("{name}_{mask}_steps"))?;
        tables.iter().try_for_each(|table| out.table(table))?;
    }
    out.figure(name, &figure_6(full, relaxed))
}
