//! Task files: the one format in which tasks are written and read.

use std::path::Path;
use std::sync::Arc;

use ictd::task::{CartPole, FiniteTask, Mrp, Physics, TaskError, TaskSource};
use serde::{Deserialize, Serialize};

use super::context::{Numbers, at, matrix, parse_json, plain, read_bytes, rows};
use super::sha256;
use crate::LabError;

/// Numbers that follow from others may miss them by this much of the largest: ten digits by hand pass.
const TOLERANCE: f64 = 1e-9;
/// Eigenvalues move more than the matrix they belong to.
const EIGENVALUE_TOLERANCE: f64 = 1e-6;

/// A task as JSON. One with finitely many states needs `gamma`, `transitions`, `rewards` and `features`; without an
/// `initial_distribution` it starts anywhere. A cart-pole needs its physics and the rewards of its bins. What
/// follows from these is written for the reader, and checked where it is read.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "a task object", default)]
pub struct TaskFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gamma: Option<f64>,
    /// Row s: p(· | s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transitions: Option<Vec<Numbers>>,
    /// r(s); cart-pole: of every bin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rewards: Option<Numbers>,
    /// p₀.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) initial_distribution: Option<Numbers>,
    /// Row s: x(s); cart-pole: by bin, or absent where features are coordinates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) features: Option<Vec<Numbers>>,
    /// v(s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) values: Option<Numbers>,
    /// μ(s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stationary_distribution: Option<Numbers>,
    /// Real and imaginary parts of P's eigenvalues, by decreasing modulus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) eigenvalues: Option<Vec<Numbers>>,
    /// Eigenvalues of the additive reversibilisation, decreasing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reversibilisation_spectrum: Option<Numbers>,
    /// Cart-pole: its physics and policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cartpole: Option<Physics>,
    /// Cart-pole: Monte-Carlo value of the upright rest state; absent when γ is too close to 1 to afford it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rest_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rest_value_sem: Option<f64>,
}

/// A task of either kind.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyTask {
    /// With finitely many states and everything known.
    Finite(FiniteTask),
    /// A cart-pole, which can be sampled.
    CartPole(CartPole),
}

/// A task file that was read.
#[derive(Clone, Debug)]
pub struct NamedTask {
    /// Where it was read from, as given.
    pub name: String,
    /// SHA-256 of its content.
    pub sha256: String,
    /// The task.
    pub task: AnyTask,
}

/// Reads a task file; `-` is standard input.
pub fn read_task(path: &Path) -> Result<NamedTask, LabError> {
    task_of(path, &read_bytes(path)?)
}

/// As [`read_task`], of a file whose content is in memory.
pub fn task_of(path: &Path, bytes: &[u8]) -> Result<NamedTask, LabError> {
    let file: TaskFile = parse_json(path, bytes)?;
    let task = file.into_task().map_err(|e| at(path, e))?;
    Ok(NamedTask { name: path.display().to_string(), sha256: sha256(bytes), task })
}

impl NamedTask {
    /// The file as a source of tasks, its feature vectors rescaled.
    pub fn source(&self, unit_norm: bool, score_scale: f64) -> Result<Arc<dyn TaskSource>, LabError> {
        let changed = unit_norm || score_scale != 1.0;
        let expected = "expected a task with finitely many states";
        match &self.task {
            AnyTask::Finite(task) if changed => Ok(Arc::new(task.rescaled(unit_norm, score_scale)?)),
            AnyTask::Finite(task) => Ok(Arc::new(task.clone())),
            AnyTask::CartPole(_) if changed => Err(LabError::refused("unit-norm and score-scale", expected)),
            AnyTask::CartPole(task) => Ok(Arc::new(task.clone())),
        }
    }
}

impl TaskFile {
    /// Everything about a task.
    pub fn of(task: &AnyTask) -> Result<Self, LabError> {
        match task {
            AnyTask::Finite(task) => {
                let p = task.mrp().transitions();
                let eigenvalues = p.eigenvalues()?.into_iter().map(|z| some(&[z.re, z.im])).collect();
                Ok(Self {
                    gamma: Some(task.mrp().gamma()),
                    transitions: Some(rows(p.matrix())),
                    rewards: Some(some(task.mrp().rewards())),
                    initial_distribution: Some(some(task.mrp().initial_distribution())),
                    features: Some(rows(task.features())),
                    values: Some(some(task.values())),
                    stationary_distribution: Some(some(task.stationary_distribution())),
                    eigenvalues: Some(eigenvalues),
                    reversibilisation_spectrum: Some(some(&p.reversibilisation_spectrum()?)),
                    ..Self::default()
                })
            }
            AnyTask::CartPole(task) => Ok(Self {
                gamma: Some(task.gamma()),
                rewards: Some(some(task.rewards())),
                features: task.feature_table().map(rows),
                cartpole: Some(*task.physics()),
                ..Self::default()
            }),
        }
    }

    /// The task that the file describes.
    pub(crate) fn into_task(self) -> Result<AnyTask, LabError> {
        let missing = |name: &str| LabError::refused(name, "missing, expected numbers");
        let gamma = self.gamma.ok_or_else(|| {
            LabError::refused("gamma", "missing or no number, expected the discount, as in \"gamma\": 0.9")
        })?;
        let rewards = plain(self.rewards.ok_or_else(|| missing("rewards"))?);
        let features = self.features.map(|rows| matrix("features", rows)).transpose()?;
        if let Some(physics) = self.cartpole {
            if self.transitions.is_some() {
                return Err(LabError::refused("cartpole", "expected without transitions"));
            }
            return Ok(AnyTask::CartPole(CartPole::new(physics, gamma, rewards, features)?));
        }
        let transitions = matrix("transitions", self.transitions.ok_or_else(|| missing("transitions"))?)?;
        let features = features.ok_or_else(|| missing("features"))?;
        let m = transitions.num_rows();
        let initial = self.initial_distribution.map_or_else(|| vec![1.0 / m as f64; m], plain);
        let mrp = Mrp::new(transitions, rewards, gamma, initial).map_err(TaskError::from)?;
        let task = match self.values {
            Some(values) => FiniteTask::with_values(mrp, features, plain(values))?,
            None => FiniteTask::new(mrp, features)?,
        };
        let p = task.mrp().transitions();
        follows("stationary_distribution", self.stationary_distribution, TOLERANCE, || {
            Ok(task.stationary_distribution().to_vec())
        })?;
        follows("reversibilisation_spectrum", self.reversibilisation_spectrum, TOLERANCE, || {
            Ok(p.reversibilisation_spectrum()?)
        })?;
        let eigenvalues = self.eigenvalues.map(|pairs| pairs.into_iter().flatten().collect());
        follows("eigenvalues", eigenvalues, EIGENVALUE_TOLERANCE, || {
            Ok(p.eigenvalues()?.into_iter().flat_map(|z| [z.re, z.im]).collect())
        })?;
        Ok(AnyTask::Finite(task))
    }
}

fn some(numbers: &[f64]) -> Numbers {
    numbers.iter().copied().map(Some).collect()
}

/// Refuses numbers that do not follow from the others.
fn follows(
    name: &str,
    given: Option<Numbers>,
    tolerance: f64,
    computed: impl FnOnce() -> Result<Vec<f64>, LabError>,
) -> Result<(), LabError> {
    let Some(given) = given.map(plain) else { return Ok(()) };
    let computed = computed()?;
    if given.len() != computed.len() {
        let problem = format!("{} numbers, expected {}", given.len(), computed.len());
        return Err(LabError::refused(name, problem));
    }
    let slack = tolerance * computed.iter().fold(0f64, |m, x| m.max(x.abs()));
    match given.iter().zip(&computed).position(|(g, c)| !((g - c).abs() <= slack)) {
        Some(k) => Err(LabError::value(
            format!("{name}: entry {k}"),
            given[k],
            format!("{} as follows from the rest of the file", computed[k]),
        )),
        None => Ok(()),
    }
}
