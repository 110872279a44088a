//! Axes: which numbers they show, and their ticks.

/// How an axis maps numbers: evenly, or evenly in their logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub(super) label: String,
    scale: Scale,
    /// Smallest and largest number shown; taken from the data when `None`.
    range: Option<(f64, f64)>,
}

impl Axis {
    /// An even axis over the data, under a label with units; see [`Label`](super::Label) for the markup.
    pub fn linear(label: &str) -> Self {
        Self { label: label.into(), scale: Scale::Linear, range: None }
    }

    /// A logarithmic axis over the data.
    pub fn log(label: &str) -> Self {
        Self { scale: Scale::Log, ..Self::linear(label) }
    }

    /// Whether a number has a place on the axis: finite ones do, on a logarithmic axis positive ones.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.abs() <= LARGEST && (self.scale == Scale::Linear || value > 0.0)
    }

    /// The axis over a range of its own.
    pub fn over(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }
}

/// Numbers beyond are not drawn: their differences would overflow.
const LARGEST: f64 = 1e300;
/// Ranges narrower than this, or than this share of their numbers, are a single value: ticks within would be rounding.
const NARROWEST: (f64, f64) = (1e-300, 1e-13);

/// A range of numbers mapped to [0, 1].
pub(super) struct Mapping {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Mapping {
    pub fn new(axis: &Axis, data: impl Iterator<Item = f64>, margin: f64) -> Self {
        let range = axis.range.filter(|&(low, high)| axis.shows(low) && axis.shows(high));
        let (low, high) = range.unwrap_or_else(|| {
            data.filter(|&v| axis.shows(v))
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)))
        });
        let forward = |v: f64| if axis.scale == Scale::Log { v.log10() } else { v };
        let (low, high) = (forward(low), forward(high));
        // No data, or a single value: show a unit around it, or what is seen of it among numbers of its size.
        let size = low.abs().max(high.abs());
        let (low, high) = if high - low > NARROWEST.0.max(NARROWEST.1 * size) {
            (low, high)
        } else if low <= high {
            let around = f64::max(0.5, 1e-6 * size);
            (low - around, high + around)
        } else {
            (0.0, 1.0)
        };
        let pad = if range.is_some() { 0.0 } else { margin * (high - low) };
        Self { low: low - pad, high: high + pad, scale: axis.scale }
    }

    pub fn position(&self, value: f64) -> f64 {
        let v = if self.scale == Scale::Log { value.log10() } else { value };
        (v - self.low) / (self.high - self.low)
    }

    /// Tick positions and labels: multiples of 1, 2 or 5 times a power of ten, or powers of ten.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let raw = (self.high - self.low) / 5.0;
        if self.scale == Scale::Log {
            let step = (raw.round() as i32).max(1);
            let (first, last) = ((self.low - 1e-9).ceil() as i32, (self.high + 1e-9).floor() as i32);
            if last - first < 2 {
                return self.small_log_ticks();
            }
            let exponents = (first..=last).filter(|e| e.rem_euclid(step) == 0);
            return exponents.map(|e| (10f64.powi(e), format!("10^{{{}}}", minus(e)))).collect();
        }
        let magnitude = 10f64.powf(raw.log10().floor());
        let step =
            magnitude * [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * magnitude >= raw).unwrap_or(10.0);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let (first, last) =
            ((self.low / step - 1e-9).ceil() as i64, (self.high / step + 1e-9).floor() as i64);
        let values = (first..=last).map(|k| k as f64 * step);
        values.map(|value| (value, tick_label(value, step, decimals))).collect()
    }

    /// 1, 2 and 5 times powers of ten, for logarithmic axes that span few of them.
    fn small_log_ticks(&self) -> Vec<(f64, String)> {
        let exponents = self.low.floor() as i32..=self.high.ceil() as i32;
        exponents
            .flat_map(|e| [1.0, 2.0, 5.0].map(|f| (e, f * 10f64.powi(e))))
            .filter(|(_, value)| (-1e-9..=1.0 + 1e-9).contains(&self.position(*value)))
            .map(|(e, value)| (value, small_log_label(value, e)))
            .collect()
    }
}

/// 1, 2 or 5 times a power of ten, as [`tick_label`] writes numbers.
fn small_log_label(value: f64, exponent: i32) -> String {
    if (-4..5).contains(&exponent) {
        return format!("{value:.*}", (-exponent).max(0) as usize);
    }
    let power = format!("10^{{{}}}", minus(exponent));
    match (value / 10f64.powi(exponent)).round() {
        1.0 => power,
        factor => format!("{factor}·{power}"),
    }
}

/// Plain decimals for ordinary numbers, powers of ten for very large and very small ones.
fn tick_label(value: f64, step: f64, decimals: usize) -> String {
    if (1e-4..1e5).contains(&step) || value == 0.0 {
        return minus(format!("{value:.decimals$}"));
    }
    let exponent = value.abs().log10().floor();
    minus(format!("{:.1}·10^{{{}}}", value / 10f64.powf(exponent), exponent as i32))
}

/// A number with the sign of typography.
fn minus(number: impl ToString) -> String {
    number.to_string().replace('-', "−")
}
