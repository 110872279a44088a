//! Which tasks: the options that every command with tasks has.

use clap::Args;
use ictd::task::Family;
use ictd_lab::LabError;
use ictd_lab::studies::{self, TaskChoice, Tasks};

/// A family or a file, and its sizes.
#[derive(Debug, Default, Args)]
pub struct TaskArguments {
    /// Tasks: boyan, loop, figure-1, dense, coin, cartpole, or a task file as `ictd task` writes it
    #[arg(long, value_name = "NAME|FILE")]
    pub task: Option<String>,
    #[command(flatten)]
    pub options: TaskOptions,
}

/// What may be said about tasks beside their name; what is not said is as `ictd task` has it. A file has its own
/// sizes and discount.
#[derive(Debug, Default, Args)]
pub struct TaskOptions {
    /// Number of states; figure-1: the largest; cartpole: bins per dimension [default: boyan 64, loop and dense 10,
    /// figure-1 15, coin and cartpole 2]
    #[arg(long)]
    pub states: Option<usize>,
    /// Feature dimension [default: 4; loop and figure-1 5, coin 2]
    #[arg(long)]
    pub features: Option<usize>,
    /// Discount [default: 0.9]
    #[arg(long)]
    pub gamma: Option<f64>,
    /// Draw rewards freely instead of making the values linear in the features
    #[arg(long)]
    pub free: bool,
    /// Loop only: probability of leaving out an edge [default: 0.5]
    #[arg(long)]
    pub threshold: Option<f64>,
    /// One feature per state instead of random ones
    #[arg(long)]
    pub one_hot: bool,
    /// Divide feature vectors by their length
    #[arg(long)]
    pub unit_norm: bool,
    /// Cart-pole only: the coordinates as features instead of random features per bin
    #[arg(long)]
    pub continuous: bool,
    /// Multiply scores: A = SCALE·I
    #[arg(long, value_name = "SCALE")]
    pub score_scale: Option<f64>,
}

impl TaskArguments {
    /// The tasks asked for, of a seed. What is not given is as in the named family, else as in `default`.
    pub fn tasks(&self, default: Family, seed: u64) -> Result<Tasks, LabError> {
        self.choice(default)?.tasks(seed)
    }

    fn choice(&self, default: Family) -> Result<TaskChoice, LabError> {
        self.options.said().choice(match &self.task {
            Some(name) => TaskChoice::named(name)?,
            None => TaskChoice::Family(default),
        })
    }

    /// Those of a seed where anything was given.
    pub fn given(&self, default: Family, seed: u64) -> Result<Option<Tasks>, LabError> {
        self.is_given().then(|| self.tasks(default, seed)).transpose()
    }

    /// Whether anything was given.
    fn is_given(&self) -> bool {
        self.task.is_some() || self.options.said().is_given()
    }

    /// The same as changes of a training configuration, before those that were typed, which must not speak of tasks too.
    pub fn overrides(&self, typed: Vec<String>) -> Result<Vec<String>, LabError> {
        let of_tasks = |change: &String| {
            let key = change.split('=').next().unwrap_or_default().trim();
            let old = ["task", "family", "states", "features", "gamma", "representable", "threshold"];
            key.starts_with("task.") || old.contains(&key)
        };
        if let Some(change) = typed.iter().find(|change| self.is_given() && of_tasks(change)) {
            let problem = format!("'{change}' beside options of tasks, expected one of both");
            return Err(LabError::refused("set", problem));
        }
        // Options that do not fit the tasks are refused as everywhere, and by their names.
        if let TaskChoice::Family(family) = self.choice(Family::paper())?
            && self.is_given()
        {
            family.check()?;
        }
        let task = self.task.iter().map(|name| format!("task={name}"));
        let said = self.options.said();
        let options = said.given().map(|(name, value)| match name {
            "free" => "task.representable=false".into(),
            "one-hot" | "unit-norm" => format!("task.feature_map={name}"),
            "continuous" => "task.feature_map=coordinates".into(),
            "score-scale" => format!("task.score_scale={value}"),
            other => format!("task.{other}={value}"),
        });
        Ok(task.chain(options).chain(typed).collect())
    }
}

impl TaskOptions {
    /// The same as every program has it.
    pub fn said(&self) -> studies::TaskOptions {
        let Self { states, features, gamma, free, threshold, one_hot, unit_norm, continuous, score_scale } =
            *self;
        studies::TaskOptions {
            states,
            features,
            gamma,
            free,
            threshold,
            one_hot,
            unit_norm,
            continuous,
            score_scale,
        }
    }
}
