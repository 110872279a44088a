//! Training: runs in memory and in directories, and what they leave.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ictd::matrix::Matrix;
use ictd_lab::figure::Scene;
use ictd_lab::files::OutputDir;
use ictd_lab::report::{Records, Report as _};
use ictd_lab::studies::pretrain::{
    self, Curves, Earlier, Ending, RunOptions, RunResult, Settings, Step, Stored,
};
use ictd_lab::{LabError, Progress, Seeds};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::{Serialize, Serializer};

use crate::arrays::to_array;
use crate::errors::{OrRaise, as_keywords};
use crate::interpreter::{attached, detached};
use crate::own_tasks::{on_family, or_failure};
use crate::report::Report;
use crate::work::Manner;

/// What the library has to say beside results goes where the package's messages go.
pub fn notice(text: &str) {
    attached(|py, _| {
        // A message that cannot be told is no reason to end the work.
        let _ = py
            .import("ictd._messages")
            .and_then(|messages| messages.call_method1("tell", (as_keywords(text),)));
    });
}

/// A result that shows itself, shared with whoever looks at its states.
struct Shared(Arc<RunResult>);

impl Serialize for Shared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl ictd_lab::report::Report for Shared {
    fn text(&self, width: usize) -> String {
        self.0.text(width)
    }
    fn figures(&self) -> Vec<(String, Scene)> {
        self.0.figures()
    }
    fn tables(&self) -> Result<Vec<Records>, LabError> {
        self.0.tables()
    }
}

/// Trained seeds: what was found, and their states.
#[pyclass(frozen, module = "ictd._core")]
pub struct Trained {
    of: Arc<RunResult>,
    directory: Option<PathBuf>,
}

#[pymethods]
impl Trained {
    /// What was found, to be shown.
    fn report(&self) -> PyResult<Report> {
        Report::new(Shared(self.of.clone()))
    }

    /// The run directory, where there is one.
    #[getter]
    fn directory(&self) -> Option<PathBuf> {
        self.directory.clone()
    }

    /// The preset's or the file's name.
    #[getter]
    fn name(&self) -> String {
        self.of.settings.name.clone()
    }

    /// The resolved configuration as TOML.
    fn config(&self) -> PyResult<String> {
        self.of.settings.to_toml().or_raise()
    }

    /// Seed, step and every metric, in columns.
    fn curves<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Curves { seeds, steps, metrics } = detached(py, || Curves::of(&self.of));
        let columns = PyDict::new(py);
        columns.set_item("seed", PyArray1::from_vec(py, seeds))?;
        columns.set_item("step", PyArray1::from_vec(py, steps))?;
        for (name, column) in metrics {
            columns.set_item(name, PyArray1::from_vec(py, column))?;
        }
        Ok(columns)
    }

    /// A step of a seed, `final` or `best`, as the bytes of a checkpoint.
    fn checkpoint<'py>(&self, py: Python<'py>, seed: u64, which: &str) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = detached(py, || self.of.checkpoint(seed, which.parse::<Step>()?)).or_raise()?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes the run directory that training with files would have made, with its figures; says where.
    fn save(&self, py: Python<'_>, out: PathBuf) -> PyResult<PathBuf> {
        let saved = detached(py, || {
            let place = pretrain::store(&self.of, &out, &Progress::default())?;
            self.of.write(&OutputDir::locked(&place.join("figures"), Duration::from_secs(5))?)?;
            Ok::<_, LabError>(place)
        });
        saved.or_raise()
    }

    /// What another process makes this again of.
    fn parts<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(String, Vec<(u64, Bound<'py, PyBytes>)>, Option<PathBuf>)> {
        let (json, states) =
            detached(py, || Ok::<_, LabError>((self.of.to_json()?, self.of.checkpoints()?))).or_raise()?;
        let states = states.into_iter().map(|(seed, bytes)| (seed, PyBytes::new(py, &bytes))).collect();
        Ok((json, states, self.directory.clone()))
    }

    /// The result of these parts.
    #[staticmethod]
    fn of_parts(
        py: Python<'_>,
        json: &str,
        states: Vec<(u64, Vec<u8>)>,
        directory: Option<PathBuf>,
    ) -> PyResult<Self> {
        let of = detached(py, || RunResult::from_parts(json, &states)).or_raise()?;
        Ok(Self { of: Arc::new(of), directory })
    }
}

/// Settings from a preset, a file, or a text under a name. They may name a file of a task too.
fn settings(
    py: Python<'_>,
    preset: Option<String>,
    file: Option<PathBuf>,
    written: Option<(String, String)>,
    overrides: Vec<String>,
) -> PyResult<Settings> {
    Manner::default().run(py, "settings", move |_| match (preset, file, written) {
        (Some(preset), _, _) => Settings::preset(&preset, &overrides),
        (_, Some(file), _) => Settings::file(&file, &overrides),
        (_, _, Some((name, text))) => Settings::written(&name, &text, &overrides),
        _ => Settings::preset("paper", &overrides),
    })
}

/// Trains, in memory or in a run directory below `out`.
#[pyfunction]
#[pyo3(signature = (preset, file, written, overrides, seeds, family, out, fresh, resume, checkpoint_every, threads, callback))]
pub fn pretrain_seeds<'py>(
    py: Python<'py>,
    preset: Option<String>,
    file: Option<PathBuf>,
    written: Option<(String, String)>,
    overrides: Vec<String>,
    seeds: &str,
    family: Option<Bound<'py, PyAny>>,
    out: Option<PathBuf>,
    fresh: bool,
    resume: bool,
    checkpoint_every: Option<u64>,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Trained> {
    let seeds: Seeds = seeds.parse().or_raise()?;
    let settings = settings(py, preset, file, written, overrides)?;
    if checkpoint_every == Some(0) {
        return Err(crate::errors::of_lab(LabError::value("checkpoint_every", 0, "at least 1")));
    }
    let earlier = match (fresh, resume) {
        (true, true) => {
            let problem = "beside fresh, expected one of both";
            return Err(crate::errors::of_lab(LabError::refused("resume", problem)));
        }
        (true, _) => Earlier::Nothing,
        (_, true) => Earlier::Checkpoints,
        _ => Earlier::Results,
    };
    let (settings, family) = on_family(settings, family.as_ref())?;
    let done = Manner::new(threads, callback).run(py, "pretrain", move |progress| {
        let Some(out) = out else {
            let of = pretrain::run_in_memory(&settings, &seeds, progress)?;
            return Ok(Trained { of: Arc::new(of), directory: None });
        };
        let options = RunOptions { earlier, checkpoint_every, notice };
        match pretrain::run(&settings, &seeds, &out, &options, progress)? {
            Ending::Done { result, figures } => {
                // Where nothing was trained they are as they were.
                let dir = OutputDir::locked(&figures, Duration::from_secs(5))?.keeping();
                progress.begin("writing figures and tables", "files", 0)?;
                result.write(&dir.watched(progress))?;
                Ok(Trained { of: Arc::new(*result), directory: figures.parent().map(Path::to_owned) })
            }
            Ending::Stopped => Err(LabError::Stopped),
        }
    });
    or_failure(family.as_ref(), done)
}

/// The resolved configuration as TOML, every key explained.
#[pyfunction]
pub fn print_config(
    py: Python<'_>,
    preset: Option<String>,
    file: Option<PathBuf>,
    written: Option<(String, String)>,
    overrides: Vec<String>,
) -> PyResult<String> {
    let settings = settings(py, preset, file, written, overrides)?;
    settings.to_commented_toml().or_raise()
}

/// The finished seeds of a run directory.
#[pyfunction]
pub fn load_run(py: Python<'_>, dir: PathBuf) -> PyResult<Trained> {
    Manner::new(None, None).run(py, "load_run", move |progress| {
        let (of, directory) = pretrain::load(&dir, notice, progress)?;
        Ok(Trained { of: Arc::new(of), directory: Some(directory) })
    })
}

/// The run directories in a directory.
#[pyfunction]
pub fn list_runs<'py>(
    py: Python<'py>,
    dir: PathBuf,
    verify: bool,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    let found = Manner::new(None, callback)
        .run(py, "runs", move |progress| pretrain::index(&dir, verify, progress))?;
    Report::new(found)
}

/// A checkpoint from a file, or of bytes: its matrices, and what it says of them.
#[pyfunction]
#[pyo3(signature = (path, content=None))]
pub fn read_checkpoint<'py>(
    py: Python<'py>,
    path: PathBuf,
    content: Option<&[u8]>,
) -> PyResult<Bound<'py, PyDict>> {
    let stored = match content {
        Some(bytes) => Stored::of(&path, bytes).or_raise(),
        None => Manner::default().run(py, "checkpoint", move |_| Stored::read(&path)),
    };
    let Stored { pairs, description, seed, step, emergence } = stored?;
    let stacked = |of: fn(&ictd::transformer::AttentionParams) -> &Matrix| {
        let rows = pairs.first().map_or(0, |pair| of(pair).num_rows());
        let numbers = pairs.iter().flat_map(|pair| of(pair).as_slice().to_vec()).collect();
        let shape = [pairs.len(), rows, rows];
        to_array(py, if description.tied { &shape[1..] } else { &shape }, numbers)
    };
    let found = PyDict::new(py);
    found.set_item("V", stacked(|pair| pair.value_matrix())?)?;
    found.set_item("A", stacked(|pair| pair.score_matrix())?)?;
    found.set_item("seed", seed)?;
    found.set_item("step", step)?;
    found.set_item("scores", {
        let scores = PyDict::new(py);
        scores.set_item("branch", emergence.branch.as_str())?;
        scores.set_item("v_em", emergence.value)?;
        scores.set_item("a_em", emergence.score)?;
        scores.set_item("v_em_signed", emergence.value_signed)?;
        scores.set_item("a_em_signed", emergence.score_signed)?;
        scores
    })?;
    let said = description.metadata().map_err(crate::errors::internal)?;
    found.set_item("said", said)?;
    Ok(found)
}
