//! The theory studies: certificates, regimes, bounds, NEU, lemmas.

pub(super) mod assumption;
pub mod certify;
pub(super) mod depth;
pub mod lemmas;
pub(super) mod rates;
pub mod regimes;
mod separation;
pub mod theorem2;
pub mod theorem3;

use ictd::context::ContextStatistics;
use ictd::matrix::Matrix;
use ictd::operator::StateOperator;
use ictd::statistics::fit::Slope;
use ictd::statistics::largest;
use ictd::task::FiniteTask;
use ictd::theory::{Constants, Stability};

use super::{Tasks, in_parallel, softmax};
use crate::LabError;

/// A layer of the paper's attention in infinitely long contexts of a task.
fn population(task: &FiniteTask) -> Result<StateOperator, LabError> {
    Ok(StateOperator::population(task, &softmax()?)?)
}

/// What is found on each of the first `tasks` tasks of a family, in their order whatever the number of threads.
fn on_tasks<T: Send>(
    family: &Tasks,
    tasks: u64,
    find: impl Fn(u64, &FiniteTask) -> Result<T, LabError> + Sync,
) -> Result<Vec<T>, LabError> {
    in_parallel(0..tasks, |index| find(index, &family.task(index)?))
}

/// The constants of the bounds on a task.
fn constants(task: &FiniteTask) -> Result<Constants, LabError> {
    Ok(Constants::of(task, &Stability::of(&population(task)?)?)?)
}

/// The context of a path through the states of a task.
fn counted(task: &FiniteTask, states: &[usize]) -> ContextStatistics {
    let m = task.mrp().num_states();
    let mut counts = Matrix::zeros(m, m);
    states.windows(2).for_each(|pair| counts[(pair[0], pair[1])] += 1.0);
    ContextStatistics::counted(task.features(), task.mrp().rewards(), &counts)
}

/// The values after 0, 1, 2, … layers.
fn layers(operator: &StateOperator, step_size: f64) -> impl Iterator<Item = Vec<f64>> {
    let zero = vec![0.0; operator.statistics().num_groups()];
    std::iter::successors(Some(zero), move |v| Some(operator.apply(step_size, v)))
}

/// The values at infinite depth; `None` where the context misses a state.
fn limit(operator: &StateOperator) -> Option<Vec<f64>> {
    let visited = operator.statistics().visits().iter().all(|&c| c > 0.0);
    visited.then(|| operator.infinite_depth().ok()).flatten()
}

/// ‖v - w‖∞; NaN when an entry is.
fn apart(v: &[f64], w: &[f64]) -> f64 {
    largest(v.iter().zip(w).map(|(a, b)| (a - b).abs()))
}

/// A slope with its 95 % interval; `none` where there is none.
fn slope_text(slope: Option<Slope>, digits: usize, none: &str) -> String {
    slope.map_or_else(|| none.to_owned(), |s| format!("{:.digits$} ± {:.digits$}", s.slope, s.half_width))
}
