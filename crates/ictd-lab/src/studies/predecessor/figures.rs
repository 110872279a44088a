//! The figures of an experiment: curves over training, and the final matrices.

use serde::Serialize;

use super::experiment::{CurvePoint, PairPoint, Trained};
use crate::LabError;
use crate::counted;
use crate::figure::style::PALETTE;
use crate::figure::{Axis, Cells, Chart, Grid, Series};
use crate::files::OutputDir;

/// Measurements that a drawn point is the mean of.
const SMOOTHED: usize = 5;

/// The name of the files of an experiment.
pub fn file_name(trained: &Trained) -> String {
    format!("predecessor_{}", trained.experiment.id.replace('-', "_"))
}

#[derive(Serialize)]
struct Entry {
    matrix: String,
    row: String,
    column: String,
    value: f64,
}

/// Writes the figures and their numbers.
pub fn write(trained: &Trained, out: &OutputDir) -> Result<(), LabError> {
    let name = file_name(trained);
    out.csv(&name, trained.curves(1))?;
    out.csv(&format!("{name}_parameters"), trained.pair_curves(1))?;
    out.csv(&format!("{name}_matrices"), entries(trained))?;
    let seeds = counted(trained.num_seeds(), "seed");
    let note = format!("mean ± s.e.m. over {seeds}, every point the mean of {SMOOTHED} measurements");
    let title = format!("Over training — {}", trained.experiment.title);
    out.figure(&name, &Grid::new(&title, 2, charts(trained), note).scene())?;
    let note =
        format!("mean over {seeds} at the end of training, signs aligned, divided by the largest entry");
    let title = format!("Final P and Q — {}", trained.experiment.title);
    out.figure(&format!("{name}_matrices"), &Grid::new(&title, 2, maps(trained), note).scene())
}

fn charts(trained: &Trained) -> Vec<Chart> {
    let (curves, pairs) = (trained.curves(SMOOTHED), trained.pair_curves(SMOOTHED));
    let line = |name: &str, color: usize, of: fn(&CurvePoint) -> (f64, f64)| {
        series(name, color, curves.iter().map(|p| (p.mrp, of(p))))
    };
    let tasks = || Axis::linear("tasks");
    let mut charts = vec![
        Chart::new(
            "similarity to TD(0)",
            tasks(),
            Axis::linear("cosine"),
            vec![line("IWS", 1, |p| (p.iws, p.iws_sem)), line("SS", 2, |p| (p.ss, p.ss_sem)).dashed()],
        ),
        Chart::new(
            "values: difference to TD(0), and error",
            tasks(),
            Axis::log("mean square"),
            vec![
                line("VD", 0, |p| (p.vd, p.vd_sem)),
                line("error", 1, |p| (p.msve, p.msve_sem)),
                line("error of TD(0)", 2, |p| (p.td_msve, p.td_msve_sem)).dashed(),
            ],
        ),
    ];
    for pair in 0..trained.num_pairs() {
        let own: Vec<&PairPoint> = pairs.iter().filter(|p| p.pair == pair).collect();
        let line = |name: &str, color: usize, of: fn(&PairPoint) -> (f64, f64)| {
            series(name, color, own.iter().map(|p| (p.mrp, of(p))))
        };
        charts.push(Chart::new(
            format!("*P*_{{{pair}}}"),
            tasks(),
            Axis::linear("size"),
            vec![
                line("last corner", 0, |p| (p.p_corner, p.p_corner_sem)),
                line("mean |rest|", 1, |p| (p.p_rest, p.p_rest_sem)),
            ],
        ));
        charts.push(Chart::new(
            format!("*Q*_{{{pair}}}"),
            tasks(),
            Axis::linear("trace or size"),
            vec![
                line("trace, upper left", 0, |p| (p.q_left, p.q_left_sem)),
                line("trace, upper right", 1, |p| (p.q_right, p.q_right_sem)),
                line("mean |rest|", 2, |p| (p.q_rest, p.q_rest_sem)),
            ],
        ));
    }
    charts.push(Chart::new(
        "step size of the TD(0) beside it",
        tasks(),
        Axis::linear("*α*"),
        vec![line("*α*", 3, |p| (p.alpha, p.alpha_sem))],
    ));
    charts.push(Chart::new(
        "loss",
        tasks(),
        Axis::linear("mean square"),
        vec![line("loss", 4, |p| (p.loss, p.loss_sem))],
    ));
    charts
}

fn series(name: &str, color: usize, points: impl Iterator<Item = (u64, (f64, f64))>) -> Series {
    let (points, band) =
        points.map(|(mrp, (mean, sem))| ((mrp as f64, mean), (mean - sem, mean + sem))).unzip();
    Series::new(name, PALETTE[color], points).with_band(band)
}

/// Names of the rows of Z: φ, γφ', r.
fn row_names(d: usize, mark: impl Fn(&str, usize) -> String, reward: &str) -> Vec<String> {
    let of = |name: &'static str| (0..d).map(move |i| (name, i));
    let features = of("φ").chain(of("γφ'")).map(|(name, i)| mark(name, i));
    features.chain([reward.to_owned()]).collect()
}

fn maps(trained: &Trained) -> Vec<Cells> {
    let names = row_names(trained.config.shape().feature_dim, |name, i| format!("{name}_{{{i}}}"), "*r*");
    let of_pair = |pair: usize| {
        let [p, q] = trained.matrices(pair);
        [("P", p), ("Q", q)]
            .map(|(name, entries)| Cells::matrix(&format!("*{name}*_{{{pair}}}"), &names, &entries))
    };
    (0..trained.num_pairs()).flat_map(of_pair).collect()
}

fn entries(trained: &Trained) -> Vec<Entry> {
    let names = row_names(trained.config.shape().feature_dim, |name, i| format!("{name}_{i}"), "r");
    let mut entries = Vec::new();
    for pair in 0..trained.num_pairs() {
        for (name, matrix) in ["P", "Q"].into_iter().zip(trained.matrices(pair)) {
            for (row, values) in names.iter().zip(matrix) {
                for (column, value) in names.iter().zip(values) {
                    let (row, column) = (row.clone(), column.clone());
                    entries.push(Entry { matrix: format!("{name}_{pair}"), row, column, value });
                }
            }
        }
    }
    entries
}
