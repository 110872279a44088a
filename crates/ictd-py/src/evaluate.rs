//! Estimators of values from logs.

use std::path::PathBuf;
use std::sync::Arc;

use ictd_lab::logs::{self, Arrays, Kept, Queries, States, Values, queries, queries_of};
use ictd_lab::studies::evaluate::{self, Logged, Options};
use ictd_lab::{LabError, Progress};
use numpy::{PyArray1, PyArray2, PyArrayDyn, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arrays::{admit_entries, aligned, entries, to_array, to_array2};
use crate::errors::{OrRaise, input};
use crate::report::Report;
use crate::work::Manner;

/// Options as they come: JSON of the names of the command's flags.
fn options(text: &str) -> PyResult<Options> {
    serde_json::from_str(text).map_err(|error| input(format!("options: {error}")))
}

/// The entries of an array of `float64` or `int64`, or of a list of texts.
fn values(given: &Bound<'_, PyAny>) -> PyResult<Values> {
    if let Ok(array) = given.extract::<PyReadonlyArrayDyn<'_, f64>>() {
        admit_entries(array.len(), "rows")?;
        return Ok(Values::Float(entries(&aligned(array)?)));
    }
    if let Ok(array) = given.extract::<PyReadonlyArrayDyn<'_, i64>>() {
        admit_entries(array.len(), "rows")?;
        return Ok(Values::Whole(entries(&aligned(array)?)));
    }
    given.extract::<Vec<String>>().map(Values::Text)
}

/// Columns of transitions, by the names of the fields of [`Arrays`].
fn arrays(given: &Bound<'_, PyDict>, options: &Options) -> PyResult<Arrays> {
    let found = |name: &str| given.get_item(name).map(|found| found.filter(|found| !found.is_none()));
    let optional = |name: &str| found(name)?.map(|found| values(&found)).transpose();
    let needed = |name: &str| found(name)?.ok_or_else(|| input(format!("{name} is missing")));
    let rewards = match values(&needed("rewards")?)? {
        Values::Float(rewards) => rewards,
        _ => return Err(input("rewards: expected float64")),
    };
    Ok(Arrays {
        columns: needed("columns")?.extract()?,
        is_label: needed("is_label")?.extract()?,
        states: values(&needed("states")?)?,
        next: optional("next_state")?,
        rewards: ("y".into(), rewards),
        episode: optional("episode")?,
        time: optional("time")?,
        terminated: optional("terminated")?,
        truncated: optional("truncated")?,
        missing: options.wanted().or_raise()?.missing,
    })
}

/// Entries as NumPy has them; texts as a list.
fn to_python<'py>(py: Python<'py>, values: Values, width: usize) -> PyResult<Bound<'py, PyAny>> {
    Ok(match values {
        Values::Float(list) if width > 0 => {
            let rows = list.len() / width;
            to_array(py, &[rows, width], list)?.into_any()
        }
        Values::Float(list) => PyArray1::from_vec(py, list).into_any(),
        Values::Whole(list) => PyArray1::from_vec(py, list).into_any(),
        Values::Text(list) => PyList::new(py, list)?.into_any(),
    })
}

/// Fits an estimator to arrays.
#[pyfunction]
pub fn _fit(
    py: Python<'_>,
    asked: &str,
    columns: &Bound<'_, PyDict>,
    threads: Option<usize>,
    callback: Option<Bound<'_, PyAny>>,
) -> PyResult<Fitted> {
    let options = options(asked)?;
    let (arrays, config) = (arrays(columns, &options)?, options.config().or_raise()?);
    let fitted = Manner::new(threads, callback).run(py, "fit", move |progress| {
        let logged = Logged::of_arrays(arrays, &config, progress)?;
        evaluate::Fitted::new(logged, config, progress)
    })?;
    Ok(Fitted { fitted: Arc::new(fitted), options })
}

/// Evaluates a file or arrays as the command does.
#[pyfunction]
pub fn _evaluate(
    py: Python<'_>,
    path: Option<PathBuf>,
    columns: Option<&Bound<'_, PyDict>>,
    asked: &str,
    query: Option<PathBuf>,
    threads: Option<usize>,
    callback: Option<Bound<'_, PyAny>>,
) -> PyResult<Report> {
    let options = options(asked)?;
    let given = columns.map(|columns| arrays(columns, &options)).transpose()?;
    let config = options.config().or_raise()?;
    let wanted = logs::Wanted { id_may_lack: query.is_some(), ..options.wanted().or_raise()? };
    let found = Manner::new(threads, callback).run(py, "evaluate", move |progress| {
        let logged = match (given, path) {
            (Some(arrays), _) => Logged::of_arrays(arrays, &config, progress)?,
            (None, Some(path)) => Logged::read(&path, &wanted, &config, progress)?,
            (None, None) => return Err(LabError::refused("log", "missing, expected a path or arrays")),
        };
        let asked = query.map(|path| queries(&path, logged.reading(), &wanted)).transpose()?;
        evaluate::run(&logged, asked.as_ref(), &config, progress)
    })?;
    Report::new(found)
}

/// Reads a log from a file, or from columns by name: its arrays, by the names of the fields of [`Arrays`], and what was understood.
#[pyfunction]
pub fn _read_log<'py>(
    py: Python<'py>,
    path: Option<PathBuf>,
    columns: Option<&Bound<'py, PyDict>>,
    asked: &str,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let wanted = options(asked)?.wanted().or_raise()?;
    let mut given = Vec::new();
    for (name, column) in columns.into_iter().flatten() {
        let shape = match column.getattr_opt("shape")? {
            Some(shape) => shape.extract()?,
            None => vec![column.len()?],
        };
        given.push((name.extract::<String>()?, shape, values(&column)?));
    }
    let (reading, arrays) = Manner::new(threads, None).run(py, "read", move |progress| {
        let make = || Ok(Kept::default());
        let (reading, Kept(episodes)) = match &path {
            Some(path) => logs::read(path, &wanted, make, progress)?,
            None => logs::read_columns("frame", given, &wanted, make, progress)?,
        };
        let arrays = Arrays::of_episodes(&reading, &episodes);
        Ok((reading, arrays))
    })?;
    let found = PyDict::new(py);
    let width = if arrays.is_label { 0 } else { arrays.columns.len() };
    found.set_item("is_label", arrays.is_label)?;
    found.set_item("columns", arrays.columns)?;
    found.set_item("states", to_python(py, arrays.states, width)?)?;
    found.set_item("rewards", to_python(py, Values::Float(arrays.rewards.1), 0)?)?;
    for (name, column) in [
        ("episode", arrays.episode),
        ("time", arrays.time),
        ("terminated", arrays.terminated),
        ("truncated", arrays.truncated),
    ] {
        found.set_item(name, column.map(|column| to_python(py, column, 0)).transpose()?)?;
    }
    found.set_item("warnings", &reading.warnings)?;
    found.set_item("understood", reading.columns())?;
    Ok(found)
}

/// A fitted estimator.
#[pyclass(frozen, module = "ictd._core")]
pub struct Fitted {
    fitted: Arc<evaluate::Fitted>,
    options: Options,
}

impl Fitted {
    fn queries(&self, states: &Bound<'_, PyAny>) -> PyResult<Queries> {
        queries_of(values(states)?, self.fitted.reading()).or_raise()
    }

    /// Asks: little by the thread that calls, much by threads of its own.
    fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        rows: usize,
        threads: Option<usize>,
        question: impl FnOnce(&evaluate::Fitted, &Progress) -> Result<T, LabError> + Send + 'static,
    ) -> PyResult<T> {
        let (fitted, is_small) = (self.fitted.clone(), self.fitted.is_small(rows));
        Manner::new(threads, None)
            .run_sized(py, "predict", is_small, move |progress| question(&fitted, progress))
    }
}

#[pymethods]
impl Fitted {
    /// The values of states.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let queries = self.queries(states)?;
        let found = self.ask(py, queries.states.len(), threads, move |fitted, progress| {
            fitted.values(&queries, progress)
        })?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// Low and high ends of intervals, in rows, and which of the states are like none in the log.
    fn interval<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArrayDyn<f64>>, Bound<'py, PyArray1<bool>>)> {
        let queries = self.queries(states)?;
        let fitted = self.fitted.clone();
        let rows = Manner::new(threads, None)
            .run(py, "intervals", move |progress| fitted.rows(&queries, progress))?;
        let ends = rows.iter().flat_map(|row| [row.interval().low, row.interval().high]).collect();
        let far = rows.iter().map(evaluate::Row::is_extrapolated).collect();
        Ok((to_array(py, &[rows.len(), 2], ends)?, PyArray1::from_vec(py, far)))
    }

    /// Weights of the log's states for states.
    fn attention<'py>(
        &self,
        py: Python<'py>,
        states: &Bound<'py, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let queries = self.queries(states)?;
        let found =
            self.ask(py, queries.states.len(), threads, move |fitted, _| fitted.attention(&queries))?;
        to_array2(py, &found)
    }

    /// Minus the mean square distance from the returns of other transitions.
    fn score(&self, py: Python<'_>, columns: &Bound<'_, PyDict>, threads: Option<usize>) -> PyResult<f64> {
        let arrays = arrays(columns, &self.options)?;
        let fitted = self.fitted.clone();
        Manner::new(threads, None).run(py, "score", move |progress| {
            let held_out = Logged::of_arrays(arrays, fitted.config(), progress)?;
            fitted.score(&held_out, progress)
        })
    }

    /// Level and reasons, each with its level.
    fn judgement(&self) -> (&'static str, Vec<(&'static str, String)>) {
        let judged = self.fitted.judgement();
        let reasons = judged.reasons.iter().map(|reason| (reason.level.as_str(), reason.text.clone()));
        (judged.level.as_str(), reasons.collect())
    }

    /// Temperature, layers and ridge, where the estimator has them.
    fn settings(&self) -> (Option<f64>, Option<usize>, Option<f64>) {
        (self.fitted.temperature(), self.fitted.layers(), self.fitted.ridge())
    }

    /// The states of the log, and how often each was left.
    fn states<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<u64>>)> {
        let (states, visits) = self.fitted.states();
        let states = match states {
            States::Labels(labels) => PyList::new(py, labels)?.into_any(),
            States::Features { rows, .. } => to_array2(py, &rows)?.into_any(),
        };
        Ok((states, PyArray1::from_vec(py, visits)))
    }

    /// Everything that was found.
    fn report(&self, py: Python<'_>, threads: Option<usize>) -> PyResult<Report> {
        let fitted = self.fitted.clone();
        let found =
            Manner::new(threads, None).run(py, "evaluate", move |progress| fitted.evaluation(progress))?;
        Report::new(found)
    }
}
