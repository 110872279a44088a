//! Logs as files of others.

mod context;
mod minari;
mod rows;

pub(super) use minari::FILLED;
pub(super) use rows::LABEL;

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Counts, Kept, Reading, States, Transition, Wanted, read};
use crate::files::OutputDir;
use crate::memory::{self, DOUBLE};
use crate::{LabError, Progress};

/// Bytes of the pieces of a long file while it is read.
const PIECE: f64 = 12e6;
/// Bytes of an episode that is kept, without its rows.
const EPISODE: f64 = 160.0;
/// Bytes that the groups and data sets of an episode take while they are written.
const MINARI_EPISODE: f64 = 10e3;
/// Characters of a number with a fraction, and what separates it from the next.
const NUMBER: f64 = 20.0;

/// A log and its episodes.
struct Log<'a> {
    reading: &'a Reading,
    episodes: &'a Kept,
}

impl Log<'_> {
    fn num_rows(&self) -> f64 {
        self.episodes.0.iter().map(|episode| episode.states.len()).sum::<usize>() as f64
    }

    /// Bytes of the log itself.
    fn memory(&self) -> f64 {
        let times = if self.has_times() { DOUBLE } else { 0.0 };
        // Pieces of the file and their rows, of which the allocator keeps some.
        let pieces = PIECE.min(100.0 * self.num_rows());
        let states = match &self.reading.states {
            States::Labels(labels) => labels.iter().map(|label| 2.0 * (56.0 + label.len() as f64)).sum(),
            States::Features { rows, .. } => {
                let [states, width] = [rows.num_rows(), rows.num_cols()].map(|x| x as f64);
                states * (2.0 * DOUBLE * width + 24.0)
            }
        };
        pieces + (12.0 + times) * self.num_rows() + EPISODE * self.episodes.0.len() as f64 + states
    }

    /// Bytes that writing takes: the file, and what it is made of.
    fn written_memory(&self, target: Target) -> f64 {
        let (width, digits, labels) = match &self.reading.states {
            States::Labels(labels) => {
                // More are refused when it comes to writing them.
                let many = if labels.len() > context::MOST_LABELS { 0 } else { labels.len() };
                let longest = labels.iter().map(|label| label.len()).max().unwrap_or(0);
                (1.0, 1.0 + longest as f64, many as f64)
            }
            States::Features { names, .. } => (names.len() as f64, NUMBER, 0.0),
        };
        let name = self.episodes.0.iter().map(|episode| episode.name.len()).max().unwrap_or(0) as f64;
        // Beside the state: the episode, the time, the reward and two flags.
        let text = width * digits + name + 22.0;
        let row = match target {
            Target::Csv | Target::Tsv => text,
            Target::JsonLines => {
                text + self.header(&self.state_columns()).iter().map(|n| n.len() as f64 + 6.0).sum::<f64>()
            }
            Target::Npz => 56.0 + DOUBLE * (width + 5.0) + 2.0 * (4.0 * name + DOUBLE * (width + 4.0)),
            #[cfg(feature = "parquet")]
            Target::Parquet => 56.0 + DOUBLE * (width + 5.0) + name + 4.0 + DOUBLE * (width + 4.0),
            // Options of numbers, then their texts; labels become unit vectors.
            Target::Context if labels > 0.0 => 64.0 + labels * (2.0 * DOUBLE + 4.0),
            Target::Context => 64.0 + width * (2.0 * DOUBLE + NUMBER),
            Target::Minari => 3.0 * (DOUBLE * (width + 2.0) + 2.0),
        };
        let episode = if target == Target::Minari { MINARI_EPISODE } else { 0.0 };
        row * self.num_rows() + episode * self.episodes.0.len() as f64
    }
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
    if let (Ok(from), Ok(to)) = (input.canonicalize(), output.canonicalize())
        && from == to
    {
        return Err(LabError::value("output", output.display(), "another file than the one that is read"));
    }
    let (mut reading, kept) = read(input, wanted, || Ok(Kept::default()), progress)?;
    let log = Log { reading: &reading, episodes: &kept };
    memory::admit(log.memory() + log.written_memory(target), "the number of rows")?;
    progress.begin(format!("writing {}", output.display()), "files", 0)?;
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
