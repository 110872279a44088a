//! Results of studies as Python sees them.

use std::path::PathBuf;
use std::time::Duration;

use ictd_lab::LabError;
use ictd_lab::figure::{Scene, to_pdf, to_png, to_svg};
use ictd_lab::files::{OutputDir, to_json_17};
use ictd_lab::report::{self, Records};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{OrRaise, input, internal};
use crate::interpreter::detached;

/// A result of whatever kind.
trait Any: Send + Sync {
    fn text(&self, width: usize) -> String;
    fn figures(&self) -> Vec<(String, Scene)>;
    fn tables(&self) -> Result<Vec<Records>, LabError>;
    fn holds(&self) -> bool;
    fn write(&self, out: &OutputDir) -> Result<(), LabError>;
}

impl<R: report::Report + Send + Sync> Any for R {
    fn text(&self, width: usize) -> String {
        report::Report::text(self, width)
    }
    fn figures(&self) -> Vec<(String, Scene)> {
        report::Report::figures(self)
    }
    fn tables(&self) -> Result<Vec<Records>, LabError> {
        report::Report::tables(self)
    }
    fn holds(&self) -> bool {
        report::Report::holds(self)
    }
    fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        report::Report::write(self, out)
    }
}

/// A result of a study: as JSON, text, figures and tables.
#[pyclass(frozen, module = "ictd._core")]
pub struct Report {
    json: String,
    of: Box<dyn Any>,
}

impl Report {
    /// A result as Python shall see it.
    pub fn new(of: impl report::Report + Send + Sync + 'static) -> PyResult<Self> {
        let json = to_json_17(&of).map_err(|error| internal(format!("result: {error}")))?;
        Ok(Self { json, of: Box::new(of) })
    }

    fn figure(&self, name: &str) -> PyResult<Scene> {
        let figures = self.of.figures();
        let names: Vec<String> = figures.iter().map(|(name, _)| name.clone()).collect();
        let found = figures.into_iter().find(|(known, _)| known == name);
        let of_names = || input(format!("figure is '{name}', expected one of {}", names.join(", ")));
        found.map(|(_, scene)| scene).ok_or_else(of_names)
    }
}

#[pymethods]
impl Report {
    /// The whole result as JSON, numbers with 17 digits.
    fn json(&self) -> &str {
        &self.json
    }

    /// For a person, in lines of at most `width` characters.
    fn text(&self, py: Python<'_>, width: usize) -> String {
        detached(py, || self.of.text(width))
    }

    /// Whether what was checked holds.
    fn holds(&self) -> bool {
        self.of.holds()
    }

    /// Names of the figures.
    fn figure_names(&self, py: Python<'_>) -> Vec<String> {
        detached(py, || self.of.figures()).into_iter().map(|(name, _)| name).collect()
    }

    /// A figure as SVG.
    fn svg(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        let scene = self.figure(name)?;
        Ok(detached(py, || to_svg(&scene)))
    }

    /// A figure as PNG.
    fn png<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let scene = self.figure(name)?;
        let png =
            detached(py, || to_png(&scene)).ok_or_else(|| internal("the figure is too large for PNG"))?;
        Ok(PyBytes::new(py, &png))
    }

    /// A figure as PDF.
    fn pdf<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let scene = self.figure(name)?;
        Ok(PyBytes::new(py, &detached(py, || to_pdf(&scene))))
    }

    /// Tables by name, as CSV.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let tables = detached(py, || self.of.tables()).or_raise()?;
        Ok(tables.into_iter().map(|records| (records.name().to_owned(), records.csv().to_owned())).collect())
    }

    /// Writes tables, figures and JSON to a directory, as the command line does.
    fn write(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        detached(py, || self.of.write(&OutputDir::locked(&directory, Duration::from_secs(5))?)).or_raise()
    }
}
