//! Errors of the library as exceptions of Python, with the library's text.

use ictd_lab::LabError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::interpreter::call;

/// Classes of `ictd.errors`, which has several bases where an exception is two things at once.
struct Classes {
    input: Py<PyType>,
    input_type: Py<PyType>,
    file: Py<PyType>,
    diverged: Py<PyType>,
    internal: Py<PyType>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    CLASSES.get_or_try_init(py, || {
        let module = py.import("ictd.errors")?;
        let class = |name: &str| -> PyResult<Py<PyType>> {
            Ok(module.getattr(name)?.extract::<Bound<'_, PyType>>()?.unbind())
        };
        Ok(Classes {
            input: class("InputError")?,
            input_type: class("InputTypeError")?,
            file: class("FileError")?,
            diverged: class("DivergedError")?,
            internal: class("InternalError")?,
        })
    })
}

fn raised(pick: impl Fn(&Classes) -> &Py<PyType>, text: &str) -> PyErr {
    Python::attach(|py| {
        let made = classes(py).and_then(|classes| call(pick(classes).bind(py), (text,), None));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// A value that is refused.
pub fn input(text: impl AsRef<str>) -> PyErr {
    raised(|classes| &classes.input, text.as_ref())
}

/// An object of a type that is refused.
pub fn input_type(text: impl AsRef<str>) -> PyErr {
    raised(|classes| &classes.input_type, text.as_ref())
}

/// A failure of the library's own.
pub fn internal(text: impl AsRef<str>) -> PyErr {
    raised(|classes| &classes.internal, text.as_ref())
}

/// What Python raised about a value that it could make nothing of, in the library's words. Anything else, as Ctrl-C, stays what it is.
pub fn refused(
    py: Python<'_>,
    error: PyErr,
    words: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<PyErr>,
) -> PyErr {
    let is_of_value = error.is_instance_of::<PyValueError>(py)
        || error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyOverflowError>(py);
    if is_of_value { words(error.value(py).as_any()).unwrap_or_else(|other| other) } else { error }
}

/// A text in which options of the command line are keywords of Python: those that say yes have a value there.
pub fn as_keywords(text: &str) -> String {
    let mut parts = text.split(" --");
    let mut words = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let yes = if matches!(name, "fresh" | "extend" | "compare") { "=True" } else { "" };
        words += &format!(" {}{yes}{rest}", name.replace('-', "_"));
    }
    words
}

/// An error of the laboratory as an exception.
pub fn of_lab(error: LabError) -> PyErr {
    let text = as_keywords(&error.to_string());
    match &error {
        LabError::Stopped => PyKeyboardInterrupt::new_err(()),
        LabError::Read { source, path } | LabError::Write { source, path } => Python::attach(|py| {
            let arguments = (source.raw_os_error(), text.as_str(), path.to_string_lossy());
            let made = classes(py).and_then(|classes| classes.file.bind(py).call_method1("of", arguments));
            made.map_or_else(|error| error, PyErr::from_value)
        }),
        LabError::Diverged { .. } | LabError::Linalg(_) => raised(|classes| &classes.diverged, &text),
        LabError::Internal { .. } | LabError::Claims { .. } => internal(text),
        _ => input(text),
    }
}

/// Makes exceptions of the errors of a result.
pub trait OrRaise<T> {
    /// The result, or the exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: Into<LabError>> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| of_lab(error.into()))
    }
}

/// What a panic said.
pub fn panicked(payload: Box<dyn std::any::Any + Send>) -> PyErr {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    internal(format!("a bug of ictd, please report it: {text}"))
}

/// No thread could be made.
pub fn no_thread(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("threads: {error}"))
}
