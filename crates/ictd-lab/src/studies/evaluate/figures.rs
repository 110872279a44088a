//! Figures of an evaluation.

use super::evaluation::Tried;
use super::{Evaluation, Row};
use crate::figure::{Axis, Chart, Grid, Scene, Series, Width, style::PALETTE};

/// Curves of the tuning figure.
const CURVES: usize = 5;
/// Values that are drawn.
const MAX_POINTS: usize = 400;

impl Evaluation {
    /// All charts by name, in the order of the report.
    pub(super) fn charts(&self) -> Vec<(&'static str, Chart)> {
        let charts = [
            ("values", self.values()),
            ("calibration", self.calibration()),
            ("tuning", self.tuning()),
            ("layers", self.layers()),
        ];
        charts.into_iter().filter_map(|(name, chart)| Some((name, chart?))).collect()
    }

    /// Values with their intervals, from the smallest to the largest.
    fn values(&self) -> Option<Chart> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by(|a, b| a.interval.value.total_cmp(&b.interval.value));
        let every = rows.len().div_ceil(MAX_POINTS).max(1);
        let shown: Vec<(usize, &&Row)> = rows.iter().enumerate().step_by(every).collect();
        let points = shown.iter().map(|(k, row)| (*k as f64 + 1.0, row.interval.value)).collect();
        let band = shown.iter().map(|(_, row)| (row.interval.low, row.interval.high)).collect();
        let line = Series::new("value", PALETTE[0], points).with_band(band);
        let (x, y) = (Axis::linear("rows, by their value"), Axis::linear("value"));
        let note = format!("{} rows; band: 95 % intervals", rows.len());
        (rows.len() > 1).then(|| Chart::new("Values", x, y, vec![line]).noted(note))
    }

    /// Held-out loss against depth, one curve per temperature, or against what else was tried.
    fn tuning(&self) -> Option<Chart> {
        let constant = self.chosen.losses?.constant;
        let with_layers = self.tried.iter().any(|t| t.layers.is_some());
        let x_of = |t: &Tried| {
            if with_layers { t.layers.map(|n| n as f64) } else { t.ridge.or(t.temperature) }
        };
        let mut temperatures: Vec<Option<f64>> = self.tried.iter().map(|t| t.temperature).collect();
        temperatures.dedup();
        if !with_layers && self.tried.iter().all(|t| t.ridge.is_none()) {
            // The temperature is the axis then.
            temperatures = vec![None];
        }
        let of_curve = |temperature: Option<f64>| {
            let of = self.tried.iter().filter(move |t| temperature.is_none() || t.temperature == temperature);
            of.filter_map(|t| Some((x_of(t).filter(|x| *x > 0.0)?, t.loss?))).collect::<Vec<_>>()
        };
        let best = temperatures.iter().position(|t| *t == self.chosen.temperature).unwrap_or(0);
        let first = best.saturating_sub(CURVES / 2).min(temperatures.len().saturating_sub(CURVES));
        let curves = temperatures.iter().skip(first).take(CURVES).zip(PALETTE);
        let mut series: Vec<Series> = curves
            .map(|(&temperature, color)| {
                let name = temperature.map_or_else(|| "loss".into(), |t| format!("τ = {}", three(t)));
                Series::new(name, color, of_curve(temperature))
            })
            .collect();
        let ends = series.iter().flat_map(|s| s.points.iter().map(|p| p.0));
        let (low, high) =
            ends.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), x| (low.min(x), high.max(x)));
        if !(low < high) {
            return None;
        }
        let line = vec![(low, constant), (high, constant)];
        series.push(Series::new("one number", crate::figure::style::GRAY, line).dashed());
        let x = if with_layers { "layers *L*" } else { "setting" };
        let note = format!("chosen: {}", self.chosen.words());
        let (x, y) = (Axis::log(x), Axis::linear("loss"));
        Some(Chart::new("Loss on held-out episodes", x, y, series).noted(note))
    }

    /// Values of some states, layer by layer.
    fn layers(&self) -> Option<Chart> {
        let ways = &self.pictures.as_ref()?.ways;
        let series = ways.iter().zip(PALETTE).map(|(way, color)| {
            let points = way.layers.iter().zip(&way.values).skip(1).map(|(&l, &v)| (l as f64, v)).collect();
            Series::new(short(&way.state), color, points)
        });
        let note = format!(
            "states from the smallest to the largest value; chosen: {} layers",
            self.chosen.layers.unwrap_or(0)
        );
        let (x, y) = (Axis::log("layers *L*"), Axis::linear("value"));
        let chart = Chart::new("Values after every layer", x, y, series.collect()).noted(note);
        let is_line = ways.iter().any(|way| way.layers.len() > 2);
        is_line.then_some(chart)
    }

    /// Values beside the returns that followed in episodes that were held out.
    fn calibration(&self) -> Option<Chart> {
        let bins = &self.pictures.as_ref()?.bins;
        let points = bins.iter().map(|bin| (bin.value, bin.observed)).collect();
        let ends = |k: f64| bins.iter().map(move |bin| bin.observed + k * 1.96 * bin.error);
        let band = ends(-1.0).zip(ends(1.0)).collect();
        let observed = Series::new("returns that followed", PALETTE[0], points).with_band(band);
        let diagonal = bins.iter().map(|bin| (bin.value, bin.value)).collect();
        let equal = Series::new("equal to the value", PALETTE[1], diagonal).dashed();
        let (x, y) = (Axis::linear("value from the other episodes"), Axis::linear("mean return"));
        let chart = Chart::new("Held-out returns", x, y, vec![observed, equal]);
        let spread = bins.first().zip(bins.last()).is_some_and(|(a, b)| a.value < b.value);
        spread.then(|| chart.noted("band: 95 % of the mean return"))
    }

    /// Values along the features along which they change most.
    pub(super) fn along(&self) -> Vec<Chart> {
        let features = self.pictures.iter().flat_map(|pictures| &pictures.features);
        let chart = |(name, points): &(String, Vec<super::pictures::Point>)| {
            let line = points.iter().map(|p| (p.x, p.value)).collect();
            let band = points.iter().map(|p| (p.low, p.high)).collect();
            let series = Series::new("", PALETTE[0], line).with_band(band);
            Chart::new(short(name), Axis::linear(&plain(name)), Axis::linear("value"), vec![series])
        };
        features.map(chart).collect()
    }

    /// The figures as files.
    pub(super) fn scenes(&self) -> Vec<(String, Scene)> {
        let charts = self.charts().into_iter();
        let mut scenes: Vec<(String, Scene)> =
            charts.map(|(name, chart)| (name.to_owned(), chart.scene(Width::Column))).collect();
        let along = self.along();
        if !along.is_empty() {
            let note = "means over visits of about equal number; band: mean of the 95 % intervals".to_owned();
            scenes.push(("features".into(), Grid::new("Values along features", 3, along, note).scene()));
        }
        scenes
    }
}

/// Three digits.
fn three(x: f64) -> String {
    if (0.01..1000.0).contains(&x) {
        let digits = (2.0 - x.log10().floor()).clamp(0.0, 4.0) as usize;
        format!("{x:.digits$}")
    } else {
        format!("{x:.2e}")
    }
}

/// A name without what figures take for marks.
fn plain(name: &str) -> String {
    name.replace('*', " ").replace("_{", "_").replace("^{", "^")
}

/// The same, a long one cut.
fn short(name: &str) -> String {
    let name = plain(name);
    match name.char_indices().nth(28) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}
