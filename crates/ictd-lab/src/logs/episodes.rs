//! Logs that keep every episode as a table of its own.

use super::assembler::{Assembler, Stop};
use super::episode::Sink;
use super::job::Job;
use super::parser::RowParser;
use super::reading::Reading;
use super::table::{Block, Places, Table, Values};
use crate::LabError;

/// Reads one table per episode: `blocks` gives that of a number, and `admit` refuses more bytes of memory beside it.
pub(super) fn read<S: Sink>(
    job: &Job<'_>,
    names: &[String],
    blocks: impl Fn(usize) -> Result<Vec<Block>, LabError>,
    admit: impl Fn(f64) -> Result<(), LabError>,
    sink: &mut S,
) -> Result<Reading, Stop> {
    let mut all: Option<(RowParser, Assembler<'_, S>)> = None;
    let mut sink = Some(sink);
    job.progress.begin(format!("reading {}", job.path().display()), "steps", 0)?;
    for (k, name) in names.iter().enumerate() {
        let mut found = blocks(k)?;
        let rows = found.iter().map(Block::rows).max().unwrap_or(0);
        admit(rows as f64 * Values::text_memory(name.len()))?;
        found.push(Block {
            name: "episode".into(),
            width: None,
            values: Values::Text(vec![name.clone(); rows]),
        });
        let table = Table::new(found);
        if let Some(sink) = sink.take() {
            let (parser, assembler) = job.rows("arrays", table.header(), sink)?;
            all = Some((parser, assembler.by_step()));
        }
        let Some((parser, assembler)) = &mut all else { continue };
        if table.header() != assembler.header() {
            let message = format!("episode {name}: found other arrays than in the first, expected the same");
            return Err(LabError::parse(job.path(), message).into());
        }
        table.feed(assembler, parser, Places::Steps, job.progress)?;
    }
    let Some((_, assembler)) = all else {
        return Err(LabError::parse(job.path(), "found no episodes, expected some").into());
    };
    assembler.finish()
}
