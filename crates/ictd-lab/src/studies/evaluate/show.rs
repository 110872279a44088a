//! An evaluation as text, as files and as figures.

use ictd::evaluate::Level;

use super::{Evaluation, Row};
use crate::LabError;
use crate::figure::{Axis, Chart, Scene, Series, Width, style::PALETTE};
use crate::report::{Records, Report, Table, wrapped};

/// Rows shown in the terminal before the rest is left to --json and --out.
const SHOWN: usize = 20;
/// Curves of the tuning figure.
const CURVES: usize = 6;

impl Row {
    fn name(&self) -> String {
        match (&self.id, &self.state) {
            (Some(id), _) => id.clone(),
            (None, Some(serde_json::Value::Object(entries))) => {
                let number =
                    |x: &serde_json::Value| x.as_f64().map_or_else(String::new, |x| format!("{x:.4}"));
                entries.iter().map(|(name, x)| format!("{name} {}", number(x))).collect::<Vec<_>>().join(", ")
            }
            (None, Some(serde_json::Value::String(label))) => label.clone(),
            (None, state) => state.as_ref().map(ToString::to_string).unwrap_or_default(),
        }
    }
}

impl Evaluation {
    /// Held-out loss against depth, one curve per temperature.
    fn tuning(&self) -> Scene {
        let mut temperatures: Vec<f64> = self.tried.iter().map(|t| t.temperature).collect();
        temperatures.dedup();
        let best = temperatures.iter().position(|t| *t == self.chosen.temperature).unwrap_or(0);
        let first = best.saturating_sub(CURVES / 2).min(temperatures.len().saturating_sub(CURVES));
        let shown = temperatures.iter().skip(first).take(CURVES).zip(PALETTE);
        let series = shown.map(|(&temperature, color)| {
            let of = self.tried.iter().filter(|t| t.temperature == temperature && t.layers > 0);
            let points = of.filter_map(|t| Some((t.layers as f64, t.loss?))).collect();
            Series::new(format!("τ = {temperature:.2e}"), color, points)
        });
        let (x, y) = (Axis::log("layers *L*"), Axis::linear("held-out loss"));
        let chosen = format!(
            "chosen: τ = {:.2e}, {} layers; one number for all states: {:.4}",
            self.chosen.temperature, self.chosen.layers, self.chosen.constant_loss
        );
        Chart::new("Loss on held-out episodes", x, y, series.collect()).noted(chosen).scene(Width::Column)
    }

    /// Values with their intervals, from the smallest to the largest.
    fn values(&self) -> Scene {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by(|a, b| a.interval.value.total_cmp(&b.interval.value));
        let every = rows.len().div_ceil(400).max(1);
        let shown: Vec<(usize, &&Row)> = rows.iter().enumerate().step_by(every).collect();
        let points = shown.iter().map(|(k, row)| (*k as f64 + 1.0, row.interval.value)).collect();
        let band = shown.iter().map(|(_, row)| (row.interval.low, row.interval.high)).collect();
        let line = Series::new("value", PALETTE[0], points).with_band(band);
        let (x, y) = (Axis::linear("state, by its value"), Axis::linear("value, 95 % interval"));
        Chart::new("Values", x, y, vec![line]).scene(Width::Column)
    }
}

impl Report for Evaluation {
    fn text(&self, width: usize) -> String {
        let mut text = format!("{}\n", self.judgement.as_str().to_uppercase());
        for reason in &self.judged.reasons {
            let mark = if reason.level == Level::Trust { "·" } else { "-" };
            text += &format!("  {mark} {}\n", reason.text);
        }
        let mut text = wrapped(&text, width) + "\n";
        let by_visits = {
            let mut rows: Vec<&Row> = self.rows.iter().collect();
            if self.rows.iter().all(|row| row.id.is_none()) {
                rows.sort_by_key(|row| std::cmp::Reverse(row.visits));
            }
            rows
        };
        let first = if self.rows.first().is_some_and(|row| row.id.is_some()) { "id" } else { "state" };
        let cells = |row: &&Row| {
            let i = row.interval;
            let mark = if row.extrapolated { "extrapolated" } else { "" };
            let numbers = [i.value, i.low, i.high].map(|x| format!("{x:.4}"));
            [vec![row.name(), row.visits.to_string()], numbers.to_vec(), vec![mark.into()]].concat()
        };
        let table = Table::new(
            &[first, "visits", "value", "low", "high", ""],
            by_visits.iter().take(SHOWN).map(cells),
        );
        text += &table.words([5]).text(width);
        if self.rows.len() > SHOWN {
            text += &format!("({} more; --json and --out give all)\n", self.rows.len() - SHOWN);
        }
        if !self.estimators.is_empty() {
            let number = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.4}"));
            let rows = self.estimators.iter().map(|r| {
                let words = r.why_not.clone().unwrap_or_else(|| r.settings.clone());
                vec![r.estimator.to_owned(), number(r.loss), number(r.mean), words]
            });
            let own = vec![
                self.chosen.estimator.to_owned(),
                format!("{:.4}", self.chosen.loss),
                format!("{:.4}", self.mean.value),
                format!("temperature {:.3e}, {} layers", self.chosen.temperature, self.chosen.layers),
            ];
            let table = Table::new(
                &["estimator", "held-out loss", "mean", "settings"],
                [own].into_iter().chain(rows),
            );
            text += &format!("\n{}", table.words([3]).text(width));
        }
        let (m, c) = (self.mean, &self.chosen);
        let foot = format!(
            "\nan episode is worth {:.4} ({:.4} to {:.4}), γ = {}\n{}, kernel {}, temperature {:.3e}, {} layers; {} episodes, {} transitions\n",
            m.value,
            m.low,
            m.high,
            self.gamma,
            c.estimator,
            c.kernel,
            c.temperature,
            c.layers,
            self.counts.episodes,
            self.counts.transitions
        );
        text + &wrapped(&foot, width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("values".into(), self.values()), ("tuning".into(), self.tuning())]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        #[derive(serde::Serialize)]
        struct Line<'a> {
            name: &'a str,
            visits: u64,
            value: f64,
            low: f64,
            high: f64,
            extrapolated: bool,
        }
        let names: Vec<String> = self.rows.iter().map(Row::name).collect();
        let lines = self.rows.iter().zip(&names).map(|(row, name)| {
            let i = row.interval;
            Line {
                name,
                visits: row.visits,
                value: i.value,
                low: i.low,
                high: i.high,
                extrapolated: row.extrapolated,
            }
        });
        let mut tables = vec![Records::of("values", lines)?, Records::of("tuning", &self.tried)?];
        if !self.estimators.is_empty() {
            tables.push(Records::of("estimators", &self.estimators)?);
        }
        Ok(tables)
    }

    fn json_name(&self) -> Option<&str> {
        Some("evaluation")
    }
}
