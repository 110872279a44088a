//! Figure 4: the topology of Boyan's chain.

use ictd::task::chain_edges;
use serde::Serialize;

use super::{Claim, Plan, Section, Study};
use crate::LabError;
use crate::figure::{Anchor, Color, Scene, Segment, Stroke, style::*};
use crate::files::OutputDir;

/// Figure 4: Boyan's chain.
pub const STUDY: Study = Study::new("fig4", Section::Evaluation, &["fig4"], judge);

/// Positive transitions of a chain with `num_states` states.
#[derive(Clone, Debug)]
pub struct ChainTopology {
    /// Number of states m, at least 3.
    pub num_states: usize,
}

#[derive(Clone, Debug, Serialize)]
struct Edge {
    from: usize,
    to: usize,
}

const SPACING: f64 = 62.0;
const RADIUS: f64 = 15.0;

impl ChainTopology {
    /// Figure 4, states numbered from 1 as in the paper.
    pub fn figure(&self) -> Scene {
        let m = self.num_states;
        let span = SPACING * (m - 1) as f64;
        // Room for the note, however short the chain.
        let width = (2.0 * 50.0 + span).max(440.0);
        // The longest arc hangs three quarters of its control points' depth.
        let height = 98.0 + RADIUS + 0.75 * depth(m - 1) + 44.0;
        let mut scene = Scene::new(width, height, "Boyan's chain: transitions with positive probability");
        let title = format!("**Boyan’s chain with** *m* **= {m} states**");
        scene.text(0.5 * width, 20.0, &title, TITLE_SIZE, Anchor::Middle, INK);
        let baseline = 98.0;
        let x = |s: usize| 0.5 * (width - span) + SPACING * s as f64;
        for (from, to) in chain_edges(m) {
            let restart = from == m - 1;
            let color = if restart { PALETTE[1] } else { PALETTE[0] };
            let stroke = Stroke::solid(color.with_alpha(if restart { 0.75 } else { 1.0 }), 1.2);
            if restart && to == from {
                self_loop(&mut scene, x(from), baseline, &stroke, color);
            } else if restart {
                // Below the chain; longer ways hang lower.
                let (x0, y0, x1, y1) =
                    (x(from) - 5.0, baseline + RADIUS, x(to) + 4.0, baseline + RADIUS + 2.0);
                arc(&mut scene, (x0, y0), (x1, y1), depth(from - to), &stroke, color);
            } else if to == from + 1 {
                let (x0, x1) = (x(from) + RADIUS, x(to) - RADIUS - 1.0);
                scene.polyline(&[(x0, baseline), (x1 - 5.0, baseline)], stroke);
                scene.arrow_head(x1, baseline, 1.0, 0.0, 7.0, color);
            } else {
                let (x0, y0, x1, y1) =
                    (x(from) + 6.0, baseline - RADIUS + 1.0, x(to) - 6.0, baseline - RADIUS);
                arc(&mut scene, (x0, y0), (x1, y1), -44.0, &stroke, color);
            }
        }
        for s in 0..m {
            scene.circle(
                x(s),
                baseline,
                RADIUS,
                Some(Color::rgb(255, 255, 255)),
                Some(Stroke::solid(INK, 1.2)),
            );
            scene.text(x(s), baseline + 4.0, &(s + 1).to_string(), TEXT_SIZE + 1.0, Anchor::Middle, INK);
        }
        let note = "blue: one or two states ahead; orange: from the last state to every state";
        scene.text(0.5 * width, height - 12.0, note, TEXT_SIZE - 1.0, Anchor::Middle, MUTED);
        scene
    }

    /// Writes the figure and its edges, states numbered from 0 as in all data files.
    pub fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        out.csv("fig4", chain_edges(self.num_states).into_iter().map(|(from, to)| Edge { from, to }))?;
        out.figure("fig4", &self.figure())
    }
}

/// How low the way back over `steps` states hangs.
fn depth(steps: usize) -> f64 {
    26.0 + 17.0 * steps as f64
}

/// A curved arrow that bulges by `depth` (negative: upwards).
fn arc(
    scene: &mut Scene,
    (x0, y0): (f64, f64),
    (x1, y1): (f64, f64),
    depth: f64,
    stroke: &Stroke,
    color: Color,
) {
    let lean = 0.18 * (x1 - x0);
    let control = [x0 + lean, y0 + depth, x1 - lean, y1 + depth];
    scene.path(
        vec![Segment::Move(x0, y0), Segment::Cubic([control[0], control[1], control[2], control[3], x1, y1])],
        None,
        Some(stroke.clone()),
    );
    scene.arrow_head(x1, y1, x1 - control[2], y1 - control[3], 7.0, color);
}

fn self_loop(scene: &mut Scene, x: f64, y: f64, stroke: &Stroke, color: Color) {
    let (x0, x1, top) = (x + 6.0, x + RADIUS, y - 3.0);
    scene.path(
        vec![
            Segment::Move(x0, y - RADIUS + 1.0),
            Segment::Cubic([x0 + 8.0, y - 48.0, x + 46.0, y - 22.0, x1, top]),
        ],
        None,
        Some(stroke.clone()),
    );
    scene.arrow_head(x1, top, x1 - x - 46.0, 19.0, 7.0, color);
}

fn judge(_: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    ChainTopology { num_states: 9 }.write(out)?;
    let says = "The transitions of Boyan's chain.";
    Ok(vec![Claim::illustration("fig4", "Figure 4", says, "drawn from the support of the task generator")])
}
