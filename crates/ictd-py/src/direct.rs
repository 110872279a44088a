//! Algorithms without Transformers, kernels, and what does the same in linear attention.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ictd::construction::{Algorithm, ConstructionConfig};
use ictd::context::{End, Role};
use ictd::kernel::{AttentionError, KernelName, KernelWeights};
use ictd::matrix::Matrix;
use ictd::prompt::TokenMatrix;
use ictd::td::{
    AverageRewardTd, Estimator, LambdaTd, LinearTd, MonteCarloRegression, NonParametricTd, ReflectedTd,
    ResidualGradientTd, TabularTd, WeightedSoftmaxTd,
};
use ictd::transformer::AttentionParams;
use ictd::watch::{Stopped, Watch};
use ictd_lab::files::Tensors;
use ictd_lab::studies::circuit::{CircuitConfig, CircuitName};
use ictd_lab::studies::forward::ConstructionOptions;
use ictd_lab::{LabError, Progress, Watched};
use numpy::{PyArray1, PyArray2, PyArrayDyn};
use pyo3::prelude::*;

use crate::arrays::{Numbers, to_array, to_array2};
use crate::context::Context;
use crate::errors::{OrRaise, input, input_type, internal, of_lab, refused};
use crate::forward::{Sizes, admit, admit_square, is_small};
use crate::interpreter::{Inside, call, ending};
use crate::params::{Model, attention, iterations, score_block, step_sizes};
use crate::report::Report;
use crate::work::Manner;

/// Kernels by name.
#[pyfunction]
pub fn kernels() -> Vec<&'static str> {
    KernelName::ALL.map(KernelName::as_str).into()
}

/// Constructions by name.
#[pyfunction]
pub fn algorithms() -> Vec<&'static str> {
    Algorithm::ALL.map(Algorithm::as_str).into()
}

/// Circuits by name.
#[pyfunction]
pub fn circuits() -> Vec<&'static str> {
    CircuitName::ALL.map(CircuitName::as_str).into()
}

/// An algorithm by name: values of all columns, iteration by iteration.
#[pyfunction]
#[pyo3(signature = (name, context, gamma, layers, step_size, kernel, temperature, diagonal_mix, lam, threads))]
pub fn td<'py>(
    py: Python<'py>,
    name: &str,
    context: &Context,
    gamma: f64,
    layers: usize,
    step_size: &Bound<'py, PyAny>,
    kernel: &str,
    temperature: f64,
    diagonal_mix: f64,
    lam: f64,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let step_sizes = iterations(gamma, layers, &step_sizes(step_size)?).map_err(of_lab)?;
    let attention = attention(kernel, temperature, diagonal_mix).map_err(of_lab)?;
    let lambda = ConstructionConfig { lambda: lam, ..ConstructionConfig::new(Algorithm::TdLambda, 0) };
    let lambda = lambda.check().or_raise()?.config().lambda;
    let (preconditioners, name) = (Vec::new(), name.to_owned());
    let estimator: Box<dyn Estimator + Send + Sync> = match name.as_str() {
        "weighted_softmax" => Box::new(WeightedSoftmaxTd { attention, gamma, step_sizes }),
        "reflected" => Box::new(ReflectedTd { temperature, gamma, step_sizes }),
        "tabular" => Box::new(TabularTd { gamma, step_sizes }),
        "linear" => Box::new(LinearTd { gamma, step_sizes }),
        "lambda" => Box::new(LambdaTd { lambda, gamma, step_sizes, preconditioners }),
        "residual_gradient" => Box::new(ResidualGradientTd { gamma, step_sizes, preconditioners }),
        "average_reward" => Box::new(AverageRewardTd { step_sizes, preconditioners }),
        "monte_carlo" => Box::new(MonteCarloRegression { gamma, step_sizes, preconditioners }),
        _ => return Err(internal(format!("no algorithm is called {name}"))),
    };
    let (columns, feature_dim) = (context.0.num_columns(), context.0.feature_dim());
    let sizes = Sizes { columns, feature_dim, layers };
    admit(&[layers.saturating_add(context.0.num_transitions()), columns])?;
    sizes.admit()?;
    let by_pairs = columns as f64 * (columns + feature_dim) as f64 * layers.max(feature_dim) as f64;
    let context = context.0.clone();
    let run = move |progress: &Arc<Progress>| {
        Ok(estimator.run_watched(&context, &Watched { progress, prefix: "td" })?)
    };
    let found = Manner::new(threads, None).run_sized(py, "td", sizes.are_small(by_pairs), run)?;
    to_array(py, &[layers + 1, columns], found.concat())
}

/// How many calls of a function of Python's are made before signals are looked for: one that is compiled does not look itself.
const CALLS: u64 = 16;

/// Ends an iteration of which a similarity failed.
struct UntilFailure(AtomicBool);

impl UntilFailure {
    fn has_failed(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Watch for UntilFailure {
    fn begin(&self, _: &str, _: &'static str, _: u64) -> Result<(), Stopped> {
        self.advance(0)
    }
    fn advance(&self, _: u64) -> Result<(), Stopped> {
        if self.has_failed() { Err(Stopped) } else { Ok(()) }
    }
}

/// Normalised non-parametric TD with a similarity of Python's.
#[pyfunction]
#[pyo3(signature = (context, kappa, gamma, layers, step_size))]
pub fn nonparametric_td<'py>(
    py: Python<'py>,
    context: &Context,
    kappa: &Bound<'py, PyAny>,
    gamma: f64,
    layers: usize,
    step_size: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let step_sizes = iterations(gamma, layers, &step_sizes(step_size)?).map_err(of_lab)?;
    admit(&[layers.saturating_add(1), context.0.num_columns()])?;
    let _inside = Inside::enter().ok_or_else(ending)?;
    let failure: RefCell<Option<PyErr>> = RefCell::new(None);
    // Of a state all sources are asked one after another.
    let (sources, calls, total) = (context.0.num_transitions() as u64, Cell::new(0_u64), Cell::new(0.0));
    let until = UntilFailure(AtomicBool::new(false));
    let similarity = |x: &[f64], y: &[f64]| {
        let asked = || -> PyResult<f64> {
            calls.set(calls.get() + 1);
            if calls.get().is_multiple_of(CALLS) {
                py.check_signals()?;
            }
            let pair = (PyArray1::from_slice(py, x), PyArray1::from_slice(py, y));
            let found = call(kappa, pair, None)?;
            let is = || Ok(format!("kappa returned {}, expected a number", found.get_type().name()?));
            let found: f64 = found.extract().map_err(|error| refused(py, error, |_| is().map(input_type)))?;
            if !(found.is_finite() && found >= 0.0) {
                return Err(input(format!(
                    "kappa is {found} for a pair of states, expected a positive number"
                )));
            }
            total.set(total.get() + found);
            if calls.get().is_multiple_of(sources) && total.replace(0.0) == 0.0 {
                let expected = "expected a positive number for one at least";
                return Err(input(format!("kappa is 0 for a state and every source, {expected}")));
            }
            Ok(found)
        };
        if until.has_failed() {
            return f64::NAN;
        }
        asked().unwrap_or_else(|error| {
            until.0.store(true, Ordering::Relaxed);
            *failure.borrow_mut() = Some(error);
            f64::NAN
        })
    };
    let found = NonParametricTd { kappa: similarity, gamma, step_sizes }.run_watched(&context.0, &until);
    if let Some(error) = failure.take() {
        return Err(error);
    }
    to_array(py, &[layers + 1, context.0.num_columns()], found.or_raise()?.concat())
}

/// The weights that linear TD comes to, if it does: those of least squares.
#[pyfunction]
pub fn least_squares<'py>(
    py: Python<'py>,
    context: &Context,
    gamma: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let algorithm = LinearTd {
        gamma,
        step_sizes: iterations(gamma, 0, &ictd_lab::studies::forward::StepSizes::All(1.0)).map_err(of_lab)?,
    };
    let (d, n) = (context.0.feature_dim(), context.0.num_columns());
    admit_square(d)?;
    let context = context.0.clone();
    let is_small = is_small((d as f64).powi(2) * (d + n) as f64);
    let found = Manner::default()
        .run_sized(py, "least squares", is_small, move |_| Ok(algorithm.fixed_point(&context)?))?;
    Ok(PyArray1::from_vec(py, found))
}

/// Similarities of all sources (rows) to them and to queries (columns), as a kernel looks at them.
#[pyfunction]
#[pyo3(signature = (features, queries, kernel, score_matrix))]
pub fn similarities<'py>(
    py: Python<'py>,
    features: &Bound<'py, PyAny>,
    queries: Option<&Bound<'py, PyAny>>,
    kernel: &str,
    score_matrix: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let features = Numbers::of(features, "features")?.matrix()?;
    let queries = queries.map(|queries| Numbers::of(queries, "queries")?.matrix()).transpose()?;
    let (n, d) = (features.num_rows(), features.num_cols());
    let attention = attention(kernel, 1.0, 0.0).map_err(of_lab)?;
    let block = score_block(score_matrix)?;
    let (rows, cols) = block.as_ref().map_or((d, d), |block| (block.num_rows(), block.num_cols()));
    if (rows, cols) != (d, d) {
        return Err(input(format!(
            "A has shape [{rows}, {cols}], expected [{d}, {d}]: one row and column per feature"
        )));
    }
    if n == 0 {
        return Err(input("features: there are no rows, expected at least one source"));
    }
    let columns = n + 1 + queries.as_ref().map_or(0, Matrix::num_rows);
    admit(&[columns, columns])?;
    admit_square(d + 3)?;
    // Sources are left: a last row that is not looked at ends their episode.
    let rows: Vec<&[f64]> = features.rows().chain(features.rows().take(1)).collect();
    let mut builder = ictd::Context::builder().episode(&rows, &vec![0.0; n], End::Truncated);
    for query in queries.iter().flat_map(Matrix::rows) {
        builder = builder.query(query);
    }
    let context = builder.build().or_raise()?;
    let is_small = is_small(((d + 3) as f64).powi(2) * (n * columns) as f64);
    let found = Manner::default().run_sized(py, "similarities", is_small, move |_| {
        let block = block.unwrap_or_else(|| Matrix::identity(d));
        let (params, roles) = (AttentionParams::looped([0.0; 3], &block), context.roles());
        let tokens = TokenMatrix::prompt(&context);
        let found = KernelWeights::similarities(&attention, params.score_matrix(), &tokens, roles);
        let columns: Vec<usize> = (0..roles.len()).filter(|&j| roles[j] != Role::Last).collect();
        Ok(Matrix::from_fn(n, columns.len(), |i, j| found[(i, columns[j])]))
    })?;
    to_array2(py, &found)
}

/// Weights of similarities: row i has those of source i, and column i is that source for i < n.
#[pyfunction]
pub fn kernel_weights<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    kernel: &str,
    temperature: f64,
    diagonal_mix: f64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let attention = attention(kernel, temperature, diagonal_mix).map_err(of_lab)?;
    let scores = Numbers::of(scores, "scores")?.matrix()?;
    let n = scores.num_rows();
    admit(&[n, scores.num_cols()])?;
    // An exponential is some dozens of multiplications.
    let is_small = is_small(50.0 * scores.as_slice().len() as f64);
    let found = Manner::default().run_sized(py, "kernel weights", is_small, move |progress| {
        let mut columns = scores.transpose();
        for j in 0..columns.num_rows() {
            let column = columns.row_mut(j);
            if column.iter().any(|score| !score.is_finite()) {
                return Err(AttentionError::ScoreOverflow { column: j }.into());
            }
            attention.weigh_column(column, Some(j).filter(|j| *j < n));
            progress.check()?;
        }
        Ok(columns.transpose())
    })?;
    to_array2(py, &found)
}

/// As `ictd forward --construction` reports.
#[pyfunction]
#[pyo3(signature = (algorithm, context, gamma, layers, step_size, lam, tokens, threads, callback))]
pub fn construct<'py>(
    py: Python<'py>,
    algorithm: &str,
    context: &Context,
    gamma: Option<f64>,
    layers: Option<usize>,
    step_size: &Bound<'py, PyAny>,
    lam: Option<f64>,
    tokens: bool,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    let algorithm: Algorithm =
        algorithm.parse().map_err(|e: ictd::construction::AlgorithmError| input(e.to_string()))?;
    let step_size = Some(step_sizes(step_size)?);
    let options = ConstructionOptions { algorithm, lambda: lam, layers, gamma, step_size, tokens };
    let context = context.0.clone();
    Report::new(
        Manner::new(threads, callback)
            .run(py, "construct", move |progress| options.report(&context, progress))?,
    )
}

/// The tokens that a construction's layers are given.
#[pyfunction]
pub fn construction_prompt<'py>(
    py: Python<'py>,
    algorithm: &str,
    context: &Context,
    gamma: f64,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let algorithm: Algorithm =
        algorithm.parse().map_err(|e: ictd::construction::AlgorithmError| input(e.to_string()))?;
    let construction =
        ConstructionConfig { gamma, ..ConstructionConfig::new(algorithm, 0) }.check().or_raise()?;
    let tokens = construction.tokens(&context.0).or_raise()?;
    to_array2(py, &tokens[0])
}

/// A circuit: its card, and its tensors by name.
#[pyfunction]
#[pyo3(signature = (name, features, layers, gamma, step_size, params, seed))]
pub fn circuit<'py>(
    py: Python<'py>,
    name: &str,
    features: Option<usize>,
    layers: Option<usize>,
    gamma: Option<f64>,
    step_size: Option<f64>,
    params: Option<&Bound<'py, PyAny>>,
    seed: u64,
) -> PyResult<(Report, Vec<(String, Bound<'py, PyArrayDyn<f64>>)>)> {
    let name: CircuitName = name.parse().map_err(|text: String| input(text))?;
    let model = Model::of(params)?.map(Model::with_one_step_size).transpose()?;
    let config = CircuitConfig { features, layers, gamma, step_size, seed };
    let made = Manner::default().run(py, "circuit", move |_| {
        let made = config.circuit(name, model)?;
        let tensors =
            Tensors::from_bytes(made.tensors()).map_err(|error| LabError::internal("circuit", error))?;
        Ok((made, Arc::new(tensors)))
    })?;
    let (made, tensors) = made;
    let arrays = tensors.tensors.iter().map(|(name, (shape, numbers))| {
        let numbers = numbers.iter().map(|&x| f64::from(x)).collect();
        Ok((name.clone(), to_array(py, shape, numbers)?))
    });
    let arrays = arrays.collect::<PyResult<_>>()?;
    Ok((Report::new(made)?, arrays))
}
