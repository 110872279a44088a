//! The statistics and panels of Figures 3, 5 and 6: what emerges during pretraining.

use ictd::pretrain::ParamsView;
use serde::Serialize;

use super::trend::{Bin, CurvePoint, SMOOTHING, Trend, bins, curves, shown};
use crate::LabError;
use crate::counted;
use crate::figure::style::PALETTE;
use crate::figure::{Axis, Cells, Chart, Grid, Scene, Series, Width};
use crate::files::OutputDir;
use crate::report::Records;
use crate::studies::pretrain::RunResult;

/// Points drawn of a curve over steps: more cannot be told apart at the figure's size.
const DRAWN: usize = 150;

/// The statistics behind the figures, over the seeds of a run.
#[derive(Clone, Debug)]
pub struct EmergenceFigures {
    pub title: String,
    pub num_seeds: usize,
    row_names: Vec<String>,
    value_matrix: Vec<Vec<f64>>,
    score_matrix: Vec<Vec<f64>>,
    curves: Vec<CurvePoint>,
    bins: Vec<Bin>,
    pub trend: Trend,
}

#[derive(Serialize)]
struct Entry<'a> {
    matrix: &'static str,
    row: &'a str,
    column: &'a str,
    value: f64,
}

impl EmergenceFigures {
    /// The statistics of a run.
    pub fn new(title: &str, run: &RunResult) -> Self {
        let (config, states) = (&run.settings.config, &run.states);
        let shape = config.shape();
        let mut row_names: Vec<String> = (1..=shape.feature_dim).map(|i| format!("*x*_{{{i}}}")).collect();
        row_names.extend(["*r*", "γ*v*′", "*v*"].map(String::from));
        let average = |of: fn(&ParamsView<'_, f32>) -> Vec<f32>| {
            let matrices: Vec<Vec<f32>> =
                states.iter().map(|s| of(&ParamsView::new(&shape, shown(s).1))).collect();
            let mean = |k: usize| matrices.iter().map(|m| f64::from(m[k])).sum::<f64>() / states.len() as f64;
            let rows = shape.num_rows();
            let entries: Vec<f64> = (0..rows * rows).map(mean).collect();
            let largest = entries.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
            entries.chunks(rows).map(|row| row.iter().map(|x| x / largest).collect()).collect()
        };
        let (curves, bins) = (curves(states), bins(config.batches, states));
        Self {
            title: title.to_owned(),
            num_seeds: states.len(),
            row_names,
            value_matrix: average(|view| view.value_matrix(0).to_vec()),
            score_matrix: average(|view| view.score_matrix(0).to_vec()),
            trend: Trend::new(&bins, &curves, states),
            curves,
            bins,
        }
    }

    /// The matrices V and A under these titles.
    pub fn heatmaps(&self, titles: [&str; 2]) -> [Cells; 2] {
        let [value, score] = titles;
        [(value, "*V*_{0}", &self.value_matrix), (score, "*A*_{0}", &self.score_matrix)]
            .map(|(title, name, entries)| Cells::matrix(&format!("{title} {name}"), &self.row_names, entries))
    }

    pub fn against_diagonal(&self, title: &str) -> Chart {
        let line = |name: &str, color, value: fn(&Bin) -> f64| {
            Series::new(name, color, self.bins.iter().map(|b| (b.centre(), value(b))).collect())
        };
        let band = |band: fn(&Bin) -> (f64, f64)| self.bins.iter().map(band).collect();
        let series = vec![
            line("*V*_{em}", PALETTE[0], |b| b.v_em).with_band(band(|b| (b.v_em_q25, b.v_em_q75))),
            line("*A*_{em}", PALETTE[1], |b| b.a_em).with_band(band(|b| (b.a_em_q25, b.a_em_q75))),
            line("signed *V*", PALETTE[0], |b| b.v_em_signed).dashed(),
            line("signed *A*", PALETTE[1], |b| b.a_em_signed).dashed(),
        ];
        Chart::new(title, Axis::linear("kernel diagonal mean *d*_{*t*}"), score_axis(), series)
    }

    pub fn over_steps(&self, title: &str) -> [Chart; 2] {
        let every = self.curves.len().div_ceil(DRAWN).max(1);
        let drawn: Vec<&CurvePoint> = self.curves.iter().step_by(every).collect();
        let line = |name: &str, color, value: fn(&CurvePoint) -> (f64, f64)| {
            let values = || drawn.iter().map(|p| (p.step as f64, value(p)));
            Series::new(name, color, values().map(|(step, v)| (step, v.0)).collect())
                .with_band(values().map(|(_, v)| (v.0 - v.1, v.0 + v.1)).collect())
        };
        let scores = vec![
            line("*V*_{em}", PALETTE[0], |p| (p.v_em, p.v_em_sem)),
            line("*A*_{em}", PALETTE[1], |p| (p.a_em, p.a_em_sem)),
            line("signed *V*", PALETTE[0], |p| (p.v_em_signed, p.v_em_signed_sem)).dashed(),
            line("signed *A*", PALETTE[1], |p| (p.a_em_signed, p.a_em_signed_sem)).dashed(),
        ];
        let diagonal = vec![line("*d*_{*t*}", PALETTE[2], |p| (p.diag_mean, p.diag_mean_sem))];
        let steps = || Axis::linear("gradient step");
        [
            Chart::new(title, steps(), score_axis(), scores),
            Chart::new("", steps(), Axis::linear("*d*_{*t*}"), diagonal),
        ]
    }

    /// Figure 3: learned matrices, and emergence against kernel diagonality.
    pub fn figure_3(&self) -> Scene {
        let note = format!(
            "{}; (a) mean over seeds at the best step (final step where V_em or A_em stays 0), divided by the largest entry; (b) mean per bin, band: 25–75 % of points",
            counted(self.num_seeds, "seed")
        );
        let title = format!("What pretraining finds — {}", self.title);
        let mut grid = Grid::new(&title, 2, self.heatmaps(["(a) learned"; 2]), note);
        grid.rows.push(vec![Box::new(self.against_diagonal("(b) scores against kernel diagonality"))]);
        grid.scene()
    }

    /// Figure 5: emergence and kernel diagonality over training.
    pub fn figure_5(&self) -> Scene {
        let note = format!(
            "mean ± s.e.m. over {}, trailing mean of {SMOOTHING} steps, up to the best step (the end where a score stays 0)",
            counted(self.num_seeds, "seed")
        );
        let charts = self.over_steps(&format!("Scores over training — {}", self.title));
        Grid { width: Width::Column, ..Grid::new("", 1, charts, note) }.scene()
    }

    /// Writes Figures 3 and 5 and their numbers under names that start with `name`.
    pub fn write(&self, out: &OutputDir, figure_3: &str, figure_5: &str) -> Result<(), LabError> {
        self.tables(figure_3, figure_5)?.iter().try_for_each(|table| out.records(table))?;
        out.figure(figure_3, &self.figure_3())?;
        out.figure(figure_5, &self.figure_5())
    }

    /// The numbers behind them: matrices, bins and curves.
    pub fn tables(&self, figure_3: &str, curves: &str) -> Result<Vec<Records>, LabError> {
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
            Records::of(&format!("{figure_3}_a"), entries)?,
            Records::of(&format!("{figure_3}_b"), &self.bins)?,
            Records::of(curves, &self.curves)?,
        ])
    }
}

fn score_axis() -> Axis {
    Axis::linear("emergence score").over(-1.05, 1.05)
}
