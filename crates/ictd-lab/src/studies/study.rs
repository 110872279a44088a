//! A study: a computation and the claims that rest on it.

use std::str::FromStr;

use serde::Serialize;

use super::{Claim, PREDECESSOR, STUDIES};
use crate::files::OutputDir;
use crate::{LabError, Seeds};

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Seed of every random draw.
    pub seed: u64,
    /// Pretraining seeds; as many as the paper's, counted from `seed`, when `None`: 5, and 10 for the masks and for the
    /// predecessor.
    pub seeds: Option<Seeds>,
    /// Fewer samples: everything is there, with wider intervals.
    pub quick: bool,
}

impl Plan {
    /// The full number of samples, or the quick one.
    pub fn samples(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }

    /// The pretraining seeds, `paper` of them unless told otherwise.
    pub fn seeds(&self, paper: u64) -> Vec<u64> {
        match &self.seeds {
            Some(seeds) => seeds.to_vec(),
            None => (self.seed..self.seed + if self.quick { paper.min(3) } else { paper }).collect(),
        }
    }

    /// The options that give this plan.
    pub(super) fn options(&self) -> String {
        let seed = Some(self.seed).filter(|seed| *seed != 0).map(|seed| format!(" --seed {seed}"));
        let seeds = self.seeds.as_ref().map(|seeds| format!(" --seeds {seeds}"));
        let quick = self.quick.then(|| " --quick".to_owned());
        [seed, seeds, quick].into_iter().flatten().collect()
    }
}

/// A paper whose claims are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Paper {
    /// *Beyond Linear Attention: Softmax Transformers Implement In-Context Reinforcement Learning*.
    #[default]
    Main,
    /// *Transformers Can Learn Temporal Difference Methods for In-Context Reinforcement Learning*, arXiv 2405.13861.
    Predecessor,
}

impl Paper {
    /// All papers, in the order in which they are listed to a user.
    pub const ALL: [Paper; 2] = [Self::Main, Self::Predecessor];

    /// The name as typed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Predecessor => "predecessor",
        }
    }

    /// Its title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Main => {
                "Beyond Linear Attention: Softmax Transformers Implement In-Context Reinforcement Learning"
            }
            Self::Predecessor => {
                "Transformers Can Learn Temporal Difference Methods for In-Context Reinforcement Learning"
            }
        }
    }

    /// Its studies, in its order.
    pub fn studies(self) -> &'static [Study] {
        match self {
            Self::Main => &STUDIES,
            Self::Predecessor => &PREDECESSOR,
        }
    }

    /// The option that selects it, with a space before it; nothing for the one that is meant where none is named.
    pub(super) const fn option(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Predecessor => " --paper predecessor",
        }
    }
}

impl FromStr for Paper {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let known = || Self::ALL.map(Self::as_str);
        let found = Self::ALL.into_iter().find(|paper| paper.as_str() == text);
        found.ok_or_else(|| {
            LabError::value("paper", format!("'{text}'"), format!("one of {}", known().join(", ")))
        })
    }
}

/// A section of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Theorem 1 and what follows.
    Equivalence,
    /// Values read off contexts.
    Evaluation,
    /// Assumption 5.1 and Theorem 2.
    Convergence,
    /// Theorem 3.
    Objective,
    /// The experiments.
    Emergence,
    /// What is in no other.
    Others,
}

impl Section {
    /// All sections, in the order of the report, with the anchor and the title of each.
    pub const ALL: [(Section, &str, &str); 6] = [
        (Self::Equivalence, "equivalence", "The forward pass is TD"),
        (Self::Evaluation, "evaluation", "Evaluating policies in context"),
        (Self::Convergence, "convergence", "Depth and context length"),
        (Self::Objective, "objective", "The pretraining objective"),
        (Self::Emergence, "emergence", "What pretraining finds"),
        (Self::Others, "others", "Further claims"),
    ];
}

/// A computation and the claims that rest on it.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Whose claims they are.
    pub paper: Paper,
    /// Its name on the command line.
    pub id: &'static str,
    /// Where its claims stand in the report.
    pub section: Section,
    /// The claims it judges, in the order in which [`run`](Self::run) gives them.
    pub claims: &'static [&'static str],
    /// Computes, writes figures and numbers, judges.
    pub run: fn(&Plan, &OutputDir) -> Result<Vec<Claim>, LabError>,
}

impl Study {
    /// A study of the main paper by its name, its place in the report, its claims and what computes and judges them.
    pub const fn new(
        id: &'static str,
        section: Section,
        claims: &'static [&'static str],
        run: fn(&Plan, &OutputDir) -> Result<Vec<Claim>, LabError>,
    ) -> Self {
        Self { paper: Paper::Main, id, section, claims, run }
    }

    /// The same of another paper.
    #[must_use]
    pub const fn of(self, paper: Paper) -> Self {
        Self { paper, ..self }
    }

    /// Runs it, and refuses claims other than those it is listed with.
    pub fn judge(&self, plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
        let found = (self.run)(plan, out)?;
        let ids: Vec<&str> = found.iter().map(|c| c.id.as_str()).collect();
        if ids != self.claims {
            let (found, expected) = (ids.join(", "), self.claims.join(", "));
            return Err(LabError::Claims { study: self.id, found, expected });
        }
        Ok(found)
    }
}
