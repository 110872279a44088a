//! Maps: rows and columns of coloured cells, and the colour bars that explain them.

use super::panel::{Area, Panel, Texts};
use super::scene::{Anchor, Color, LEADING, Scene, Stroke};
use super::style::{AXIS_WIDTH, GRID, GRID_WIDTH, INK, MUTED, PAPER, TEXT_SIZE};
use super::text::text_width;

/// Numbers in cells, points: they repeat what colours show, so they may be smaller than labels.
const NUMBER_SIZE: f64 = 6.0;
/// Room between names and cells.
const PAD: f64 = 3.0;
/// Room between names on an axis.
const APART: f64 = 2.0;
/// Cells that are narrower have no border, which would be all that is seen of them.
const BORDERED: f64 = 4.5;
/// Room between groups of rows.
const GROUP_GAP: f64 = 4.0;

/// What a cell shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// Words on paper, at the left.
    Words(String),
    /// A colour with a text on it, over this row and as many as follow.
    Tile {
        /// The colour.
        color: Color,
        /// The text; may be empty.
        text: String,
        /// How many rows it covers.
        rows: usize,
    },
    /// The whole cell divided by shares that sum to 1.
    Shares(Vec<(f64, Color)>),
    /// A bar of shares with a text beside it and an interval below.
    Bar {
        /// Shares that sum to 1.
        shares: Vec<(f64, Color)>,
        /// The interval, as shares.
        interval: (f64, f64),
        /// The text.
        text: String,
    },
}

/// A map of cells. With a name for the horizontal axis the names of columns stand below, otherwise above.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// Its title; see [`Label`](super::Label) for the markup.
    pub title: String,
    /// What columns are.
    pub x: String,
    /// What rows are.
    pub y: String,
    /// Names of the columns, left to right; a line break divides a name.
    pub columns: Vec<String>,
    /// Names of the rows, top to bottom.
    pub rows: Vec<String>,
    /// The cells, row by row.
    pub cells: Vec<Vec<Cell>>,
    /// Widths of the columns as shares of the plot; all the same when empty.
    pub widths: Vec<f64>,
    /// Height of a row, points; square cells when 0.
    pub row_height: f64,
    /// Rows that start a group.
    pub groups: Vec<usize>,
    /// A ring around the middle of the cell in this row and column.
    pub ring: Option<(usize, usize)>,
    /// What colours mean.
    pub bar: Option<ColorBar>,
    /// A note below.
    pub note: String,
}

/// A colour for every share, with ticks.
#[derive(Clone, Debug)]
pub struct ColorBar {
    /// The colour of a share in [0, 1].
    pub color: fn(f64) -> Color,
    /// What is coloured.
    pub label: String,
    /// Shares and what they stand for.
    pub ticks: Vec<(f64, String)>,
}

/// From blue for -1 over paper for 0 to red for 1: the ends of ColorBrewer's RdBu, told apart by all common forms of
/// colour blindness.
pub fn diverging(value: f64) -> Color {
    let end = if value < 0.0 {
        Color::themed([5, 80, 160], [90, 165, 245])
    } else {
        Color::themed([178, 24, 43], [245, 110, 110])
    };
    PAPER.toward(end, value.abs())
}

/// Dark blue for 0 to light yellow for 1: lightness alone carries the number.
pub fn sequential(share: f64) -> Color {
    Color::rgb(12, 44, 95).toward(Color::rgb(253, 231, 150), share)
}

impl Cells {
    /// A square matrix with entries in [-1, 1] and names for its rows and columns; entries that round to zero have no
    /// number, so that structure shows.
    pub fn matrix(title: &str, names: &[String], entries: &[Vec<f64>]) -> Self {
        let cell = |&value: &f64| {
            let text = format!("{value:.2}").replace('-', "−").replace(".00", "").replacen("0.", ".", 1);
            let text = if value.abs() < 0.005 { String::new() } else { text };
            Cell::Tile { color: diverging(value), text, rows: 1 }
        };
        Self {
            title: title.into(),
            columns: names.to_vec(),
            rows: names.to_vec(),
            cells: entries.iter().map(|row| row.iter().map(cell).collect()).collect(),
            bar: Some(ColorBar {
                color: |share| diverging(2.0 * share - 1.0),
                label: String::new(),
                ticks: [(0.0, "−1"), (0.5, "0"), (1.0, "1")].map(|(at, l)| (at, l.into())).to_vec(),
            }),
            ..Self::default()
        }
    }

    fn texts(&self) -> Texts<'_> {
        Texts::of_panel(&self.title, &self.note)
    }

    /// Height of the names of columns and of what they are.
    fn names_height(&self) -> f64 {
        let lines = self.columns.iter().map(|name| name.lines().count()).max().unwrap_or(0);
        LEADING * TEXT_SIZE * lines as f64 + PAD
    }

    /// Room for the names of rows.
    fn rows_width(&self) -> f64 {
        self.rows.iter().map(|name| text_width(name)).fold(0.0, f64::max) + PAD
    }

    /// Of how many columns, in order, one is named: on an axis as few are left out as keep names apart, and evenly.
    fn every(&self, width: f64, shares: &[f64]) -> usize {
        if self.x.is_empty() {
            return 1;
        }
        let ends = shares.iter().scan(0.0, |left, share| {
            *left += share * width;
            Some(*left)
        });
        let named = ends.zip(shares).zip(&self.columns);
        let names: Vec<[f64; 2]> = named
            .map(|((right, share), name)| [right - 0.5 * share * width, 0.5 * text_width(name)])
            .collect();
        let are_apart = |&every: &usize| {
            let shown: Vec<&[f64; 2]> = names.iter().step_by(every).filter(|name| name[1] > 0.0).collect();
            shown.windows(2).all(|pair| pair[0][0] + pair[0][1] + APART < pair[1][0] - pair[1][1])
        };
        (1..names.len()).find(are_apart).unwrap_or(names.len().max(1))
    }

    fn row_height(&self, width: f64) -> f64 {
        if self.row_height > 0.0 { self.row_height } else { (width / self.columns.len() as f64).min(16.5) }
    }

    /// The share of its height that the plot has; what is less by rounding is all.
    fn share(&self, plot: Area) -> f64 {
        Some(plot.height / self.plot_height(plot.width)).filter(|&share| share < 1.0 - 1e-9).unwrap_or(1.0)
    }

    /// Where a row starts, below the upper edge.
    fn row_top(&self, row: usize, height: f64) -> f64 {
        row as f64 * height + GROUP_GAP * self.groups.iter().filter(|&&g| g > 0 && g <= row).count() as f64
    }

    /// The area of the cells: square ones need not fill the plot.
    fn area(&self, plot: Area) -> Area {
        let width = self.row_height(plot.width) * self.columns.len() as f64;
        let width = if self.row_height > 0.0 { plot.width } else { width };
        let height = self.share(plot) * self.plot_height(plot.width);
        Area { left: plot.left + 0.5 * (plot.width - width), width, height, ..plot }
    }
}

impl Panel for Cells {
    fn title(&self) -> &str {
        &self.title
    }

    fn sides(&self) -> (f64, f64) {
        let name = if self.y.is_empty() { 0.0 } else { LEADING * TEXT_SIZE + PAD };
        (self.rows_width() + name, self.bar.as_ref().map_or(0.0, ColorBar::width))
    }

    fn ends(&self, width: f64, sides: (f64, f64)) -> (f64, f64) {
        let (title, note) = self.texts().heights(width, sides);
        let names = self.names_height();
        if self.x.is_empty() {
            (title + names, note + PAD)
        } else {
            (title + PAD, note + names + LEADING * TEXT_SIZE + PAD)
        }
    }

    fn plot_height(&self, width: f64) -> f64 {
        self.row_top(self.cells.len(), self.row_height(width))
    }

    fn draw(&self, scene: &mut Scene, area: Area, plot: Area) {
        let row_height = self.share(plot) * self.row_height(plot.width);
        let cells = self.area(plot);
        let even = vec![1.0 / self.columns.len() as f64; self.columns.len()];
        let shares = if self.widths.is_empty() { &even } else { &self.widths };
        let mut left = cells.left;
        let every = self.every(cells.width, shares);
        let axis = !self.x.is_empty();
        for (j, (name, share)) in self.columns.iter().zip(shares).enumerate() {
            let width = share * cells.width;
            for (i, row) in self.cells.iter().enumerate() {
                let top = cells.top + self.row_top(i, row_height);
                row[j].draw(scene, Area { left, top, width, height: row_height });
                if self.ring == Some((i, j)) {
                    let ring = Stroke::solid(Color::rgb(255, 255, 255), 1.4);
                    scene.circle(left + 0.5 * width, top + 0.5 * row_height, 3.5, None, Some(ring));
                }
            }
            // Words start at the left edge of their column, so does its name.
            let words = self.cells.iter().any(|row| matches!(row[j], Cell::Words(_)));
            let (x, anchor) =
                if words { (left, Anchor::Start) } else { (left + 0.5 * width, Anchor::Middle) };
            let lines = name.lines().count() as f64;
            let top = if axis { cells.bottom() + PAD } else { cells.top - PAD - lines * LEADING * TEXT_SIZE };
            let shown = j % every == 0;
            for (k, line) in name.lines().enumerate().filter(|_| shown) {
                let ink = if words || k > 0 { MUTED } else { INK };
                let baseline = top + (k as f64 * LEADING + 0.9) * TEXT_SIZE;
                scene.text(x, baseline, line, TEXT_SIZE, anchor, ink);
            }
            left += width;
        }
        for (i, name) in self.rows.iter().enumerate() {
            let y = cells.top + self.row_top(i, row_height) + 0.5 * row_height + 0.36 * TEXT_SIZE;
            scene.text(cells.left - PAD, y, name, TEXT_SIZE, Anchor::End, INK);
        }
        let (center, middle) = cells.center();
        let below = cells.bottom() + self.names_height() + TEXT_SIZE;
        scene.text(center, below, &self.x, TEXT_SIZE, Anchor::Middle, INK);
        if !self.y.is_empty() {
            // Beside the names of rows, wherever cells that do not fill the plot stand.
            let left = cells.left - self.rows_width() - PAD - (LEADING - 1.0) * TEXT_SIZE;
            scene.upward_text(left, middle, &self.y, TEXT_SIZE, INK);
        }
        if self.row_height == 0.0 {
            let outline = Some(Stroke::solid(INK, AXIS_WIDTH));
            scene.rect([cells.left, cells.top, cells.width, cells.height], None, outline);
        }
        if let Some(bar) = &self.bar {
            bar.draw(scene, Area { left: cells.right(), ..cells });
        }
        let sides = (plot.left - area.left, area.right() - plot.right());
        self.texts().draw(scene, area, plot, self.ends(area.width, sides));
    }
}

impl Cell {
    fn draw(&self, scene: &mut Scene, Area { left, top, width, height }: Area) {
        let border = Some(Stroke::solid(GRID, GRID_WIDTH)).filter(|_| width >= BORDERED);
        let baseline = |height: f64, size: f64| top + 0.5 * height + 0.36 * size;
        match self {
            Self::Empty => {}
            Self::Words(words) => {
                scene.text(left, baseline(height, TEXT_SIZE), words, TEXT_SIZE, Anchor::Start, INK);
            }
            Self::Tile { color, text, rows } => {
                let height = height * *rows as f64;
                scene.rect([left, top, width, height], Some(*color), border);
                let size = if width < 24.0 { NUMBER_SIZE } else { TEXT_SIZE };
                if !text.is_empty() {
                    let x = left + 0.5 * width;
                    scene.text(x, baseline(height, size), text, size, Anchor::Middle, color.text_on());
                }
            }
            Self::Shares(shares) => {
                stack(scene, shares, [left, top, width, height]);
                scene.rect([left, top, width, height], None, border);
            }
            Self::Bar { shares, interval, text } => {
                // The widest text is 1000/1000.
                let bar = width - 6.5 * TEXT_SIZE;
                stack(scene, shares, [left, top + 0.24 * height, bar, 0.52 * height]);
                let below = top + 0.88 * height;
                let ends = [(left + bar * interval.0, below), (left + bar * interval.1, below)];
                scene.polyline(&ends, Stroke::solid(INK, 0.8));
                let y = baseline(height, TEXT_SIZE);
                scene.text(left + bar + PAD, y, text, TEXT_SIZE, Anchor::Start, INK);
            }
        }
    }
}

/// A bar divided by shares.
fn stack(scene: &mut Scene, shares: &[(f64, Color)], [mut left, top, width, height]: [f64; 4]) {
    for &(share, color) in shares.iter().filter(|s| s.0 > 0.0) {
        scene.rect([left, top, share * width, height], Some(color), None);
        left += share * width;
    }
}

impl ColorBar {
    const THICK: f64 = 8.0;
    const STEPS: usize = 50;

    fn width(&self) -> f64 {
        let names = self.ticks.iter().map(|t| &t.1).chain([&self.label]);
        3.0 * PAD + Self::THICK + names.map(|n| text_width(n)).fold(0.0, f64::max)
    }

    /// Draws the bar to the right of an area's left edge, as high as the area.
    fn draw(&self, scene: &mut Scene, area: Area) {
        let left = area.left + 2.0 * PAD;
        let part = area.height / Self::STEPS as f64;
        for k in 0..Self::STEPS {
            let share = (k as f64 + 0.5) / Self::STEPS as f64;
            let top = area.bottom() - (k as f64 + 1.0) * part;
            // Each covers a little of the one below, which closes the seam between them.
            let overlap = if k > 0 { 0.3 } else { 0.0 };
            scene.rect([left, top, Self::THICK, part + overlap], Some((self.color)(share)), None);
        }
        let outline = Some(Stroke::solid(INK, AXIS_WIDTH));
        scene.rect([left, area.top, Self::THICK, area.height], None, outline);
        for (share, label) in &self.ticks {
            let y = area.bottom() - share * area.height + 0.36 * TEXT_SIZE;
            scene.text(left + Self::THICK + PAD, y, label, TEXT_SIZE, Anchor::Start, INK);
        }
        scene.text(left, area.top - PAD, &self.label, TEXT_SIZE, Anchor::Start, INK);
    }
}
