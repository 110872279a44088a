//! Certificates, bounds, NEU, regimes, lemmas, and the experiments that need no training.

use ictd::kernel::KernelName;
use ictd::task::{Family, Kind};
use ictd_lab::Progress;
use ictd_lab::error::LabError;
use ictd_lab::report;
use ictd_lab::studies::fig1::{self, MsveConfig};
use ictd_lab::studies::theorem1::verify::{self, VerifyConfig};
use ictd_lab::studies::theory::certify::{self, LayerConfig, Typed};
use ictd_lab::studies::theory::theorem2::{self, BoundConfig};
use ictd_lab::studies::theory::theorem3::{NeuComparison, NeuConfig, NeuSweeps};
use ictd_lab::studies::theory::{lemmas, regimes};
use ictd_lab::studies::{TaskOptions, Tasks};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::context::Context;
use crate::errors::OrRaise;
use crate::own_tasks::or_failure;
use crate::params::Model;
use crate::report::Report;
use crate::tasks::{self, task_options, tasks_of};
use crate::work::Manner;

/// What is asked for where tasks are: the tasks, their options and a seed.
struct Asked<'a, 'py> {
    task: Option<&'a Bound<'py, PyAny>>,
    options: TaskOptions,
    seed: u64,
}

impl<'a, 'py> Asked<'a, 'py> {
    fn of(task: Option<&'a Bound<'py, PyAny>>, options: &Bound<'py, PyDict>, seed: u64) -> PyResult<Self> {
        Ok(Self { task: task.filter(|task| !task.is_none()), options: task_options(options)?, seed })
    }

    fn tasks(&self, default: Family) -> PyResult<tasks::Asked> {
        tasks_of(self.task, &self.options, default, self.seed)
    }

    /// Those that are given, if any.
    fn given(&self, default: Family) -> PyResult<Option<tasks::Asked>> {
        (self.task.is_some() || self.options.is_given()).then(|| self.tasks(default)).transpose()
    }
}

/// Runs a study of tasks; what an object of Python's raised while it drew them is raised again.
fn study<'py, R: report::Report + Send + Sync + 'static>(
    (py, name): (Python<'py>, &str),
    manner: &Manner<'py>,
    asked: Option<tasks::Asked>,
    run: impl FnOnce(Option<Tasks>, &Progress) -> Result<R, LabError> + Send + 'static,
) -> PyResult<Report> {
    let (tasks, own) = asked.map(|asked| (asked.tasks, asked.own)).unzip();
    let found = manner.run(py, name, move |progress| run(tasks, progress));
    Report::new(or_failure(own.flatten().as_ref(), found)?)
}

/// The tasks of a study that cannot do without.
fn needed(tasks: Option<Tasks>) -> Result<Tasks, LabError> {
    tasks.ok_or_else(|| LabError::refused("task", "missing"))
}

/// As `ictd certify`.
#[pyfunction]
#[pyo3(name = "certify", signature = (context, task, options, kernel, temperature, step_size, layers, tolerance, params, attention, tasks, n, index, seed, threads, callback))]
pub fn certificate<'py>(
    py: Python<'py>,
    context: Option<&Bound<'py, Context>>,
    task: Option<&Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
    kernel: Option<&str>,
    temperature: Option<f64>,
    step_size: Option<f64>,
    layers: Option<usize>,
    tolerance: Option<f64>,
    params: Option<&Bound<'py, PyAny>>,
    attention: bool,
    tasks: Option<u64>,
    n: Option<usize>,
    index: Option<u64>,
    seed: u64,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    let asked = Asked::of(task, options, seed)?;
    let given = [
        ("task", asked.task.is_some()),
        ("tasks", tasks.is_some()),
        ("n", n.is_some()),
        ("index", index.is_some()),
    ];
    let of_tasks = |name: &str| !matches!(name, "gamma" | "unit-norm");
    let size = asked.options.given().map(|(name, _)| name).find(|name| of_tasks(name));
    let meant = given.into_iter().find_map(|(name, given)| given.then_some(name)).or(size);
    if let Some(name) = meant.filter(|_| context.is_some()) {
        return Err(LabError::refused(name, "found beside a context, expected one of both")).or_raise();
    }
    let others = [
        ("n", n.is_some()),
        ("index", index.is_some()),
        ("params", params.is_some()),
        ("attention", attention),
    ];
    if let Some((name, _)) = others.into_iter().find(|(_, given)| *given && tasks.is_some()) {
        return Err(LabError::refused(
            name,
            "found beside tasks, which counts over many, expected one of both",
        ))
        .or_raise();
    }
    let kernel = kernel.map(str::parse::<KernelName>).transpose().or_raise()?;
    let drawn = if context.is_some() { None } else { Some(asked.tasks(Family::paper())?) };
    let gamma = drawn.as_ref().map_or(asked.options.gamma, |drawn| Some(drawn.tasks.gamma()));
    let model = Model::of(params)?.map(Model::with_one_step_size).transpose()?;
    let typed = Typed { kernel, temperature, step_size, layers, gamma, tolerance };
    let (layer, gamma) = typed.layer(model).or_raise()?;
    let config = LayerConfig { draw: tasks.is_none(), show_attention: attention, seed, ..layer };
    let manner = Manner::new(threads, callback);
    if let Some(count) = tasks {
        return study((py, "certify"), &manner, drawn, move |tasks, progress| {
            certify::count(&needed(tasks)?, count, &config, progress)
        });
    }
    let (context, unit_norm) = (context.map(|context| context.get().0.clone()), asked.options.unit_norm);
    study((py, "certify"), &manner, drawn, move |tasks, progress| match (context, n) {
        (Some(context), _) => certify::context(&context, gamma, unit_norm, &config, progress),
        (None, Some(n)) => certify::sampled(&needed(tasks)?, index.unwrap_or(0), n, &config, progress),
        (None, None) => certify::task(&needed(tasks)?, index.unwrap_or(0), &config, progress),
    })
}

/// As `ictd bound`.
#[pyfunction]
#[pyo3(signature = (task, options, index, lengths, contexts, delta, seed, threads, callback))]
pub fn bound<'py>(
    py: Python<'py>,
    task: Option<&Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
    index: Option<u64>,
    lengths: Option<Vec<usize>>,
    contexts: u64,
    delta: f64,
    seed: u64,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    let given = Asked::of(task, options, seed)?.given(Family::certified())?;
    study((py, "bound"), &Manner::new(threads, callback), given, move |tasks, progress| {
        let settings = BoundConfig::settings(tasks, index, lengths, contexts, delta, seed);
        theorem2::run_all(&settings, progress)
    })
}

/// As `ictd neu`.
#[pyfunction]
#[pyo3(signature = (task, options, params, lengths, layers, samples, seed, threads, callback))]
pub fn neu<'py>(
    py: Python<'py>,
    task: Option<&Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
    params: Option<&Bound<'py, PyAny>>,
    lengths: Option<Vec<usize>>,
    layers: Option<Vec<usize>>,
    samples: u64,
    seed: u64,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    let (asked, manner) = (Asked::of(task, options, seed)?, Manner::new(threads, callback));
    let Some(model) = Model::of(params)? else {
        let given = asked.given(Family::certified())?;
        return study((py, "neu"), &manner, given, move |tasks, progress| {
            let configs = NeuConfig::settings(tasks, lengths, layers, samples, seed);
            NeuSweeps::run(&configs, progress, |_| ())
        });
    };
    let (name, drawn) = (model.name.clone(), asked.tasks(Family::paper())?);
    let file = model.with_one_step_size()?;
    let first = |list: Option<Vec<usize>>| list.and_then(|list| list.first().copied());
    let (n, layers) = (first(lengths), first(layers));
    study((py, "neu"), &manner, Some(drawn), move |tasks, progress| {
        NeuComparison::run(&needed(tasks)?, (&name, &file), n, layers, samples, progress)
    })
}

/// As `ictd regimes`.
#[pyfunction]
#[pyo3(name = "regimes", signature = (task, options, tasks, seed, threads, callback))]
pub fn regime_map<'py>(
    py: Python<'py>,
    task: Option<&Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
    tasks: u64,
    seed: u64,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    let asked = Asked::of(task, options, seed)?;
    regimes::check_options(&asked.options).or_raise()?;
    let drawn = asked.tasks(Family::paper())?;
    study((py, "regimes"), &Manner::new(threads, callback), Some(drawn), move |found, progress| {
        regimes::run(&needed(found)?, tasks, progress)
    })
}

/// As `ictd lemmas`.
#[pyfunction]
#[pyo3(name = "lemmas", signature = (task, options, trials, seed, threads, callback))]
pub fn lemma_table<'py>(
    py: Python<'py>,
    task: Option<&Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
    trials: u64,
    seed: u64,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    let given = Asked::of(task, options, seed)?.given(Family::certified())?;
    study((py, "lemmas"), &Manner::new(threads, callback), given, move |tasks, progress| {
        lemmas::run(seed, trials, tasks.as_ref(), progress)
    })
}

/// As `ictd verify`.
#[pyfunction]
#[pyo3(name = "verify", signature = (trials, layers, length, features, states, gamma, tolerance, seed, threads, callback))]
pub fn verification<'py>(
    py: Python<'py>,
    trials: Option<u64>,
    layers: Option<usize>,
    length: Option<usize>,
    features: Option<usize>,
    states: Option<usize>,
    gamma: Option<f64>,
    tolerance: Option<f64>,
    seed: u64,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    let usual = VerifyConfig::default();
    let config = VerifyConfig {
        feature_dim: features.unwrap_or(usual.feature_dim),
        context_len: length.unwrap_or(usual.context_len),
        num_layers: layers.unwrap_or(usual.num_layers),
        gamma: gamma.unwrap_or(usual.gamma),
        num_trials: trials.unwrap_or(usual.num_trials),
        num_states: states.unwrap_or(usual.num_states),
        tolerance: tolerance.unwrap_or(usual.tolerance),
        seed,
    };
    study((py, "verify"), &Manner::new(threads, callback), None, move |_, progress| {
        verify::run(&config, progress)
    })
}

/// As `ictd msve`.
#[pyfunction]
#[pyo3(signature = (task, options, tasks, layers, lengths, kernel, temperature, step_size, seed, threads, callback))]
pub fn msve<'py>(
    py: Python<'py>,
    task: Option<&Bound<'py, PyAny>>,
    options: &Bound<'py, PyDict>,
    tasks: Option<u64>,
    layers: Option<usize>,
    lengths: Option<Vec<usize>>,
    kernel: &str,
    temperature: f64,
    step_size: f64,
    seed: u64,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    let kernel: KernelName = kernel.parse().or_raise()?;
    let drawn = Asked::of(task, options, seed)?.tasks(Family::of(Kind::Figure1))?;
    study((py, "msve"), &Manner::new(threads, callback), Some(drawn), move |found, progress| {
        let usual = MsveConfig::default();
        let config = MsveConfig {
            tasks: needed(found)?,
            num_tasks: tasks.unwrap_or(usual.num_tasks),
            num_layers: layers.unwrap_or(usual.num_layers),
            kernel: kernel.to_string(),
            temperature,
            step_size,
            ..usual
        };
        fig1::run(&config.with_lengths(lengths), progress)
    })
}
