//! What panels of a figure have in common: an area, margins around the plot, a title above it and a note below.

use std::borrow::Cow;

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
/// A [`Grid`](super::Grid) asks panels for their margins, gives all panels of one width the same on the left and the right and
/// panels beside one another the same above and below, so that their plots line up, and lets them draw.
pub trait Panel {
    /// Its title.
    fn title(&self) -> &str;

    /// The room it needs to the left and to the right of its plot.
    fn sides(&self) -> (f64, f64);

    /// The room it needs above and below its plot when it is `width` wide and has this room at the sides.
    fn ends(&self, width: f64, sides: (f64, f64)) -> (f64, f64);

    /// The height of its plot when that is `width` wide.
    fn plot_height(&self, width: f64) -> f64;

    /// Draws itself; the plot is `plot`, everything else stands around it inside `area`.
    fn draw(&self, scene: &mut Scene, area: Area, plot: Area);
}

/// A title above a plot and a note below it, both centred at the plot.
pub(super) struct Texts<'a> {
    pub title: &'a str,
    pub note: Cow<'a, str>,
    pub title_size: f64,
}

impl<'a> Texts<'a> {
    /// Those of a panel.
    pub fn of_panel(title: &'a str, note: impl Into<Cow<'a, str>>) -> Self {
        Self { title, note: note.into(), title_size: TITLE_SIZE }
    }

    /// The lines of the title and of the note that fit beside a centre with this room on either side.
    fn lines(&self, room: f64) -> [Vec<Label>; 2] {
        let title = if self.title.is_empty() { String::new() } else { format!("**{}**", self.title) };
        let wrap = |markup: &str, size| Label::parse(markup).wrap(size, 2.0 * room);
        [wrap(&title, self.title_size), wrap(&self.note, TEXT_SIZE)]
    }

    /// The heights of title and note in a panel, with air between them and the plot.
    pub fn heights(&self, width: f64, (left, right): (f64, f64)) -> (f64, f64) {
        let [title, note] = self.lines(0.5 * (width - left - right) + left.min(right));
        let height = |lines: Vec<Label>, size: f64| {
            LEADING * size * lines.len() as f64 + if lines.is_empty() { 0.0 } else { 0.4 * size }
        };
        (height(title, self.title_size), height(note, TEXT_SIZE))
    }

    /// Draws the title and the note of a panel that needs the room `ends` above and below its plot.
    pub fn draw(&self, scene: &mut Scene, area: Area, plot: Area, ends: (f64, f64)) {
        let (center, _) = plot.center();
        let [title, note] = self.lines((center - area.left).min(area.right() - center));
        scene.lines(center, plot.top - ends.0, title, self.title_size, INK);
        let note_top = plot.bottom() + ends.1 - LEADING * TEXT_SIZE * note.len() as f64;
        scene.lines(center, note_top, note, TEXT_SIZE, MUTED);
    }
}
