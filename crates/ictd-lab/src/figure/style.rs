//! Sizes and colours shared by all figures. Sizes are those in print.

use super::scene::Color;

/// What figures are drawn on.
pub const PAPER: Color = Color::themed([255, 255, 255], [23, 24, 27]);
/// Text and axes.
pub const INK: Color = Color::themed([34, 34, 34], [236, 236, 240]);
/// Notes.
pub const MUTED: Color = Color::themed([90, 90, 90], [176, 176, 184]);
/// Grid lines.
pub const GRID: Color = Color::themed([222, 222, 222], [62, 64, 70]);
/// What is neither of the things that have a colour.
pub const GRAY: Color = Color::themed([200, 200, 200], [110, 112, 120]);
/// Size of all labels, points: the smallest that journals take.
pub const TEXT_SIZE: f64 = 7.0;
/// Size of sub- and superscripts of labels, points.
pub const SCRIPT_SIZE: f64 = 6.0;
/// Size of titles, points.
pub const TITLE_SIZE: f64 = 8.0;
/// Width of data lines, points.
pub const LINE_WIDTH: f64 = 1.1;
/// Width of axes and outlines, points.
pub const AXIS_WIDTH: f64 = 0.6;
/// Width of grid lines, points.
pub const GRID_WIDTH: f64 = 0.4;
/// Dashes of lines that are compared with.
pub const DASH: [f64; 2] = [3.0, 2.0];

/// Colours for series: the palette of Okabe and Ito, distinguishable with all common forms of colour
/// blindness, darkest first; the blues are lighter on dark pages.
pub const PALETTE: [Color; 6] = [
    Color::themed([0, 114, 178], [60, 150, 220]),
    Color::themed([213, 94, 0], [232, 116, 28]),
    Color::themed([0, 158, 115], [24, 178, 134]),
    Color::themed([204, 121, 167], [214, 134, 178]),
    Color::rgb(230, 159, 0),
    Color::themed([86, 180, 233], [150, 212, 250]),
];
