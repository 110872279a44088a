//! Small processes to look at: made by kind and seed, edited by hand, sampled.

use std::f64::consts::TAU;

use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::task::{Family, FiniteTask, Kind, Mrp, TaskError, TaskSource as _};
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::error::check_range;
use crate::files::{AnyTask, ContextFile, Numbers, TaskFile, rows};

/// Largest number of states of a process that is looked at.
const MAX_STATES: usize = 400;
/// Largest number of transitions of a trajectory of it.
const MAX_TRANSITIONS: usize = 10_000;
/// Dimension of features: a plane.
const DIMENSION: usize = 2;

/// How states lead to states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessKind {
    /// A randomised Boyan chain, the paper's tasks.
    Boyan,
    /// A random graph around a loop.
    Loop,
    /// States in a circle: a step ahead with probability 0.6, back with 0.3, none with 0.1; reward 1 in state 0, 0 elsewhere.
    Ring,
    /// States in rows of ⌈√m⌉: a step to each neighbour, or none, with equal probabilities; reward 1 in the last state, 0
    /// elsewhere.
    Grid,
}

/// Where the features of states come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateFeatures {
    /// U(−1, 1)².
    #[default]
    Random,
    /// The place where the state is drawn: on the unit circle, or in a grid over \[−1, 1\]².
    Plane,
    /// One feature per state.
    OneHot,
}

/// Which process to make.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessRequest {
    /// How states lead to states.
    pub kind: ProcessKind,
    /// Number of states m.
    pub states: usize,
    /// Seed of all draws.
    #[serde(default)]
    pub seed: u64,
    /// Discount γ.
    pub gamma: f64,
    /// Where features come from.
    #[serde(default)]
    pub features: StateFeatures,
}

/// A finite process with features, as a page edits it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "a process object")]
pub struct Process {
    /// Row s: p(· | s).
    #[serde(rename = "P")]
    transitions: Vec<Numbers>,
    /// r(s).
    rewards: Numbers,
    /// Row s: x(s).
    features: Vec<Numbers>,
    /// p₀; uniform where it is absent.
    #[serde(default)]
    initial: Option<Numbers>,
    /// γ.
    gamma: f64,
    /// The exact values: what the rest makes of them, whatever stands here when it is read.
    #[serde(default)]
    values: Option<Numbers>,
}

/// A trajectory of a process.
#[derive(Clone, Debug, Serialize)]
pub struct SampledPath {
    context: ContextFile,
    /// s₀, …, s_n.
    states: Vec<usize>,
}

fn some(numbers: &[f64]) -> Numbers {
    numbers.iter().copied().map(Some).collect()
}

impl ProcessRequest {
    /// Makes it.
    pub fn make(&self) -> Result<Process, LabError> {
        check_range("states", self.states, 3..=MAX_STATES)?;
        let stream = &mut Stream::new(self.seed, Purpose::Task, 0);
        let task = match self.kind {
            ProcessKind::Boyan => self.family(Kind::Boyan).draw(stream)?,
            ProcessKind::Loop => self.family(Kind::Loop).draw(stream)?,
            ProcessKind::Ring => self.walk(ring(self.states), 0, stream)?,
            ProcessKind::Grid => self.walk(grid(self.states), self.states - 1, stream)?,
        };
        let task = match self.features {
            StateFeatures::Random => task,
            StateFeatures::OneHot => FiniteTask::new(task.mrp().clone(), Matrix::identity(self.states))?,
            StateFeatures::Plane => FiniteTask::new(task.mrp().clone(), self.places())?,
        };
        Ok(Process::of(&task))
    }

    fn family(&self, kind: Kind) -> Family {
        let (num_states, gamma) = (self.states, self.gamma);
        Family { num_states, gamma, feature_dim: DIMENSION, ..Family::of(kind) }
    }

    /// A walk that starts anywhere and is paid in one state.
    fn walk(&self, p: Matrix, paid: usize, stream: &mut Stream) -> Result<FiniteTask, LabError> {
        let m = self.states;
        let rewards = (0..m).map(|s| f64::from(u8::from(s == paid))).collect();
        let mrp = Mrp::new(p, rewards, self.gamma, vec![1.0 / m as f64; m]).map_err(TaskError::from)?;
        let features = Matrix::from_vec(m, DIMENSION, stream.uniform_vec(m * DIMENSION, -1.0, 1.0));
        Ok(FiniteTask::new(mrp, features)?)
    }

    /// Where states are drawn.
    fn places(&self) -> Matrix {
        let (m, width) = (self.states, width(self.states));
        let height = m.div_ceil(width);
        // From −1 to 1; a single row is in the middle.
        let along = |k: usize, of: usize| if of == 1 { 0.0 } else { 2.0 * k as f64 / (of - 1) as f64 - 1.0 };
        Matrix::from_fn(m, DIMENSION, |s, axis| match (self.kind, axis) {
            (ProcessKind::Grid, 0) => along(s % width, width),
            (ProcessKind::Grid, _) => along(s / width, height),
            (_, 0) => libm::cos(TAU * s as f64 / m as f64),
            _ => libm::sin(TAU * s as f64 / m as f64),
        })
    }
}

/// States in a row of the grid.
fn width(num_states: usize) -> usize {
    (1..).find(|w| w * w >= num_states).unwrap_or(num_states)
}

fn ring(m: usize) -> Matrix {
    let mut p = Matrix::zeros(m, m);
    for s in 0..m {
        p[(s, (s + 1) % m)] = 0.6;
        p[(s, (s + m - 1) % m)] = 0.3;
        p[(s, s)] = 0.1;
    }
    p
}

fn grid(m: usize) -> Matrix {
    let width = width(m);
    let mut p = Matrix::zeros(m, m);
    for s in 0..m {
        let near = |t: &usize| {
            let (rows, columns) = ((s / width).abs_diff(t / width), (s % width).abs_diff(t % width));
            rows + columns <= 1
        };
        let reached: Vec<usize> = (0..m).filter(near).collect();
        reached.iter().for_each(|&t| p[(s, t)] = 1.0 / reached.len() as f64);
    }
    p
}

impl Process {
    /// The process of a task, with its exact values.
    fn of(task: &FiniteTask) -> Self {
        let mrp = task.mrp();
        Self {
            transitions: rows(mrp.transitions().matrix()),
            rewards: some(mrp.rewards()),
            features: rows(task.features()),
            initial: Some(some(mrp.initial_distribution())),
            gamma: mrp.gamma(),
            values: Some(some(task.values())),
        }
    }

    /// The task; refuses what is none.
    fn into_task(self) -> Result<FiniteTask, LabError> {
        check_range("states", self.transitions.len(), 1..=MAX_STATES)?;
        let file = TaskFile {
            gamma: Some(self.gamma),
            transitions: Some(self.transitions),
            rewards: Some(self.rewards),
            initial_distribution: self.initial,
            features: Some(self.features),
            ..TaskFile::default()
        };
        match file.into_task()? {
            AnyTask::Finite(task) => Ok(task),
            AnyTask::CartPole(_) => {
                Err(LabError::refused("process", "expected one with finitely many states"))
            }
        }
    }

    /// The exact values v = (I − γP)⁻¹ r.
    pub fn values(self) -> Result<Vec<f64>, LabError> {
        Ok(self.into_task()?.values().to_vec())
    }

    /// A trajectory of n transitions from p₀.
    pub fn sample(self, n: usize, seed: u64) -> Result<SampledPath, LabError> {
        check_range("n", n, 1..=MAX_TRANSITIONS)?;
        let task = self.into_task()?;
        let states = task.mrp().sample_states(n, &mut Stream::new(seed, Purpose::Trajectory, 0));
        let context = ContextFile {
            features: Some(states.iter().map(|&s| some(task.features().row(s))).collect()),
            rewards: Some(states[..n].iter().map(|&s| Some(task.mrp().rewards()[s])).collect()),
            ..ContextFile::default()
        };
        Ok(SampledPath { context, states })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: ProcessKind, features: StateFeatures) -> ProcessRequest {
        ProcessRequest { kind, states: 7, seed: 3, gamma: 0.9, features }
    }

    #[test]
    fn every_kind_is_a_process_whose_values_solve_the_bellman_equation() {
        for kind in [ProcessKind::Boyan, ProcessKind::Loop, ProcessKind::Ring, ProcessKind::Grid] {
            for features in [StateFeatures::Random, StateFeatures::Plane, StateFeatures::OneHot] {
                let made = request(kind, features).make().unwrap();
                let values = made.clone().values().unwrap();
                for (s, row) in made.transitions.iter().enumerate() {
                    let next: f64 = row.iter().zip(&values).map(|(p, v)| p.unwrap() * v).sum();
                    let gap = values[s] - made.rewards[s].unwrap() - 0.9 * next;
                    assert!(gap.abs() < 1e-12, "{kind:?} {s}: {gap}");
                }
                let given: Vec<f64> = made.values.iter().flatten().map(|v| v.unwrap()).collect();
                assert!(given.iter().zip(&values).all(|(a, b)| (a - b).abs() < 1e-12));
                let path = made.sample(20, 1).unwrap();
                assert_eq!(path.states.len(), 21);
                assert_eq!(path.context.into_context().unwrap().num_transitions(), 20);
            }
        }
    }

    #[test]
    fn what_is_no_process_is_refused_in_a_line() {
        let made = request(ProcessKind::Ring, StateFeatures::Plane).make().unwrap();
        let refused = |change: &dyn Fn(&mut Process)| {
            let mut process = made.clone();
            change(&mut process);
            process.sample(5, 0).unwrap_err().to_string()
        };
        assert!(refused(&|p| p.transitions[0][0] = Some(0.5)).contains("row 0"));
        assert!(refused(&|p| p.rewards[2] = None).contains("reward of state 2"));
        assert!(refused(&|p| p.gamma = 1.0).contains("gamma"));
        assert!(refused(&|p| drop(p.features.pop())).contains("features"));
        assert!(refused(&|p| p.transitions.clear()).contains("states"));
        assert!(made.clone().sample(0, 0).is_err() && made.sample(1_000_000, 0).is_err());
        for states in [0, 2, 100_000] {
            assert!(
                ProcessRequest { states, ..request(ProcessKind::Grid, StateFeatures::Plane) }.make().is_err()
            );
        }
    }
}
