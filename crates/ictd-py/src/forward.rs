//! The forward pass on arrays.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use ictd::context::ContextError;
use ictd::transformer::{Evaluator, LayerValues, Parameters, Transformer};
use ictd_lab::memory::{self, DOUBLE};
use ictd_lab::{LabError, Watched};
use numpy::PyArrayDyn;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::arrays::{Numbers, to_array};
use crate::context::{context, context_of};
use crate::errors::{OrRaise, input, of_lab};
use crate::interpreter::detached;
use crate::params::{Model, Spec, step_sizes};
use crate::work::Manner;

/// Multiplications that are done where they are asked for: threads of one's own cost more.
const SMALL: f64 = 2e7;
/// Columns up to which the library uses no threads.
const FEW: usize = 448;

thread_local! {
    /// Buffers of small forward passes, which are half of the time that these take.
    static EVALUATOR: RefCell<Evaluator> = RefCell::default();
}

/// Refuses numbers of double precision that do not fit into memory: a program that asks for too much would end.
pub fn admit(numbers: &[usize]) -> PyResult<()> {
    let bytes: f64 = numbers.iter().map(|&n| n as f64).product::<f64>() * DOUBLE;
    // Beside results there are those that they are made of, and copies for Python.
    memory::admit(3.0 * bytes, "layers, features, or the number of columns").or_raise()
}

/// Refuses matrices V and A, or others of their size, that do not fit into memory: six of them.
pub fn admit_square(rows: usize) -> PyResult<()> {
    admit(&[2, rows, rows])
}

/// Whether so many multiplications are done before threads could be started.
pub fn is_small(multiplications: f64) -> bool {
    multiplications <= SMALL
}

/// The sizes of work on a context, as numbers.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub columns: usize,
    pub feature_dim: usize,
    pub layers: usize,
}

impl Sizes {
    /// Of a Transformer on a context.
    pub fn of(transformer: &Transformer, context: &ictd::Context) -> Self {
        let (columns, feature_dim) = (context.num_columns(), context.feature_dim());
        Self { columns, feature_dim, layers: transformer.num_layers() }
    }

    /// Multiplications of a forward pass: at theta_* of weights once and of sums layer by layer; parameters of one's own may need all tokens.
    fn forward(self, transformer: &Transformer) -> f64 {
        let [n, d, l] = [self.columns, self.feature_dim, self.layers].map(|x| x as f64);
        match transformer.config().parameters {
            Parameters::ThetaStar => n * n * (d + 3.0 + l),
            _ => self.tokens(),
        }
    }

    /// Multiplications of a pass over full token matrices.
    pub fn tokens(self) -> f64 {
        let [n, rows, l] = [self.columns, self.feature_dim + 3, self.layers].map(|x| x as f64);
        (l + 1.0) * n * rows * (n + rows)
    }

    /// Whether these multiplications are done before threads could be started, and without those of the library.
    pub fn are_small(self, multiplications: f64) -> bool {
        self.columns <= FEW && is_small(multiplications)
    }

    /// Whether a forward pass is.
    pub fn is_small(self, transformer: &Transformer) -> bool {
        self.are_small(self.forward(transformer))
    }

    /// Refuses features and values of all layers that do not fit into memory.
    pub fn admit(self) -> PyResult<()> {
        admit(&[self.layers.saturating_add(1).saturating_add(2 * self.feature_dim), self.columns])
    }
}

/// Row l has the values of all columns after l layers.
fn rows(values: &LayerValues) -> Vec<f64> {
    (0..=values.num_layers()).flat_map(|l| values.values(l)).collect()
}

/// The values of every column after every layer: of a context (columns by layers), or of a batch of them.
#[pyfunction]
#[pyo3(signature = (features, rewards, gamma, kernel, temperature, layers, step_size, block, diagonal_mix, params, queries, rows, terminated, threads))]
pub fn forward<'py>(
    py: Python<'py>,
    features: &Bound<'py, PyAny>,
    rewards: &Bound<'py, PyAny>,
    gamma: f64,
    kernel: &str,
    temperature: f64,
    layers: usize,
    step_size: &Bound<'py, PyAny>,
    block: &str,
    diagonal_mix: f64,
    params: Option<&Bound<'py, PyAny>>,
    queries: Option<&Bound<'py, PyAny>>,
    rows: Option<Vec<usize>>,
    terminated: Option<Vec<bool>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let step_size = step_sizes(step_size)?;
    let spec = Spec { gamma, kernel, temperature, layers, step_size, block, diagonal_mix };
    let transformer = spec.transformer(Model::of(params)?).map_err(of_lab)?;
    let manner = Manner::new(threads, None);
    let numbers = Numbers::of(features, "features")?;
    if numbers.shape().len() == 3 {
        return batch(py, &manner, transformer, &numbers, rewards, queries, rows, terminated);
    }
    let context = context(features, rewards, rows.as_deref(), terminated.as_deref(), queries)?;
    values(py, &manner, transformer, context.into())
}

/// The values of a context, layer by layer.
pub fn values<'py>(
    py: Python<'py>,
    manner: &Manner<'py>,
    transformer: impl Into<std::sync::Arc<Transformer>>,
    context: std::sync::Arc<ictd::Context>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let transformer = transformer.into();
    let sizes = Sizes::of(&transformer, &context);
    sizes.admit()?;
    let found = manner.run_sized(py, "forward", sizes.is_small(&transformer), move |progress| {
        let watched = Watched { progress, prefix: "forward" };
        let run = |evaluator: &mut Evaluator| evaluator.evaluate_watched(&transformer, &context, &watched);
        Ok(EVALUATOR.with_borrow_mut(run).map(|values| rows(&values))?)
    })?;
    to_array(py, &[sizes.layers + 1, sizes.columns], found)
}

/// Contexts of equal sizes, in parallel.
struct Batch {
    count: usize,
    /// Rows and entries of features, entries of rewards, rows of queries: of one context.
    rows: usize,
    dim: usize,
    rewards: usize,
    queries: usize,
    terminated: Option<Vec<bool>>,
}

impl Batch {
    /// The values of context `k`, layer by layer.
    fn values<'a>(
        &self,
        k: usize,
        [features, rewards, queries]: [&'a [f64]; 3],
        (evaluator, transformer): (&mut Evaluator, &Transformer),
        out: &mut [f64],
    ) -> Result<(), LabError> {
        let part = |all: &'a [f64], size: usize| &all[k * size..(k + 1) * size];
        let asked = (self.queries > 0).then(|| (part(queries, self.queries * self.dim), self.dim));
        let (x, r) = (part(features, self.rows * self.dim), part(rewards, self.rewards));
        let ends = match self.terminated.as_deref() {
            Some(each) if each.len() == self.count => Some(&each[k..=k]),
            all => all,
        };
        let found = context_of((x, self.dim), r, None, ends, asked)
            .and_then(|context| Ok(evaluator.evaluate(transformer, &context)?))
            .map_err(|error| of_context(k, error))?;
        for (l, row) in out.chunks_exact_mut(found.num_columns()).enumerate() {
            row.iter_mut().enumerate().for_each(|(j, v)| *v = found.value(l, j));
        }
        Ok(())
    }
}

/// Says which context of a batch an error is about.
fn of_context(k: usize, error: LabError) -> LabError {
    match error {
        LabError::Diverged { place, source, note } => {
            LabError::Diverged { place: format!("context {k}: {place}"), source, note }
        }
        LabError::Stopped => LabError::Stopped,
        other => LabError::refused(format!("context {k}"), other.to_string()),
    }
}

fn batch<'py>(
    py: Python<'py>,
    manner: &Manner<'py>,
    transformer: Transformer,
    features: &Numbers<'py>,
    rewards: &Bound<'py, PyAny>,
    queries: Option<&Bound<'py, PyAny>>,
    rows: Option<Vec<usize>>,
    terminated: Option<Vec<bool>>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    if rows.is_some() {
        return Err(input("episode: has no meaning for a batch, each of whose contexts is one episode"));
    }
    let rewards = Numbers::of(rewards, "rewards")?;
    let queries = queries.map(|queries| Numbers::of(queries, "queries")).transpose()?;
    let &[count, rows, dim] = features.shape() else { return Err(features.refused("three dimensions")) };
    let &[also, paid] = rewards.shape() else {
        return Err(rewards.refused("two dimensions, (contexts, transitions)"));
    };
    if also != count {
        return Err(rewards.refused(&format!("({count}, {}): one row per context", rows.saturating_sub(1))));
    }
    let asked = match &queries {
        None => 0,
        Some(numbers) => match *numbers.shape() {
            [c, q, d] if (c, d) == (count, dim) => q,
            _ => return Err(numbers.refused(&format!("({count}, queries, {dim})"))),
        },
    };
    if terminated.as_ref().is_some_and(|each| each.len() != count && each.len() != 1) {
        return Err(input(format!("terminated: expected one flag, or one for each of the {count} contexts")));
    }
    // Said as of any context, of which there may be none.
    let shape_error = match (dim, rows) {
        (0, _) => Some(ContextError::NoFeatures),
        (_, rows) if rows != paid + 1 => {
            Some(ContextError::EpisodeLength { episode: 0, features: rows, rewards: paid })
        }
        _ => None,
    };
    if let Some(error) = shape_error {
        return Err(of_lab(of_context(0, error.into())));
    }
    let shape = Batch { count, rows, dim, rewards: paid, queries: asked, terminated };
    let [x, r] = [features.to_vec(), rewards.to_vec()];
    let q = queries.map(|numbers| numbers.to_vec()).unwrap_or_default();
    let sizes = Sizes { columns: rows + asked, feature_dim: dim, layers: transformer.num_layers() };
    // Shapes of no contexts have limits too.
    admit(&[count.max(1), sizes.layers.saturating_add(1), sizes.columns])?;
    let size = (sizes.layers + 1) * sizes.columns;
    let mut out = vec![0.0; count * size];
    if sizes.are_small(count as f64 * sizes.forward(&transformer)) {
        manner.check()?;
        let done = detached(py, || {
            let mut evaluator = Evaluator::default();
            let mut all = out.chunks_exact_mut(size.max(1)).enumerate();
            all.try_for_each(|(k, out)| shape.values(k, [&x, &r, &q], (&mut evaluator, &transformer), out))
        });
        done.map_err(of_lab)?;
    } else {
        out = manner.run(py, "forward", move |progress| {
            progress.begin("forward", "contexts", count as u64)?;
            // The first that fails, in their order, is told of: only what comes after a failure is left out.
            let failed = AtomicUsize::new(usize::MAX);
            let each = |evaluator: &mut Evaluator, (k, out): (usize, &mut [f64])| {
                if k > failed.load(Ordering::Relaxed) {
                    return Ok(());
                }
                progress.step(1)?;
                let done = shape.values(k, [&x, &r, &q], (evaluator, &transformer), out);
                if done.is_err() {
                    failed.fetch_min(k, Ordering::Relaxed);
                }
                done
            };
            let chunks = out.par_chunks_exact_mut(size.max(1)).enumerate();
            let done: Vec<Result<(), LabError>> = chunks.map_init(Evaluator::default, each).collect();
            done.into_iter().collect::<Result<(), LabError>>()?;
            Ok(out)
        })?;
    }
    to_array(py, &[count, sizes.layers + 1, sizes.columns], out)
}
