//! Transformers: every layer's tokens, attention and TD errors, and gradients.

use std::sync::Arc;

use ictd::context::ContextStatistics;
use ictd::kernel::KernelName;
use ictd::matrix::Matrix;
use ictd::td::td_errors;
use ictd::transformer::{Adjoint, Evaluator, LayerValues};
use ictd_lab::studies::forward::{self, Options};
use ictd_lab::{LabError, Watched};
use numpy::PyArrayDyn;
use pyo3::prelude::*;

use crate::arrays::{Numbers, to_array};
use crate::context::Context;
use crate::errors::{OrRaise, input, of_lab};
use crate::forward::{Sizes, admit, admit_square, values};
use crate::params::{Model, Spec, step_sizes};
use crate::report::Report;
use crate::work::Manner;

/// A Transformer that can be run.
#[pyclass(frozen, module = "ictd._core")]
pub struct Transformer(Arc<ictd::Transformer>, KernelName, f64);

/// What is computed of a Transformer on a context; on threads where that takes long.
fn on_context<'py, T: Send + 'static>(
    py: Python<'py>,
    (transformer, context): (&Transformer, &Context),
    threads: Option<usize>,
    (is_small, numbers): (bool, &[usize]),
    work: impl FnOnce(&ictd::Transformer, &ictd::Context, &Watched<'_>) -> Result<T, LabError> + Send + 'static,
) -> PyResult<T> {
    transformer.sizes(context).admit()?;
    admit(numbers)?;
    let (transformer, context) = (transformer.0.clone(), context.0.clone());
    Manner::new(threads, None).run_sized(py, "forward", is_small, move |progress| {
        work(&transformer, &context, &Watched { progress, prefix: "forward" })
    })
}

/// Matrices of equal shape one after another.
fn stacked(matrices: &[&Matrix]) -> Vec<f64> {
    matrices.iter().flat_map(|matrix| matrix.as_slice()).copied().collect()
}

impl Transformer {
    fn sizes(&self, context: &Context) -> Sizes {
        Sizes::of(&self.0, &context.0)
    }

    /// Whether all token matrices of a context are made before threads could be started; refuses V and A that do not fit into memory.
    fn tokens_are_small(&self, context: &Context) -> PyResult<bool> {
        let sizes = self.sizes(context);
        admit_square(sizes.feature_dim + 3)?;
        Ok(sizes.are_small(sizes.tokens()))
    }

    /// Number of depths from 0 to that of all layers.
    fn depths(&self) -> usize {
        self.0.num_layers().saturating_add(1)
    }
}

#[pymethods]
impl Transformer {
    #[new]
    #[pyo3(signature = (gamma, kernel, temperature, layers, step_size, block, diagonal_mix, params))]
    fn new(
        gamma: f64,
        kernel: &str,
        temperature: f64,
        layers: usize,
        step_size: &Bound<'_, PyAny>,
        block: &str,
        diagonal_mix: f64,
        params: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let step_size = step_sizes(step_size)?;
        let spec = Spec { gamma, kernel, temperature, layers, step_size, block, diagonal_mix };
        let model = Model::of(params)?;
        let (kernel, temperature) = spec.kernel(model.as_ref()).map_err(of_lab)?;
        spec.transformer(model).map_err(of_lab).map(|made| Self(Arc::new(made), kernel, temperature))
    }

    #[getter]
    fn kernel(&self) -> &'static str {
        self.1.as_str()
    }

    #[getter]
    fn temperature(&self) -> f64 {
        self.2
    }

    #[getter]
    fn gamma(&self) -> f64 {
        self.0.config().gamma
    }

    #[getter]
    fn layers(&self) -> usize {
        self.0.num_layers()
    }

    #[getter]
    fn block(&self) -> &'static str {
        self.0.config().block.as_str()
    }

    #[getter]
    fn diagonal_mix(&self) -> f64 {
        self.0.config().attention.diagonal_mix()
    }

    #[getter]
    fn step_sizes(&self) -> Vec<f64> {
        self.0.config().step_sizes.clone()
    }

    /// V and A of a layer for so many features.
    fn params<'py>(
        &self,
        py: Python<'py>,
        layer: usize,
        feature_dim: usize,
    ) -> PyResult<[Bound<'py, PyAny>; 2]> {
        admit_square(feature_dim.saturating_add(3))?;
        let (transformer, is_small) = (self.0.clone(), feature_dim <= 300);
        let (size, pair) = Manner::default().run_sized(py, "block", is_small, move |_| {
            let pair = transformer.params(layer, feature_dim);
            Ok((
                pair.feature_dim() + 3,
                [pair.value_matrix(), pair.score_matrix()].map(|m| m.as_slice().to_vec()),
            ))
        })?;
        let [v, a] = pair.map(|numbers| to_array(py, &[size, size], numbers));
        Ok([v?.into_any(), a?.into_any()])
    }

    /// Feature dimension of the parameters, and whether all layers share them; nothing for theta_*.
    fn shape(&self) -> Option<(usize, bool)> {
        use ictd::transformer::Parameters;
        match &self.0.config().parameters {
            Parameters::ThetaStar => None,
            Parameters::Tied(pair) => Some((pair.feature_dim(), true)),
            Parameters::PerLayer(pairs) => pairs.first().map(|pair| (pair.feature_dim(), false)),
        }
    }

    /// (layers + 1, columns).
    fn values<'py>(
        &self,
        py: Python<'py>,
        context: &Context,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        values(py, &Manner::new(threads, None), self.0.clone(), context.0.clone())
    }

    /// (layers + 1, columns).
    fn targets<'py>(
        &self,
        py: Python<'py>,
        context: &Context,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let all = |found: LayerValues| (0..=found.num_layers()).flat_map(|l| found.targets(l)).collect();
        let numbers = [self.depths(), context.0.num_columns()];
        let size = (self.sizes(context).is_small(&self.0), &numbers[..]);
        let found = on_context(py, (self, context), threads, size, move |t, c, w| {
            Ok(all(Evaluator::default().evaluate_watched(t, c, w)?))
        })?;
        to_array(py, &[self.0.num_layers() + 1, context.0.num_columns()], found)
    }

    /// (layers + 1, transitions).
    fn td_errors<'py>(
        &self,
        py: Python<'py>,
        context: &Context,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let numbers = [self.depths(), context.0.num_columns()];
        let size = (self.sizes(context).is_small(&self.0), &numbers[..]);
        let found = on_context(py, (self, context), threads, size, |t, c, w| {
            let (found, gamma) = (Evaluator::default().evaluate_watched(t, c, w)?, t.config().gamma);
            let mut errors = Vec::with_capacity((found.num_layers() + 1) * c.num_transitions());
            for l in 0..=found.num_layers() {
                w.progress.check()?;
                errors.extend(td_errors(c, gamma, &found.values(l)));
            }
            Ok(errors)
        })?;
        to_array(py, &[self.0.num_layers() + 1, context.0.num_transitions()], found)
    }

    /// (layers + 1, d + 3, columns).
    fn tokens<'py>(
        &self,
        py: Python<'py>,
        context: &Context,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let rows = context.0.feature_dim() + 3;
        let numbers = [self.depths(), rows, context.0.num_columns()];
        let size = (self.tokens_are_small(context)?, &numbers[..]);
        let found = on_context(py, (self, context), threads, size, |t, c, _| {
            Ok(stacked(&t.tokens(c)?.iter().map(|z| z.matrix()).collect::<Vec<_>>()))
        })?;
        to_array(py, &[self.0.num_layers() + 1, rows, context.0.num_columns()], found)
    }

    /// (layers, columns, columns), or one matrix where it is that of all layers.
    fn attention<'py>(
        &self,
        py: Python<'py>,
        context: &Context,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let (rows, columns) = (context.0.feature_dim() + 3, context.0.num_columns());
        // At theta_* all layers have the same.
        let matrices = if self.shape().is_none() { 1 } else { self.depths() };
        let numbers = [matrices, columns.max(rows), columns];
        let size = (self.tokens_are_small(context)?, &numbers[..]);
        let (count, found) = on_context(py, (self, context), threads, size, |t, c, _| {
            let weights = t.trace(c)?.1;
            Ok((weights.len(), stacked(&weights.iter().map(|k| k.matrix()).collect::<Vec<_>>())))
        })?;
        to_array(py, &[count, columns, columns], found)
    }

    /// By V's last rows (pairs, d + 3) and A's feature blocks (pairs, d, d), one pair where layers share them.
    fn gradient<'py>(
        &self,
        py: Python<'py>,
        context: &Context,
        layer: usize,
        weights: &Bound<'py, PyAny>,
        threads: Option<usize>,
    ) -> PyResult<[Bound<'py, PyArrayDyn<f64>>; 2]> {
        let (weights, columns) = (Numbers::of(weights, "weights")?.vector()?, context.0.num_columns());
        if weights.len() != columns {
            return Err(input(format!(
                "weights has {} entries, expected one for each of the {columns} columns",
                weights.len()
            )));
        }
        let layers = self.0.num_layers();
        if layer > layers {
            return Err(LabError::value("layer", layer, format!("0 to {layers}"))).or_raise();
        }
        let rows = context.0.feature_dim() + 3;
        let pairs =
            if self.shape().is_none_or(|(_, tied)| tied) { 2 } else { self.depths().saturating_mul(2) };
        let numbers = [pairs, columns.max(layers), columns];
        // Gradients are as large as what they are by, and cost at most as much per pair of columns.
        admit(&[pairs, rows, rows])?;
        let sizes = self.sizes(context);
        let by_pairs = (columns as f64).powi(2) * (rows as f64).powi(2);
        let size = (sizes.are_small(pairs as f64 * by_pairs + sizes.tokens()), &numbers[..]);
        let found = on_context(py, (self, context), threads, size, move |t, c, _| {
            let statistics = ContextStatistics::per_column(c);
            let mut direction = vec![0.0; statistics.num_groups()];
            for (column, weight) in weights.iter().enumerate() {
                if let Some(group) = statistics.group_of(column) {
                    direction[group] += weight;
                }
            }
            let mut adjoint = Adjoint::default();
            adjoint.forward(t, &statistics)?;
            Ok(adjoint.backward(t, &statistics, layer, &direction)?)
        })?;
        let (pairs, d) = (found.score_blocks.len(), rows - 3);
        let blocks = stacked(&found.score_blocks.iter().collect::<Vec<_>>());
        let by_value = to_array(py, &[pairs, rows], found.value_rows.as_slice().to_vec())?;
        Ok([by_value, to_array(py, &[pairs, d, d], blocks)?])
    }

    /// As `ictd forward` reports.
    fn report<'py>(
        &self,
        py: Python<'py>,
        context: &Context,
        precision: Option<&str>,
        tolerance: Option<f64>,
        memory: Option<f64>,
        flags: [bool; 4],
        threads: Option<usize>,
        callback: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Report> {
        let precision = precision.map(str::parse).transpose().map_err(|text: String| input(text))?;
        let [tokens, attention, last, fixed_point] = flags;
        if tokens || attention {
            // For these V and A are written out.
            admit_square(context.0.feature_dim() + 3)?;
        }
        let options = Options {
            precision,
            tolerance,
            memory,
            tokens,
            attention,
            last,
            fixed_point,
            ..Options::default()
        };
        let wanted = options.wanted(true, true);
        let (transformer, context) = (self.0.clone(), context.0.clone());
        let found = Manner::new(threads, callback)
            .run(py, "forward", move |progress| forward::report(&transformer, &context, wanted, progress))?;
        Report::new(found)
    }
}
