//! Errors of the library as exceptions of Python, with the library's text.

use ictd_lab::LabError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

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
        let made = classes(py).and_then(|classes| pick(classes).bind(py).call1((text,)));
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

/// An error of the laboratory as an exception.
pub fn of_lab(error: LabError) -> PyErr {
    let text = error.to_string();
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
