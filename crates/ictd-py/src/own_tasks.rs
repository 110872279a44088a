//! Families of tasks that are classes of Python.

use std::sync::{Arc, Mutex, PoisonError};

use ictd::matrix::Matrix;
use ictd::task::{Drawn, FiniteTask, Mrp, TaskError};
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyType};

use crate::arrays::Numbers;
use crate::errors::{OrRaise, input_type, refused};
use crate::interpreter::{attached, call, stop_work};

/// What a task needs to have.
const EXPECTED: &str = "expected P, rewards, gamma, features and initial (or None), as attributes or keys";

/// An object that draws tasks, and what it raised last.
#[derive(Debug)]
pub struct OwnTasks {
    object: Py<PyAny>,
    failure: Mutex<Option<PyErr>>,
}

/// The parts of a task.
struct Parts {
    transitions: Matrix,
    rewards: Vec<f64>,
    gamma: f64,
    features: Matrix,
    initial: Option<Vec<f64>>,
    values: Option<Vec<f64>>,
}

impl Parts {
    fn of(task: &Bound<'_, PyAny>) -> PyResult<Self> {
        let has = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            let found = match task.cast::<PyMapping>() {
                Ok(mapping) if mapping.contains(name)? => Some(mapping.get_item(name)?),
                Ok(_) => None,
                Err(_) => task.getattr_opt(name)?,
            };
            Ok(found.filter(|value| !value.is_none() && !value.is_callable()))
        };
        let need = |name: &str| -> PyResult<Bound<'_, PyAny>> {
            let kind = task.get_type().name()?;
            has(name)?.ok_or_else(|| input_type(format!("draw returned {kind} without {name}, {EXPECTED}")))
        };
        let gamma = need("gamma")?;
        let gamma = gamma.extract::<f64>();
        let optional =
            |name: &'static str| has(name)?.map(|given| Numbers::of(&given, name)?.vector()).transpose();
        Ok(Self {
            transitions: Numbers::of(&need("P")?, "P")?.matrix()?,
            rewards: Numbers::of(&need("rewards")?, "rewards")?.vector()?,
            gamma: gamma.map_err(|error| {
                refused(task.py(), error, |said| Ok(input_type(format!("gamma: {said}, expected a number"))))
            })?,
            features: Numbers::of(&need("features")?, "features")?.matrix()?,
            initial: optional("initial")?,
            values: optional("values")?,
        })
    }

    fn task(self) -> Result<FiniteTask, TaskError> {
        let states = self.rewards.len();
        let initial = self.initial.unwrap_or_else(|| vec![1.0 / states as f64; states]);
        let mrp = Mrp::new(self.transitions, self.rewards, self.gamma, initial)?;
        match self.values {
            Some(values) => FiniteTask::with_values(mrp, self.features, values),
            None => FiniteTask::new(mrp, self.features),
        }
    }
}

impl OwnTasks {
    /// The tasks of an object with `draw(seed, index)`, under its class's name.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<(Arc<Self>, Drawn)> {
        let kind = object.get_type().name()?;
        if object.is_instance_of::<PyType>() {
            return Err(input_type("task is a class, expected an object of it, as in MyFamily()"));
        }
        if !object.getattr_opt("draw")?.is_some_and(|draw| draw.is_callable()) {
            let expected = "expected the name of a family, a task file or an object with draw(seed, index)";
            return Err(input_type(format!("task is {kind}, {expected}")));
        }
        let family = Arc::new(Self { object: object.clone().unbind(), failure: Mutex::new(None) });
        let own = family.clone();
        let drawn = Drawn::new(&kind.to_string(), move |seed, index| own.draw(seed, index));
        let drawn =
            drawn.map_err(|error| family.failure().unwrap_or_else(|| crate::errors::of_lab(error.into())))?;
        Ok((family, drawn))
    }

    /// Whatever thread asks. What Python raises is kept, and ends the work in the library's words: no other task is drawn then.
    fn draw(&self, seed: u64, index: u64) -> Result<FiniteTask, TaskError> {
        if self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Err(TaskError::Own("stopped".into()));
        }
        let drawn = attached(|py, inside| {
            let draw = self.object.bind(py).getattr("draw");
            let task = draw.and_then(|draw| call(&draw, (seed, index), None));
            task.and_then(|task| Parts::of(&task)).map_err(|error| {
                if inside.is_asked() {
                    return TaskError::Own("stopped".into());
                }
                let text = format!("task {index} of seed {seed}: {}", error.value(py));
                // Nothing that others still do can be used.
                stop_work();
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                TaskError::Own(text)
            })
        });
        let parts = drawn.unwrap_or_else(|| Err(TaskError::Own("stopped".into())))?;
        parts.task().map_err(|error| TaskError::Own(format!("task {index} of seed {seed}: {error}")))
    }

    /// What Python raised while it drew, as it was.
    pub fn failure(&self) -> Option<PyErr> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A result of work that draws tasks of this family; what it raised comes first.
pub fn or_failure<T>(family: Option<&Arc<OwnTasks>>, done: PyResult<T>) -> PyResult<T> {
    done.map_err(|error| family.and_then(|family| family.failure()).unwrap_or(error))
}

/// Settings on the tasks of a family, if there is one.
pub fn on_family(
    settings: ictd_lab::studies::pretrain::Settings,
    object: Option<&Bound<'_, PyAny>>,
) -> PyResult<(ictd_lab::studies::pretrain::Settings, Option<Arc<OwnTasks>>)> {
    let Some(object) = object else { return Ok((settings, None)) };
    let (family, drawn) = OwnTasks::of(object)?;
    Ok((settings.on_tasks(drawn).or_raise()?, Some(family)))
}
