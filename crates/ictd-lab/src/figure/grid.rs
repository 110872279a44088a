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

/// Room at the edges of a figure and between panels, points.
const EDGE: f64 = 5.0;
const GAP: f64 = 9.0;

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
        let texts = Texts { title: &self.title, note: &self.note };
        let legend = self.legend.height(inner);
        let mut top = EDGE + texts.title_height(inner);
        let legend_top = top;
        top += legend + if legend > 0.0 { 0.5 * GAP } else { 0.0 };
        let mut placed = Vec::new();
        for (k, row) in self.rows.iter().enumerate() {
            let width = (inner - GAP * (row.len() - 1) as f64) / row.len() as f64;
            let margins = self.margins(k, width);
            let plot = width - margins.left - margins.right;
            let height = row.iter().map(|p| p.plot_height(plot)).fold(0.0, f64::max);
            let height = height + margins.top + margins.bottom;
            for (column, panel) in row.iter().enumerate() {
                let area = Area { left: EDGE + column as f64 * (width + GAP), top, width, height };
                placed.push((panel, area, area.within(margins)));
            }
            top += height + GAP;
        }
        top += texts.note_height(inner) - GAP + EDGE;
        let first = self.rows.first().and_then(|row| row.first()).map_or("", |panel| panel.title());
        let mut scene = Scene::new(full, top, if self.title.is_empty() { first } else { &self.title });
        for (panel, area, plot) in placed {
            panel.draw(&mut scene, area, plot);
        }
        self.legend.draw(&mut scene, EDGE, legend_top, inner);
        texts.draw(&mut scene, Area { left: EDGE, top: EDGE, width: inner, height: top - 2.0 * EDGE });
        scene
    }

    /// The margins of a row: above and below those of the whole row, left and right those of all rows that have as many
    /// panels, so that plots line up and have one size.
    fn margins(&self, row: usize, width: f64) -> Margins {
        let most = |of: fn(&Margins) -> f64, rows: &mut dyn Iterator<Item = &Vec<Box<dyn Panel + 'a>>>| {
            rows.flatten().map(|panel| of(&panel.margins(width))).fold(0.0, f64::max)
        };
        let own = &self.rows[row];
        let alike = || self.rows.iter().filter(|r| r.len() == own.len());
        Margins {
            left: most(|m| m.left, &mut alike()),
            right: most(|m| m.right, &mut alike()),
            top: most(|m| m.top, &mut std::iter::once(own)),
            bottom: most(|m| m.bottom, &mut std::iter::once(own)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A panel that remembers where it was drawn.
    struct Probe<'a> {
        margins: Margins,
        height: f64,
        seen: &'a RefCell<Vec<(Area, Area)>>,
    }

    impl Panel for Probe<'_> {
        fn title(&self) -> &str {
            "probe"
        }
        fn margins(&self, _: f64) -> Margins {
            self.margins
        }
        fn plot_height(&self, _: f64) -> f64 {
            self.height
        }
        fn draw(&self, _: &mut Scene, area: Area, plot: Area) {
            self.seen.borrow_mut().push((area, plot));
        }
    }

    #[test]
    fn plots_line_up_and_nothing_overlaps() {
        let seen = RefCell::new(Vec::new());
        let panel = |(left, top, height)| {
            let margins = Margins { left, right: 3.0, top, bottom: 8.0 };
            Probe { margins, height, seen: &seen }
        };
        let panels = [(10.0, 5.0, 40.0), (20.0, 12.0, 60.0), (30.0, 5.0, 40.0), (5.0, 5.0, 40.0)];
        let scene = Grid::new("title", 2, panels.map(panel), "note".into()).scene();
        let seen = seen.borrow();
        let plots: Vec<Area> = seen.iter().map(|s| s.1).collect();
        assert_eq!((plots[0].left, plots[1].left), (plots[2].left, plots[3].left));
        assert_eq!((plots[0].top, plots[0].height), (plots[1].top, plots[1].height));
        assert!(plots.iter().all(|plot| plot.width == plots[0].width));
        assert_eq!(plots[0].height, 60.0);
        assert!(seen[0].0.right() < seen[1].0.left && seen[0].0.bottom() < seen[2].0.top);
        assert!(seen[3].0.right() <= scene.width && seen[3].0.bottom() < scene.height);
        assert_eq!(scene.width, 486.0);
    }
}
