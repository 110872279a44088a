//! Sweeps on the threads of this machine, and looking at them.

use std::path::{Path, PathBuf};

use ictd_lab::sweep::show::{Asked, Overview, Runs, Statistic};
use ictd_lab::sweep::{self, Plan, Request};
use ictd_lab::{LabError, Seeds};
use pyo3::prelude::*;

use crate::errors::OrRaise;
use crate::report::Report;
use crate::studies::know_program;
use crate::training::notice;
use crate::work::Manner;

/// What is swept, as it is asked for.
fn request(
    plan: &Path,
    written: Option<&(String, String)>,
    out: Option<PathBuf>,
    overrides: Vec<String>,
    seeds: Option<Seeds>,
    fresh: bool,
    extend: bool,
) -> Result<Request, LabError> {
    if written.is_none() && plan.is_dir() {
        if out.is_some() || !overrides.is_empty() || seeds.is_some() {
            let problem = "the directory of a sweep has its plan, expected no out, set or seeds beside it";
            return Err(LabError::refused("plan", problem));
        }
        return Ok(Request { fresh, extend, ..Request::of_directory(plan)? });
    }
    let plan = match written {
        Some((name, text)) => Plan::written(name, text)?,
        None => Plan::read(plan)?,
    };
    Ok(Request { fresh, extend, ..Request::of_plan(plan, out, overrides, seeds)? })
}

/// Does the runs of a plan that are not done; where its table is.
#[pyfunction]
#[pyo3(signature = (plan, written, out, overrides, seeds, fresh, extend, threads, callback))]
pub fn run_sweep<'py>(
    py: Python<'py>,
    plan: PathBuf,
    written: Option<(String, String)>,
    out: Option<PathBuf>,
    overrides: Vec<String>,
    seeds: Option<&str>,
    fresh: bool,
    extend: bool,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<PathBuf> {
    know_program(py)?;
    let seeds = seeds.map(str::parse).transpose().or_raise()?;
    Manner::new(threads, callback).run(py, "sweep", move |progress| {
        let request = request(&plan, written.as_ref(), out, overrides, seeds, fresh, extend)?;
        if request.finished()?.is_none() {
            let opened = request.open(true)?;
            opened.work(&(0..opened.sweep.num_runs()), progress)?;
            opened.finish(progress, notice)?;
        }
        Ok(request.out)
    })
}

/// The table of a sweep as CSV, as far as its runs are done, and how many there will be.
#[pyfunction]
pub fn sweep_table(py: Python<'_>, dir: PathBuf) -> PyResult<(String, usize)> {
    know_program(py)?;
    Manner::new(None, None).run(py, "sweep", move |progress| sweep::table(&dir, progress))
}

/// A sweep as it is looked at.
#[pyfunction]
#[pyo3(signature = (dir, metric, statistic, x, y, callback))]
pub fn show_sweep<'py>(
    py: Python<'py>,
    dir: PathBuf,
    metric: Option<String>,
    statistic: Option<&str>,
    x: Option<String>,
    y: Option<String>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    know_program(py)?;
    let statistic = statistic.map(str::parse::<Statistic>).transpose().or_raise()?;
    let found = Manner::new(None, callback).run(py, "sweep", move |progress| {
        Overview::new(Runs::read(&dir, progress)?, &Asked { metric, statistic, x, y }, progress)
    })?;
    Report::new(found)
}
