//! Arrays of NumPy, and whatever it makes an array of, as matrices and vectors; and back.

use ictd::matrix::Matrix;
use numpy::{
    Element, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::PyTypeInfo;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString};

use ictd_lab::memory::{self, DOUBLE};

use crate::errors::{OrRaise, input, input_type, refused};
use crate::interpreter::call;

/// Numbers in rows, read where NumPy keeps them when they are `float64`, in whatever order, else converted once.
pub struct Numbers<'py> {
    array: PyReadonlyArrayDyn<'py, f64>,
    name: &'static str,
}

static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static UNMASKED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Finds NumPy's own interface: where it is first looked for in the midst of a call, a signal that comes just then is a panic.
pub fn begin(py: Python<'_>) -> PyResult<()> {
    py.import("numpy")?;
    let empty = PyArray1::<f64>::zeros(py, 0, false);
    empty.readonly();
    Ok(())
}

/// What is given, unless it is an array of which entries are masked: what is under a mask does not count.
fn unmasked<'py>(given: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = given.py();
    if given.get_type().is(PyUntypedArray::type_object(py)) {
        return Ok(given.clone());
    }
    let function = UNMASKED
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("ictd._checks")?.getattr("unmasked")?.unbind()))?;
    call(function.bind(py), (name, given), None)
}

fn asarray<'py>(py: Python<'py>, given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let function =
        ASARRAY.get_or_try_init(py, || Ok::<_, PyErr>(py.import("numpy")?.getattr("asarray")?.unbind()))?;
    call(function.bind(py), (given,), None)
}

/// Refuses arrays of more numbers than fit into memory: a view can be larger, and numbers are copied out of it.
#[pyfunction]
pub fn admit_entries(len: usize, name: &str) -> PyResult<()> {
    memory::admit(len as f64 * DOUBLE, name).or_raise()
}

/// An array whose numbers stand where numbers of their size may stand: a copy of a view into records, where they need not.
pub fn aligned<'py, T: Element>(array: PyReadonlyArrayDyn<'py, T>) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    let size = align_of::<T>() as isize;
    if array.data().is_aligned() && array.strides().iter().all(|stride| stride % size == 0) {
        return Ok(array);
    }
    array.as_any().call_method0("copy")?.extract()
}

/// The entries of an aligned array, the last index fastest.
pub fn entries<T: Element + Copy>(array: &PyReadonlyArrayDyn<'_, T>) -> Vec<T> {
    // The array's own slice is in the order of memory, which is Fortran's where it is asked for.
    let view = array.as_array();
    view.as_slice().map_or_else(|| view.iter().copied().collect(), <[T]>::to_vec)
}

impl<'py> Numbers<'py> {
    /// Numbers of any real type. Complex ones, texts and dates are refused by their name.
    pub fn of(given: &Bound<'py, PyAny>, name: &'static str) -> PyResult<Self> {
        let given = &unmasked(given, name)?;
        if let Ok(array) = given.extract::<PyReadonlyArrayDyn<'py, f64>>() {
            admit_entries(array.len(), name)?;
            return Ok(Self { array: aligned(array)?, name });
        }
        let py = given.py();
        let made = asarray(py, given).map_err(|error| {
            refused(py, error, |said| Ok(input(format!("{name}: {said}, expected numbers"))))
        })?;
        let array = made.cast::<PyUntypedArray>()?;
        admit_entries(array.len(), name)?;
        let kind: char = array.dtype().kind().into();
        if !matches!(kind, 'f' | 'i' | 'u' | 'b' | 'O') {
            let dtype = made.getattr("dtype")?;
            return Err(input_type(format!("{name} has dtype {dtype}, expected real numbers")));
        }
        if kind == 'O' {
            // NumPy would make numbers of texts that look like some.
            for entry in made.getattr("flat")?.try_iter()? {
                let entry = entry?;
                if entry.is_instance_of::<PyString>() || entry.is_instance_of::<PyBytes>() {
                    return Err(input_type(format!("{name} has texts, expected real numbers")));
                }
            }
        }
        let floats = call(&made.getattr("astype")?, ("float64",), None).map_err(|error| {
            refused(py, error, |said| Ok(input_type(format!("{name}: {said}, expected real numbers"))))
        })?;
        Ok(Self { array: floats.extract()?, name })
    }

    /// Its dimensions.
    pub fn shape(&self) -> &[usize] {
        self.array.shape()
    }

    /// All numbers, the last index fastest.
    pub fn to_vec(&self) -> Vec<f64> {
        entries(&self.array)
    }

    /// As a matrix, of two dimensions.
    pub fn matrix(&self) -> PyResult<Matrix> {
        match *self.shape() {
            [rows, cols] => Ok(Matrix::from_vec(rows, cols, self.to_vec())),
            _ => Err(self.refused("two dimensions, (rows, features)")),
        }
    }

    /// As a list, of one dimension.
    pub fn vector(&self) -> PyResult<Vec<f64>> {
        match *self.shape() {
            [_] => Ok(self.to_vec()),
            _ => Err(self.refused("one dimension")),
        }
    }

    /// As a list of matrices, of three dimensions.
    pub fn matrices(&self) -> PyResult<(usize, Vec<Matrix>)> {
        let &[count, rows, cols] = self.shape() else {
            return Err(self.refused("three dimensions, (layers, rows, columns)"));
        };
        let all = self.to_vec();
        let of =
            |k: usize| Matrix::from_vec(rows, cols, all[k * rows * cols..(k + 1) * rows * cols].to_vec());
        Ok((count, (0..count).map(of).collect()))
    }

    /// Refuses its shape.
    pub fn refused(&self, expected: &str) -> PyErr {
        input(format!("{} has shape {:?}, expected {expected}", self.name, self.shape()))
    }
}

/// A matrix as an array.
pub fn to_array2<'py>(py: Python<'py>, matrix: &Matrix) -> PyResult<Bound<'py, PyArray2<f64>>> {
    PyArray1::from_slice(py, matrix.as_slice()).reshape([matrix.num_rows(), matrix.num_cols()])
}

/// Numbers of that shape, the last index fastest, as an array.
pub fn to_array<'py>(
    py: Python<'py>,
    shape: &[usize],
    numbers: Vec<f64>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    PyArray1::from_vec(py, numbers).reshape(shape)
}
