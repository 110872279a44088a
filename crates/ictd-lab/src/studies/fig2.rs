//! Figure 2: the memory rows before and after the temporal shift.

use ictd::kernel::KernelWeights;
use ictd::prompt::TokenMatrix;
use ictd::random::{Purpose, Stream};
use ictd::task::{Family, TaskSource as _};
use ictd::transformer::{AttentionParams, TransformerConfig, attend, temporal_shift};
use serde::Serialize;

use super::{Claim, Plan, Section, Study, softmax};
use crate::LabError;
use crate::figure::{Anchor, Scene, Stroke, Width, style::*};
use crate::files::OutputDir;

/// Figure 2: what the temporal shift does to the memory rows.
pub const STUDY: Study = Study::new("fig2", Section::Equivalence, &["fig2"], judge);

/// A real forward pass before and after one temporal shift.
struct ShiftPicture {
    gamma: f64,
    before: TokenMatrix,
    after: TokenMatrix,
}

/// A cell of the figure.
#[derive(Clone, Debug, Serialize)]
struct Cell {
    stage: &'static str,
    row: String,
    column: usize,
    value: f64,
}

/// Runs two layers on a small Boyan chain and stops in the middle of the second.
fn run(seed: u64) -> Result<ShiftPicture, LabError> {
    let task = Family { num_states: 8, ..Family::paper() }.draw(&mut Stream::new(seed, Purpose::Task, 0))?;
    let gamma = task.mrp().gamma();
    let (context, _) = task.sample_context(5, &mut Stream::new(seed, Purpose::Trajectory, 0));
    let attention = softmax()?;
    let layer_1 =
        TransformerConfig::theta_star(attention.clone(), 1, gamma).check()?.tokens(&context)?.swap_remove(1);
    let theta = AttentionParams::theta_star(context.feature_dim());
    let weights = KernelWeights::new(&attention, theta.score_matrix(), &layer_1, context.roles())?;
    let before = attend(&theta, &weights, 1.0, &layer_1);
    let after = temporal_shift(before.clone(), gamma, context.roles());
    Ok(ShiftPicture { gamma, before, after })
}

/// The layout of the figure: a cell, room for names at its left, where the two stages start.
const CELL: (f64, f64) = (66.0, 21.0);
const NAMES: f64 = 74.0;
const STAGES: [f64; 2] = [38.0, 122.0];
const HEIGHT: f64 = 192.0;
/// Room between a cell and a name or an arrow.
const PAD: f64 = 5.0;

impl ShiftPicture {
    /// Figure 2.
    pub fn figure(&self) -> Scene {
        let n = self.before.num_columns() - 1;
        // Room for the note, however short the context.
        let width = (NAMES + CELL.0 * (n + 1) as f64 + 2.0 * PAD).max(Width::Page.points());
        let title = "Memory rows around the temporal shift";
        let mut scene = Scene::new(width, HEIGHT, title);
        scene.text(0.5 * width, 14.0, &format!("**{title}**"), TITLE_SIZE, Anchor::Middle, INK);
        let column = |j: f64| NAMES + (j + 0.5) * CELL.0;
        for (top, name, z, target_color) in [
            (STAGES[0], "(a) *Z*_{*l*+½}", &self.before, GRID),
            (STAGES[1], "(b) *Z*_{*l*+1}", &self.after, PAPER.toward(PALETTE[5], 0.45)),
        ] {
            scene.text(NAMES - PAD, top - PAD, name, TITLE_SIZE, Anchor::End, INK);
            let rows = [
                ("target memory", z.targets(), target_color),
                ("current memory", z.values(), PAPER.toward(PALETTE[0], 0.3)),
            ];
            for (r, (label, row, color)) in rows.into_iter().enumerate() {
                let y = top + r as f64 * CELL.1;
                let baseline = y + 0.5 * CELL.1 + 0.36 * TEXT_SIZE;
                scene.text(NAMES - PAD, baseline, label, TEXT_SIZE, Anchor::End, INK);
                for (j, value) in row.iter().enumerate() {
                    let left = NAMES + j as f64 * CELL.0;
                    let outline = Some(Stroke::solid(INK, AXIS_WIDTH));
                    scene.rect([left, y, CELL.0, CELL.1], Some(color), outline);
                    let number = format!("{value:.3}").replace('-', "−");
                    scene.text(column(j as f64), baseline, &number, TEXT_SIZE, Anchor::Middle, INK);
                }
            }
        }
        let below = STAGES[0] + 2.0 * CELL.1;
        for j in 0..=n {
            let name = format!("*S*_{{{j}}}");
            scene.text(column(j as f64), below + 1.4 * TEXT_SIZE, &name, TEXT_SIZE, Anchor::Middle, MUTED);
        }
        // The current memory of column j + 1 becomes the target memory of column j.
        for j in 0..n {
            let (from, to) = (column(j as f64 + 1.0) - 2.0 * PAD, column(j as f64) + PAD);
            let (y0, y1) = (below + 1.8 * TEXT_SIZE, STAGES[1] - 3.0);
            scene.polyline(&[(from, y0), (to, y1)], Stroke::solid(PALETTE[1], LINE_WIDTH));
            scene.arrow_head(to, y1, to - from, y1 - y0, PAD, PALETTE[1]);
        }
        let note = format!(
            "one step to the left within the episode, times γ = {}; the last column is padded with 0",
            self.gamma
        );
        scene.text(0.5 * width, HEIGHT - 10.0, &note, TEXT_SIZE, Anchor::Middle, MUTED);
        scene
    }
}

fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let picture = run(plan.seed)?;
    let d = picture.before.feature_dim();
    let stages = [("before", &picture.before), ("after", &picture.after)];
    let cells = stages.into_iter().flat_map(|(stage, z)| {
        (d + 1..d + 3).flat_map(move |i| {
            let values = z.matrix().row(i).iter().enumerate();
            values.map(move |(column, &value)| Cell { stage, row: z.row_name(i), column, value })
        })
    });
    out.csv("fig2", cells)?;
    out.figure("fig2", &picture.figure())?;
    let says = "The memory rows before and after the temporal shift.";
    Ok(vec![Claim::illustration("fig2", "Figure 2", says, "drawn from a real forward pass")])
}
