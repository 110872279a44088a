//! Records for a CSV file.

use csv::{Reader, StringRecord, Writer};
use serde::Serialize;

use super::Table;
use crate::LabError;
use crate::error::Cause;

/// One record per row, its fields the columns, numbers in their shortest exact form: what a CSV file has.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    name: String,
    csv: String,
}

impl Records {
    /// Records for a file of this name.
    pub fn of<R: Serialize>(name: &str, records: impl IntoIterator<Item = R>) -> Result<Self, LabError> {
        let failed = |error: Cause| LabError::internal("records", error);
        let mut writer = Writer::from_writer(Vec::new());
        for record in records {
            writer.serialize(record).map_err(|e| failed(e.into()))?;
        }
        let bytes = writer.into_inner().map_err(|e| failed(e.to_string().into()))?;
        let csv = String::from_utf8(bytes).map_err(|e| failed(e.into()))?;
        Ok(Self { name: name.to_owned(), csv })
    }

    /// Rows of cells under headings that are known only when they are written.
    pub fn of_cells(
        name: &str,
        header: &[String],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Result<Self, LabError> {
        Self::of(name, std::iter::once(header.to_vec()).chain(rows))
    }

    /// Records that were written before.
    #[cfg(feature = "parquet")]
    pub(crate) fn of_csv(name: &str, csv: String) -> Self {
        Self { name: name.to_owned(), csv }
    }

    /// The name of its file, without an ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As CSV, header first; empty without records, whose columns nobody knows.
    pub fn csv(&self) -> &str {
        &self.csv
    }

    /// As a Parquet file: columns of these names hold numbers, others whole numbers, truth values as 0 and 1, numbers or
    /// texts, whichever gives every cell back as it is written.
    #[cfg(feature = "parquet")]
    pub fn parquet(&self, numbers: &[&str]) -> Vec<u8> {
        use crate::logs::parquet::{Values, to_bytes};
        let mut reader = Reader::from_reader(self.csv.as_bytes());
        // What was written above is read back without failure.
        let header = reader.headers().cloned().unwrap_or_default();
        let rows: Vec<StringRecord> = reader.records().flatten().collect();
        let number = |cell: &str| if cell.is_empty() { f64::NAN } else { cell.parse().unwrap_or(f64::NAN) };
        let column = |(c, name): (usize, &str)| {
            let all = |is: &dyn Fn(&str) -> bool| rows.iter().all(|row| is(&row[c]));
            let cells = rows.iter().map(|row| &row[c]);
            let values = if numbers.contains(&name) {
                Values::Float(cells.map(number).collect())
            } else if all(&|cell| cell.parse::<i64>().is_ok_and(|n| n.to_string() == cell)) {
                Values::Whole(cells.filter_map(|cell| cell.parse().ok()).collect())
            } else if all(&|cell| cell.parse::<bool>().is_ok()) {
                Values::Whole(cells.map(|cell| i64::from(cell == "true")).collect())
            } else if all(&|cell| cell.is_empty() || number(cell).to_string() == cell) {
                Values::Float(cells.map(number).collect())
            } else {
                Values::Text(cells.map(str::to_owned).collect())
            };
            (name.to_owned(), values)
        };
        to_bytes(&header.iter().enumerate().map(column).collect::<Vec<_>>())
    }

    /// For a person: numbers rounded.
    pub fn table(&self) -> Table {
        self.chosen(|_| true)
    }

    /// As [`table`](Self::table), only with the columns of these names. Columns without a single number or word are left out.
    pub fn only(&self, names: &[&str]) -> Table {
        self.chosen(|heading| names.contains(&heading))
    }

    fn chosen(&self, is_chosen: impl Fn(&str) -> bool) -> Table {
        let mut reader = Reader::from_reader(self.csv.as_bytes());
        // What was written above is read back without failure.
        let header = reader.headers().cloned().unwrap_or_default();
        let rows: Vec<StringRecord> = reader.records().flatten().collect();
        let is_empty = |c: usize| rows.iter().all(|row| row[c].is_empty());
        let columns: Vec<usize> =
            (0..header.len()).filter(|&c| is_chosen(&header[c]) && !is_empty(c)).collect();
        let is_word = |cell: &str| !cell.is_empty() && cell.parse::<f64>().is_err();
        let has_words = |&k: &usize| rows.iter().any(|row| is_word(&row[columns[k]]));
        let words: Vec<usize> = (0..columns.len()).filter(has_words).collect();
        let headings: Vec<&str> = columns.iter().map(|&c| &header[c]).collect();
        let cells = rows.iter().map(|row| columns.iter().map(|&c| rounded(&row[c])).collect());
        // Words and whole numbers at the left say which record it is.
        let is_key = |cell: &str| cell.parse::<f64>().is_err() || is_whole(cell);
        let keys = columns.iter().take_while(|&&c| rows.iter().all(|row| is_key(&row[c]))).count();
        Table::new(&headings, cells).words(words).keys(keys.clamp(1, 4))
    }
}

fn is_whole(cell: &str) -> bool {
    cell.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// A number to four digits; anything else, and whole numbers, as they are.
fn rounded(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(x) if !is_whole(cell) && x.is_finite() => {
            if x == 0.0 || (1e-2..1e4).contains(&x.abs()) {
                format!("{x:.4}")
            } else {
                format!("{x:.3e}")
            }
        }
        _ => cell.to_owned(),
    }
}
