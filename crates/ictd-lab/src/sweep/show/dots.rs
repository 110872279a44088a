//! Numbers with intervals, one below the other: for keys whose values are words.

use super::estimate::{Estimate, short};
use crate::figure::style::{AXIS_WIDTH, GRID, GRID_WIDTH, INK, LINE_WIDTH, MUTED, PALETTE, TEXT_SIZE};
use crate::figure::{Anchor, Area, Label, Panel, Scene, Stroke};

const ROW: f64 = 15.0;
const PAD: f64 = 4.0;

/// A dot and a line from end to end of its interval for each name.
#[derive(Debug)]
pub struct Dots {
    /// What the names are.
    pub key: String,
    /// What the numbers are.
    pub label: String,
    /// Names and numbers; those that are none are not drawn.
    pub rows: Vec<(String, Estimate)>,
    /// What the scale covers.
    pub range: (f64, f64),
}

fn width(text: &str) -> f64 {
    Label::parse(text).width(TEXT_SIZE)
}

impl Panel for Dots {
    fn title(&self) -> &str {
        ""
    }

    fn sides(&self) -> (f64, f64) {
        let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max) + 2.0 * PAD;
        let names = self.rows.iter().map(|(name, _)| width(name)).chain([width(&self.key)]);
        (widest(&mut names.into_iter()), widest(&mut self.rows.iter().map(|(_, e)| width(&e.to_string()))))
    }

    fn ends(&self, _: f64, _: (f64, f64)) -> (f64, f64) {
        (1.6 * TEXT_SIZE, 3.2 * TEXT_SIZE)
    }

    fn plot_height(&self, _: f64) -> f64 {
        ROW * self.rows.len() as f64
    }

    fn draw(&self, scene: &mut Scene, area: Area, plot: Area) {
        let (low, high) = self.range;
        let at = |value: f64| plot.left + plot.width * (value - low) / (high - low);
        let row = plot.height / self.rows.len().max(1) as f64;
        for (k, tick) in [low, 0.5 * (low + high), high].into_iter().enumerate() {
            let x = at(tick);
            scene.polyline(&[(x, plot.top), (x, plot.bottom())], Stroke::solid(GRID, GRID_WIDTH));
            let anchor = [Anchor::Start, Anchor::Middle, Anchor::End][k];
            scene.text(x, plot.bottom() + 1.2 * TEXT_SIZE, &short(tick), TEXT_SIZE, anchor, INK);
        }
        scene.polyline(
            &[(plot.left, plot.bottom()), (plot.right(), plot.bottom())],
            Stroke::solid(INK, AXIS_WIDTH),
        );
        let (center, _) = plot.center();
        scene.text(center, plot.bottom() + 2.5 * TEXT_SIZE, &self.label, TEXT_SIZE, Anchor::Middle, INK);
        scene.text(plot.left - PAD, plot.top - 0.6 * TEXT_SIZE, &self.key, TEXT_SIZE, Anchor::End, MUTED);
        for (k, (name, estimate)) in self.rows.iter().enumerate() {
            let y = plot.top + (k as f64 + 0.5) * row;
            let baseline = y + 0.36 * TEXT_SIZE;
            scene.text(plot.left - PAD, baseline, name, TEXT_SIZE, Anchor::End, INK);
            scene.text(area.right(), baseline, &estimate.to_string(), TEXT_SIZE, Anchor::End, INK);
            if estimate.value.is_nan() {
                continue;
            }
            if let Some((low, high)) = estimate.interval {
                scene.polyline(&[(at(low), y), (at(high), y)], Stroke::solid(PALETTE[0], LINE_WIDTH));
            }
            scene.circle(at(estimate.value), y, 2.2, Some(PALETTE[0]), None);
        }
    }
}
