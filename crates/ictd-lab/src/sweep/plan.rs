//! What a sweep varies, and what it keeps of every run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ictd::task::Kind;
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::error::check_range;
use crate::files::TaskFiles;
use crate::seeds::Seeds;
use crate::studies::pretrain::{assignment, full_name};

/// Settings of one sweep at most: their configurations are held in memory.
const MAX_SETTINGS: usize = 100_000;
/// Runs of one sweep at most: more are several sweeps, whose tables can be put together.
const MAX_RUNS: usize = 1_000_000;

/// A sweep as its author wrote it, with all names resolved: every combination of one choice per axis, trained with every seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What it is called.
    pub name: String,
    /// What every setting starts from.
    pub base: Base,
    /// Changes of every setting, `key=value`.
    pub set: Vec<String>,
    /// Seeds of every setting.
    pub seeds: Seeds,
    /// What is measured of a run.
    pub metrics: Metrics,
    /// What is kept of its parameters.
    pub checkpoints: Checkpoints,
    /// What is varied; the last axis changes fastest.
    pub axes: Vec<Axis>,
    /// The task files that it names.
    #[serde(default, skip_serializing_if = "TaskFiles::is_empty")]
    pub tasks: TaskFiles,
}

/// A configuration of `pretrain` to start from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Base {
    /// The preset's name, or the file's.
    pub name: String,
    /// The file's resolved content; a preset has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toml: Option<String>,
}

/// Keys that change together: one of the choices at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What the choices say something about, in the order of the author.
    pub keys: Vec<String>,
    /// At least one.
    pub choices: Vec<Choice>,
}

/// A point on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// What the author calls it, on the axis of cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `key=value`.
    pub set: Vec<String>,
}

/// What is measured of a run, besides its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Metrics {
    /// Nothing: branch and emergence alone, which are read off the parameters.
    None,
    /// Losses and errors of the final and the best parameters on fresh tasks, as `pretrain` prints them.
    Final,
    /// The same, and a point of every curve each so many epochs.
    Every(u64),
}

/// What is kept of the parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Checkpoints {
    /// Nothing but the entries that the table has.
    None,
    /// The last step's.
    Final,
    /// The best step's.
    Best,
    /// Both.
    All,
}

impl Plan {
    /// Refuses plans that are too large or that name a key twice, before anything is made of them.
    pub fn check(&self) -> Result<(), LabError> {
        // Some keys have two names.
        let mut named: Vec<(String, &str, usize)> = Vec::new();
        for (number, axis) in self.axes.iter().enumerate() {
            for key in axis.keys.iter().map(String::as_str) {
                let name = full_name(key);
                if let Some((_, other, axis)) = named.iter().find(|(known, ..)| *known == name) {
                    let problem = match (*other == key, *axis == number) {
                        (true, _) => "two axes vary it, expected one".to_owned(),
                        (_, true) => format!("it is called {other} too, expected one name of a key"),
                        _ => format!("two axes vary it, as {other} too, expected one"),
                    };
                    return Err(LabError::refused(key, problem));
                }
                named.push((name, key, number));
            }
        }
        // What some cases leave alone has its value for those.
        let is_set = |choice: &Choice, key: &str| choice.set.iter().any(|own| full_name(key_of(own)) == key);
        let always = |key: &str| self.axes.iter().any(|axis| axis.choices.iter().all(|c| is_set(c, key)));
        if let Some(change) = self.set.iter().find(|change| always(&full_name(key_of(change)))) {
            let problem = format!("'{change}' is what an axis varies, expected another key");
            return Err(LabError::refused("set", problem));
        }
        if let Metrics::Every(epochs) = self.metrics {
            check_range("metrics", epochs, 1..=1_000_000_000)?;
        }
        let mut sizes = self.axes.iter().map(|axis| axis.choices.len());
        let settings = sizes.try_fold(1, usize::checked_mul).unwrap_or(usize::MAX);
        check_range("settings", settings, 1..=MAX_SETTINGS)?;
        let (seeds, runs) = (self.seeds.len(), settings.saturating_mul(self.seeds.len()));
        if !(1..=MAX_RUNS).contains(&runs) {
            let found = format!("{runs} ({settings} settings with {seeds} seeds)");
            return Err(LabError::value("runs", found, format!("1 to {MAX_RUNS}")));
        }
        Ok(())
    }

    /// All changes that settings have.
    fn changes(&self) -> impl Iterator<Item = &String> {
        let chosen = self.axes.iter().flat_map(|axis| &axis.choices).flat_map(|choice| &choice.set);
        self.set.iter().chain(chosen)
    }

    /// Takes the task files that it names from beside itself, or from the working directory: what others make of them later
    /// is not this plan's.
    pub(super) fn keep_tasks(&mut self, folder: &Path) -> Result<(), LabError> {
        let names: Vec<String> = self.changes().filter_map(|change| named_task(change)).collect();
        for name in names {
            let beside = folder.join(&name);
            let path = if beside.exists() { beside } else { PathBuf::from(&name) };
            // What is nowhere is told of with its place, as other mistakes are.
            if !self.tasks.has(&name) && (path.exists() || name == "-") {
                self.tasks.keep(&name, &path)?;
            }
        }
        Ok(())
    }

    /// Changes of every setting that were typed beside the plan, with task files of the working directory.
    pub(crate) fn change(&mut self, typed: &[String]) -> Result<(), LabError> {
        for name in typed.iter().filter_map(|change| named_task(change)) {
            if Path::new(&name).exists() || name == "-" {
                self.tasks.keep(&name, Path::new(&name))?;
            }
        }
        self.set.extend(typed.iter().cloned());
        Ok(())
    }

    /// What another plan sweeps differently, in words, `None` where only its name is another: this one's comes first.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let of = |what: &str, own: String, others: String| {
            (own != others).then(|| format!("{what} '{own}' here and '{others}' there"))
        };
        let base = |plan: &Self| plan.base.name.clone();
        let keys = |plan: &Self| plan.varied().join(", ");
        let by_axis = || {
            let axes = self.axes.iter().zip(&other.axes).find(|(own, others)| own != others);
            axes.map(|(own, _)| format!("{} has other values", own.keys.join(", ")))
        };
        let tasks = || {
            let other_file =
                self.tasks.first_other(&other.tasks).or_else(|| other.tasks.first_other(&self.tasks));
            other_file.map(|name| format!("the task file '{name}' has another content"))
        };
        of("it starts from", base(self), base(other))
            .or_else(|| {
                (self.base != other.base).then(|| format!("'{}' has another content", self.base.name))
            })
            .or_else(|| of("every setting has", self.set.join(" "), other.set.join(" ")))
            .or_else(|| of("varied are", keys(self), keys(other)))
            .or_else(by_axis)
            .or_else(|| of("seeds are", self.seeds.to_string(), other.seeds.to_string()))
            .or_else(|| of("metrics are", self.metrics.to_string(), other.metrics.to_string()))
            .or_else(|| of("checkpoints are", self.checkpoints.to_string(), other.checkpoints.to_string()))
            .or_else(tasks)
    }

    /// How many settings there are.
    pub fn num_settings(&self) -> usize {
        self.axes.iter().map(|axis| axis.choices.len()).product()
    }

    /// Settings times seeds.
    pub fn num_runs(&self) -> usize {
        self.num_settings() * self.seeds.len()
    }

    /// The choices that make a setting, one per axis.
    pub(super) fn choices(&self, setting: usize) -> Vec<&Choice> {
        let mut rest = setting;
        let mut chosen: Vec<&Choice> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            chosen.push(&axis.choices[rest % axis.choices.len()]);
            rest /= axis.choices.len();
        }
        chosen.reverse();
        chosen
    }

    /// The columns that say which setting a row belongs to: `case` where cases have names, then every key that an axis varies.
    pub fn varied(&self) -> Vec<String> {
        let has_cases = self.axes.iter().flat_map(|axis| &axis.choices).any(|choice| choice.title.is_some());
        let case = has_cases.then(|| CASE.to_owned());
        case.into_iter().chain(self.axes.iter().flat_map(|axis| axis.keys.clone())).collect()
    }
}

/// The column of the names of cases.
pub const CASE: &str = "case";

/// What `task=…` names where that is no family: a task file.
fn named_task(change: &str) -> Option<String> {
    if full_name(key_of(change)) != "task" {
        return None;
    }
    let table = assignment(change)?;
    table.get("task")?.as_str().filter(|name| name.parse::<Kind>().is_err()).map(str::to_owned)
}

/// The key of `key=value`.
pub(crate) fn key_of(change: &str) -> &str {
    change.split('=').next().unwrap_or_default().trim()
}

impl FromStr for Metrics {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let every = text.trim();
        let every = every.strip_prefix("every ").unwrap_or(every).trim();
        match text {
            "none" => Ok(Self::None),
            "final" => Ok(Self::Final),
            _ => match every.parse() {
                Ok(epochs) if epochs > 0 => Ok(Self::Every(epochs)),
                _ => {
                    let expected = "none, final or a number of epochs, 'every 50' for instance";
                    Err(LabError::value("metrics", format!("'{text}'"), expected))
                }
            },
        }
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Final => f.write_str("final"),
            Self::Every(epochs) => write!(f, "every {epochs}"),
        }
    }
}

impl Checkpoints {
    const ALL: [(Self, &'static str); 4] =
        [(Self::None, "none"), (Self::Final, "final"), (Self::Best, "best"), (Self::All, "all")];
}

impl FromStr for Checkpoints {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let found = Self::ALL.into_iter().find(|(_, name)| *name == text).map(|(own, _)| own);
        found.ok_or_else(|| LabError::value("checkpoints", format!("'{text}'"), "none, final, best or all"))
    }
}

impl fmt::Display for Checkpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[*self as usize].1)
    }
}

/// Words that are read and written as they are typed.
macro_rules! as_text {
    ($($word:ty),*) => {$(
        impl TryFrom<String> for $word {
            type Error = LabError;
            fn try_from(text: String) -> Result<Self, LabError> {
                text.parse()
            }
        }
        impl From<$word> for String {
            fn from(word: $word) -> Self {
                word.to_string()
            }
        }
    )*};
}
as_text!(Metrics, Checkpoints);

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(key: &str, values: usize) -> Axis {
        let choice = |k: usize| Choice { title: None, set: vec![format!("{key}={k}")] };
        Axis { keys: vec![key.to_owned()], choices: (0..values).map(choice).collect() }
    }

    fn plan(axes: Vec<Axis>) -> Plan {
        Plan {
            name: "test".into(),
            base: Base { name: "paper".into(), toml: None },
            set: Vec::new(),
            seeds: "0..10".parse().unwrap(),
            metrics: Metrics::Final,
            checkpoints: Checkpoints::None,
            axes,
            tasks: TaskFiles::default(),
        }
    }

    #[test]
    fn the_last_axis_changes_fastest() {
        let plan = plan(vec![axis("n", 2), axis("layers", 3)]);
        let changes = |k| plan.choices(k).iter().map(|c| c.set.concat()).collect::<Vec<_>>().join(" ");
        let all: Vec<String> = (0..plan.num_settings()).map(changes).collect();
        assert_eq!(all[..4], ["n=0 layers=0", "n=0 layers=1", "n=0 layers=2", "n=1 layers=0"]);
        assert_eq!(plan.varied(), ["n", "layers"]);
    }

    /// Sizes are counted before a single setting is made: a billion runs cost nothing to refuse.
    #[test]
    fn plans_that_are_too_large_are_refused() {
        for (axes, message) in [
            (vec![axis("n", 1000), axis("layers", 1000), axis("epochs", 1000)], "settings is 1000000000"),
            (vec![axis("n", 100_000), axis("layers", 1)], "seeds"),
        ] {
            let mut plan = plan(axes);
            if message == "seeds" {
                plan.seeds = "0..11".parse().unwrap();
                assert!(plan.check().unwrap_err().to_string().starts_with("runs is 1100000"));
                plan.seeds = "0..10".parse().unwrap();
                plan.check().unwrap();
            } else {
                assert!(plan.check().unwrap_err().to_string().starts_with(message));
            }
        }
    }

    #[test]
    fn a_key_is_varied_once() {
        let twice = plan(vec![axis("n", 2), axis("n", 3)]).check().unwrap_err();
        assert_eq!(twice.to_string(), "n: two axes vary it, expected one");
        for (a, b) in [("tau", "temperature"), ("states", "task.states"), ("family", "task.kind")] {
            let aliases = plan(vec![axis(a, 2), axis(b, 2)]).check().unwrap_err();
            assert_eq!(aliases.to_string(), format!("{b}: two axes vary it, as {a} too, expected one"));
        }
        let mut both = plan(vec![axis("tau", 2)]);
        both.set = vec!["temperature=3".into()];
        assert!(both.check().unwrap_err().to_string().contains("'temperature=3' is what an axis varies"));
        let mut both = plan(vec![axis("n", 2)]);
        both.set = vec!["n=3".into()];
        assert!(both.check().unwrap_err().to_string().contains("'n=3' is what an axis varies"));
    }

    /// What a plan is called sweeps nothing.
    #[test]
    fn what_differs_is_named() {
        let own = plan(vec![axis("n", 2)]);
        let difference = |change: &dyn Fn(&mut Plan)| {
            let mut other = own.clone();
            change(&mut other);
            own.difference(&other)
        };
        assert_eq!(difference(&|other| other.name = "another".into()), None);
        let seeds = difference(&|other| other.seeds = "0..3".parse().unwrap());
        assert_eq!(seeds.unwrap(), "seeds are '0..10' here and '0..3' there");
        let set = difference(&|other| other.set = vec!["layers=2".into()]);
        assert_eq!(set.unwrap(), "every setting has '' here and 'layers=2' there");
        assert_eq!(difference(&|other| other.axes = vec![axis("n", 3)]).unwrap(), "n has other values");
        let keys = difference(&|other| other.axes = vec![axis("layers", 2)]);
        assert_eq!(keys.unwrap(), "varied are 'n' here and 'layers' there");
        assert!(difference(&|other| other.metrics = Metrics::None).is_some());
        assert!(difference(&|other| other.checkpoints = Checkpoints::All).is_some());
        let toml = Base { toml: Some("n = 3".into()), ..own.base.clone() };
        assert!(difference(&|other| other.base = toml.clone()).is_some());
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for text in ["none", "final", "every 50"] {
            assert_eq!(text.parse::<Metrics>().unwrap().to_string(), text);
        }
        assert_eq!("7".parse::<Metrics>().unwrap(), Metrics::Every(7));
        for text in ["", "every", "every 0", "every every 5", "everyevery 5", "0", "-1", "sometimes"] {
            assert!(text.parse::<Metrics>().unwrap_err().to_string().starts_with("metrics is '"), "{text}");
        }
        for (_, text) in Checkpoints::ALL {
            assert_eq!(text.parse::<Checkpoints>().unwrap().to_string(), text);
        }
        assert!("last".parse::<Checkpoints>().is_err());
    }
}
