//! Logs as files of others.

mod context;
mod minari;
mod rows;

pub(super) use minari::FILLED;

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Counts, Kept, Reading, Transition, Wanted, read};
use crate::files::OutputDir;
use crate::{LabError, Progress, memory};

/// A log and its episodes.
struct Log<'a> {
    reading: &'a Reading,
    episodes: &'a Kept,
}

/// What a log can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Csv,
    Tsv,
    JsonLines,
    Npz,
    #[cfg(feature = "parquet")]
    Parquet,
    Context,
    Minari,
}

impl Target {
    /// By the ending of the name; a name without one is a folder for Minari.
    fn of(path: &Path) -> Result<Self, LabError> {
        let ending = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("csv") => Ok(Self::Csv),
            Some("tsv") => Ok(Self::Tsv),
            Some("jsonl" | "ndjson") => Ok(Self::JsonLines),
            Some("npz") => Ok(Self::Npz),
            #[cfg(feature = "parquet")]
            Some("parquet") => Ok(Self::Parquet),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => {
                let expected = "another ending; build with --features parquet to write this one";
                Err(LabError::value("output", path.display(), expected))
            }
            Some("json") => Ok(Self::Context),
            None => Ok(Self::Minari),
            Some(_) => Err(LabError::value(
                "output",
                path.display(),
                "a name ending in .csv, .tsv, .jsonl, .npz or .json (a context), or one without an ending (a folder for Minari)",
            )),
        }
    }
}

/// What was converted.
#[derive(Clone, Debug, Serialize)]
pub struct Conversion {
    /// Files that were written.
    pub files: Vec<PathBuf>,
    /// What each column was taken for.
    pub mapping: Vec<String>,
    /// The first transitions as they were understood.
    pub first: Vec<Transition>,
    /// How much there is.
    pub counts: Counts,
    /// Different states.
    pub states: usize,
    /// What got lost, or should be known.
    pub warnings: Vec<String>,
}

/// Reads a log and writes it in the format that the name of the output says.
pub fn convert(
    input: &Path,
    output: &Path,
    wanted: &Wanted,
    progress: &Progress,
) -> Result<Conversion, LabError> {
    let target = Target::of(output)?;
    let (mut reading, kept) = read(input, wanted, || Ok(Kept::default()), progress)?;
    let width = match &reading.states {
        super::States::Labels(_) => 1,
        super::States::Features { names, .. } => names.len(),
    };
    // Every number as text, twice while the text grows.
    let bytes =
        2.0 * 24.0 * (width + 5) as f64 * (reading.counts.transitions + 2 * reading.counts.episodes) as f64;
    memory::admit(bytes, "the number of rows")?;
    progress.begin(format!("writing {}", output.display()), "files", 0)?;
    let log = Log { reading: &reading, episodes: &kept };
    let name = output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let parent = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut warnings = Vec::new();
    let written: Vec<(&str, Vec<u8>)> = match target {
        Target::Csv => vec![("", rows::text(&log, b',').map_err(|e| wrong(output, e))?)],
        Target::Tsv => vec![("", rows::text(&log, b'\t').map_err(|e| wrong(output, e))?)],
        Target::JsonLines => vec![("", rows::json_lines(&log))],
        Target::Npz => vec![("", rows::npz(&log))],
        #[cfg(feature = "parquet")]
        Target::Parquet => vec![("", super::parquet::to_bytes(&rows::columns(&log)))],
        Target::Context => vec![("", context::json(&log, &mut warnings).map_err(|e| wrong(output, e))?)],
        Target::Minari => minari::files(&log, &name).map_err(|e| wrong(output, e))?,
    };
    let mut files = Vec::new();
    let folder = match target {
        Target::Minari => OutputDir::create(&output.join("data"))?,
        _ => OutputDir::create(parent)?,
    };
    for (file, bytes) in written {
        let file = if file.is_empty() { &name } else { file };
        folder.write(file, &bytes)?;
        files.push(if target == Target::Minari { folder.path().join(file) } else { output.to_owned() });
    }
    rows::warn(&log, &mut warnings);
    reading.warnings.append(&mut warnings);
    let Reading { mapping, first, counts, states, warnings, .. } = reading;
    Ok(Conversion { files, mapping, first, counts, states: states.len(), warnings })
}

fn wrong(path: &Path, error: impl std::fmt::Display) -> LabError {
    LabError::Write { path: path.to_owned(), source: std::io::Error::other(error.to_string()) }
}
