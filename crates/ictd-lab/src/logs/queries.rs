//! States whose values are asked for, in a file of their own.

use std::collections::HashSet;
use std::path::Path;

use ictd::matrix::Matrix;

use super::cell::{self, Failure};
use super::input::Input;
use super::json::{columns, objects};
use super::mapping::Wanted;
use super::npy::arrays;
use super::parser::Cells as _;
use super::reading::Reading;
use super::records::Records;
use super::states::States;
use super::table::{Block, Table, TableRow, Values};
use super::{Format, minari};
use crate::LabError;

/// States in the order of their file.
#[derive(Clone, Debug, PartialEq)]
pub struct Queries {
    /// One state per row, by the same columns as those of the log.
    pub states: States,
    /// The id of every row, where the file has the column of ids; else empty.
    pub ids: Vec<String>,
}

/// Reads states of the same columns as those of a log: from CSV or TSV, JSON lines, NPZ, Arrow, Parquet, or an NPY array with
/// one column per feature. Other columns are passed over. A feature that is missing is refused, or is the mean of the log's where that was
/// asked for; a row is never left out.
pub fn queries(path: &Path, reading: &Reading, wanted: &Wanted) -> Result<Queries, LabError> {
    let refuse = |found: &str| {
        Err(LabError::parse(path, format!("found {found}, expected states as CSV, JSON lines or NPY")))
    };
    if minari::find(path)?.is_some() {
        return refuse("a Minari data set");
    }
    let input = Input::open(path)?;
    let names = &reading.state_columns;
    let (table, places) = match Format::of(&input)? {
        Format::Text => text(&input)?,
        Format::Json => json(&input)?,
        Format::Numpy => numpy(&input, names)?,
        #[cfg(feature = "parquet")]
        Format::Columnar => numbered(Table::new(super::columnar::columns(path, &input.bytes()?)?)),
        _ => return refuse("HDF5"),
    };
    let header = table.header();
    let place = |name: &String| {
        header.iter().position(|h| h == name).ok_or_else(|| {
            let shown = header.iter().take(12).cloned().collect::<Vec<_>>().join(", ");
            let message = format!("found the columns {shown}, expected '{name}' too as in the log");
            LabError::parse(path, message)
        })
    };
    let chosen = names.iter().map(place).collect::<Result<Vec<usize>, LabError>>()?;
    let twice =
        header.iter().enumerate().find(|(k, name)| names.contains(name) && header[..*k].contains(name));
    if let Some((_, name)) = twice {
        let message = format!("found the column '{name}' twice, expected different names");
        return Err(LabError::parse(path, message));
    }
    let alike = |id: &String| header.iter().position(|h| h.eq_ignore_ascii_case(id));
    let id = wanted.id.as_ref().and_then(|id| header.iter().position(|h| h == id).or_else(|| alike(id)));
    let is_label = wanted.state.as_ref().is_some_and(|said| said.ends_with(":label"));
    let asked = Asked { path, header: &header, places: &places, is_label };
    let rows: Vec<TableRow<'_>> = (0..table.num_rows()).map(|row| table.row(row)).collect();
    if rows.is_empty() {
        return Err(LabError::parse(path, "found no rows, expected at least one state"));
    }
    let states = match (&reading.states, chosen.as_slice()) {
        (States::Labels(labels), &[column]) => {
            let known = labels.iter().map(String::as_str).collect();
            let label = |(k, row): (usize, &TableRow<'_>)| asked.label(k, row, column, &known);
            States::Labels(rows.iter().enumerate().map(label).collect::<Result<_, _>>()?)
        }
        _ => {
            let mut features = Vec::with_capacity(rows.len() * chosen.len());
            for (k, row) in rows.iter().enumerate() {
                for (a, &column) in chosen.iter().enumerate() {
                    features.push(asked.feature(k, row, column, reading.means.get(a).copied())?);
                }
            }
            let rows = Matrix::from_vec(rows.len(), chosen.len(), features);
            States::Features { names: names.clone(), rows }
        }
    };
    let ids = id.map_or_else(Vec::new, |column| {
        rows.iter().map(|row| String::from_utf8_lossy(&row.text(column)).into_owned()).collect()
    });
    Ok(Queries { states, ids })
}

/// Where rows stand.
struct Asked<'a> {
    path: &'a Path,
    header: &'a [String],
    places: &'a [u64],
    /// Whether everything is a label, so that nothing is the same that is written differently.
    is_label: bool,
}

impl Asked<'_> {
    fn refuse(&self, k: usize, row: &TableRow<'_>, column: usize, expected: &str) -> LabError {
        let failure = Failure::cell(k, &self.header[column], &row.text(column), expected);
        LabError::parse(self.path, format!("row {}{}", self.places[k], failure.text()))
    }

    /// As the log has it: whole numbers that are written differently are the same.
    fn label(
        &self,
        k: usize,
        row: &TableRow<'_>,
        column: usize,
        known: &HashSet<&str>,
    ) -> Result<String, LabError> {
        if if self.is_label { row.is_empty(column) } else { row.is_missing(column) } {
            return Err(self.refuse(k, row, column, "a state"));
        }
        let text = String::from_utf8_lossy(&row.text(column)).into_owned();
        if self.is_label || known.contains(text.as_str()) {
            return Ok(text);
        }
        // An array of numbers has a point where the log has none.
        let plain = cell::whole(text.strip_suffix(".0").unwrap_or(&text));
        Ok(plain.filter(|plain| known.contains(plain.as_str())).unwrap_or(text))
    }

    fn feature(
        &self,
        k: usize,
        row: &TableRow<'_>,
        column: usize,
        mean: Option<f64>,
    ) -> Result<f64, LabError> {
        match (row.is_missing(column), mean) {
            (false, _) => row.number(column).map_err(|expected| self.refuse(k, row, column, expected)),
            (true, Some(mean)) => Ok(mean),
            (true, None) => {
                Err(self.refuse(k, row, column, "a value (--missing mean takes the mean of the log)"))
            }
        }
    }
}

/// The cells of a text, and the lines of its rows.
fn text(input: &Input) -> Result<(Table, Vec<u64>), LabError> {
    let bytes = input.bytes()?;
    let mut records = Records::new(input, &bytes, 1)?;
    let header = records.header.names.clone();
    let (mut cells, mut places) = (vec![Vec::new(); header.len()], Vec::new());
    let mut record = csv::ByteRecord::new();
    while let Some(line) = records.next(&mut record)? {
        let fail = |failure: Failure| LabError::parse(input.path(), format!("row {line}{}", failure.text()));
        if record.len() != header.len() {
            let expected = format!("{} as in the header", header.len());
            return Err(fail(Failure::row(0, format!("{} cells", record.len()), expected)));
        }
        for ((column, name), cell) in cells.iter_mut().zip(&header).zip(&record) {
            let text = std::str::from_utf8(cell.trim_ascii());
            column.push(text.map_err(|_| fail(Failure::cell(0, name, cell, "UTF-8 text")))?.to_owned());
        }
        places.push(line);
    }
    let blocks = header.iter().zip(cells);
    let blocks = blocks.map(|(name, cells)| Block::new(name, &[cells.len()], Values::Text(cells)));
    Ok((Table::new(blocks.collect()), places))
}

fn json(input: &Input) -> Result<(Table, Vec<u64>), LabError> {
    let rows = objects(input)?;
    let blocks = columns(&rows).map_err(|message| LabError::parse(input.path(), message))?;
    Ok((Table::new(blocks), rows.iter().map(|(number, _)| *number).collect()))
}

/// Arrays by their names; a single one has a column per feature.
fn numpy(input: &Input, names: &[String]) -> Result<(Table, Vec<u64>), LabError> {
    let mut blocks = arrays(input.path(), &input.bytes()?)?;
    if let [block] = blocks.as_mut_slice()
        && block.name.is_empty()
    {
        let (width, rows) = (block.width.unwrap_or(1), block.rows());
        if width != names.len() {
            let message = format!(
                "found rows of {width} numbers, expected {} as the state has: {}",
                names.len(),
                names.join(", ")
            );
            return Err(LabError::parse(input.path(), message));
        }
        blocks = (0..width).map(|lane| block.lane(lane, &names[lane], rows)).collect();
    }
    Ok(numbered(Table::new(blocks)))
}

/// A table whose rows are counted from 0.
fn numbered(table: Table) -> (Table, Vec<u64>) {
    let places = (0..table.num_rows() as u64).collect();
    (table, places)
}
