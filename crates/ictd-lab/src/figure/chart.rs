//! Line charts with bands.

use std::borrow::Cow;

use super::axis::{Axis, Mapping};
use super::grid::{Grid, Width};
use super::legend::{Key, Legend, Mark};
use super::panel::{Area, Panel, Texts};
use super::scene::{Anchor, Color, LEADING, Scene, Stroke};
use super::style::{AXIS_WIDTH, DASH, GRID, GRID_WIDTH, INK, LINE_WIDTH, TEXT_SIZE};
use super::text::text_width;

/// Length of ticks, and room between axes and their labels.
const TICK: f64 = 3.0;
/// Room between the labels of ticks.
const LABEL_GAP: f64 = 2.0;
/// Height of a plot over its width, and the range that heights stay in.
const ASPECT: f64 = 0.62;
const HEIGHTS: (f64, f64) = (100.0, 130.0);
/// Markers on a denser line hide it.
const MAX_MARKED: usize = 40;

/// A line with markers and an optional band.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend; empty for none, after all series that have one.
    pub name: String,
    /// Its colour.
    pub color: Color,
    /// Dash pattern; empty for a solid line.
    pub dash: Vec<f64>,
    /// The points.
    pub points: Vec<(f64, f64)>,
    /// Lower and upper end of the band at every point; empty for none.
    pub band: Vec<(f64, f64)>,
}

impl Series {
    /// A solid line without a band.
    pub fn new(name: impl Into<String>, color: Color, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), color, dash: Vec::new(), points, band: Vec::new() }
    }

    /// Lines of the same records over `x`: name, colour and what is shown of a record.
    pub fn lines<R>(
        records: &[R],
        x: impl Fn(&R) -> f64,
        lines: &[(&str, Color, fn(&R) -> f64)],
    ) -> Vec<Self> {
        let line = |(name, color, y): &(&str, Color, fn(&R) -> f64)| {
            Self::new(*name, *color, records.iter().map(|r| (x(r), y(r))).collect())
        };
        lines.iter().map(line).collect()
    }

    /// The line dashed.
    pub fn dashed(self) -> Self {
        Self { dash: DASH.to_vec(), ..self }
    }

    /// The line with a band.
    pub fn with_band(self, band: Vec<(f64, f64)>) -> Self {
        Self { band, ..self }
    }

    fn is_marked(&self) -> bool {
        self.points.len() <= MAX_MARKED
    }
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its title. A chart without one continues the chart above it and is half as high.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The lines, back to front.
    pub series: Vec<Series>,
    /// A note below the axis: sample size and what the band is.
    pub note: String,
}

impl Chart {
    /// A chart without a note.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis, series: Vec<Series>) -> Self {
        Self { title: title.into(), x, y, series, note: String::new() }
    }

    /// The chart with a note.
    pub fn noted(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// The chart as a figure of its own.
    pub fn scene(self, width: Width) -> Scene {
        Grid { width, ..Grid::new("", 1, [self], String::new()) }.scene()
    }

    fn texts(&self) -> Texts<'_> {
        let missing = |s: &Series| (0..s.points.len()).filter(|&k| !self.shows_band(s, k)).count();
        let note = match self.series.iter().map(missing).sum::<usize>() {
            0 => Cow::from(&self.note),
            left_out => {
                let gap = if self.note.is_empty() { "" } else { "; " };
                format!("{}{gap}left out: {left_out} points that the axes cannot show", self.note).into()
            }
        };
        Texts::of_panel(&self.title, note)
    }

    /// Whether a point has a place on both axes: NaN, infinity and on logarithmic axes 0 have none.
    fn shows(&self, series: &Series, k: usize) -> bool {
        self.x.shows(series.points[k].0) && self.y.shows(series.points[k].1)
    }

    /// The same for a point with its band, if it has one.
    fn shows_band(&self, series: &Series, k: usize) -> bool {
        let band = series.band.get(k);
        self.shows(series, k) && band.is_none_or(|&(low, high)| self.y.shows(low) && self.y.shows(high))
    }

    fn mappings(&self) -> (Mapping, Mapping) {
        let points = || self.series.iter().flat_map(|s| s.points.iter());
        let lows_and_highs = self.series.iter().flat_map(|s| s.band.iter().flat_map(|b| [b.0, b.1]));
        let x = Mapping::new(&self.x, points().map(|p| p.0), 0.0);
        let y = Mapping::new(&self.y, points().map(|p| p.1).chain(lows_and_highs), 0.05);
        (x, y)
    }

    /// The series up to the first without a name; none when there is only one.
    fn legend(&self) -> Legend {
        let named = self.series.iter().take_while(|s| !s.name.is_empty());
        let key = |s: &Series| Key {
            name: s.name.clone(),
            color: s.color,
            mark: Mark::Line { dash: s.dash.clone(), dots: s.is_marked() },
        };
        Legend { keys: named.filter(|_| self.series.len() > 1).map(key).collect() }
    }

    fn draw_series(&self, scene: &mut Scene, at: impl Fn(f64, f64) -> (f64, f64)) {
        for series in &self.series {
            // Lines and bands end before a point that is left out, and go on after it.
            let all: Vec<usize> = (0..series.band.len().min(series.points.len())).collect();
            for run in all.split(|&k| !self.shows_band(series, k)).filter(|run| !run.is_empty()) {
                let upper = run.iter().map(|&k| at(series.points[k].0, series.band[k].1));
                let lower = run.iter().map(|&k| at(series.points[k].0, series.band[k].0));
                let outline: Vec<_> = upper.chain(lower.rev()).collect();
                scene.polygon(&outline, Some(series.color.with_alpha(0.2)), None);
            }
            let all: Vec<usize> = (0..series.points.len()).collect();
            for run in all.split(|&k| !self.shows(series, k)).filter(|run| !run.is_empty()) {
                let points: Vec<_> = run.iter().map(|&k| series.points[k]).map(|p| at(p.0, p.1)).collect();
                let stroke = Stroke { color: series.color, width: LINE_WIDTH, dash: series.dash.clone() };
                scene.polyline(&points, stroke);
                for (x, y) in points.into_iter().filter(|_| series.is_marked()) {
                    scene.mark(x, y, series.color, !series.dash.is_empty());
                }
            }
        }
    }
}

/// Every how many of the labels, given by middle and width, are shown so that none touches another: at even distances, so that
/// those between them can be told.
fn every_label(labels: &[(f64, f64)]) -> usize {
    let fits = |every: &usize| {
        let shown: Vec<&(f64, f64)> = labels.iter().step_by(*every).collect();
        shown.windows(2).all(|pair| pair[0].0 + 0.5 * (pair[0].1 + pair[1].1) + LABEL_GAP < pair[1].0)
    };
    (1..labels.len()).find(fits).unwrap_or(labels.len().max(1))
}

impl Panel for Chart {
    fn title(&self) -> &str {
        &self.title
    }

    fn sides(&self) -> (f64, f64) {
        let (x, y) = self.mappings();
        let widest = y.ticks().iter().map(|t| text_width(&t.1)).fold(0.0, f64::max);
        let overhang = x.ticks().last().map_or(0.0, |t| 0.5 * text_width(&t.1));
        (LEADING * TEXT_SIZE + widest + 2.0 * TICK, overhang.max(TICK))
    }

    fn ends(&self, width: f64, sides: (f64, f64)) -> (f64, f64) {
        let (title, note) = self.texts().heights(width, sides);
        let legend = self.legend().height(width - sides.0 - sides.1);
        // Half a line above the highest tick label; below ticks, their labels and the name of the axis.
        (title + legend + 0.5 * TEXT_SIZE, TICK + 2.6 * TEXT_SIZE + note)
    }

    fn plot_height(&self, width: f64) -> f64 {
        let height = (ASPECT * width).clamp(HEIGHTS.0, HEIGHTS.1);
        if self.title.is_empty() { 0.5 * height } else { height }
    }

    fn draw(&self, scene: &mut Scene, area: Area, plot: Area) {
        let (x, y) = self.mappings();
        let px = |v: f64| plot.left + x.position(v) * plot.width;
        let py = |v: f64| plot.bottom() - y.position(v) * plot.height;
        for (value, label) in y.ticks() {
            let at = py(value);
            scene.polyline(&[(plot.left, at), (plot.right(), at)], Stroke::solid(GRID, GRID_WIDTH));
            scene.text(plot.left - TICK, at + 0.36 * TEXT_SIZE, &label, TEXT_SIZE, Anchor::End, INK);
        }
        let axis = |points: &[(f64, f64)], scene: &mut Scene| {
            scene.polyline(points, Stroke::solid(INK, AXIS_WIDTH));
        };
        let ticks = x.ticks();
        let labels: Vec<(f64, f64)> = ticks.iter().map(|(v, label)| (px(*v), text_width(label))).collect();
        let every = every_label(&labels);
        for (k, (value, label)) in ticks.iter().enumerate() {
            let at = px(*value);
            axis(&[(at, plot.bottom()), (at, plot.bottom() + TICK)], scene);
            if k % every == 0 {
                let baseline = plot.bottom() + TICK + 1.1 * TEXT_SIZE;
                scene.text(at, baseline, label, TEXT_SIZE, Anchor::Middle, INK);
            }
        }
        self.draw_series(scene, |vx, vy| (px(vx), py(vy)));
        let corner = (plot.left, plot.bottom());
        axis(&[(plot.left, plot.top), corner, (plot.right(), plot.bottom())], scene);
        let (center, middle) = plot.center();
        let below = plot.bottom() + TICK + 2.4 * TEXT_SIZE;
        scene.text(center, below, &self.x.label, TEXT_SIZE, Anchor::Middle, INK);
        scene.upward_text(area.left + TEXT_SIZE, middle, &self.y.label, TEXT_SIZE, INK);
        let legend = self.legend();
        let top = plot.top - 0.5 * TEXT_SIZE - legend.height(plot.width);
        legend.draw(scene, plot.left, top, plot.width);
        let sides = (plot.left - area.left, area.right() - plot.right());
        self.texts().draw(scene, area, plot, self.ends(area.width, sides));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_left_out_at_even_distances() {
        let labels = |gap: f64| -> Vec<(f64, f64)> { (0..5).map(|k| (gap * f64::from(k), 16.0)).collect() };
        assert_eq!([20.0, 18.5, 10.0, 8.0, 1.0].map(|gap| every_label(&labels(gap))), [1, 1, 2, 3, 5]);
        assert_eq!((every_label(&[]), every_label(&[(0.0, 5.0)])), (1, 1));
    }
}
