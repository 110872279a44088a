//! States whose values are asked for, in a file of their own.

use std::path::Path;

use ictd::matrix::Matrix;

use super::cell::{self, Failure};
use super::csv::{separator, without_mark};
use super::input::Input;
use super::json::{columns, objects};
use super::mapping::Wanted;
use super::npy::arrays;
use super::parser::Cells as _;
use super::reading::Reading;
use super::states::States;
use super::table::{Block, Table, TableRow, Values};
use super::{Format, hdf5};
use crate::LabError;

/// States in the order of their file.
#[derive(Clone, Debug, PartialEq)]
pub struct Queries {
    /// One state per row, by the same columns as those of the log.
    pub states: States,
    /// The id of every row, where the file has the column of ids; else empty.
    pub ids: Vec<String>,
}

/// Reads states of the same columns as those of a log: from CSV or TSV, JSON lines, NPZ, Parquet, or an NPY array with one column per
/// feature. Other columns are passed over. A feature that is missing is refused, or is the mean of the log's where that was
/// asked for; a row is never left out.
pub fn queries(path: &Path, reading: &Reading, wanted: &Wanted) -> Result<Queries, LabError> {
    let input = Input::open(path)?;
    let names = &reading.state_columns;
    let (table, places) = match Format::of(&input)? {
        Format::Text => text(&input)?,
        Format::Json => json(&input)?,
        Format::Numpy => numpy(&input, names)?,
        #[cfg(feature = "parquet")]
        Format::Parquet => numbered(Table::new(super::parquet::columns(path, &input.bytes()?)?)),
        Format::Hdf5 => {
            let found = if hdf5::minari_file(path)?.is_some() { "a Minari data set" } else { "HDF5" };
            let message = format!("found {found}, expected states as CSV, JSON lines or NPY");
            return Err(LabError::parse(path, message));
        }
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
    let id = wanted.id.as_ref().and_then(|id| header.iter().position(|h| h == id));
    let asked = Asked { path, header: &header, places: &places };
    let rows: Vec<TableRow<'_>> = (0..table.num_rows()).map(|row| table.row(row)).collect();
    if rows.is_empty() {
        return Err(LabError::parse(path, "found no rows, expected at least one state"));
    }
    let states = match (&reading.states, chosen.as_slice()) {
        (States::Labels(_), &[column]) => {
            let label = |(k, row): (usize, &TableRow<'_>)| asked.label(k, row, column);
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
}

impl Asked<'_> {
    fn refuse(&self, k: usize, row: &TableRow<'_>, column: usize, expected: &str) -> LabError {
        let failure = Failure::cell(k, &self.header[column], &row.text(column), expected);
        LabError::parse(self.path, format!("row {}{}", self.places[k], failure.text()))
    }

    /// As the log has it: whole numbers that are written differently are the same.
    fn label(&self, k: usize, row: &TableRow<'_>, column: usize) -> Result<String, LabError> {
        if row.is_missing(column) {
            return Err(self.refuse(k, row, column, "a state"));
        }
        Ok(String::from_utf8_lossy(&row.text(column)).into_owned())
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
    let mut bytes = input.bytes()?;
    let body = without_mark(input, &mut bytes)?;
    let text = &bytes[body..];
    let separator = separator(text.split(|b| *b == b'\n').next().unwrap_or_default());
    let mut reader = csv::ReaderBuilder::new();
    let mut reader = reader.has_headers(false).flexible(true).delimiter(separator).from_reader(text);
    let (mut header, mut cells, mut places) = (Vec::new(), Vec::<Vec<String>>::new(), Vec::new());
    for record in reader.byte_records() {
        let record = record.map_err(|e| LabError::parse(input.path(), e.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let texts = record.iter().map(|cell| String::from_utf8_lossy(cell.trim_ascii()).into_owned());
        if header.is_empty() {
            header = texts.collect();
            if header.iter().all(|name| cell::number(name.as_bytes()).is_ok()) {
                let message = format!("row {line}: found numbers, expected names of columns");
                return Err(LabError::parse(input.path(), message));
            }
            cells.resize(header.len(), Vec::new());
            continue;
        }
        if record.len() != header.len() {
            let (found, expected) = (record.len(), header.len());
            let message = format!("row {line}: found {found} cells, expected {expected} as in the header");
            return Err(LabError::parse(input.path(), message));
        }
        cells.iter_mut().zip(texts).for_each(|(column, text)| column.push(text));
        places.push(line);
    }
    let blocks = header.iter().zip(cells);
    let blocks = blocks.map(|(name, cells)| Block::new(name, &[cells.len()], Values::Text(cells)));
    Ok((Table::new(blocks.collect()), places))
}

fn json(input: &Input) -> Result<(Table, Vec<u64>), LabError> {
    let rows = objects(input)?;
    let references: Vec<_> = rows.iter().map(|(number, object)| (*number, object)).collect();
    let blocks = columns(&references).map_err(|message| LabError::parse(input.path(), message))?;
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
