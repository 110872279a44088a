//! A figure: panels in rows under a title, with one legend and one note, as wide as it is printed.

use super::legend::Legend;
use super::panel::{Area, Margins, Panel, Texts};
use super::scene::Scene;

/// Widths that figures are printed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One of two columns of a page: 3.25 inches.
    Column,
    /// The whole page: 6.75 inches.
    Page,
}

impl Width {
    /// The width in points.
    pub const fn points(self) -> f64 {
        match self {
            Self::Column => 234.0,
            Self::Page => 486.0,
        }
    }
}

/// Largest height of a figure, points: what a page of 11 inches has between its margins.
const PAGE_HEIGHT: f64 = 648.0;
/// Room at the edges of a figure and between panels, points.
const EDGE: f64 = 5.0;
const GAP: f64 = 9.0;
/// Size of the title of a whole figure, points.
const HEADING_SIZE: f64 = 9.5;

/// Panels in rows, which divide the width evenly.
pub struct Grid<'a> {
    /// The title of the figure; empty where that of its only panel says enough.
    pub title: String,
    /// How wide it is.
    pub width: Width,
    /// What all panels share.
    pub legend: Legend,
    /// The panels, row by row.
    pub rows: Vec<Vec<Box<dyn Panel + 'a>>>,
    /// A note below all panels.
    pub note: String,
}

impl<'a> Grid<'a> {
    /// Panels in rows of `columns`, as wide as the page.
    pub fn new<P: Panel + 'a>(
        title: &str,
        columns: usize,
        panels: impl IntoIterator<Item = P>,
        note: String,
    ) -> Self {
        let mut rows: Vec<Vec<Box<dyn Panel + 'a>>> = Vec::new();
        for (k, panel) in panels.into_iter().enumerate() {
            match rows.last_mut().filter(|_| k % columns > 0) {
                Some(row) => row.push(Box::new(panel)),
                None => rows.push(vec![Box::new(panel)]),
            }
        }
        Self { title: title.into(), width: Width::Page, legend: Legend::default(), rows, note }
    }

    /// The drawing.
    pub fn scene(&self) -> Scene {
        let full = self.width.points();
        let inner = full - 2.0 * EDGE;
        let texts = Texts { title: &self.title, note: (&self.note).into(), title_size: HEADING_SIZE };
        let (heading, note) = texts.heights(inner, (0.0, 0.0));
        let legend = self.legend.height(inner);
        let mut top = EDGE + heading + legend + if legend > 0.0 { 0.5 * GAP } else { 0.0 };
        let sizes = self.rows.iter().map(|row| {
            let width = (inner - GAP * (row.len() - 1) as f64) / row.len() as f64;
            let margins = self.margins(row, width);
            let plot = width - margins.left - margins.right;
            (width, margins, row.iter().map(|p| p.plot_height(plot)).fold(0.0, f64::max))
        });
        let sizes: Vec<(f64, Margins, f64)> = sizes.collect();
        // Where a page is too low for all rows, plots give way.
        let plots: f64 = sizes.iter().map(|s| s.2).sum();
        let others: f64 = sizes.iter().map(|(_, m, _)| m.top + m.bottom + GAP).sum();
        let share = ((PAGE_HEIGHT - (top + others + note - GAP + EDGE)) / plots).min(1.0);
        let mut placed = Vec::new();
        for (row, (width, margins, height)) in self.rows.iter().zip(sizes) {
            let height = share * height + margins.top + margins.bottom;
            for (column, panel) in row.iter().enumerate() {
                let area = Area { left: EDGE + column as f64 * (width + GAP), top, width, height };
                placed.push((panel, area, area.within(margins)));
            }
            top += height + GAP;
        }
        top += note - GAP + EDGE;
        let first = self.rows.first().and_then(|row| row.first()).map_or("", |panel| panel.title());
        let mut scene = Scene::new(full, top, if self.title.is_empty() { first } else { &self.title });
        for (panel, area, plot) in placed {
            panel.draw(&mut scene, area, plot);
        }
        self.legend.draw(&mut scene, EDGE, EDGE + heading, inner);
        let all = Area { left: EDGE, top: EDGE, width: inner, height: top - 2.0 * EDGE };
        texts.draw(&mut scene, all, all, (0.0, 0.0));
        scene
    }

    /// The margins of a row: left and right the largest of all rows that have as many panels, above and below the largest
    /// of the row, so that plots line up and have one size.
    fn margins(&self, row: &[Box<dyn Panel + 'a>], width: f64) -> Margins {
        let most = |sides: (f64, f64), more: (f64, f64)| (sides.0.max(more.0), sides.1.max(more.1));
        let alike = self.rows.iter().filter(|other| other.len() == row.len()).flatten();
        let (left, right) = alike.map(|panel| panel.sides()).fold((0.0, 0.0), most);
        let ends = row.iter().map(|panel| panel.ends(width, (left, right)));
        let (top, bottom) = ends.fold((0.0, 0.0), most);
        Margins { left, right, top, bottom }
    }
}
