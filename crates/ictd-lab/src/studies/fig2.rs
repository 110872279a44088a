//! Figure 2: the memory rows before and after the temporal shift.

use ictd::context::Context;
use ictd::kernel::{Attention, KernelName, KernelWeights};
use ictd::prompt::TokenMatrix;
use ictd::random::{Purpose, Stream};
use ictd::task::Boyan;
use ictd::transformer::{AttentionParams, TransformerConfig, attend, temporal_shift};
use serde::Serialize;

use super::{Claim, Plan, Section, Study};
use crate::LabError;
use crate::figure::{Anchor, Color, Scene, Stroke, style::*};
use crate::files::OutputDir;

/// Figure 2: what the temporal shift does to the memory rows.
pub const STUDY: Study = Study::new("fig2", Section::Equivalence, &["fig2"], judge);

/// The two memory rows of a real forward pass around one temporal shift.
#[derive(Clone, Debug)]
pub struct ShiftPicture {
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
pub fn run(seed: u64) -> Result<ShiftPicture, LabError> {
    let task =
        Boyan { num_states: 8, ..Boyan::paper() }.generate(&mut Stream::new(seed, Purpose::Task, 0))?;
    let gamma = task.mrp().gamma();
    let (context, _) = task.sample_context(5, &mut Stream::new(seed, Purpose::Trajectory, 0));
    let attention = Attention::new(KernelName::Softmax.at(1.0)?, 0.0)?;
    let layer_1 =
        TransformerConfig::theta_star(attention.clone(), 1, gamma).check()?.tokens(&context)?.swap_remove(1);
    let before = half_layer(&attention, &context, &layer_1)?;
    let after = temporal_shift(before.clone(), gamma, context.roles());
    Ok(ShiftPicture { gamma, before, after })
}

fn half_layer(attention: &Attention, context: &Context, z: &TokenMatrix) -> Result<TokenMatrix, LabError> {
    let theta = AttentionParams::theta_star(context.feature_dim());
    let weights = KernelWeights::new(attention, theta.score_matrix(), z, context.roles())?;
    Ok(attend(&theta, &weights, 1.0, z))
}

impl ShiftPicture {
    /// Figure 2.
    pub fn figure(&self) -> Scene {
        let n = self.before.num_columns() - 1;
        let (cell_width, cell_height, left) = (58.0, 30.0, 122.0);
        let width = left + cell_width * (n + 1) as f64 + 20.0;
        let mut scene = Scene::new(width, 292.0, "Memory rows before and after the temporal shift");
        scene.text(
            0.5 * width,
            20.0,
            "**Memory rows around the temporal shift**",
            TITLE_SIZE,
            Anchor::Middle,
            INK,
        );
        let (first, second) = (62.0, 182.0);
        for (top, name, z, target_color) in [
            (first, "(a) *Z*_{*l*+½}", &self.before, Color::rgb(238, 238, 238)),
            (second, "(b) *Z*_{*l*+1}", &self.after, PALETTE[5].with_alpha(0.45)),
        ] {
            scene.text(left - 8.0, top - 8.0, name, TEXT_SIZE + 1.0, Anchor::End, INK);
            let rows = [
                ("target memory", z.targets(), target_color),
                ("current memory", z.values(), PALETTE[0].with_alpha(0.3)),
            ];
            for (r, (label, row, color)) in rows.into_iter().enumerate() {
                let y = top + r as f64 * cell_height;
                scene.text(left - 8.0, y + 19.0, label, TEXT_SIZE, Anchor::End, INK);
                for (j, value) in row.iter().enumerate() {
                    let x = left + j as f64 * cell_width;
                    scene.rect([x, y, cell_width, cell_height], Some(color), Some(Stroke::solid(INK, 0.7)));
                    let number = format!("{value:.3}").replace('-', "−");
                    scene.text(x + 0.5 * cell_width, y + 19.0, &number, TEXT_SIZE, Anchor::Middle, INK);
                }
            }
        }
        for j in 0..=n {
            let x = left + (j as f64 + 0.5) * cell_width;
            scene.text(
                x,
                first + 2.0 * cell_height + 14.0,
                &format!("*S*_{{{j}}}"),
                TEXT_SIZE,
                Anchor::Middle,
                MUTED,
            );
        }
        // The current memory of column j + 1 becomes the target memory of column j.
        for j in 0..n {
            let (from, to) =
                (left + (j as f64 + 1.5) * cell_width - 12.0, left + (j as f64 + 0.5) * cell_width + 6.0);
            let (y0, y1) = (first + 2.0 * cell_height + 18.0, second - 4.0);
            scene.polyline(&[(from, y0), (to, y1)], Stroke::solid(PALETTE[1], 1.2));
            scene.arrow_head(to, y1, to - from, y1 - y0, 7.0, PALETTE[1]);
        }
        let note = format!(
            "one step to the left within the episode, times γ = {}; the last column is padded with 0",
            self.gamma
        );
        scene.text(0.5 * width, 276.0, &note, TEXT_SIZE - 1.0, Anchor::Middle, MUTED);
        scene
    }

    /// Writes the figure and its numbers.
    pub fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        let d = self.before.feature_dim();
        let cells = [("before", &self.before), ("after", &self.after)].into_iter().flat_map(|(stage, z)| {
            (d + 1..d + 3).flat_map(move |i| {
                let values = z.matrix().row(i).iter().enumerate();
                values.map(move |(column, &value)| Cell { stage, row: z.row_name(i), column, value })
            })
        });
        out.csv("fig2", cells)?;
        out.figure("fig2", &self.figure())
    }
}

fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    run(plan.seed)?.write(out)?;
    let says = "The memory rows before and after the temporal shift.";
    Ok(vec![Claim::illustration("fig2", "Figure 2", says, "drawn from a real forward pass")])
}
