//! The tasks of a study: by number, from a family, a file or a source of one's own.

use std::path::Path;
use std::sync::Arc;

use ictd::random::{Purpose, Stream};
use ictd::task::{Family, FiniteTask, Kind, TaskError, TaskSource};
use serde::Serialize;

use crate::files::{NamedTask, TaskFiles};
use crate::{LabError, did_you_mean};

/// What a user names where a task is asked for: a family, or a task file.
#[derive(Clone, Debug)]
pub enum TaskChoice {
    /// A family.
    Family(Family),
    /// A task file, its feature vectors rescaled.
    File {
        /// The file.
        file: Box<NamedTask>,
        /// Feature vectors are divided by their length.
        unit_norm: bool,
        /// Scores are multiplied by this.
        score_scale: f64,
    },
}

impl TaskChoice {
    /// A family with its usual sizes by name, or else a file.
    pub fn named(text: &str) -> Result<Self, LabError> {
        Self::among(text, &TaskFiles::default())
    }

    /// The same where some files are known by name.
    pub(crate) fn among(text: &str, files: &TaskFiles) -> Result<Self, LabError> {
        match text.parse::<Kind>() {
            Ok(kind) => Ok(Self::Family(Family::of(kind))),
            // What is no path at all is more likely a mistyped name.
            Err(_) if !files.has(text) && text != "-" && !Path::new(text).exists() => {
                let meant = did_you_mean(text, Kind::NAMED.map(Kind::as_str));
                let expected = format!("{} or a task file that exists{meant}", Kind::names());
                Err(LabError::value("task", format!("'{text}'"), expected))
            }
            Err(_) => {
                let file = Box::new(files.read(text)?);
                Ok(Self::File { file, unit_norm: false, score_scale: 1.0 })
            }
        }
    }

    /// The tasks of a seed.
    pub fn tasks(&self, seed: u64) -> Result<Tasks, LabError> {
        match self {
            Self::Family(family) => Ok(Tasks::of_family(family.clone(), seed)),
            Self::File { file, unit_norm, score_scale } => {
                let (task, sha256) = (file.name.clone(), Some(file.sha256.clone()));
                let tasks = Tasks::new(About::Own { task, sha256 }, file.source(false, 1.0)?, seed);
                Ok(tasks.rescaled(*unit_norm, *score_scale))
            }
        }
    }
}

/// Tasks by number: task number i is the same for every study of the same seed. A file is the same task for
/// every number.
#[derive(Clone, Debug, Serialize)]
pub struct Tasks {
    #[serde(flatten)]
    about: About,
    /// Seed of all draws.
    pub seed: u64,
    #[serde(skip)]
    source: Arc<dyn TaskSource>,
    /// What is done to features beyond what the source does.
    #[serde(rename = "rescaled_to_unit_norm")]
    unit_norm: bool,
    rescaled_by: f64,
}

/// The source as JSON.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum About {
    Family(Family),
    Own { task: String, sha256: Option<String> },
}

impl Tasks {
    fn new(about: About, source: Arc<dyn TaskSource>, seed: u64) -> Self {
        Self { about, seed, source, unit_norm: false, rescaled_by: 1.0 }
    }

    /// Those of a family.
    pub fn of_family(family: Family, seed: u64) -> Self {
        Self::new(About::Family(family.clone()), Arc::new(family), seed)
    }

    /// Those of a source of one's own, under a name.
    pub fn own(name: &str, source: Arc<dyn TaskSource>, seed: u64) -> Self {
        Self::new(About::Own { task: name.to_owned(), sha256: None }, source, seed)
    }

    /// The paper's (Table 1).
    pub fn paper(seed: u64) -> Self {
        Self::of_family(Family::paper(), seed)
    }

    /// Those on which Assumption 5.1 holds uniformly.
    pub fn certified(seed: u64) -> Self {
        Self::of_family(Family::certified(), seed)
    }

    /// Those on which Theorem 2's premises hold at the smallest n.
    pub fn fastest(seed: u64) -> Self {
        Self::of_family(Family::fastest(), seed)
    }

    /// The family that draws them; `None` for a file and a source of one's own.
    pub fn family(&self) -> Option<&Family> {
        match &self.about {
            About::Family(family) => Some(family),
            About::Own { .. } => None,
        }
    }

    /// The same processes with their feature vectors multiplied by √`score_scale`, and divided by their length if
    /// asked.
    pub fn rescaled(&self, unit_norm: bool, score_scale: f64) -> Self {
        Self { unit_norm, rescaled_by: score_scale, ..self.clone() }
    }

    /// Number of states of a task, on average.
    pub(super) fn typical_states(&self) -> f64 {
        match &self.about {
            // Drawn evenly from 5 to the largest.
            About::Family(family) if family.kind == Kind::Figure1 => 0.5 * (5.0 + family.num_states as f64),
            _ => self.num_states() as f64,
        }
    }

    /// Refuses numbers out of range, and tasks whose values are not known. Nothing is drawn where that need not be: a task of
    /// thousands of states takes its time.
    pub fn check(&self) -> Result<(), LabError> {
        if let About::Family(family) = &self.about {
            family.check()?;
        }
        if !(self.rescaled_by > 0.0 && self.rescaled_by.is_finite()) {
            return Err(LabError::value("score-scale", self.rescaled_by, "a finite number > 0"));
        }
        if !self.source.is_exact() {
            self.task(0)?;
        }
        Ok(())
    }

    /// Number of states, the largest where tasks differ in it.
    pub fn num_states(&self) -> usize {
        self.source.num_states()
    }

    /// Feature dimension of the tasks.
    pub fn feature_dim(&self) -> usize {
        self.source.feature_dim()
    }

    /// Discount γ.
    pub fn gamma(&self) -> f64 {
        self.source.gamma()
    }

    /// Task number `index` as the source makes it: where rewards were made from values, these are the values.
    pub fn draw(&self, index: u64) -> Result<FiniteTask, TaskError> {
        let task = self.source.draw(&mut Stream::new(self.seed, Purpose::Task, index))?;
        if self.unit_norm || self.rescaled_by != 1.0 {
            return task.rescaled(self.unit_norm, self.rescaled_by);
        }
        Ok(task)
    }

    /// Task number `index` with values that solve the Bellman equation, which theory is evaluated on.
    pub fn task(&self, index: u64) -> Result<FiniteTask, TaskError> {
        let task = self.source.draw(&mut Stream::new(self.seed, Purpose::Task, index))?;
        task.rescaled(self.unit_norm, self.rescaled_by)
    }

    /// In words, for tables and captions.
    pub fn describe(&self) -> String {
        let mut words = match &self.about {
            About::Family(_) => self.source.describe(),
            About::Own { task, .. } => format!("{task}: {}", self.source.describe()),
        };
        if self.unit_norm {
            words += ", unit-norm features";
        }
        if self.rescaled_by != 1.0 {
            words += &format!(", score scale {}", self.rescaled_by);
        }
        words
    }
}
