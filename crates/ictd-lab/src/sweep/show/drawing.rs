//! The pictures of a sweep: a map over two keys, intervals along one, curves.

use super::curves::Band;
use super::dots::Dots;
use super::estimate::{Estimate, Statistic, short};
use super::view::Axis as Key;
use crate::figure::style::PALETTE;
use crate::figure::{Axis, Cell, Cells, Chart, ColorBar, Grid, Label, Scene, Series, Width, sequential};

/// Cells of a map at most: more cannot be told apart, and make files of many megabytes.
pub const MOST_CELLS: usize = 10_000;
/// Columns that fit into the narrow width of figures.
const FEW_COLUMNS: usize = 6;
/// Names of rows that fit below one another.
const ROW_NAMES: usize = 60;
/// A numeric key whose values have a larger ratio is drawn on a logarithmic axis.
const WIDE: f64 = 20.0;
/// The same of a metric in a map.
const WIDE_METRIC: f64 = 100.0;
/// Curves in one panel, and panels in a row.
const TOGETHER: usize = 3;
const ABREAST: usize = 4;

/// What a picture says besides its numbers.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    /// Its title.
    pub title: &'a str,
    /// What the numbers are.
    pub label: &'a str,
    /// What stands below.
    pub note: &'a str,
}

/// Where a number stands between the ends of a scale.
struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Scale {
    fn of(statistic: Statistic, values: impl Iterator<Item = f64> + Clone) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let low = finite.clone().fold(f64::INFINITY, f64::min);
        let high = finite.fold(f64::NEG_INFINITY, f64::max);
        match statistic {
            Statistic::Share(_) => Self { low: 0.0, high: 1.0, is_log: false },
            Statistic::Centre(_) if high > low => {
                Self { low, high, is_log: low > 0.0 && high > WIDE_METRIC * low }
            }
            // One value, or none: any scale shows it.
            Statistic::Centre(_) if high == low => Self { low: low - 0.5, high: high + 0.5, is_log: false },
            Statistic::Centre(_) => Self { low: 0.0, high: 1.0, is_log: false },
        }
    }

    fn share(&self, value: f64) -> f64 {
        let at = |x: f64| if self.is_log { x.ln() } else { x };
        ((at(value) - at(self.low)) / (at(self.high) - at(self.low))).clamp(0.0, 1.0)
    }

    fn at(&self, share: f64) -> f64 {
        if self.is_log {
            self.low * (share * (self.high / self.low).ln()).exp()
        } else {
            self.low + share * (self.high - self.low)
        }
    }
}

/// A map: rows are values of `y`, columns values of `x`.
pub fn heat_map(x: &Key, y: &Key, cells: &[Vec<Estimate>], statistic: Statistic, words: &Words<'_>) -> Scene {
    let scale = Scale::of(statistic, cells.iter().flatten().map(|cell| cell.value));
    let columns = x.values.len();
    let width = if columns <= FEW_COLUMNS { Width::Column } else { Width::Page };
    let size = |text: &str| Label::parse(text).width(crate::figure::style::TEXT_SIZE);
    let (across, down) = (x.names(), y.names());
    let names = down.iter().map(|name| size(name)).fold(0.0, f64::max);
    // Names, colour bar and edges beside the cells.
    let room = (width.points() - names - 70.0) / columns as f64;
    let numbers = cells.iter().flatten().map(|cell| size(&short(cell.value))).fold(0.0, f64::max) < room;
    let cell = |estimate: &Estimate| {
        if !estimate.value.is_finite() {
            return Cell::Empty;
        }
        let text = if numbers { short(estimate.value) } else { String::new() };
        Cell::Tile { color: sequential(scale.share(estimate.value)), text, rows: 1 }
    };
    let every = y.values.len().div_ceil(ROW_NAMES).max(1);
    let row_name = |(k, name): (usize, &String)| if k % every == 0 { name.clone() } else { String::new() };
    let map = Cells {
        x: x.label.clone(),
        y: y.label.clone(),
        columns: across,
        rows: down.iter().enumerate().map(row_name).collect(),
        cells: cells.iter().map(|row| row.iter().map(cell).collect()).collect(),
        row_height: if room > 16.0 { 16.0 } else { 0.0 },
        bar: Some(ColorBar {
            color: sequential,
            label: String::new(),
            ticks: [0.0, 0.5, 1.0].map(|share| (share, short(scale.at(share)))).to_vec(),
        }),
        ..Cells::default()
    };
    Grid { width, ..Grid::new(words.title, 1, [map], words.note.to_owned()) }.scene()
}

/// Numbers with intervals along a key: a line with a band where its values are numbers, otherwise dots.
pub fn along(x: &Key, cells: &[Estimate], statistic: Statistic, words: &Words<'_>) -> Scene {
    let ends = |cell: &Estimate| cell.interval.unwrap_or((cell.value, cell.value));
    if let Some(numbers) = x.numbers().filter(|numbers| numbers.len() > 2) {
        let mut points: Vec<(f64, Estimate)> = numbers.into_iter().zip(cells.iter().copied()).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (low, high) = (points[0].0, points[points.len() - 1].0);
        let axis = if low > 0.0 && high > WIDE * low { Axis::log(&x.label) } else { Axis::linear(&x.label) };
        let y = Axis::linear(words.label);
        let y = if let Statistic::Share(_) = statistic { y.over(0.0, 1.0) } else { y };
        let line = points.iter().map(|(x, cell)| (*x, cell.value)).collect();
        let series =
            Series::new("", PALETTE[0], line).with_band(points.iter().map(|(_, cell)| ends(cell)).collect());
        return Chart::new(words.title, axis, y, vec![series]).noted(words.note).scene(Width::Column);
    }
    let scale = Scale::of(statistic, cells.iter().flat_map(|cell| [cell.value, ends(cell).0, ends(cell).1]));
    let dots = Dots {
        key: x.label.clone(),
        label: words.label.to_owned(),
        rows: x.names().into_iter().zip(cells.iter().copied()).collect(),
        range: (scale.low, scale.high),
    };
    let width =
        if x.names().iter().any(|name| name.chars().count() > 16) { Width::Page } else { Width::Column };
    Grid { width, ..Grid::new(words.title, 1, [dots], words.note.to_owned()) }.scene()
}

/// Curves of settings with the half of the runs around them: a panel each, with the same axes, where bands would hide one another.
pub fn curves(lines: &[(String, &Band)], words: &Words<'_>) -> Scene {
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    };
    let (low, high) =
        ends(&mut lines.iter().flat_map(|(_, band)| band.low.iter().chain(&band.high)).copied());
    let (first, last) = ends(&mut lines.iter().flat_map(|(_, band)| &band.steps).map(|step| *step as f64));
    let y = if low > 0.0 && high > WIDE_METRIC * low {
        Axis::log(words.label).over(low, high)
    } else {
        let pad = 0.05 * (high - low);
        Axis::linear(words.label).over(low - pad, high + pad)
    };
    let x = || Axis::linear("gradient step").over(first, last);
    let series = |(k, (name, band)): (usize, &(String, &Band))| {
        let points = band.steps.iter().zip(&band.middle).map(|(step, y)| (*step as f64, *y));
        let ends = band.low.iter().copied().zip(band.high.iter().copied());
        Series::new(name.as_str(), PALETTE[k], points.collect()).with_band(ends.collect())
    };
    if lines.len() <= TOGETHER {
        let series = lines.iter().enumerate().map(series).collect();
        return Chart::new(words.title, x(), y, series).noted(words.note).scene(Width::Page);
    }
    let panel = |line: &(String, &Band)| Chart::new(line.0.as_str(), x(), y.clone(), vec![series((0, line))]);
    Grid::new(words.title, ABREAST, lines.iter().map(panel), words.note.to_owned()).scene()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ictd::statistics::Centre;

    #[test]
    fn scales_show_what_there_is() {
        let centre = Statistic::Centre(Centre::Mean);
        let log = Scale::of(centre, [1e-3, f64::NAN, 1.0].into_iter());
        assert!(
            log.is_log
                && (log.share(10f64.powf(-1.5)) - 0.5).abs() < 1e-12
                && (log.at(1.0) - 1.0).abs() < 1e-12
        );
        let one = Scale::of(centre, [2.0].into_iter());
        assert_eq!((one.share(2.0), one.at(0.0)), (0.5, 1.5));
        assert_eq!(Scale::of(centre, [].into_iter()).high, 1.0);
        assert_eq!(Scale::of(Statistic::Share(0), [0.2].into_iter()).share(0.2), 0.2);
    }
}
