//! Which tasks: the options that every command with tasks has.

use clap::Args;
use ictd::task::{Family, FeatureMap, Kind};
use ictd_lab::LabError;
use ictd_lab::studies::{TaskChoice, Tasks};

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
        self.options.choice(match &self.task {
            Some(name) => TaskChoice::named(name)?,
            None => TaskChoice::Family(default),
        })
    }

    /// Whether anything was given.
    pub fn is_given(&self) -> bool {
        self.task.is_some() || self.options.given().next().is_some()
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
        let options = self.options.given().map(|(name, value)| match name {
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
    /// The options given, by name, with their values.
    fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        let text = |x: Option<f64>| x.map(|x| format!("{x:?}"));
        let flag = |given: bool| given.then(String::new);
        let options = [
            ("states", self.states.map(|n| n.to_string())),
            ("features", self.features.map(|n| n.to_string())),
            ("gamma", text(self.gamma)),
            ("free", flag(self.free)),
            ("threshold", text(self.threshold)),
            ("one-hot", flag(self.one_hot)),
            ("unit-norm", flag(self.unit_norm)),
            ("continuous", flag(self.continuous)),
            ("score-scale", text(self.score_scale)),
        ];
        options.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// The choice with what was given; refuses what has no meaning for it.
    pub fn choice(&self, base: TaskChoice) -> Result<TaskChoice, LabError> {
        let refuse = |name: &str, why: &str| Err(LabError::refused(name, why));
        let base = match base {
            TaskChoice::Family(family) => family,
            TaskChoice::File { file, .. } => {
                let of_file = |name: &str| !matches!(name, "unit-norm" | "score-scale");
                if let Some((name, _)) = self.given().find(|(name, _)| of_file(name)) {
                    return refuse(name, "expected without a task file, which says it");
                }
                let (unit_norm, score_scale) = (self.unit_norm, self.score_scale.unwrap_or(1.0));
                return Ok(TaskChoice::File { file, unit_norm, score_scale });
            }
        };
        let meaningless = self.given().find(|(name, _)| match *name {
            "threshold" => base.kind != Kind::Loop,
            "continuous" => base.kind != Kind::Cartpole,
            "free" => matches!(base.kind, Kind::Coin | Kind::Cartpole),
            "features" => self.continuous || self.one_hot,
            _ => false,
        });
        if let Some((name, _)) = meaningless {
            return refuse(name, "has no meaning for this kind of task");
        }
        if [self.continuous, self.one_hot, self.unit_norm].into_iter().filter(|given| *given).count() > 1 {
            return refuse("features", "expected one of one-hot, unit-norm and continuous");
        }
        let feature_map = match base.feature_map {
            _ if self.continuous => FeatureMap::Coordinates,
            FeatureMap::OneHot => FeatureMap::OneHot,
            _ if self.one_hot => FeatureMap::OneHot,
            _ if self.unit_norm => FeatureMap::UnitNorm,
            other => other,
        };
        Ok(TaskChoice::Family(Family {
            num_states: self.states.unwrap_or(base.num_states),
            feature_dim: self.features.unwrap_or(base.feature_dim),
            gamma: self.gamma.unwrap_or(base.gamma),
            representable: base.representable && !self.free,
            threshold: self.threshold.unwrap_or(base.threshold),
            feature_map,
            score_scale: self.score_scale.unwrap_or(base.score_scale),
            ..base
        }))
    }
}
