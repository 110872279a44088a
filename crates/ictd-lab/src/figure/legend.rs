//! Legends: what a line or a colour stands for.

use super::scene::{Anchor, Color, Scene, Stroke};
use super::style::{INK, LINE_WIDTH, TEXT_SIZE};
use super::text::text_width;

const MARK_WIDTH: f64 = 11.0;
const MARK_GAP: f64 = 3.0;
const KEY_GAP: f64 = 7.0;
const ROW_HEIGHT: f64 = 1.5 * TEXT_SIZE;

/// How a key of a legend looks.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mark {
    /// A line, with a dot where its points have one.
    Line {
        dash: Vec<f64>,
        dots: bool,
    },
    Square,
}

/// A name and the mark it explains.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    pub name: String,
    pub color: Color,
    pub mark: Mark,
}

/// Keys in rows from left to right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Legend {
    pub(super) keys: Vec<Key>,
}

impl Legend {
    /// Squares of colour with their names.
    pub fn squares<'a>(keys: impl IntoIterator<Item = (&'a str, Color)>) -> Self {
        let key = |(name, color): (&str, _)| Key { name: name.into(), color, mark: Mark::Square };
        Self { keys: keys.into_iter().map(key).collect() }
    }

    /// The height at a width.
    pub fn height(&self, width: f64) -> f64 {
        ROW_HEIGHT * self.rows(width).len() as f64
    }

    /// Draws the rows with their upper left corner at (left, top).
    pub fn draw(&self, scene: &mut Scene, left: f64, top: f64, width: f64) {
        for (k, row) in self.rows(width).into_iter().enumerate() {
            let y = top + (k as f64 + 0.5) * ROW_HEIGHT;
            let mut x = left;
            for key in row {
                key.draw(scene, x, y);
                x += key.width();
            }
        }
    }

    /// The keys in rows that fit into a width, at least one in each.
    fn rows(&self, width: f64) -> Vec<&[Key]> {
        let mut rows = Vec::new();
        let mut rest = self.keys.as_slice();
        while !rest.is_empty() {
            let mut used = -KEY_GAP;
            let fits = rest.iter().take_while(|key| {
                used += key.width();
                used <= width
            });
            let (row, others) = rest.split_at(fits.count().max(1));
            rows.push(row);
            rest = others;
        }
        rows
    }
}

impl Key {
    fn width(&self) -> f64 {
        MARK_WIDTH + MARK_GAP + text_width(&self.name) + KEY_GAP
    }

    fn draw(&self, scene: &mut Scene, x: f64, y: f64) {
        match &self.mark {
            Mark::Line { dash, dots } => {
                let stroke = Stroke { color: self.color, width: LINE_WIDTH, dash: dash.clone() };
                scene.polyline(&[(x, y), (x + MARK_WIDTH, y)], stroke);
                if *dots {
                    scene.mark(x + 0.5 * MARK_WIDTH, y, self.color, !dash.is_empty());
                }
            }
            Mark::Square => {
                let side = TEXT_SIZE + 1.0;
                scene.rect([x + MARK_WIDTH - side, y - 0.5 * side, side, side], Some(self.color), None);
            }
        }
        let baseline = y + 0.36 * TEXT_SIZE;
        scene.text(x + MARK_WIDTH + MARK_GAP, baseline, &self.name, TEXT_SIZE, Anchor::Start, INK);
    }
}
