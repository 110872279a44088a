//! Studies: reproduction, branches, readings, the mirror block, control.

use std::path::PathBuf;

use ictd_lab::files::process;
use ictd_lab::studies::branches::{self, Map};
use ictd_lab::studies::control::{self, ControlStudyConfig};
use ictd_lab::studies::mirror::{self, MirrorConfig};
use ictd_lab::studies::readings::{self, Search};
use ictd_lab::studies::reproduce;
use ictd_lab::studies::{Paper, Plan};
use ictd_lab::{LabError, did_you_mean};
use pyo3::prelude::*;

use crate::errors::{OrRaise, input};
use crate::report::Report;
use crate::training::notice;
use crate::work::Manner;

/// Results of other builds are not taken up: what tells builds apart is the compiled half, and not the interpreter.
pub fn know_program(py: Python<'_>) -> PyResult<()> {
    process::set_program(py.import("ictd._core")?.getattr("__file__")?.extract()?);
    Ok(())
}

/// Every figure and claim of a paper, with verdicts and a report in `out`.
#[pyfunction]
#[pyo3(signature = (paper, only, quick, seeds, seed, fresh, out, threads, callback))]
pub fn reproduce_paper<'py>(
    py: Python<'py>,
    paper: &str,
    only: Vec<String>,
    quick: bool,
    seeds: Option<&str>,
    seed: u64,
    fresh: bool,
    out: PathBuf,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    know_program(py)?;
    let paper: Paper = paper.parse().or_raise()?;
    let studies = reproduce::select(paper, &only).or_raise()?;
    let plan = Plan { seed, seeds: seeds.map(str::parse).transpose().or_raise()?, quick };
    let found = Manner::new(threads, callback).run(py, "reproduce", move |progress| {
        progress.begin("reproduce", "studies", studies.len() as u64)?;
        reproduce::run(&studies, &plan, &out, fresh, |study, result| match result {
            None => {
                progress.rename(format!("reproduce: {}", study.id));
                progress.check()
            }
            Some((timing, _)) if timing.cached => {
                progress.skip(1);
                Ok(())
            }
            Some(_) => progress.step(1),
        })
    })?;
    Report::new(found)
}

/// Which solution pretraining finds, setting by setting.
#[pyfunction]
#[pyo3(signature = (map, seeds, overrides, fresh, extend, out, threads, callback))]
pub fn branch_map<'py>(
    py: Python<'py>,
    map: &str,
    seeds: &str,
    overrides: Vec<String>,
    fresh: bool,
    extend: bool,
    out: PathBuf,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    know_program(py)?;
    let names = Map::ALL.map(|(name, _)| name);
    let known = Map::ALL.into_iter().find(|(name, _)| *name == map).map(|(_, map)| map);
    let unknown = || {
        let expected = format!("one of {}{}", names.join(", "), did_you_mean(map, names));
        LabError::value("map", format!("'{map}'"), expected)
    };
    let map = known.ok_or_else(unknown).or_raise()?;
    if fresh && extend {
        return Err(input("extend: has no meaning beside fresh, expected one of both"));
    }
    let search =
        branches::Search { map, seeds: seeds.parse().or_raise()?, changes: overrides, fresh, extend };
    let found = Manner::new(threads, callback).run(py, "branches", move |progress| {
        progress.will_write(out.clone());
        let found = branches::run(&search, &out, progress, notice);
        finished(progress, found)
    })?;
    Report::new(found)
}

/// The readings of the paper's experiment that show its figures.
#[pyfunction]
#[pyo3(signature = (seeds, overrides, fresh, out, threads, callback))]
pub fn search_readings<'py>(
    py: Python<'py>,
    seeds: &str,
    overrides: Vec<String>,
    fresh: bool,
    out: PathBuf,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    know_program(py)?;
    let search = Search { seeds: seeds.parse().or_raise()?, changes: overrides, fresh };
    let found = Manner::new(threads, callback).run(py, "readings", move |progress| {
        progress.will_write(out.clone());
        let found = readings::run(&search, &out, progress, notice);
        finished(progress, found)
    })?;
    Report::new(found)
}

/// The mirror block: how training gets there, what it computes, what it costs.
#[pyfunction]
#[pyo3(signature = (seeds, epochs, tasks, threads, callback))]
pub fn mirror_block<'py>(
    py: Python<'py>,
    seeds: &str,
    epochs: u64,
    tasks: u64,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    let config = MirrorConfig { seeds: seeds.parse().or_raise()?, epochs, tasks };
    let found = Manner::new(threads, callback)
        .run(py, "mirror", move |progress| mirror::run(&config, progress, notice))?;
    Report::new(found)
}

/// Policies improved by attention; what is not said is as the command line has it.
#[pyfunction]
#[pyo3(signature = (seed, mdps, updates, transitions, exact_mdps, sweeps, trials, verify, threads, callback))]
pub fn improve_policies<'py>(
    py: Python<'py>,
    seed: u64,
    mdps: Option<u64>,
    updates: Option<usize>,
    transitions: Option<usize>,
    exact_mdps: Option<u64>,
    sweeps: Option<usize>,
    trials: Option<u64>,
    verify: bool,
    threads: Option<usize>,
    callback: Option<Bound<'py, PyAny>>,
) -> PyResult<Report> {
    let usual = ControlStudyConfig::default();
    let config = ControlStudyConfig {
        seed,
        mdps: mdps.unwrap_or(usual.mdps),
        updates: updates.unwrap_or(usual.updates),
        transitions: transitions.unwrap_or(usual.transitions),
        exact_mdps: exact_mdps.unwrap_or(usual.exact_mdps),
        sweeps: sweeps.unwrap_or(usual.sweeps),
        trials: trials.unwrap_or(usual.trials),
        verify,
    };
    let found =
        Manner::new(threads, callback).run(py, "control", move |progress| control::run(&config, progress))?;
    Report::new(found)
}

/// Lets others have the directory of results, and takes it back where there are none.
pub fn finished<T>(progress: &ictd_lab::Progress, found: Result<T, LabError>) -> Result<T, LabError> {
    match &found {
        Ok(_) => progress.release(),
        Err(_) => progress.clean_up(),
    }
    found
}
