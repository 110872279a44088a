//! Contexts: what the Transformer is shown.

use std::path::PathBuf;
use std::sync::Arc;

use ictd::context::{ContextBuilder, End, Role};
use ictd_lab::LabError;
use ictd_lab::files::read_context;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::arrays::Numbers;
use crate::errors::OrRaise;
use crate::work::Manner;

/// A context, shared with work that goes on.
#[pyclass(frozen, eq, module = "ictd._core")]
#[derive(PartialEq)]
pub struct Context(pub Arc<ictd::Context>);

/// How a flag is said.
fn end(is_terminal: bool) -> End {
    if is_terminal { End::Terminated } else { End::Truncated }
}

/// The flag of an episode: its own, or that of all.
pub fn flag(terminated: Option<&[bool]>, episode: usize, episodes: usize) -> Result<End, LabError> {
    match terminated {
        None => Ok(End::Truncated),
        Some([all]) => Ok(end(*all)),
        Some(each) if each.len() == episodes => Ok(end(each[episode])),
        Some(each) => {
            let problem = format!("found {} entries, expected {episodes}, one per episode", each.len());
            Err(LabError::refused("terminated", problem))
        }
    }
}

/// Episodes one after another, and queries. `rows` says how many rows of features every episode has; without it there is one.
pub fn context_of(
    (features, feature_dim): (&[f64], usize),
    rewards: &[f64],
    rows: Option<&[usize]>,
    terminated: Option<&[bool]>,
    queries: Option<(&[f64], usize)>,
) -> Result<ictd::Context, LabError> {
    let mut builder = ictd::Context::builder();
    match rows {
        None => builder = builder.flat_episode(features, feature_dim, rewards, flag(terminated, 0, 1)?),
        Some(rows) => builder = episodes(builder, (features, feature_dim), rewards, rows, terminated)?,
    }
    if let Some((queries, dim)) = queries {
        for query in queries.chunks(dim.max(1)) {
            builder = builder.query(query);
        }
    }
    Ok(builder.build()?)
}

fn episodes(
    mut builder: ContextBuilder,
    (features, feature_dim): (&[f64], usize),
    rewards: &[f64],
    rows: &[usize],
    terminated: Option<&[bool]>,
) -> Result<ContextBuilder, LabError> {
    let found: usize = rows.iter().sum();
    if found.checked_mul(feature_dim) != Some(features.len()) {
        let expected = features.len() / feature_dim.max(1);
        let problem = format!("found {found} entries, expected {expected}, one per row of features");
        return Err(LabError::refused("episode", problem));
    }
    let transitions: usize = rows.iter().map(|rows| rows.saturating_sub(1)).sum();
    if rewards.len() != transitions {
        let each = "one fewer than rows of features in every episode";
        let problem = format!("found {} entries, expected {transitions}: {each}", rewards.len());
        return Err(LabError::refused("rewards", problem));
    }
    let (mut features, mut rewards, episodes) = (features, rewards, rows.len());
    for (k, &rows) in rows.iter().enumerate() {
        let (own, others) = features.split_at((rows * feature_dim).min(features.len()));
        let (paid, later) = rewards.split_at(rows.saturating_sub(1));
        builder = builder.flat_episode(own, feature_dim, paid, flag(terminated, k, episodes)?);
        (features, rewards) = (others, later);
    }
    Ok(builder)
}

/// Arrays of a context as Python gives them.
pub fn context(
    features: &Bound<'_, PyAny>,
    rewards: &Bound<'_, PyAny>,
    rows: Option<&[usize]>,
    terminated: Option<&[bool]>,
    queries: Option<&Bound<'_, PyAny>>,
) -> PyResult<ictd::Context> {
    let (features, rewards) =
        (Numbers::of(features, "features")?.matrix()?, Numbers::of(rewards, "rewards")?.vector()?);
    let queries = queries.map(|queries| Numbers::of(queries, "queries")?.matrix()).transpose()?;
    let asked = queries.as_ref().map(|q| (q.as_slice(), q.num_cols()));
    context_of((features.as_slice(), features.num_cols()), &rewards, rows, terminated, asked).or_raise()
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (features, rewards, rows, terminated, queries))]
    fn new(
        features: &Bound<'_, PyAny>,
        rewards: &Bound<'_, PyAny>,
        rows: Option<Vec<usize>>,
        terminated: Option<Vec<bool>>,
        queries: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let found = context(features, rewards, rows.as_deref(), terminated.as_deref(), queries)?;
        Ok(Self(Arc::new(found)))
    }

    /// From a file of JSON or NPZ.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let context = Manner::default().run(py, "context", move |_| read_context(&path))?;
        Ok(Self(Arc::new(context)))
    }

    /// One row per column.
    fn features<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let context = &self.0;
        let all: Vec<f64> =
            (0..context.num_columns()).flat_map(|j| context.features_of(j)).copied().collect();
        PyArray1::from_vec(py, all).reshape([context.num_columns(), context.feature_dim()])
    }

    /// One number per column, 0 where it is no source.
    fn rewards<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.0.rewards())
    }

    /// `source`, `last`, `terminal` or `query`, for every column.
    fn roles(&self) -> Vec<&'static str> {
        let word = |role: &Role| match role {
            Role::Source => "source",
            Role::Last => "last",
            Role::Terminal => "terminal",
            _ => "query",
        };
        self.0.roles().iter().map(word).collect()
    }

    /// First column, column behind the last one, and whether it ends in a terminal state, of every episode.
    fn episodes(&self) -> Vec<(usize, usize, bool)> {
        self.0.episodes().map(|(columns, end)| (columns.start, columns.end, end == End::Terminated)).collect()
    }

    #[getter]
    fn num_transitions(&self) -> usize {
        self.0.num_transitions()
    }

    #[getter]
    fn num_columns(&self) -> usize {
        self.0.num_columns()
    }

    #[getter]
    fn num_queries(&self) -> usize {
        self.0.num_queries()
    }
}
