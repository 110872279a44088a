//! Figures 3, 5 and 6: what emerges during pretraining.

use ictd::evaluate::MeanSem;
use ictd::pretrain::TrainState;
use serde::Serialize;

use super::{RunResult, Settings};
use crate::LabError;
use crate::figure::style::{INK, MUTED, PALETTE, TEXT_SIZE, TITLE_SIZE};
use crate::figure::{Anchor, Axis, Chart, Heatmap, Scale, Scene, Series};
use crate::files::OutputDir;
use crate::studies::msve::spearman;

/// Window of the trailing mean (paper, "Emergence vs. training step").
const SMOOTHING: usize = 50;
/// Bins of the kernel diagonal mean (paper, "Plotting details").
const BINS: usize = 20;
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
}

/// Means over seeds of smoothed traces at a step, of the seeds whose shown step lies beyond it.
#[derive(Clone, Debug, Serialize)]
struct CurvePoint {
    step: usize,
    seeds: usize,
    v_em: f64,
    v_em_sem: f64,
    a_em: f64,
    a_em_sem: f64,
    v_em_signed: f64,
    v_em_signed_sem: f64,
    a_em_signed: f64,
    a_em_signed_sem: f64,
    diag_mean: f64,
    diag_mean_sem: f64,
}

/// Emergence scores of the evaluated points whose d_t falls into a bin.
#[derive(Clone, Debug, Serialize)]
struct Bin {
    diag_low: f64,
    diag_high: f64,
    points: usize,
    v_em: f64,
    v_em_q25: f64,
    v_em_q75: f64,
    a_em: f64,
    a_em_q25: f64,
    a_em_q75: f64,
    v_em_signed: f64,
    a_em_signed: f64,
}

#[derive(Serialize)]
struct Entry<'a> {
    matrix: &'static str,
    row: &'a str,
    column: &'a str,
    value: f64,
}

/// How the figures' curves go.
#[derive(Clone, Copy, Debug)]
pub struct Trend {
    /// Rank correlation of V_em and d_t over bins.
    pub value_rank_correlation: f64,
    /// Mean A_em of the bins in the upper half of the range of d_t.
    pub score_upper_half: f64,
    /// Bins.
    pub bins: usize,
    /// Rank correlation of d_t and the step.
    pub diagonal_rank_correlation: f64,
    /// d_t at the first step.
    pub diagonal_first: f64,
    /// d_t at the last step.
    pub diagonal_last: f64,
}

impl EmergenceFigures {
    /// How the curves go.
    pub fn trend(&self) -> Trend {
        let centres: Vec<f64> = self.bins.iter().map(|b| 0.5 * (b.diag_low + b.diag_high)).collect();
        let values: Vec<f64> = self.bins.iter().map(|b| b.v_em).collect();
        let upper = &self.bins[self.bins.len() / 2..];
        // Neighbouring steps are smoothed over the same window: one point per window says as much.
        let curve: Vec<&CurvePoint> = self.curves.iter().step_by(SMOOTHING).collect();
        let steps: Vec<f64> = curve.iter().map(|p| p.step as f64).collect();
        let diagonal: Vec<f64> = curve.iter().map(|p| p.diag_mean).collect();
        Trend {
            value_rank_correlation: spearman(&centres, &values),
            score_upper_half: upper.iter().map(|b| b.a_em).sum::<f64>() / upper.len().max(1) as f64,
            bins: self.bins.len(),
            diagonal_rank_correlation: spearman(&steps, &diagonal),
            diagonal_first: diagonal.first().copied().unwrap_or(0.0),
            diagonal_last: diagonal.last().copied().unwrap_or(0.0),
        }
    }

    /// The statistics of a run.
    pub fn new(settings: &Settings, title: &str, result: &RunResult) -> Self {
        let shape = settings.config.shape();
        let (d, rows) = (shape.feature_dim, shape.num_rows());
        let mut row_names: Vec<String> = (1..=d).map(|i| format!("*x*_{{{i}}}")).collect();
        row_names.extend(["*r*", "γ*v*′", "*v*"].map(String::from));
        let average = |start: usize| {
            let mean = |k: usize| {
                result.states.iter().map(|s| f64::from(shown(s).1[start + k])).sum::<f64>()
                    / result.states.len() as f64
            };
            let entries: Vec<f64> = (0..rows * rows).map(mean).collect();
            let largest = entries.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
            entries.chunks(rows).map(|row| row.iter().map(|x| x / largest).collect()).collect()
        };
        Self {
            title: title.to_owned(),
            num_seeds: result.states.len(),
            row_names,
            value_matrix: average(0),
            score_matrix: average(rows * rows),
            curves: curves(&result.states),
            bins: bins(settings.config.batches, &result.states),
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
        let centre = |b: &Bin| 0.5 * (b.diag_low + b.diag_high);
        let line =
            |name: &str, color, dash: &[f64], value: fn(&Bin) -> f64, band: fn(&Bin) -> (f64, f64)| Series {
                name: name.into(),
                color,
                dash: dash.to_vec(),
                points: self.bins.iter().map(|b| (centre(b), value(b))).collect(),
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
        let mut scene = Scene::new(940.0, 360.0, &format!("Emergence of the TD block: {}", self.title));
        scene.text(
            470.0,
            20.0,
            &format!("**Emergence of the TD block — {}**", self.title),
            TITLE_SIZE,
            Anchor::Middle,
            INK,
        );
        scene.text(215.0, 48.0, "(a) learned matrices", TEXT_SIZE, Anchor::Middle, INK);
        self.heatmaps(&mut scene, 36.0, 100.0, 25.0);
        self.against_diagonal("").draw(&mut scene, [500.0, 40.0, 430.0, 290.0]);
        scene.text(730.0, 48.0, "(b) emergence against kernel diagonality", TEXT_SIZE, Anchor::Middle, INK);
        let note = format!(
            "{} seeds; (a) mean over seeds at the best step (final step where V_em or A_em stays 0), divided by the largest entry; (b) mean per bin, band: 25–75 % of points",
            self.num_seeds
        );
        scene.text(470.0, 350.0, &note, TEXT_SIZE - 2.0, Anchor::Middle, MUTED);
        scene
    }

    /// Figure 5: emergence and kernel diagonality over training.
    pub fn figure_5(&self) -> Scene {
        let mut scene = Scene::new(520.0, 500.0, &format!("Emergence over training: {}", self.title));
        let [scores, diagonal] = self.over_steps(&format!("Emergence over training — {}", self.title));
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
        self.write_numbers(out, figure_3, figure_5)?;
        out.figure(figure_3, &self.figure_3())?;
        out.figure(figure_5, &self.figure_5())
    }

    fn write_numbers(&self, out: &OutputDir, matrices: &str, curves: &str) -> Result<(), LabError> {
        let named = [("V_0", &self.value_matrix), ("A_0", &self.score_matrix)];
        let plain: Vec<String> = (0..self.row_names.len() - 3)
            .map(|i| format!("x{}", i + 1))
            .chain(["reward", "target", "value"].map(String::from))
            .collect();
        let entries = named.into_iter().flat_map(|(matrix, rows)| {
            let plain = &plain;
            rows.iter().zip(plain).flat_map(move |(row, name)| {
                let cells = row.iter().zip(plain);
                cells.map(move |(&value, column)| Entry { matrix, row: name, column, value })
            })
        });
        out.csv(&format!("{matrices}a"), entries)?;
        out.csv(&format!("{matrices}b"), &self.bins)?;
        out.csv(curves, &self.curves)
    }
}

/// The step and parameters that stand for a seed: the best step where both scores are positive somewhere,
/// as in the paper; the final one where they never are and the paper's maximum picks nothing.
fn shown(state: &TrainState<f32>) -> (usize, &[f32]) {
    if state.best.joint[0] > 0.0 {
        (state.best.step as usize, &state.best.params)
    } else {
        (state.history.td_loss.len(), &state.params)
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
        figures.write_numbers(out, &format!("{name}_{mask}_"), &format!("{name}_{mask}_steps"))?;
    }
    out.figure(name, &figure_6(full, relaxed))
}

/// Trailing means up to the step that stands for each seed, averaged over the seeds that are left.
fn curves(states: &[TrainState<f32>]) -> Vec<CurvePoint> {
    type Trace = fn(&TrainState<f32>) -> &Vec<f32>;
    let traces: [Trace; 5] = [
        |s| &s.history.value,
        |s| &s.history.score,
        |s| &s.history.value_signed,
        |s| &s.history.score_signed,
        |s| &s.history.diagonal,
    ];
    // Entry [trace][seed][step].
    let smoothed: Vec<Vec<Vec<f64>>> = traces
        .iter()
        .map(|trace| states.iter().map(|s| trailing_mean(&trace(s)[..shown(s).0])).collect())
        .collect();
    let longest = states.iter().map(|s| shown(s).0).max().unwrap_or(0);
    (0..longest)
        .filter_map(|step| {
            let at = |trace: usize| {
                let samples: Vec<f64> = smoothed[trace].iter().filter_map(|t| t.get(step).copied()).collect();
                MeanSem::of(&samples)
            };
            let [v, a, vs, asg, d] = [at(0)?, at(1)?, at(2)?, at(3)?, at(4)?];
            Some(CurvePoint {
                step: step + 1,
                seeds: v.count,
                v_em: v.mean,
                v_em_sem: v.sem,
                a_em: a.mean,
                a_em_sem: a.sem,
                v_em_signed: vs.mean,
                v_em_signed_sem: vs.sem,
                a_em_signed: asg.mean,
                a_em_signed_sem: asg.sem,
                diag_mean: d.mean,
                diag_mean_sem: d.sem,
            })
        })
        .collect()
}

fn trailing_mean(values: &[f32]) -> Vec<f64> {
    (0..values.len())
        .map(|end| {
            let window = &values[(end + 1).saturating_sub(SMOOTHING)..=end];
            window.iter().map(|&x| f64::from(x)).sum::<f64>() / window.len() as f64
        })
        .collect()
}

/// The evaluated points of all seeds, one per epoch, in equal-width bins of d_t.
fn bins(batches: usize, states: &[TrainState<f32>]) -> Vec<Bin> {
    // (d_t, V_em, A_em, signed V_em, signed A_em) at the end of every epoch.
    let points: Vec<[f64; 5]> = states
        .iter()
        .flat_map(|s| {
            let h = &s.history;
            h.eval_diagonal.iter().enumerate().map(move |(epoch, &d)| {
                let step = (epoch + 1) * batches - 1;
                [d, h.value[step], h.score[step], h.value_signed[step], h.score_signed[step]].map(f64::from)
            })
        })
        .collect();
    let (low, high) =
        points.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), p| (l.min(p[0]), h.max(p[0])));
    let width = (high - low) / BINS as f64;
    (0..BINS)
        .filter_map(|k| {
            let inside = |p: &&[f64; 5]| (((p[0] - low) / width) as usize).min(BINS - 1) == k;
            let members: Vec<&[f64; 5]> = points.iter().filter(inside).collect();
            if members.is_empty() {
                return None;
            }
            let sorted = |i: usize| {
                let mut values: Vec<f64> = members.iter().map(|p| p[i]).collect();
                values.sort_by(f64::total_cmp);
                values
            };
            let mean = |i: usize| members.iter().map(|p| p[i]).sum::<f64>() / members.len() as f64;
            let (v, a) = (sorted(1), sorted(2));
            Some(Bin {
                diag_low: low + k as f64 * width,
                diag_high: low + (k + 1) as f64 * width,
                points: members.len(),
                v_em: mean(1),
                v_em_q25: quantile(&v, 0.25),
                v_em_q75: quantile(&v, 0.75),
                a_em: mean(2),
                a_em_q25: quantile(&a, 0.25),
                a_em_q75: quantile(&a, 0.75),
                v_em_signed: mean(3),
                a_em_signed: mean(4),
            })
        })
        .collect()
}

/// The quantile of sorted numbers, interpolated linearly between them.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (at - below as f64) * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_means_use_what_is_there() {
        let values: Vec<f32> = (0..60).map(|i| i as f32).collect();
        let means = trailing_mean(&values);
        assert_eq!((means[0], means[1], means[49], means[50]), (0.0, 0.5, 24.5, 25.5));
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), 2.0);
        assert_eq!(quantile(&[0.0, 1.0], 0.75), 0.75);
        assert_eq!(quantile(&[3.0], 0.5), 3.0);
    }
}
