//! What may be said about tasks beside their name: the same words for every program.

use ictd::task::{Family, FeatureMap, Kind};

use super::TaskChoice;
use crate::LabError;

/// Sizes and features of tasks; what is not said is the family's own. A task that is no family has its own sizes and discount.
///
/// | option | purpose |
/// |---|---|
/// | `states` | number of states; figure-1: the largest; cartpole: bins per dimension |
/// | `features` | feature dimension |
/// | `gamma` | discount |
/// | `free` | rewards are drawn freely instead of making the values linear in the features |
/// | `threshold` | loop only: probability of leaving out an edge |
/// | `one_hot` | one feature per state instead of random ones |
/// | `unit_norm` | feature vectors are divided by their length |
/// | `continuous` | cart-pole only: the coordinates as features instead of random features per bin |
/// | `score_scale` | scores are multiplied by this: A = scale·I |
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the table above")]
pub struct TaskOptions {
    pub states: Option<usize>,
    pub features: Option<usize>,
    pub gamma: Option<f64>,
    pub free: bool,
    pub threshold: Option<f64>,
    pub one_hot: bool,
    pub unit_norm: bool,
    pub continuous: bool,
    pub score_scale: Option<f64>,
}

impl TaskOptions {
    /// The options given, by name, with their values.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
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

    /// Whether anything was given.
    pub fn is_given(&self) -> bool {
        self.given().next().is_some()
    }

    /// What is done to the features of a task that is no family: whether they are divided by their length, and the score scale. Refuses
    /// what such a task says itself.
    pub fn rescaling(&self) -> Result<(bool, f64), LabError> {
        let of_task = |name: &str| !matches!(name, "unit-norm" | "score-scale");
        match self.given().find(|(name, _)| of_task(name)) {
            Some((name, _)) => Err(LabError::refused(name, "expected without a task file, which says it")),
            None => Ok((self.unit_norm, self.score_scale.unwrap_or(1.0))),
        }
    }

    /// The choice with what was given; refuses what has no meaning for it.
    pub fn choice(&self, base: TaskChoice) -> Result<TaskChoice, LabError> {
        match base {
            TaskChoice::Family(family) => Ok(TaskChoice::Family(self.family(family)?)),
            TaskChoice::File { file, .. } => {
                let (unit_norm, score_scale) = self.rescaling()?;
                Ok(TaskChoice::File { file, unit_norm, score_scale })
            }
        }
    }

    /// The family with what was given; refuses what has no meaning for it.
    pub fn family(&self, base: Family) -> Result<Family, LabError> {
        let refuse = |name: &str, why: &str| Err(LabError::refused(name, why));
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
        Ok(Family {
            num_states: self.states.unwrap_or(base.num_states),
            feature_dim: self.features.unwrap_or(base.feature_dim),
            gamma: self.gamma.unwrap_or(base.gamma),
            representable: base.representable && !self.free,
            threshold: self.threshold.unwrap_or(base.threshold),
            feature_map,
            score_scale: self.score_scale.unwrap_or(base.score_scale),
            ..base
        })
    }
}
