//! What panels of a figure have in common: an area, margins around the plot, a title above it and a note below.

use super::legend::text_height;
use super::scene::{LEADING, Scene};
use super::style::{INK, MUTED, TEXT_SIZE, TITLE_SIZE};
use super::text::Label;

/// A rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Area {
    /// Right edge.
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Where the middle is.
    pub fn center(&self) -> (f64, f64) {
        (self.left + 0.5 * self.width, self.top + 0.5 * self.height)
    }

    /// What margins leave of it.
    pub fn within(&self, margins: Margins) -> Self {
        Self {
            left: self.left + margins.left,
            top: self.top + margins.top,
            width: self.width - margins.left - margins.right,
            height: self.height - margins.top - margins.bottom,
        }
    }
}

/// Room around a plot for its names, ticks, legend and note.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Margins {
    /// On the left.
    pub left: f64,
    /// On the right.
    pub right: f64,
    /// Above.
    pub top: f64,
    /// Below.
    pub bottom: f64,
}

/// A panel of a figure: a plot with a title, axes or names around it, and a note.
///
/// A [`Grid`](super::Grid) asks panels for their margins, gives panels that stand below one another the same on the left and
/// the right and panels beside one another the same above and below, so that their plots line up, and lets
/// them draw.
pub trait Panel {
    /// Its title.
    fn title(&self) -> &str;

    /// The room it needs around its plot when it is `width` wide.
    fn margins(&self, width: f64) -> Margins;

    /// The height of its plot when that is `width` wide.
    fn plot_height(&self, width: f64) -> f64;

    /// Draws itself; the plot is `plot`, everything else stands around it inside `area`.
    fn draw(&self, scene: &mut Scene, area: Area, plot: Area);
}

/// A title above a plot and a note below it.
pub(super) struct Texts<'a> {
    pub title: &'a str,
    pub note: &'a str,
}

impl Texts<'_> {
    fn title_lines(&self, width: f64) -> Vec<Label> {
        let markup = if self.title.is_empty() { String::new() } else { format!("**{}**", self.title) };
        Label::parse(&markup).wrap(TITLE_SIZE, width)
    }

    fn note_lines(&self, width: f64) -> Vec<Label> {
        Label::parse(self.note).wrap(TEXT_SIZE, width)
    }

    /// The height of the title, with air below it.
    pub fn title_height(&self, width: f64) -> f64 {
        let lines = self.title_lines(width).len();
        text_height(lines, TITLE_SIZE) + if lines > 0 { 0.4 * TITLE_SIZE } else { 0.0 }
    }

    /// The height of the note, with air above it.
    pub fn note_height(&self, width: f64) -> f64 {
        let lines = self.note_lines(width).len();
        text_height(lines, TEXT_SIZE) + if lines > 0 { 0.4 * TEXT_SIZE } else { 0.0 }
    }

    /// Draws the title at the top of the area, the note at its bottom.
    pub fn draw(&self, scene: &mut Scene, area: Area) {
        let (center, _) = area.center();
        scene.lines(center, area.top, self.title_lines(area.width), TITLE_SIZE, INK);
        let lines = self.note_lines(area.width);
        let top = area.bottom() - LEADING * TEXT_SIZE * lines.len() as f64;
        scene.lines(center, top, lines, TEXT_SIZE, MUTED);
    }
}
