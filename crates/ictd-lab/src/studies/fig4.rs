//! Figure 4: the topology of Boyan's chain.

use ictd::task::chain_edges;
use serde::Serialize;

use super::{Claim, Plan, Section, Study};
use crate::LabError;
use crate::figure::{Anchor, Color, Scene, Segment, Stroke, Width, style::*};
use crate::files::OutputDir;

/// Figure 4: Boyan's chain.
pub const STUDY: Study = Study::new("fig4", Section::Evaluation, &["fig4"], judge);

#[derive(Clone, Debug, Serialize)]
struct Edge {
    from: usize,
    to: usize,
}

/// The layout of the figure: states on a line, the ways ahead above it, the ways back below it.
const SPACING: f64 = 46.0;
const RADIUS: f64 = 10.5;
const LINE: f64 = 68.0;
const HEAD: f64 = 5.0;
/// How high the way over one state rises.
const RISE: f64 = 31.0;

/// Figure 4 with m states, at least 3: positive transitions, states numbered from 1 as in the paper.
pub fn figure(m: usize) -> Scene {
    let span = SPACING * (m - 1) as f64;
    // Room for the note, however short the chain.
    let width = (span + 2.0 * SPACING).max(Width::Page.points());
    // The longest arc hangs three quarters of its control points' depth.
    let height = LINE + RADIUS + 0.75 * depth(m - 1) + 30.0;
    let mut scene = Scene::new(width, height, "Boyan's chain: transitions with positive probability");
    let title = format!("**Boyan’s chain with** *m* **= {m} states**");
    scene.text(0.5 * width, 14.0, &title, TITLE_SIZE, Anchor::Middle, INK);
    let x = |s: usize| 0.5 * (width - span) + SPACING * s as f64;
    for (from, to) in chain_edges(m) {
        let restart = from == m - 1;
        let color = if restart { PALETTE[1] } else { PALETTE[0] };
        let stroke = Stroke::solid(color.with_alpha(if restart { 0.75 } else { 1.0 }), 0.8);
        if restart && to == from {
            self_loop(&mut scene, x(from), &stroke, color);
        } else if restart {
            // Longer ways hang lower.
            let (start, end) = ((x(from) - 3.5, LINE + RADIUS), (x(to) + 3.0, LINE + RADIUS + 1.5));
            arc(&mut scene, start, end, depth(from - to), &stroke, color);
        } else if to == from + 1 {
            let (x0, x1) = (x(from) + RADIUS, x(to) - RADIUS - 0.5);
            scene.polyline(&[(x0, LINE), (x1 - 0.7 * HEAD, LINE)], stroke);
            scene.arrow_head(x1, LINE, 1.0, 0.0, HEAD, color);
        } else {
            let (start, end) = ((x(from) + 4.0, LINE - RADIUS + 0.5), (x(to) - 4.0, LINE - RADIUS));
            arc(&mut scene, start, end, -RISE, &stroke, color);
        }
    }
    for s in 0..m {
        scene.circle(x(s), LINE, RADIUS, Some(PAPER), Some(Stroke::solid(INK, 0.8)));
        let baseline = LINE + 0.36 * TITLE_SIZE;
        scene.text(x(s), baseline, &(s + 1).to_string(), TITLE_SIZE, Anchor::Middle, INK);
    }
    let note = "blue: one or two states ahead; orange: from the last state to every state";
    scene.text(0.5 * width, height - 8.0, note, TEXT_SIZE, Anchor::Middle, MUTED);
    scene
}

/// How low the way back over `steps` states hangs.
fn depth(steps: usize) -> f64 {
    18.0 + 12.0 * steps as f64
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
    let control = (x1 - lean, y1 + depth);
    let curve = Segment::Cubic([x0 + lean, y0 + depth, control.0, control.1, x1, y1]);
    scene.path(vec![Segment::Move(x0, y0), curve], None, Some(stroke.clone()));
    scene.arrow_head(x1, y1, x1 - control.0, y1 - control.1, HEAD, color);
}

fn self_loop(scene: &mut Scene, x: f64, stroke: &Stroke, color: Color) {
    let (x0, x1, end) = (x + 4.0, x + RADIUS, LINE - 2.0);
    let (far, high) = (x + 32.0, LINE - 15.0);
    let start = Segment::Move(x0, LINE - RADIUS + 0.5);
    let curve = Segment::Cubic([x0 + 6.0, LINE - 34.0, far, high, x1, end]);
    scene.path(vec![start, curve], None, Some(stroke.clone()));
    scene.arrow_head(x1, end, x1 - far, end - high, HEAD, color);
}

fn judge(_: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    // States are numbered from 0 in all data files.
    out.csv("fig4", chain_edges(9).into_iter().map(|(from, to)| Edge { from, to }))?;
    out.figure("fig4", &figure(9))?;
    let says = "The transitions of Boyan's chain.";
    Ok(vec![Claim::illustration("fig4", "Figure 4", says, "drawn from the support of the task generator")])
}
