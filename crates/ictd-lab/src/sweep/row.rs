//! A row of the table of results: what `pretrain --json` says of a seed, flat.

use ictd::pretrain::{History, Metric};

use crate::studies::pretrain::{Point, SeedResult};

/// What is said of a point of a run, under the names that it has in JSON.
const POINT: [&str; 12] = [
    "branch",
    "v_em",
    "a_em",
    "v_em_signed",
    "a_em_signed",
    "value_row",
    "score_diag",
    "diag_mean",
    "diag_min",
    "td_loss",
    "msve",
    "msve_theta_star",
];

/// The branch of a run that left the range of numbers.
pub const DIVERGED: &str = "diverged";

/// The columns after the varied keys and the seed: the final step, the number of the best one, the best one.
pub fn columns() -> Vec<String> {
    let best = POINT.iter().map(|name| format!("best.{name}"));
    POINT.iter().map(|name| (*name).to_owned()).chain(["best_step".to_owned()]).chain(best).collect()
}

/// Whether a column has numbers: others have words and lists.
pub fn is_number(column: &str) -> bool {
    !["branch", "value_row", "score_diag"].contains(&column.trim_start_matches("best."))
}

/// The cells of a finished run, as CSV without a line break. What was not measured or is not known is empty.
pub fn cells(result: &SeedResult) -> String {
    let mut text = String::with_capacity(1200);
    point(&mut text, &result.last);
    text += &format!(",{},", result.best_step);
    point(&mut text, &result.best);
    text
}

/// The cells of a run that diverged: no numbers.
pub fn diverged() -> String {
    format!("{DIVERGED}{}", ",".repeat(columns().len() - 1))
}

fn point(text: &mut String, point: &Point) {
    text.push_str(&point.branch);
    let numbers = |text: &mut String, numbers: &[f64]| {
        for &number in numbers {
            text.push(',');
            number_to(text, number);
        }
    };
    numbers(text, &[point.v_em, point.a_em, point.v_em_signed, point.a_em_signed]);
    for list in [&point.value_row, &point.score_diag] {
        text.push_str(",\"[");
        for (k, &entry) in list.iter().enumerate() {
            if k > 0 {
                text.push(',');
            }
            number_to(text, entry);
        }
        text.push_str("]\"");
    }
    numbers(text, &[point.diag_mean, point.diag_min, point.td_loss, point.msve, point.msve_theta_star]);
}

/// The shortest text that is read as this very number; nothing for what is none.
fn number_to(text: &mut String, number: f64) {
    use std::fmt::Write as _;
    if number.is_finite() {
        // Writing to a text does not fail.
        let _ = write!(text, "{number:?}");
    }
}

/// The columns of curves after the seed.
pub fn curve_columns() -> Vec<String> {
    ["step"].into_iter().chain(Metric::ALL.map(Metric::name)).map(String::from).collect()
}

/// A point of all curves as CSV: what was measured last.
pub fn curve_point(history: &History) -> String {
    let mut text = history.steps().to_string();
    for metric in Metric::ALL {
        text.push(',');
        if let Some(value) = history[metric].last().filter(|value| value.is_finite()) {
            text += &format!("{value:?}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn a_point(branch: &str, td_loss: f64) -> Point {
        Point {
            branch: branch.to_owned(),
            v_em: 0.5,
            a_em: 1e-9,
            v_em_signed: -0.25,
            a_em_signed: 1.0,
            value_row: vec![0.1, -2.0],
            score_diag: vec![3.0],
            diag_mean: f64::NAN,
            diag_min: 0.0,
            td_loss,
            msve: f64::NAN,
            msve_theta_star: 1.5,
        }
    }

    /// Columns are the keys of the JSON, their order included, and cells are its values.
    #[test]
    fn a_row_is_the_json_of_a_seed_made_flat() {
        let result =
            SeedResult { seed: 3, last: a_point("td", 0.1), best_step: 7, best: a_point("none", 0.2) };
        let mut flat: Vec<(String, Value)> = Vec::new();
        let Value::Object(top) = serde_json::to_value(&result).unwrap() else { panic!("an object") };
        for (key, value) in top {
            match value {
                Value::Object(inner) => {
                    flat.extend(inner.into_iter().map(|(k, v)| (format!("{key}.{k}"), v)))
                }
                value => flat.push((key, value)),
            }
        }
        flat.retain(|(key, _)| key != "seed");
        let columns = columns();
        let mut sorted = (columns.clone(), flat.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>());
        sorted.0.sort();
        sorted.1.sort();
        assert_eq!(sorted.0, sorted.1);
        let line = cells(&result);
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
        let cells = reader.records().next().unwrap().unwrap();
        assert_eq!(cells.len(), columns.len());
        for (column, cell) in columns.iter().zip(&cells) {
            let value = &flat.iter().find(|(key, _)| key == column).unwrap().1;
            match value {
                Value::Null => assert_eq!(cell, "", "{column}"),
                Value::String(word) => assert_eq!(cell, word, "{column}"),
                value => assert_eq!(serde_json::from_str::<Value>(cell).unwrap(), *value, "{column}"),
            }
        }
        assert_eq!(diverged().split(',').count(), columns.len());
    }
}
