//! How results show themselves: to a person, to a program, in files.

mod table;

pub use table::{Table, wrapped};

use serde::Serialize;

use crate::LabError;
use crate::figure::Scene;
use crate::files::OutputDir;

/// A result that shows itself: as JSON, which it serialises to, as text, as figures and as tables.
pub trait Report: Serialize {
    /// For a person, in lines of at most `width` characters.
    fn text(&self, width: usize) -> String;

    /// Figures, with the names of their files without endings.
    fn figures(&self) -> Vec<(String, Scene)> {
        Vec::new()
    }

    /// Tables for CSV files.
    fn tables(&self) -> Result<Vec<Table>, LabError> {
        Ok(Vec::new())
    }

    /// The tables of these names as text, numbers rounded, a blank line after each.
    fn shown(&self, names: &[&str], width: usize) -> String {
        // Records that have no table are an error of whoever writes them, not of whoever reads.
        let tables = self.tables().unwrap_or_default();
        let named = names.iter().filter_map(|name| tables.iter().find(|t| t.name() == *name));
        named.map(|table| table.text(width) + "\n").collect()
    }

    /// The name of the JSON file that has the whole result; `None` where figures and tables say everything.
    fn json_name(&self) -> Option<&str> {
        None
    }

    /// Whether what was checked holds; true where nothing was.
    fn holds(&self) -> bool {
        true
    }

    /// Writes tables, figures and JSON.
    fn write(&self, out: &OutputDir) -> Result<(), LabError>
    where
        Self: Sized,
    {
        self.tables()?.iter().try_for_each(|table| out.table(table))?;
        for (name, figure) in self.figures() {
            out.figure(&name, &figure)?;
        }
        self.json_name().map_or(Ok(()), |name| out.json(name, self))
    }
}

/// Several results of a kind, one after the other; each writes its own files.
impl<R: Report> Report for Vec<R> {
    fn text(&self, width: usize) -> String {
        self.iter().map(|report| report.text(width) + "\n").collect()
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        self.iter().flat_map(Report::figures).collect()
    }

    fn tables(&self) -> Result<Vec<Table>, LabError> {
        let tables = self.iter().map(Report::tables).collect::<Result<Vec<_>, _>>()?;
        Ok(tables.into_iter().flatten().collect())
    }

    fn holds(&self) -> bool {
        self.iter().all(Report::holds)
    }

    fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        self.iter().try_for_each(|report| report.write(out))
    }
}
