//! Random tasks and trajectories as files.

use ictd::random::{Purpose, Stream};
use ictd::task::{CartPole, FiniteTask, Kind, TaskSource as _};
use serde::Serialize;

use super::{TaskChoice, extent, fig4};
use crate::files::{AnyTask, ContextFile, OutputDir, TaskFile};
use crate::memory::{self, DOUBLE};
use crate::report::Report;
use crate::{LabError, Progress};

/// Largest number of transitions of a trajectory.
const MAX_TRAJECTORY: usize = 10_000_000;
/// Simulation steps spent on a Monte-Carlo value.
const MONTE_CARLO_STEPS: f64 = 4e6;

/// Which task to make.
#[derive(Clone, Debug)]
pub struct TaskRequest {
    /// A family, or a file to complete.
    pub task: TaskChoice,
    /// Seed of all draws.
    pub seed: u64,
    /// Which task of the seed's sequence.
    pub index: u64,
    /// Number of transitions of a trajectory, if one is wanted.
    pub trajectory: Option<usize>,
}

impl TaskRequest {
    /// Bytes: the task with its spectra and its file, and a trajectory as it is written.
    fn memory(&self) -> f64 {
        let TaskChoice::Family(family) = &self.task else { return 0.0 };
        let (m, d) = (family.num_states, family.feature_dim());
        let states = if family.kind == Kind::Cartpole { m.pow(4) } else { m } as f64;
        let matrix = if family.kind == Kind::Cartpole { 0.0 } else { 10.0 * states };
        let task = DOUBLE * states * (matrix + 6.0 * d as f64 + 8.0);
        task + self.trajectory.unwrap_or(0) as f64 * (100.0 + 80.0 * (d as f64 + 6.0))
    }
}

/// A task and, if wanted, a trajectory of it.
#[derive(Clone, Debug)]
pub struct MadeTask {
    task: AnyTask,
    /// The task as it is written.
    file: TaskFile,
    /// In the form that `forward` reads.
    trajectory: Option<ContextFile>,
    /// Whether it is a chain of Boyan's that is short enough for a drawing.
    is_drawn: bool,
}

/// Makes the task.
pub fn make(request: &TaskRequest, progress: &Progress) -> Result<MadeTask, LabError> {
    if let Some(n) = request.trajectory.filter(|n| !(1..=MAX_TRAJECTORY).contains(n)) {
        return Err(LabError::value("trajectory", n, format!("1 to {MAX_TRAJECTORY} transitions")));
    }
    if let TaskChoice::Family(family) = &request.task {
        family.check()?;
    }
    memory::admit(request.memory(), "--states, --features or --trajectory")?;
    progress.begin("task", "", 0)?;
    let stream = |purpose| Stream::new(request.seed, purpose, request.index);
    let mut is_drawn = false;
    let task = match &request.task {
        TaskChoice::Family(family) => {
            is_drawn = family.kind == Kind::Boyan && family.num_states <= 16;
            match family.kind {
                Kind::Cartpole => AnyTask::CartPole(CartPole::generate(family, &mut stream(Purpose::Task))?),
                _ => AnyTask::Finite(family.draw(&mut stream(Purpose::Task))?),
            }
        }
        TaskChoice::File { file, unit_norm, score_scale } => match &file.task {
            AnyTask::Finite(task) if *unit_norm || *score_scale != 1.0 => {
                AnyTask::Finite(task.rescaled(*unit_norm, *score_scale)?)
            }
            task => task.clone(),
        },
    };
    progress.rename("task: eigenvalues");
    let mut file = TaskFile::of(&task)?;
    progress.rename("task");
    let mut walk = stream(Purpose::Trajectory);
    let trajectory = match &task {
        AnyTask::Finite(task) => request.trajectory.map(|n| finite_trajectory(task, n, &mut walk)),
        AnyTask::CartPole(task) => {
            let rest = rest_value(task, &mut stream(Purpose::MonteCarlo));
            (file.rest_value, file.rest_value_sem) = rest.unzip();
            request.trajectory.map(|n| cart_pole_trajectory(task, n, &mut walk))
        }
    };
    Ok(MadeTask { task, file, trajectory, is_drawn })
}

/// The value of the upright rest state and its standard error, from as many runs as the budget allows, each long
/// enough for a tolerance of 1e-4; nothing where that would be fewer than 30.
fn rest_value(task: &CartPole, stream: &mut Stream) -> Option<(f64, f64)> {
    let horizon = (1e-4 * (1.0 - task.gamma())).ln() / task.gamma().ln();
    let runs = (MONTE_CARLO_STEPS / horizon.max(1.0)).min(2000.0) as usize;
    (runs >= 30).then(|| {
        let found = task.monte_carlo_value([0.0; 4], runs, 1e-4, stream);
        (found.mean, found.sem)
    })
}

fn cart_pole_trajectory(task: &CartPole, num_transitions: usize, stream: &mut Stream) -> ContextFile {
    let run = task.rollout(num_transitions, stream);
    let features = run.iter().map(|&s| task.features(s).into_iter().map(Some).collect());
    ContextFile {
        features: Some(features.collect()),
        rewards: Some(run[..num_transitions].iter().map(|&s| Some(task.reward(s))).collect()),
        states: Some(run.iter().map(|&s| task.bin(s)).collect()),
        ..ContextFile::default()
    }
}

fn finite_trajectory(task: &FiniteTask, num_transitions: usize, stream: &mut Stream) -> ContextFile {
    let states = task.mrp().sample_states(num_transitions, stream);
    let some = |x: &f64| Some(*x);
    let left = &states[..num_transitions];
    ContextFile {
        features: Some(states.iter().map(|&s| task.features().row(s).iter().map(some).collect()).collect()),
        rewards: Some(left.iter().map(|&s| Some(task.mrp().rewards()[s])).collect()),
        values: Some(states.iter().map(|&s| Some(task.values()[s])).collect()),
        states: Some(states),
        ..ContextFile::default()
    }
}

/// As JSON the trajectory where there is one, the task otherwise.
impl Serialize for MadeTask {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.trajectory {
            Some(trajectory) => trajectory.serialize(serializer),
            None => self.file.serialize(serializer),
        }
    }
}

impl Report for MadeTask {
    fn text(&self, _: usize) -> String {
        let mut out = match &self.task {
            AnyTask::Finite(task) => {
                let range = |v: &[f64]| {
                    let (low, high) = extent(v.iter().copied());
                    format!("{low:.4} to {high:.4}")
                };
                let spectrum = self.file.reversibilisation_spectrum.as_deref().unwrap_or_default();
                let gap = 1.0 - spectrum.get(1).copied().flatten().unwrap_or(0.0);
                let (m, d, gamma) = (task.num_states(), task.feature_dim(), task.gamma());
                let (values, law) = (range(task.values()), range(task.stationary_distribution()));
                format!(
                    "states                {m}\nfeatures              {d}\ndiscount              {gamma}\n\
                     values                {values}\nstationary law        {law}\nright spectral gap    {gap:.6}\n"
                )
            }
            AnyTask::CartPole(task) => {
                let p = task.physics();
                let rest = match (self.file.rest_value, self.file.rest_value_sem) {
                    (Some(value), Some(error)) => format!("{value:.4} ± {error:.4} (Monte Carlo)"),
                    _ => "not estimated: the discount is too close to 1".into(),
                };
                format!(
                    "discount              {}\ngravity               {:.3} m/s²\ntime step             {:.4} s\n\
                     probability of right  {:.3}\nvalue at rest         {rest}\n",
                    task.gamma(),
                    p.gravity,
                    p.time_step,
                    p.right_probability
                )
            }
        };
        if let Some(rewards) = self.trajectory.as_ref().and_then(|t| t.rewards.as_ref()) {
            out += &format!("trajectory            {} transitions\n", rewards.len());
        }
        out + "(--json prints everything, --out DIR writes JSON and CSV)\n"
    }
    /// Writes the task, its tables and the trajectory.
    fn write(&self, out: &OutputDir) -> Result<(), LabError> {
        if let AnyTask::Finite(task) = &self.task {
            let (mrp, features) = (task.mrp(), task.features());
            let columns =
                [mrp.initial_distribution(), mrp.rewards(), task.values(), task.stationary_distribution()];
            let states = (0..mrp.num_states()).map(|s| {
                let numbers = columns.iter().map(|column| &column[s]).chain(features.row(s));
                [s.to_string()].into_iter().chain(numbers.map(f64::to_string)).collect()
            });
            let mut header: Vec<String> =
                ["state", "initial", "reward", "value", "stationary"].map(String::from).into();
            header.extend((0..features.num_cols()).map(|a| format!("s_{a}")));
            out.csv("states", [header].into_iter().chain(states).collect::<Vec<Vec<String>>>())?;
            let edges = mrp.transitions().matrix().rows().enumerate().flat_map(|(from, row)| {
                let positive = row.iter().enumerate().filter(|(_, p)| **p > 0.0);
                positive.map(move |(to, &probability)| Edge { from, to, probability })
            });
            out.csv("transitions", edges)?;
            if self.is_drawn {
                out.figure("topology", &fig4::figure(task.num_states()))?;
            }
        }
        if let Some(trajectory) = &self.trajectory {
            out.csv("trajectory", trajectory_table(trajectory))?;
            out.json("trajectory", trajectory)?;
        }
        out.json("task", &self.file)
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
