//! Matrices as coloured cells with their numbers.

use super::scene::{Anchor, Color, Scene, Stroke};
use super::style::{GRID, INK, TEXT_SIZE};

/// A matrix with entries in [-1, 1] and names for its rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Heatmap {
    /// Title; see [`Label`](super::Label) for the markup.
    pub title: String,
    /// Names of the rows, top to bottom.
    pub row_names: Vec<String>,
    /// Names of the columns, left to right.
    pub column_names: Vec<String>,
    /// Entries, row by row.
    pub entries: Vec<Vec<f64>>,
}

/// Blue for -1, white for 0, red for 1: the ends of ColorBrewer's RdBu, told apart by all common forms of
/// colour blindness.
fn color(value: f64) -> Color {
    let end = if value < 0.0 { [5.0, 80.0, 160.0] } else { [178.0, 24.0, 43.0] };
    let strength = value.abs().min(1.0);
    let [r, g, b] = end.map(|c: f64| (255.0 + (c - 255.0) * strength).round() as u8);
    Color::rgb(r, g, b)
}

impl Heatmap {
    /// Draws the matrix with its upper left corner of cells at (x, y) and square cells of a size.
    pub fn draw(&self, scene: &mut Scene, x: f64, y: f64, cell: f64) {
        let columns = self.column_names.len();
        let number_size = (0.3 * cell).min(TEXT_SIZE - 1.0);
        let width = cell * columns as f64;
        scene.text(x + 0.5 * width, y - 24.0, &self.title, TEXT_SIZE + 1.0, Anchor::Middle, INK);
        for (j, name) in self.column_names.iter().enumerate() {
            scene.text(x + (j as f64 + 0.5) * cell, y - 6.0, name, TEXT_SIZE - 1.0, Anchor::Middle, INK);
        }
        for (i, row) in self.entries.iter().enumerate() {
            let top = y + i as f64 * cell;
            scene.text(
                x - 6.0,
                top + 0.5 * cell + 3.0,
                &self.row_names[i],
                TEXT_SIZE - 1.0,
                Anchor::End,
                INK,
            );
            for (j, &value) in row.iter().enumerate() {
                let left = x + j as f64 * cell;
                scene.rect([left, top, cell, cell], Some(color(value)), Some(Stroke::solid(GRID, 0.5)));
                // Entries that round to zero are left blank, so that structure shows.
                if value.abs() >= 0.005 {
                    let ink = if value.abs() > 0.55 { Color::rgb(255, 255, 255) } else { INK };
                    let text = format!("{value:.2}").replace('-', "−");
                    scene.text(
                        left + 0.5 * cell,
                        top + 0.5 * cell + 3.0,
                        &text,
                        number_size,
                        Anchor::Middle,
                        ink,
                    );
                }
            }
        }
        let height = cell * self.entries.len() as f64;
        scene.rect([x, y, width, height], None, Some(Stroke::solid(INK, 0.8)));
    }

    /// Draws the colour scale from -1 to 1.
    pub fn draw_scale(scene: &mut Scene, x: f64, y: f64, height: f64) {
        let steps = 40;
        for k in 0..steps {
            let value = 1.0 - 2.0 * (k as f64 + 0.5) / steps as f64;
            let part = height / steps as f64;
            scene.rect([x, y + k as f64 * part, 10.0, part + 0.4], Some(color(value)), None);
        }
        scene.rect([x, y, 10.0, height], None, Some(Stroke::solid(INK, 0.8)));
        for (label, at) in [("1", 0.0), ("0", 0.5), ("−1", 1.0)] {
            scene.text(x + 15.0, y + at * height + 3.5, label, TEXT_SIZE - 1.0, Anchor::Start, INK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_centred_at_white() {
        assert_eq!(color(0.0), Color::rgb(255, 255, 255));
        assert_eq!(color(1.0), Color::rgb(178, 24, 43));
        assert_eq!(color(-7.0), Color::rgb(5, 80, 160));
    }
}
