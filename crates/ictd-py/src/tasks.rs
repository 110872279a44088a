//! Tasks and where they come from: families, files and objects of Python's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ictd::linalg::LinalgError;
use ictd::random::{Purpose, Stream};
use ictd::task::{FiniteTask, Kind, Mrp, TaskError, TaskSource, TransitionKernel};
use ictd_lab::LabError;
use ictd_lab::error::check_range;
use ictd_lab::files::{AnyTask, TaskFile, read_task, task_of, to_json_17};
use ictd_lab::memory;
use ictd_lab::studies::{TaskChoice, TaskOptions, Tasks};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Numbers, to_array2};
use crate::context::Context;
use crate::errors::{OrRaise, internal};
use crate::forward::{admit, admit_square, is_small};
use crate::own_tasks::OwnTasks;
use crate::work::Manner;

/// Largest number of transitions of a sample.
const MOST: usize = 100_000_000;

/// Letters of a text, or entries of a matrix, that are read and written before a thread could be started.
const SHORT: usize = 20_000;

/// A task with finitely many states.
#[pyclass(frozen, eq, module = "ictd._core")]
#[derive(PartialEq)]
pub struct Task(pub Arc<FiniteTask>);

/// The task of a file, which must have finitely many states.
fn finite(task: AnyTask) -> Result<Task, LabError> {
    match task {
        AnyTask::Finite(task) => Ok(Task(Arc::new(task))),
        AnyTask::CartPole(_) => {
            Err(LabError::refused("cartpole", "expected a task with finitely many states"))
        }
    }
}

impl Task {
    /// A task of m states as it is made, which takes m³.
    fn of(
        py: Python<'_>,
        m: usize,
        make: impl FnOnce() -> Result<FiniteTask, TaskError> + Send + 'static,
    ) -> PyResult<Self> {
        let is_small = is_small((m as f64).powi(3));
        let made = Manner::default().run_sized(py, "task", is_small, move |_| Ok(make()?))?;
        Ok(Self(Arc::new(made)))
    }

    /// What is known of its m transition probabilities, which takes some m³.
    fn of_transitions<T: Send + 'static>(
        &self,
        py: Python<'_>,
        find: impl FnOnce(&TransitionKernel) -> Result<T, LinalgError> + Send + 'static,
    ) -> PyResult<T> {
        let (task, m) = (self.0.clone(), self.0.mrp().num_states());
        // Of 2m × 2m matrices, of which there are some.
        admit_square(2 * m)?;
        let is_small = is_small(100.0 * (m as f64).powi(3));
        Manner::default().run_sized(py, "eigenvalues", is_small, move |_| Ok(find(task.mrp().transitions())?))
    }
}

#[pymethods]
impl Task {
    #[new]
    #[pyo3(signature = (transitions, rewards, gamma, features, initial, values))]
    fn new(
        transitions: &Bound<'_, PyAny>,
        rewards: &Bound<'_, PyAny>,
        gamma: f64,
        features: &Bound<'_, PyAny>,
        initial: Option<&Bound<'_, PyAny>>,
        values: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = transitions.py();
        let list = |given: &Bound<'_, PyAny>, name| Numbers::of(given, name)?.vector();
        let (transitions, features) =
            (Numbers::of(transitions, "P")?.matrix()?, Numbers::of(features, "features")?.matrix()?);
        let m = transitions.num_rows();
        memory::admit(memory::task(m, features.num_cols()), "the number of states").or_raise()?;
        let initial = initial.map_or_else(|| Ok(vec![1.0 / m as f64; m]), |given| list(given, "initial"))?;
        let (rewards, values) =
            (list(rewards, "rewards")?, values.map(|values| list(values, "values")).transpose()?);
        Self::of(py, m, move || {
            let mrp = Mrp::new(transitions, rewards, gamma, initial)?;
            match values {
                Some(values) => FiniteTask::with_values(mrp, features, values),
                None => FiniteTask::new(mrp, features),
            }
        })
    }

    /// From a file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Manner::default().run(py, "task", move |_| finite(read_task(&path)?.task))
    }

    /// From the text of a file.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: String) -> PyResult<Self> {
        let is_small = text.len() <= SHORT;
        Manner::default().run_sized(py, "task", is_small, move |_| {
            finite(task_of(Path::new("task"), text.as_bytes())?.task)
        })
    }

    /// As a file.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        let (task, m) = (self.0.clone(), self.0.mrp().num_states());
        Manner::default().run_sized(py, "task", m * m <= SHORT, move |_| {
            let file = TaskFile::of(&AnyTask::Finite((*task).clone()))?;
            to_json_17(&file).map_err(|error| LabError::internal("task", error))
        })
    }

    fn transitions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        to_array2(py, self.0.mrp().transitions().matrix())
    }

    fn features<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        to_array2(py, self.0.features())
    }

    #[getter]
    fn gamma(&self) -> f64 {
        self.0.mrp().gamma()
    }

    /// `rewards`, `initial`, `values` and `stationary`.
    fn lists<'py>(&self, py: Python<'py>) -> [Bound<'py, PyArray1<f64>>; 4] {
        let (task, mrp) = (&self.0, self.0.mrp());
        [mrp.rewards(), mrp.initial_distribution(), task.values(), task.stationary_distribution()]
            .map(|list| PyArray1::from_slice(py, list))
    }

    /// Real and imaginary parts of P's eigenvalues, by decreasing modulus.
    fn eigenvalues<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyArray1<f64>>; 2]> {
        let found = self.of_transitions(py, TransitionKernel::eigenvalues)?;
        let (re, im): (Vec<f64>, Vec<f64>) = found.into_iter().map(|z| (z.re, z.im)).unzip();
        Ok([re, im].map(|part| PyArray1::from_vec(py, part)))
    }

    /// Eigenvalues of the additive reversibilisation, decreasing.
    fn reversibilisation_spectrum<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let found = self.of_transitions(py, TransitionKernel::reversibilisation_spectrum)?;
        Ok(PyArray1::from_vec(py, found))
    }

    /// The second of those of the chain of pairs.
    fn pair_lambda_r(&self, py: Python<'_>) -> PyResult<f64> {
        self.of_transitions(py, TransitionKernel::pair_lambda_r)
    }

    /// A context of one trajectory, and its states.
    fn sample<'py>(
        &self,
        py: Python<'py>,
        n: usize,
        seed: u64,
        index: u64,
    ) -> PyResult<(Context, Bound<'py, PyArray1<u64>>)> {
        check_range("n", n, 1..=MOST).or_raise()?;
        let row = self.0.features().num_cols() + 4;
        admit(&[n, row])?;
        let task = self.0.clone();
        // A draw costs more than a number of features.
        let is_small = is_small(100.0 * n as f64 * row as f64);
        let (context, states) = Manner::default().run_sized(py, "sample", is_small, move |_| {
            let (context, states) =
                task.sample_context(n, &mut Stream::new(seed, Purpose::Trajectory, index));
            Ok((context, states.into_iter().map(|s| s as u64).collect()))
        })?;
        Ok((Context(Arc::new(context)), PyArray1::from_vec(py, states)))
    }

    /// The context of a path through states, and queries.
    fn context(&self, states: Vec<usize>, queries: Vec<usize>) -> PyResult<Context> {
        let m = self.0.mrp().num_states();
        if states.len() < 2 {
            let problem =
                format!("found {}, expected two at least: a context needs a transition", states.len());
            return Err(LabError::refused("states", problem)).or_raise();
        }
        for (name, list) in [("states", &states), ("queries", &queries)] {
            if let Some(k) = list.iter().position(|&s| s >= m) {
                let problem = format!("entry {k} is {}, expected 0 to {}", list[k], m - 1);
                return Err(LabError::refused(name, problem)).or_raise();
            }
        }
        Ok(Context(Arc::new(self.0.context_of(&states, &queries))))
    }
}

/// A family of random tasks.
#[pyclass(frozen, eq, module = "ictd._core")]
#[derive(PartialEq)]
pub struct Family(pub ictd::Family);

#[pymethods]
impl Family {
    /// A family by name with some of its keys changed.
    #[new]
    fn new(name: &str, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = task_options(options)?;
        let family = options.family(ictd::Family::of(name.parse::<Kind>().or_raise()?)).or_raise()?;
        family.check().or_raise()?;
        Ok(Self(family))
    }

    /// Task number `index` of a seed.
    fn draw(&self, py: Python<'_>, seed: u64, index: u64) -> PyResult<Task> {
        drawn(py, Tasks::of_family(self.0.clone(), seed), index)
    }

    /// In words.
    fn describe(&self) -> String {
        self.0.describe()
    }

    /// All keys as JSON.
    fn json(&self) -> PyResult<String> {
        to_json_17(&self.0).map_err(|error| internal(format!("family: {error}")))
    }
}

/// Options by their names.
pub fn task_options(given: &Bound<'_, PyDict>) -> PyResult<TaskOptions> {
    fn of<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(
        given: &Bound<'py, PyDict>,
        name: &str,
    ) -> PyResult<Option<T>> {
        given.get_item(name)?.filter(|value| !value.is_none()).map(|value| value.extract::<T>()).transpose()
    }
    Ok(TaskOptions {
        states: of(given, "states")?,
        features: of(given, "features")?,
        gamma: of(given, "gamma")?,
        free: of(given, "free")?.unwrap_or(false),
        threshold: of(given, "threshold")?,
        one_hot: of(given, "one_hot")?.unwrap_or(false),
        unit_norm: of(given, "unit_norm")?.unwrap_or(false),
        continuous: of(given, "continuous")?.unwrap_or(false),
        score_scale: of(given, "score_scale")?,
    })
}

/// Tasks, and the object of Python's that draws them, if one does.
pub struct Asked {
    pub tasks: Tasks,
    pub own: Option<Arc<OwnTasks>>,
}

/// The tasks of a seed: of a name or a file, a family, a task, or an object that draws them; `default` where there is none of these.
pub fn tasks_of(
    task: Option<&Bound<'_, PyAny>>,
    options: &TaskOptions,
    default: ictd::Family,
    seed: u64,
) -> PyResult<Asked> {
    let plain = |tasks: Tasks| Asked { tasks, own: None };
    let Some(task) = task.filter(|task| !task.is_none()) else {
        let choice = options.choice(TaskChoice::Family(default)).or_raise()?;
        return Ok(plain(choice.tasks(seed).or_raise()?));
    };
    if let Ok(name) = task.extract::<String>() {
        let (options, is_small) = (options.clone(), name.parse::<Kind>().is_ok());
        return Manner::default()
            .run_sized(task.py(), "task", is_small, move |_| {
                options.choice(TaskChoice::named(&name)?)?.tasks(seed)
            })
            .map(plain);
    }
    if let Ok(family) = task.cast::<Family>() {
        let choice = options.choice(TaskChoice::Family(family.get().0.clone())).or_raise()?;
        return Ok(plain(choice.tasks(seed).or_raise()?));
    }
    let (unit_norm, score_scale) = options.rescaling().or_raise()?;
    let (name, source, own): (_, Arc<dyn TaskSource>, _) = match task.cast::<Task>() {
        Ok(task) => ("task".to_owned(), task.get().0.clone(), None),
        Err(_) => {
            let (own, drawn) = OwnTasks::of(task)?;
            (drawn.name().to_owned(), Arc::new(drawn), Some(own))
        }
    };
    Ok(Asked { tasks: Tasks::own(&name, source, seed).rescaled(unit_norm, score_scale), own })
}

/// Families by name.
#[pyfunction]
pub fn families() -> Vec<&'static str> {
    Kind::NAMED.map(Kind::as_str).into()
}

/// Task number `index` of a seed, of a family or a file by name.
#[pyfunction]
pub fn draw(
    py: Python<'_>,
    name: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
    seed: u64,
    index: u64,
) -> PyResult<Task> {
    let tasks = tasks_of(Some(name), &task_options(options)?, ictd::Family::paper(), seed)?.tasks;
    tasks.check().or_raise()?;
    drawn(py, tasks, index)
}

/// Task number `index`.
fn drawn(py: Python<'_>, tasks: Tasks, index: u64) -> PyResult<Task> {
    let m = tasks.num_states();
    memory::admit(memory::task(m, tasks.feature_dim()), "states or features").or_raise()?;
    Task::of(py, m, move || tasks.draw(index))
}
