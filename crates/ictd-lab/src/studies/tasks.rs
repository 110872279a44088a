//! Random tasks and trajectories as files.

use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::task::{Boyan, CartPole, Dense, FiniteTask, Loop, Representation};
use serde::Serialize;

use super::fig4::ChainTopology;
use crate::LabError;
use crate::files::{ContextFile, OutputDir};
use crate::report::Report;

/// Largest number of transitions of a trajectory.
const MAX_TRAJECTORY: usize = 10_000_000;
/// Simulation steps spent on a Monte-Carlo value.
const MONTE_CARLO_STEPS: f64 = 4e6;

/// A family of tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TaskKind {
    /// Boyan's chain.
    Boyan,
    /// Random graph around a loop.
    Loop {
        /// Probability of leaving out an edge.
        threshold: f64,
    },
    /// Dense random process.
    Dense,
    /// Randomised cart-pole.
    CartPole {
        /// Continuous features instead of those of bins.
        continuous: bool,
    },
}

/// Which task to make.
#[derive(Clone, Debug)]
pub struct TaskRequest {
    /// The family.
    pub kind: TaskKind,
    /// Number of states (cart-pole: bins per dimension); the family's default when `None`.
    pub size: Option<usize>,
    /// Feature dimension; the family's default when `None`.
    pub feature_dim: Option<usize>,
    /// Discount γ.
    pub gamma: f64,
    /// Rewards drawn freely.
    pub free: bool,
    /// Seed of all draws.
    pub seed: u64,
    /// Which task of the seed's sequence.
    pub index: u64,
    /// Number of transitions of a trajectory, if one is wanted.
    pub trajectory: Option<usize>,
}

/// What is known of a task, as written to JSON.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum TaskFile {
    /// A task with finitely many states.
    Finite {
        /// Discount γ.
        gamma: f64,
        /// Row s: p(· | s).
        transitions: Vec<Vec<f64>>,
        /// r(s).
        rewards: Vec<f64>,
        /// p₀.
        initial_distribution: Vec<f64>,
        /// Row s: x(s).
        features: Vec<Vec<f64>>,
        /// v(s).
        values: Vec<f64>,
        /// μ(s).
        stationary_distribution: Vec<f64>,
        /// Real and imaginary parts of P's eigenvalues, by decreasing modulus.
        eigenvalues: Vec<[f64; 2]>,
        /// Eigenvalues of the additive reversibilisation, decreasing.
        reversibilisation_spectrum: Vec<f64>,
    },
    /// Cart-pole: its physics and policy.
    CartPole {
        /// Discount γ.
        gamma: f64,
        /// Gravity.
        gravity: f64,
        /// Mass of the cart.
        cart_mass: f64,
        /// Mass of the pole.
        pole_mass: f64,
        /// Half length of the pole.
        half_length: f64,
        /// Size of the push.
        force: f64,
        /// Time step.
        time_step: f64,
        /// Probability of pushing right.
        right_probability: f64,
        /// Reward of every bin.
        rewards: Vec<f64>,
        /// Monte-Carlo value of the upright rest state; none when γ is too close to 1 to afford it.
        rest_value: Option<f64>,
        /// Its standard error.
        rest_value_standard_error: Option<f64>,
    },
}

/// A task and, if wanted, a trajectory of it.
#[derive(Clone, Debug)]
pub struct MadeTask {
    /// The task.
    pub task: TaskFile,
    /// The trajectory, in the form that `forward` reads.
    pub trajectory: Option<ContextFile>,
    topology: Option<ChainTopology>,
}

/// Makes the task.
pub fn make(request: &TaskRequest) -> Result<MadeTask, LabError> {
    if let Some(n) = request.trajectory.filter(|n| !(1..=MAX_TRAJECTORY).contains(n)) {
        return Err(LabError::value("trajectory", n, format!("1 to {MAX_TRAJECTORY} transitions")));
    }
    let mut stream = Stream::new(request.seed, Purpose::Task, request.index);
    let representation = if request.free { Representation::Free } else { Representation::Linear };
    let (size, dim, gamma) = (request.size, request.feature_dim, request.gamma);
    let task = match request.kind {
        TaskKind::Boyan => {
            let (num_states, feature_dim) = (size.unwrap_or(64), dim.unwrap_or(4));
            Boyan { num_states, feature_dim, gamma, representation }.generate(&mut stream)?
        }
        TaskKind::Loop { threshold } => {
            let (num_states, feature_dim) = (size.unwrap_or(10), dim.unwrap_or(5));
            Loop { num_states, feature_dim, threshold, gamma, representation }.generate(&mut stream)?
        }
        TaskKind::Dense => {
            let (num_states, feature_dim) = (size.unwrap_or(10), dim.unwrap_or(4));
            Dense { num_states, feature_dim, gamma, representation }.generate(&mut stream)?
        }
        TaskKind::CartPole { continuous } => return make_cart_pole(request, continuous, &mut stream),
    };
    let trajectory = request.trajectory.map(|n| {
        let states =
            task.mrp().sample_states(n, &mut Stream::new(request.seed, Purpose::Trajectory, request.index));
        trajectory_file(&task, states)
    });
    let topology = (request.kind == TaskKind::Boyan && task.mrp().num_states() <= 16)
        .then(|| ChainTopology { num_states: task.mrp().num_states() });
    Ok(MadeTask { task: finite_file(&task)?, trajectory, topology })
}

fn make_cart_pole(
    request: &TaskRequest,
    continuous: bool,
    stream: &mut Stream,
) -> Result<MadeTask, LabError> {
    let task = CartPole::generate(
        request.size.unwrap_or(2),
        request.feature_dim.unwrap_or(4),
        request.gamma,
        stream,
    )?;
    let mut monte_carlo = Stream::new(request.seed, Purpose::MonteCarlo, request.index);
    // As many runs as the budget allows, each long enough for a tolerance of 1e-4.
    let horizon = (1e-4 * (1.0 - task.gamma)).ln() / task.gamma.ln();
    let runs = (MONTE_CARLO_STEPS / horizon.max(1.0)).min(2000.0) as usize;
    let rest = (runs >= 30).then(|| task.monte_carlo_value([0.0; 4], runs, 1e-4, &mut monte_carlo));
    let trajectory = request.trajectory.map(|n| {
        let run = task.rollout(n, &mut Stream::new(request.seed, Purpose::Trajectory, request.index));
        let features =
            run.states.iter().map(|&s| task.features(s, !continuous).into_iter().map(Some).collect());
        ContextFile {
            features: Some(features.collect()),
            rewards: Some(run.rewards.into_iter().map(Some).collect()),
            states: Some(run.states.iter().map(|&s| task.bin(s)).collect()),
            ..ContextFile::default()
        }
    });
    let task = TaskFile::CartPole {
        gamma: task.gamma,
        gravity: task.gravity,
        cart_mass: task.cart_mass,
        pole_mass: task.pole_mass,
        half_length: task.half_length,
        force: task.force,
        time_step: task.time_step,
        right_probability: task.right_probability,
        rewards: task.rewards().to_vec(),
        rest_value: rest.map(|v| v.mean),
        rest_value_standard_error: rest.map(|v| v.standard_error),
    };
    Ok(MadeTask { task, trajectory, topology: None })
}

fn rows(matrix: &Matrix) -> Vec<Vec<f64>> {
    matrix.rows().map(<[f64]>::to_vec).collect()
}

fn finite_file(task: &FiniteTask) -> Result<TaskFile, LabError> {
    let p = task.mrp().transitions();
    Ok(TaskFile::Finite {
        gamma: task.mrp().gamma(),
        transitions: rows(p.matrix()),
        rewards: task.mrp().rewards().to_vec(),
        initial_distribution: task.mrp().initial_distribution().to_vec(),
        features: rows(task.features()),
        values: task.values().to_vec(),
        stationary_distribution: task.stationary_distribution().to_vec(),
        eigenvalues: p.eigenvalues()?.into_iter().map(|z| [z.re, z.im]).collect(),
        reversibilisation_spectrum: p.reversibilisation_spectrum()?,
    })
}

fn trajectory_file(task: &FiniteTask, states: Vec<usize>) -> ContextFile {
    let some = |x: &f64| Some(*x);
    let left = &states[..states.len() - 1];
    ContextFile {
        features: Some(states.iter().map(|&s| task.features().row(s).iter().map(some).collect()).collect()),
        rewards: Some(left.iter().map(|&s| Some(task.mrp().rewards()[s])).collect()),
        values: Some(states.iter().map(|&s| Some(task.values()[s])).collect()),
        states: Some(states),
        ..ContextFile::default()
    }
}

impl MadeTask {
    /// A few lines for a person.
    fn summary(&self) -> String {
        let mut out = match &self.task {
            TaskFile::Finite {
                gamma,
                transitions,
                features,
                values,
                stationary_distribution,
                reversibilisation_spectrum,
                ..
            } => {
                let range = |v: &[f64]| {
                    let (lo, hi) =
                        v.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
                    format!("{lo:.4} to {hi:.4}")
                };
                let lambda = reversibilisation_spectrum.get(1).copied().unwrap_or(0.0);
                format!(
                    "states                {}\nfeatures              {}\ndiscount              {gamma}\n\
                     values                {}\nstationary law        {}\nright spectral gap    {:.6}\n",
                    transitions.len(),
                    features[0].len(),
                    range(values),
                    range(stationary_distribution),
                    1.0 - lambda
                )
            }
            TaskFile::CartPole {
                gamma,
                gravity,
                right_probability,
                time_step,
                rest_value,
                rest_value_standard_error,
                ..
            } => {
                format!(
                    "discount              {gamma}\ngravity               {gravity:.3} m/s²\n\
                     time step             {time_step:.4} s\nprobability of right  {right_probability:.3}\n\
                     value at rest         {}\n",
                    match (rest_value, rest_value_standard_error) {
                        (Some(value), Some(error)) => format!("{value:.4} ± {error:.4} (Monte Carlo)"),
                        _ => "not estimated: the discount is too close to 1".into(),
                    }
                )
            }
        };
        if let Some(rewards) = self.trajectory.as_ref().and_then(|t| t.rewards.as_ref()) {
            out += &format!("trajectory            {} transitions\n", rewards.len());
        }
        out += "(--json prints everything, --out DIR writes JSON and CSV)\n";
        out
    }
}

/// As JSON the trajectory where there is one, the task otherwise.
impl Serialize for MadeTask {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.trajectory {
            Some(trajectory) => trajectory.serialize(serializer),
            None => self.task.serialize(serializer),
        }
    }
}

impl Report for MadeTask {
    fn text(&self, _: usize) -> String {
        self.summary()
    }

    /// Writes the task, its tables and the trajectory.
    fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        if let TaskFile::Finite {
            transitions,
            rewards,
            initial_distribution,
            features,
            values,
            stationary_distribution,
            ..
        } = &self.task
        {
            let states = (0..rewards.len()).map(|s| {
                let fixed = [initial_distribution[s], rewards[s], values[s], stationary_distribution[s]];
                let numbers = fixed.iter().chain(&features[s]).map(f64::to_string);
                [s.to_string()].into_iter().chain(numbers).collect()
            });
            let mut header: Vec<String> =
                ["state", "initial", "reward", "value", "stationary"].map(String::from).into();
            header.extend((0..features[0].len()).map(|a| format!("s_{a}")));
            out.csv("states", [header].into_iter().chain(states).collect::<Vec<Vec<String>>>())?;
            let edges = transitions.iter().enumerate().flat_map(|(from, row)| {
                let positive = row.iter().enumerate().filter(|(_, p)| **p > 0.0);
                positive.map(move |(to, &probability)| Edge { from, to, probability })
            });
            out.csv("transitions", edges)?;
        }
        if let Some(trajectory) = &self.trajectory {
            out.csv("trajectory", trajectory_table(trajectory))?;
            out.json("trajectory", trajectory)?;
        }
        if let Some(topology) = &self.topology {
            out.figure("topology", &topology.figure())?;
        }
        out.json("task", &self.task)
    }
}

#[derive(Serialize)]
struct Edge {
    from: usize,
    to: usize,
    probability: f64,
}

/// The flat table of a trajectory: one row per transition, and a last row with the state that recording
/// ended in and an empty reward.
fn trajectory_table(trajectory: &ContextFile) -> Vec<Vec<String>> {
    let features = trajectory.features.as_deref().unwrap_or_default();
    let rewards = trajectory.rewards.as_deref().unwrap_or_default();
    let states = trajectory.states.as_deref().unwrap_or_default();
    let number = |x: &Option<f64>| x.map_or(String::new(), |x| x.to_string());
    let mut header: Vec<String> = ["episode", "t", "state"].map(String::from).into();
    header.extend((0..features.first().map_or(0, Vec::len)).map(|a| format!("s_{a}")));
    header.extend(["reward", "terminated", "truncated"].map(String::from));
    let rows = features.iter().enumerate().map(|(t, x)| {
        let mut row =
            vec!["0".to_owned(), t.to_string(), states.get(t).map_or(String::new(), usize::to_string)];
        row.extend(x.iter().map(number));
        row.push(rewards.get(t).map_or(String::new(), number));
        row.extend(["false".to_owned(), (t + 1 == rewards.len()).to_string()]);
        row
    });
    [header].into_iter().chain(rows).collect()
}
