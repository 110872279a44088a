//! Line charts with bands: axes, ticks, legend.

use super::scene::{Anchor, Color, Scene, Stroke};
use super::style::{GRID, INK, LINE_WIDTH, MUTED, TEXT_SIZE, TITLE_SIZE};
use super::text::Label;

/// How an axis maps numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Evenly in the logarithm.
    Log,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its label, with units; see [`Label`] for the markup.
    pub label: String,
    /// How it maps numbers.
    pub scale: Scale,
    /// Smallest and largest number shown; taken from the data when `None`.
    pub range: Option<(f64, f64)>,
}

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

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its title.
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
    /// The chart as a drawing of its own.
    pub fn scene(&self, width: f64, height: f64) -> Scene {
        let mut scene = Scene::new(width, height, &self.title);
        self.draw(&mut scene, [0.0, 0.0, width, height]);
        scene
    }

    /// Draws the chart into a rectangle of a scene.
    pub fn draw(&self, scene: &mut Scene, [left, top, width, height]: [f64; 4]) {
        let x = Mapping::new(&self.x, self.series.iter().flat_map(|s| s.points.iter().map(|p| p.0)), 0.0);
        let lows_and_highs = self.series.iter().flat_map(|s| s.band.iter().flat_map(|b| [b.0, b.1]));
        let y = Mapping::new(
            &self.y,
            self.series.iter().flat_map(|s| s.points.iter().map(|p| p.1)).chain(lows_and_highs),
            0.05,
        );
        let y_ticks = y.ticks();
        let widest = y_ticks.iter().map(|t| Label::parse(&t.1).width(TEXT_SIZE)).fold(0.0, f64::max);
        let legend = self.legend_rows(width - 44.0 - widest);
        let legend_height = 18.0 * legend.len() as f64;
        let x_ticks = x.ticks();
        let overhang = x_ticks.last().map_or(0.0, |t| 0.5 * Label::parse(&t.1).width(TEXT_SIZE));
        // Room for the rotated label, the tick labels, the title, the legend, the axis label, the note.
        let frame = Frame {
            left: left + 30.0 + widest,
            right: left + width - overhang.max(14.0),
            top: top + 30.0 + legend_height,
            bottom: top + height - if self.note.is_empty() { 44.0 } else { 60.0 },
        };
        let px = |v: f64| frame.left + x.position(v) * (frame.right - frame.left);
        let py = |v: f64| frame.bottom - y.position(v) * (frame.bottom - frame.top);

        for (value, label) in &y_ticks {
            let at = py(*value);
            scene.polyline(&[(frame.left, at), (frame.right, at)], Stroke::solid(GRID, 0.6));
            scene.text(frame.left - 6.0, at + 0.36 * TEXT_SIZE, label, TEXT_SIZE, Anchor::End, INK);
        }
        for (value, label) in x_ticks {
            let at = px(value);
            scene.polyline(&[(at, frame.bottom), (at, frame.bottom + 4.0)], Stroke::solid(INK, 0.8));
            scene.text(at, frame.bottom + 15.0, &label, TEXT_SIZE, Anchor::Middle, INK);
        }
        for series in &self.series {
            if !series.band.is_empty() {
                let xs = series.points.iter().map(|p| px(p.0));
                let upper: Vec<_> = xs.clone().zip(series.band.iter().map(|b| py(b.1))).collect();
                let lower = xs.zip(series.band.iter().map(|b| py(b.0)));
                let outline: Vec<_> = upper.into_iter().chain(lower.rev()).collect();
                scene.polygon(&outline, Some(series.color.with_alpha(0.2)), None);
            }
            let points: Vec<_> = series.points.iter().map(|p| (px(p.0), py(p.1))).collect();
            let stroke = Stroke { color: series.color, width: LINE_WIDTH, dash: series.dash.clone() };
            scene.polyline(&points, stroke);
            // Markers on a dense line hide it.
            for (x, y) in points.into_iter().filter(|_| series.points.len() <= 40) {
                scene.circle(x, y, 2.2, Some(series.color), None);
            }
        }
        scene.polyline(
            &[(frame.left, frame.top), (frame.left, frame.bottom), (frame.right, frame.bottom)],
            Stroke::solid(INK, 0.8),
        );
        let middle = 0.5 * (frame.left + frame.right);
        scene.text(
            left + 0.5 * width,
            top + 18.0,
            &format!("**{}**", self.title),
            TITLE_SIZE,
            Anchor::Middle,
            INK,
        );
        scene.text(middle, frame.bottom + 33.0, &self.x.label, TEXT_SIZE, Anchor::Middle, INK);
        scene.turned_text(
            left + 14.0,
            0.5 * (frame.top + frame.bottom),
            &self.y.label,
            TEXT_SIZE,
            Anchor::Middle,
            INK,
            -90.0,
        );
        if !self.note.is_empty() {
            scene.text(
                left + 0.5 * width,
                top + height - 10.0,
                &self.note,
                TEXT_SIZE - 2.0,
                Anchor::Middle,
                MUTED,
            );
        }
        for (row, series) in legend.into_iter().enumerate() {
            draw_legend(scene, series, frame.left, top + 34.0 + 18.0 * row as f64);
        }
    }

    /// The series in rows that fit into a width, up to the first without a name; none when there is only one series.
    fn legend_rows(&self, width: f64) -> Vec<&[Series]> {
        let mut rows = Vec::new();
        let named = self.series.iter().position(|s| s.name.is_empty()).unwrap_or(self.series.len());
        let mut rest = if self.series.len() > 1 { &self.series[..named] } else { &[] };
        while !rest.is_empty() {
            let mut used = 0.0;
            let fits = rest.iter().take_while(|series| {
                used += legend_width(series);
                used <= width
            });
            let (row, others) = rest.split_at(fits.count().max(1));
            rows.push(row);
            rest = others;
        }
        rows
    }
}

fn legend_width(series: &Series) -> f64 {
    23.0 + Label::parse(&series.name).width(TEXT_SIZE) + 16.0
}

fn draw_legend(scene: &mut Scene, row: &[Series], mut x: f64, y: f64) {
    for series in row {
        let stroke = Stroke { color: series.color, width: LINE_WIDTH, dash: series.dash.clone() };
        scene.polyline(&[(x, y), (x + 18.0, y)], stroke);
        if series.points.len() <= 40 {
            scene.circle(x + 9.0, y, 2.2, Some(series.color), None);
        }
        scene.text(x + 23.0, y + 0.36 * TEXT_SIZE, &series.name, TEXT_SIZE, Anchor::Start, INK);
        x += legend_width(series);
    }
}

struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// A range of numbers mapped to [0, 1].
struct Mapping {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Mapping {
    fn new(axis: &Axis, data: impl Iterator<Item = f64>, margin: f64) -> Self {
        let (low, high) = axis.range.unwrap_or_else(|| {
            data.filter(|v| v.is_finite() && (axis.scale == Scale::Linear || *v > 0.0))
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)))
        });
        let forward = |v: f64| if axis.scale == Scale::Log { v.log10() } else { v };
        let (low, high) = (forward(low), forward(high));
        // No data, or a single value: show a unit around it.
        let (low, high) = if low < high {
            (low, high)
        } else if low == high {
            (low - 0.5, high + 0.5)
        } else {
            (0.0, 1.0)
        };
        let pad = if axis.range.is_some() { 0.0 } else { margin * (high - low) };
        Self { low: low - pad, high: high + pad, scale: axis.scale }
    }

    fn position(&self, value: f64) -> f64 {
        let v = if self.scale == Scale::Log { value.log10() } else { value };
        (v - self.low) / (self.high - self.low)
    }

    /// Tick positions and labels: multiples of 1, 2 or 5 times a power of ten, or powers of ten.
    fn ticks(&self) -> Vec<(f64, String)> {
        let raw = (self.high - self.low) / 5.0;
        if self.scale == Scale::Log {
            let step = (raw.round() as i32).max(1);
            let (first, last) = ((self.low - 1e-9).ceil() as i32, (self.high + 1e-9).floor() as i32);
            if last - first < 2 {
                return self.small_log_ticks();
            }
            return (first..=last)
                .filter(|e| e.rem_euclid(step) == 0)
                .map(|e| (10f64.powi(e), format!("10^{{{}}}", minus(e))))
                .collect();
        }
        let magnitude = 10f64.powf(raw.log10().floor());
        let step =
            magnitude * [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * magnitude >= raw).unwrap_or(10.0);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let (first, last) =
            ((self.low / step - 1e-9).ceil() as i64, (self.high / step + 1e-9).floor() as i64);
        (first..=last)
            .map(|k| {
                let value = k as f64 * step;
                (value, tick_label(value, step, decimals))
            })
            .collect()
    }
}

impl Mapping {
    /// 1, 2 and 5 times powers of ten, for logarithmic axes that span few of them.
    fn small_log_ticks(&self) -> Vec<(f64, String)> {
        let exponents = self.low.floor() as i32..=self.high.ceil() as i32;
        exponents
            .flat_map(|e| [1.0, 2.0, 5.0].map(|f| (e, f * 10f64.powi(e))))
            .filter(|(_, value)| (-1e-9..=1.0 + 1e-9).contains(&self.position(*value)))
            .map(|(e, value)| (value, format!("{value:.*}", (-e).max(0) as usize)))
            .collect()
    }
}

/// Plain decimals for ordinary numbers, powers of ten for very large and very small ones.
fn tick_label(value: f64, step: f64, decimals: usize) -> String {
    if (1e-4..1e5).contains(&step) || value == 0.0 {
        return format!("{value:.decimals$}").replace('-', "−");
    }
    let exponent = value.abs().log10().floor();
    let mantissa = format!("{:.1}", value / 10f64.powf(exponent)).replace('-', "−");
    format!("{mantissa}·10^{{{}}}", minus(exponent as i32))
}

fn minus(e: i32) -> String {
    e.to_string().replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale, range: (f64, f64)) -> Axis {
        Axis { label: String::new(), scale, range: Some(range) }
    }

    #[test]
    fn ticks_are_round_numbers_inside_the_range() {
        let labels = |a: &Axis| {
            Mapping::new(a, std::iter::empty(), 0.0).ticks().into_iter().map(|t| t.1).collect::<Vec<_>>()
        };
        assert_eq!(labels(&axis(Scale::Linear, (0.0, 1.0))), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&axis(Scale::Linear, (-7.0, 40.0))), ["0", "10", "20", "30", "40"]);
        assert_eq!(labels(&axis(Scale::Linear, (0.0, 2e12)))[1], "5.0·10^{11}");
        assert_eq!(
            labels(&axis(Scale::Log, (1e-3, 10.0))),
            ["10^{−3}", "10^{−2}", "10^{−1}", "10^{0}", "10^{1}"]
        );
    }

    #[test]
    fn a_single_value_and_no_value_have_a_range() {
        let empty = Axis { range: None, ..axis(Scale::Linear, (0.0, 0.0)) };
        let one = Mapping::new(&empty, [3.0].into_iter(), 0.05);
        assert!(one.low < 3.0 && one.high > 3.0);
        let none = Mapping::new(&empty, std::iter::empty(), 0.05);
        assert!(none.low < none.high);
    }
}
