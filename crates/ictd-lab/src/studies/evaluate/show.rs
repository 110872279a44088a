//! An evaluation as text and as files.

use ictd::evaluate::Level;

use super::evaluation::Chosen;
use super::{Evaluation, Row, report};
use crate::LabError;
use crate::figure::Scene;
use crate::files::OutputDir;
use crate::report::{Records, Report, Table, wrapped};

/// Rows shown in the terminal before the rest is left to --json and --out.
const SHOWN: usize = 20;
/// Features of a state that are shown in the terminal.
const FEATURES: usize = 4;

impl Row {
    /// What is to be known of it, in a word.
    pub(super) fn mark(&self) -> &'static str {
        match (self.extrapolated, self.ended == Some(true)) {
            (true, true) => "extrapolated, ended",
            (true, false) => "extrapolated",
            (false, true) => "ended",
            (false, false) => "",
        }
    }

    pub(super) fn name(&self) -> String {
        match (&self.id, &self.state) {
            (Some(id), _) => id.clone(),
            (None, Some(serde_json::Value::Object(entries))) => {
                let number = |x: &serde_json::Value| x.as_f64().map_or_else(String::new, short);
                let shown = entries.iter().take(FEATURES).map(|(name, x)| format!("{name} {}", number(x)));
                let more = if entries.len() > FEATURES { ", …" } else { "" };
                shown.collect::<Vec<_>>().join(", ") + more
            }
            (None, Some(serde_json::Value::String(label))) => label.clone(),
            (None, state) => state.as_ref().map(ToString::to_string).unwrap_or_default(),
        }
    }

    /// Its state or id as cells of a table.
    fn cells(&self) -> Vec<String> {
        match (&self.id, &self.state) {
            (None, Some(serde_json::Value::Object(entries))) => {
                entries.values().map(|x| x.as_f64().map_or_else(String::new, |x| x.to_string())).collect()
            }
            _ => vec![self.name()],
        }
    }
}

/// A value for a person: four digits after the point, fewer where many stand before it.
pub(super) fn four(x: f64) -> String {
    Digits::of([x]).text(x)
}

/// How numbers that stand below each other are written.
#[derive(Clone, Copy)]
pub(super) enum Digits {
    AfterPoint(usize),
    Exponent,
}

impl Digits {
    /// By the largest of them.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        match numbers.into_iter().map(f64::abs).fold(0.0, f64::max) {
            0.0 => Self::AfterPoint(4),
            size if !(1e-2..1e7).contains(&size) => Self::Exponent,
            size if size >= 1e4 => Self::AfterPoint(0),
            size if size >= 100.0 => Self::AfterPoint(2),
            _ => Self::AfterPoint(4),
        }
    }

    pub fn text(self, x: f64) -> String {
        match self {
            Self::AfterPoint(digits) => format!("{x:.digits$}"),
            Self::Exponent => format!("{x:.3e}"),
        }
    }
}

/// A number for a person, four digits after the point at most.
pub(super) fn short(x: f64) -> String {
    if x == 0.0 || (1e-3..1e5).contains(&x.abs()) {
        format!("{}", (x * 1e4).round() / 1e4)
    } else {
        format!("{x:.3e}")
    }
}

impl Chosen {
    /// In words.
    pub(super) fn words(&self) -> String {
        let parts = [
            self.kernel.map(|k| format!("kernel {k}")),
            self.temperature.map(|t| format!("temperature {}", short(t))),
            self.layers.map(|n| format!("{n} layers")),
            self.ridge.map(|r| format!("ridge {r:.0e}")),
            self.lambda.map(|l| format!("λ = {l}")),
            self.landmarks.map(|n| format!("{n} landmarks")),
            self.route.as_ref().filter(|r| !r.is_by_landmarks()).map(|r| format!("{} pivots", r.rank)),
        ];
        let words = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if words.is_empty() { "no settings".into() } else { words }
    }
}

impl Evaluation {
    /// What a row is.
    pub(super) fn row_kind(&self) -> &'static str {
        if self.rows.first().is_some_and(|row| row.id.is_some()) { "id" } else { "state" }
    }

    /// Rows in the order in which some are shown: that of queries and ids, and states by their visits.
    pub(super) fn shown_rows(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        if !self.is_ordered {
            rows.sort_by_key(|row| std::cmp::Reverse(row.visits));
        }
        rows
    }

    /// Estimators side by side: name, loss, how far behind, mean, settings or why there is none.
    pub(super) fn estimator_lines(&self) -> Vec<Vec<String>> {
        let number = |x: Option<f64>| x.map_or_else(String::new, four);
        let own = vec![
            self.chosen.estimator.title().to_owned(),
            number(self.chosen.losses.map(|l| l.loss)),
            String::new(),
            number(self.mean.map(|m| m.value)),
            self.chosen.words(),
        ];
        let others = self.estimators.iter().map(|r| {
            let behind = r.behind.zip(r.behind_error).filter(|(gap, _)| gap.is_finite());
            let behind =
                behind.map_or_else(String::new, |(gap, error)| format!("{} ± {}", four(gap), four(error)));
            let words = r.why_not.clone().unwrap_or_else(|| r.settings.clone());
            vec![r.estimator.title().to_owned(), number(r.loss), behind, number(r.mean), words]
        });
        [own].into_iter().chain(others).collect()
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
        let digits = Digits::of(self.rows.iter().flat_map(|row| [row.interval.low, row.interval.high]));
        let cells = |row: &Row| {
            let i = row.interval;
            let mark = row.mark();
            let numbers = [i.value, i.low, i.high].map(|x| digits.text(x));
            [vec![row.name(), row.visits.to_string()], numbers.to_vec(), vec![mark.into()]].concat()
        };
        if !self.rows.is_empty() {
            let shown = self.shown_rows().into_iter().take(SHOWN).map(cells);
            let table = Table::new(&[self.row_kind(), "visits", "value", "low", "high", ""], shown);
            text += &table.words([0, 5]).text(width);
        }
        if self.rows.len() > SHOWN {
            text += &format!("({} more; --json and --out give all)\n", self.rows.len() - SHOWN);
        }
        if !self.estimators.is_empty() {
            let header = ["estimator", "held-out loss", "behind", "mean", "settings"];
            let table = Table::new(&header, self.estimator_lines());
            text += &format!("\n{}", table.words([0, 4]).text(width));
        }
        let mut foot = String::from("\n");
        if let Some(m) = self.mean {
            foot += &format!(
                "an episode is worth {} ({} to {}), γ = {}\n",
                four(m.value),
                four(m.low),
                four(m.high),
                self.gamma
            );
        }
        foot += &format!(
            "{}, {}; {} episodes, {} transitions\n",
            self.chosen.estimator.title(),
            self.chosen.words(),
            self.counts.episodes,
            self.counts.transitions
        );
        text + &wrapped(&foot, width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        self.scenes()
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        let mut results = vec!["visits", "value", "low", "high", "extrapolated"];
        if self.rows.iter().any(|row| row.ended.is_some()) {
            results.push("ended");
        }
        // A feature of the same name is told apart.
        let name = |name: &String| {
            if results.contains(&name.as_str()) { format!("state_{name}") } else { name.clone() }
        };
        let first: Vec<String> = match self.rows.first().and_then(|row| row.state.as_ref()) {
            Some(serde_json::Value::Object(entries)) => entries.keys().map(name).collect(),
            _ => vec![self.row_kind().to_owned()],
        };
        let header: Vec<String> = first.into_iter().chain(results.iter().map(ToString::to_string)).collect();
        let line = |row: &Row| {
            let i = row.interval;
            let numbers = [i.value, i.low, i.high].map(|x| x.to_string());
            let visits = row.visits.to_string();
            let marks = [Some(row.extrapolated), row.ended].into_iter().flatten().map(|x| x.to_string());
            [row.cells(), vec![visits], numbers.to_vec(), marks.collect()].concat()
        };
        let values = Records::of_cells("values", &header, self.rows.iter().map(line))?;
        let mut tables = vec![values, Records::of("tuning", &self.tried)?];
        if !self.estimators.is_empty() {
            tables.push(Records::of("estimators", &self.estimators)?);
        }
        Ok(tables)
    }

    fn json_name(&self) -> Option<&str> {
        Some("evaluation")
    }

    fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        let (tables, figures) = (self.tables()?, self.figures());
        for name in ["values", "calibration", "tuning", "layers", "features"] {
            if !figures.iter().any(|(written, _)| written == name) {
                ["svg", "pdf", "png"].iter().try_for_each(|ending| out.clear(&format!("{name}.{ending}")))?;
            }
        }
        if self.estimators.is_empty() {
            out.clear("estimators.csv")?;
        }
        let parquet = usize::from(cfg!(feature = "parquet"));
        out.expect(tables.len(), figures.len(), 2 + parquet);
        tables.iter().try_for_each(|records| out.records(records))?;
        #[cfg(feature = "parquet")]
        out.write("values.parquet", &tables[0].parquet(&["value", "low", "high"]))?;
        figures.iter().try_for_each(|(name, figure)| out.figure(name, figure))?;
        out.json("evaluation", self)?;
        out.write("report.html", report::html(self).as_bytes())
    }
}
