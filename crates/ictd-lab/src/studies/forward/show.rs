//! A forward pass as text, figure and tables.

use serde::Serialize;

use super::{ForwardReport, Taken};
use crate::LabError;
use crate::figure::{Axis, Chart, Scene, Series, Width, style::PALETTE};
use crate::report::{Records, Report, Table, wrapped};

/// Columns drawn in the figure: the last ones, which hold the queries.
pub(super) const DRAWN: usize = 6;

/// A row of `values.csv`.
#[derive(Serialize)]
struct Cell {
    layer: usize,
    column: usize,
    value: f64,
    target: f64,
}

/// A row of `tokens.csv`.
#[derive(Serialize)]
struct Token<'a> {
    layer: usize,
    row: &'a str,
    column: usize,
    value: f64,
}

impl ForwardReport {
    /// The value estimates of the last columns, layer by layer.
    pub fn figure(&self) -> Scene {
        let columns = self.values[0].len();
        let series = (columns.saturating_sub(DRAWN)..columns).zip(PALETTE).map(|(j, color)| {
            let points = self.values.iter().enumerate().map(|(l, row)| (l as f64, row[j]));
            Series::new(format!("*v*[{}]", self.first_column + j), color, points.collect())
        });
        let (x, y) = (Axis::linear("layer *l*"), Axis::linear("value estimate *v*_{*l*}"));
        let chart = Chart::new("Value estimates, layer by layer", x, y, series.collect());
        let left_out = columns > DRAWN;
        let note = if left_out { format!("the last {DRAWN} of {columns} columns") } else { String::new() };
        chart.noted(note).scene(Width::Column)
    }
}

/// Columns shown in the terminal before the rest is left to --json and --out.
pub(super) const SHOWN: usize = 12;

/// Six decimals for ordinary numbers, powers of ten for very large and very small ones.
pub(super) fn number(x: &f64) -> String {
    if *x == 0.0 || (1e-4..1e6).contains(&x.abs()) { format!("{x:.6}") } else { format!("{x:.5e}") }
}

/// A number as it was typed, or with a power of ten where that is shorter.
pub(super) fn short(x: &f64) -> String {
    let (plain, scientific) = (x.to_string(), format!("{x:e}"));
    if scientific.len() < plain.len() { scientific } else { plain }
}

/// Token matrices row by row, each under its layer.
pub(super) fn tokens_text<'a>(
    tokens: impl Iterator<Item = &'a Vec<Vec<f64>>>,
    row_names: &[String],
    width: usize,
) -> String {
    let mut out = String::new();
    for (layer, z) in tokens.enumerate() {
        out += &format!("\nZ_{layer}\n");
        let row = |(values, name): (&Vec<f64>, &String)| {
            [name.clone()].into_iter().chain(values.iter().map(number)).collect()
        };
        let mut header: Vec<String> = vec!["row".into()];
        header.extend((0..z.first().map_or(0, Vec::len)).map(|j| j.to_string()));
        out += &Table::new(&header, z.iter().zip(row_names).map(row)).text(width);
    }
    out
}

/// Token matrices as records, an entry each.
pub(super) fn tokens_records(tokens: &[Vec<Vec<f64>>], row_names: &[String]) -> Result<Records, LabError> {
    let cells = tokens.iter().enumerate().flat_map(|(layer, z)| {
        z.iter().zip(row_names).flat_map(move |(values, row)| {
            values.iter().enumerate().map(move |(column, &value)| Token { layer, row, column, value })
        })
    });
    Records::of("tokens", cells)
}

impl Report for ForwardReport {
    fn text(&self, width: usize) -> String {
        let columns = self.values[0].len();
        let first = columns.saturating_sub(SHOWN);
        let mut header: Vec<String> = vec!["layer".into()];
        header.extend((first..columns).map(|j| format!("v[{}]", self.first_column + j)));
        let row = |name: String, row: &[f64]| [name].into_iter().chain(row.iter().map(number)).collect();
        let rows = self.values.iter().enumerate().map(|(l, values)| row(l.to_string(), &values[first..]));
        let mut out = Table::new(&header, rows).text(width);
        if first > 0 {
            out += &format!("(columns 0 to {} left out here; --json and --out give all)\n", first - 1);
        }
        let Taken { name, precision, reason } = &self.route;
        out += &wrapped(&format!("\nweights: {name}, {precision} precision ({reason})\n"), width);
        if let Some(known) = &self.approximation {
            out += &wrapped(
                &format!(
                    "no column of weights is off by more than {:.1e}, no value by more than {:.1e}\n",
                    known.column_error_bound, known.value_error_bound
                ),
                width,
            );
        }
        if let Some(fixed) = &self.fixed_point {
            let last: Vec<String> = fixed.values[first..].iter().map(number).collect();
            out += &wrapped(&format!("\ninfinitely many layers: {}\n", last.join(" ")), width);
            let (radius, status) = (fixed.spectral_radius, fixed.status);
            let what = match radius {
                _ if fixed.converges => "converges to these values",
                Some(radius) if radius < 1.0 => "may not converge to them, rounding decides",
                Some(_) => "does not converge to them",
                None => "may or may not converge to them",
            };
            let radius = radius.map_or_else(|| "unknown".into(), |radius| format!("{radius:.6}"));
            out += &format!("spectral radius {radius}, {status}: the iteration {what}\n");
        }
        out += &tokens_text(self.tokens.iter().flatten(), &self.row_names, width);
        if let Some(attention) = &self.attention {
            out += &attention.text(width);
        }
        out
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        let attention = self.attention.iter().map(|weights| ("attention".into(), weights.figure()));
        [("values".into(), self.figure())].into_iter().chain(attention).collect()
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        let cells =
            self.values.iter().zip(&self.targets).enumerate().flat_map(|(layer, (values, targets))| {
                let pairs = values.iter().zip(targets).enumerate();
                pairs.map(move |(column, (&value, &target))| Cell {
                    layer,
                    column: self.first_column + column,
                    value,
                    target,
                })
            });
        let mut tables = vec![Records::of("values", cells)?];
        if let Some(tokens) = &self.tokens {
            tables.push(tokens_records(tokens, &self.row_names)?);
        }
        if let Some(attention) = &self.attention {
            tables.push(attention.records()?);
        }
        Ok(tables)
    }

    fn json_name(&self) -> Option<&str> {
        Some("forward")
    }
}
