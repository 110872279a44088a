//! Sizes and colours shared by all figures.

use super::scene::Color;

/// Text and axes.
pub const INK: Color = Color::rgb(34, 34, 34);
/// Notes.
pub const MUTED: Color = Color::rgb(90, 90, 90);
/// Grid lines.
pub const GRID: Color = Color::rgb(222, 222, 222);
/// Size of labels, points.
pub const TEXT_SIZE: f64 = 10.0;
/// Size of titles, points.
pub const TITLE_SIZE: f64 = 12.0;
/// Width of data lines, points.
pub const LINE_WIDTH: f64 = 1.6;

/// Colours for series: the palette of Okabe and Ito, distinguishable with all common forms of colour
/// blindness, darkest first.
pub const PALETTE: [Color; 6] = [
    Color::rgb(0, 114, 178),
    Color::rgb(213, 94, 0),
    Color::rgb(0, 158, 115),
    Color::rgb(204, 121, 167),
    Color::rgb(230, 159, 0),
    Color::rgb(86, 180, 233),
];
