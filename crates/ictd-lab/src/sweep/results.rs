//! The table of a finished sweep, and the curves of its settings.

use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::journal::{Index, OpenFiles, Record};
use super::manifest::Manifest;
use super::plan::Metrics;
use super::row;
use super::setting::Sweep;
use super::{Request, checkpoints};
use crate::files::{OutputDir, is_whole, read_sealed};
use crate::{LabError, Progress};

/// The table: one row per run.
pub const TABLE: &str = "results.csv";
/// The same as Parquet, in builds that write it.
pub const PARQUET: &str = "results.parquet";
/// Where curves are: one file per setting.
pub const CURVES: &str = "curves";
/// Says that the table is whole, and of what.
pub const DONE: &str = "results.json";

/// What there is to know of a finished sweep before its table is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Settings of the table.
    pub settings: usize,
    /// Rows of the table.
    pub runs: usize,
    /// Runs without numbers.
    pub diverged: usize,
    /// SHA-256 of what was swept and what computed it.
    digest: String,
    /// SHA-256 of the table.
    table: String,
    /// SHA-256 of the table as Parquet; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    parquet: String,
    /// SHA-256 of the curves, by setting; empty without any.
    curves: Vec<String>,
    /// SHA-256 of the list of checkpoints, which has theirs; empty without any.
    checkpoints: String,
}

impl Finished {
    /// What is there of a sweep, if its table and its curves are there as they were written.
    pub fn read(out: &Path, of: &Manifest) -> Result<Option<Self>, LabError> {
        let Some(found) = read_sealed::<Self>(&out.join(DONE)) else { return Ok(None) };
        let mut curves = found.curves.iter().enumerate();
        let all = (found.digest == of.digest()
            && is_whole(&out.join(TABLE), &found.table)
            && (found.parquet.is_empty() || is_whole(&out.join(PARQUET), &found.parquet))
            && curves.all(|(k, digest)| is_whole(&out.join(curve_file(k)), digest)))
        .then_some(found);
        Ok(all)
    }

    /// Whether the parameters that were kept are as they were written, too.
    pub fn has_checkpoints(&self, out: &Path) -> bool {
        checkpoints::are_whole(out, &self.checkpoints)
    }
}

/// The curves of a setting.
pub fn curve_file(setting: usize) -> String {
    format!("{CURVES}/{setting:05}.csv")
}

/// The header of the table.
fn header(sweep: &Sweep) -> String {
    line(&[sweep.varied.clone(), vec!["seed".into()], row::columns()].concat())
}

/// The row of a run: the values of its setting, its seed, its cells.
fn row_of(sweep: &Sweep, run: usize, record: &Record) -> String {
    let setting = line(&sweep.settings[run / sweep.plan.seeds.len()].values);
    let comma = if setting.is_empty() { "" } else { "," };
    format!("{setting}{comma}{},{}", record.seed, record.cells)
}

/// The table of the sweep in a directory as text, and how many runs it will have in the end: the whole one where it is finished,
/// and otherwise the rows of the runs that are done.
pub fn table(root: &Path, progress: &Progress) -> Result<(String, usize), LabError> {
    let request = Request::of_directory(root)?;
    if let Some(finished) = request.table()? {
        let path = root.join(TABLE);
        let text = std::fs::read_to_string(&path).map_err(|source| LabError::Read { path, source })?;
        return Ok((text, finished.runs));
    }
    let sweep = request.begun()?;
    let all = 0..sweep.num_runs();
    progress.begin("reading the journal", "runs", all.len() as u64)?;
    let (index, mut open) = (Index::read(root, &sweep, &all)?, OpenFiles::default());
    let mut text = header(&sweep) + "\n";
    for run in all.filter(|&run| index.has(run)) {
        text += &(row_of(&sweep, run, &index.record(&mut open, run)?) + "\n");
        progress.step(1)?;
    }
    Ok((text, sweep.num_runs()))
}

/// Writes table and curves of a sweep whose runs are all done; `tell` hears what is left out.
pub fn merge(
    sweep: &Sweep,
    of: &Manifest,
    out: &OutputDir,
    index: &Index,
    progress: &Progress,
    tell: fn(&str),
) -> Result<Finished, LabError> {
    progress.begin("writing the table", "runs", sweep.num_runs() as u64)?;
    // What says that it is whole goes first, and comes last.
    out.clear(DONE)?;
    let mut open = OpenFiles::default();
    let mut diverged = 0;
    let seeds = &sweep.plan.seeds;
    let table = out.write_with(TABLE, |file| {
        writeln!(file, "{}", header(sweep)).map_err(|e| out.failed(TABLE, e))?;
        for run in 0..sweep.num_runs() {
            let record = index.record(&mut open, run)?;
            diverged += usize::from(!record.note.is_empty());
            writeln!(file, "{}", row_of(sweep, run, &record)).map_err(|e| out.failed(TABLE, e))?;
            progress.step(1)?;
        }
        Ok(())
    })?;
    let parquet = parquet(sweep, out, tell)?;
    let curves = if matches!(sweep.plan.metrics, Metrics::Every(_)) {
        let dir = out.below(CURVES)?;
        let header = [vec!["seed".into()], row::curve_columns()].concat();
        let of_setting = |setting: usize| {
            let name = curve_file(setting);
            let name = name.trim_start_matches(CURVES).trim_start_matches('/');
            dir.write_with(name, |file| {
                writeln!(file, "{}", line(&header)).map_err(|e| dir.failed(name, e))?;
                for run in setting * seeds.len()..(setting + 1) * seeds.len() {
                    let record = index.record(&mut open, run)?;
                    for point in &record.curve {
                        writeln!(file, "{},{point}", record.seed).map_err(|e| dir.failed(name, e))?;
                    }
                }
                Ok(())
            })
        };
        let curves = (0..sweep.settings.len()).map(of_setting).collect::<Result<_, _>>()?;
        remove_curves(dir.path(), sweep.settings.len())?;
        curves
    } else {
        crate::studies::remove(out.path().join(CURVES))?;
        Vec::new()
    };
    let checkpoints = checkpoints::list(sweep, out, index)?;
    let finished = Finished {
        settings: sweep.settings.len(),
        runs: sweep.num_runs(),
        diverged,
        digest: of.digest(),
        table,
        parquet,
        curves,
        checkpoints,
    };
    out.sealed_json(DONE.trim_end_matches(".json"), &finished)?;
    Ok(finished)
}

/// Removes the curves of settings from this number on, which an earlier plan had.
fn remove_curves(folder: &Path, first: usize) -> Result<(), LabError> {
    let failed = |source| LabError::Read { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".csv")?.parse().ok());
        if number.is_some_and(|number: usize| number >= first) {
            crate::studies::remove(path)?;
        }
    }
    Ok(())
}

/// Runs that are put into a Parquet file, which is made in memory.
#[cfg(feature = "parquet")]
const PARQUET_RUNS: usize = 200_000;

/// Writes the table as Parquet, beside it; its digest, or nothing where there are too many runs.
#[cfg(feature = "parquet")]
fn parquet(sweep: &Sweep, out: &OutputDir, tell: fn(&str)) -> Result<String, LabError> {
    use crate::files::sha256;
    use crate::report::Records;
    if sweep.num_runs() > PARQUET_RUNS {
        tell(&format!("{PARQUET} is not written: more than {PARQUET_RUNS} runs; {TABLE} has all"));
        out.clear(PARQUET)?;
        return Ok(String::new());
    }
    let path = out.path().join(TABLE);
    let text = std::fs::read_to_string(&path).map_err(|source| LabError::Read { path, source })?;
    let columns = row::columns();
    let numbers: Vec<&str> = columns.iter().map(String::as_str).filter(|c| row::is_number(c)).collect();
    let bytes = Records::of_csv("results", text).parquet(&numbers);
    out.write(PARQUET, &bytes)?;
    Ok(sha256(&bytes))
}

/// What a build that does write it left is not that of this table.
#[cfg(not(feature = "parquet"))]
fn parquet(_: &Sweep, out: &OutputDir, _: fn(&str)) -> Result<String, LabError> {
    out.clear(PARQUET)?;
    Ok(String::new())
}

/// Cells as a line of CSV.
pub(super) fn line(cells: &[String]) -> String {
    let quoted = |cell: &String| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.clone()
        }
    };
    cells.iter().map(quoted).collect::<Vec<_>>().join(",")
}
