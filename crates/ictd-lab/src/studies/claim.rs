//! A claim and what became of it.
//!
//! Two rules lower `reproduced` to `consistent`, for every claim alike: an inequality that is kept with a slack above
//! [`SLACK_LIMIT`] could hardly have failed ([`Claim::with_slack`]), and a statement with premises that was tested in a
//! setting chosen to meet them says nothing about other settings ([`Claim::in_chosen_setting`]).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::reproduce::Stability;

/// A claim of the paper and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name on the command line.
    pub id: String,
    /// Where in the paper.
    pub paper: String,
    /// Whose claim it is: the paper's, the paper's in a changed setting, or one past the paper.
    pub scope: Scope,
    /// What is claimed, in our words.
    pub says: String,
    /// When it counts as reproduced; what the code of the study compares.
    pub criterion: String,
    /// What was measured.
    pub measured: String,
    /// How sure that is.
    pub uncertainty: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The number that decides, for comparing runs.
    pub value: Option<f64>,
    /// For inequalities: the right-hand side over the largest measured left-hand side, where tightest.
    pub slack: Option<f64>,
    /// How often the verdict is the same over the whole study's seeds, as stored by `--stability`; `None` for
    /// settings other than the stored ones.
    pub stability: Option<Stability>,
    /// Why the result differs, where it does.
    pub why: String,
    /// The figure's file name, without its ending.
    pub figure: Option<String>,
    /// The file with the numbers.
    pub data: Option<String>,
    /// The command that reruns it alone.
    pub command: String,
}

/// Whose claim a claim is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The paper's, as it describes it.
    #[default]
    Paper,
    /// The paper's, in a setting or under premises that differ from it.
    ChangedSetting,
    /// The paper's, in a reading that its equations do not have.
    OtherReading,
    /// Not in the paper.
    PastThePaper,
    /// A picture or a remark that claims nothing; not counted among the claims.
    Illustration,
}

impl Scope {
    /// The scopes that are counted, and what they are called.
    pub const COUNTED: [(Scope, &str); 4] = [
        (Scope::Paper, "the paper's claims"),
        (Scope::OtherReading, "the paper's claims read so that the query is a source"),
        (Scope::ChangedSetting, "the paper's claims in changed settings, or where their premises fail"),
        (Scope::PastThePaper, "past the paper"),
    ];
}

impl Claim {
    /// A claim of the paper before it is judged; the command is added by [`run`](super::reproduce::run).
    pub fn new(id: &str, paper: &str, says: &str, criterion: &str) -> Self {
        let [id, paper, says, criterion] = [id, paper, says, criterion].map(str::to_owned);
        Self { id, paper, says, criterion, ..Self::default() }
    }

    /// Says why there is nothing to judge it by.
    #[must_use]
    pub fn untested(self, measured: String) -> Self {
        Self { measured, verdict: Verdict::NotTestable, ..self }
    }

    /// A figure that claims nothing, shown under its id.
    pub fn illustration(id: &str, paper: &str, says: &str, measured: &str) -> Self {
        Self::new(id, paper, says, "none: an illustration makes no claim")
            .shown(Some(id), Some(&format!("{id}.csv")))
            .scoped(Scope::Illustration)
            .untested(measured.to_owned())
    }

    /// Judges the claim by a number, with what was measured and how sure it is.
    #[must_use]
    pub fn found(mut self, verdict: Verdict, value: f64, measured: String, uncertainty: String) -> Self {
        self.verdict = verdict;
        // JSON has no infinities; a bound that does not exist is no number.
        self.value = value.is_finite().then_some(value);
        self.measured = measured;
        self.uncertainty = uncertainty;
        self
    }

    /// Adds the slack of an inequality; one that was reproduced with more than [`SLACK_LIMIT`] is only consistent.
    #[must_use]
    pub fn with_slack(mut self, slack: f64) -> Self {
        self.slack = slack.is_finite().then_some(slack);
        if self.verdict == Verdict::Reproduced && !(slack <= SLACK_LIMIT) {
            self.verdict = Verdict::Consistent;
        }
        self
    }

    /// Says that the setting was chosen so that the premises of the claim hold in it, where the paper's own tasks do not
    /// meet them: what is met there is consistent with the claim, and does not reproduce it.
    #[must_use]
    pub fn in_chosen_setting(mut self) -> Self {
        if self.verdict == Verdict::Reproduced {
            self.verdict = Verdict::Consistent;
        }
        self
    }

    /// Names the figure and the file of numbers, both in the output directory.
    #[must_use]
    pub fn shown(mut self, figure: Option<&str>, data: Option<&str>) -> Self {
        self.figure = figure.map(str::to_owned);
        self.data = data.map(str::to_owned);
        self
    }

    /// Says whose claim it is, when not the paper's.
    #[must_use]
    pub fn scoped(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Says why the result differs; what does not differ needs no reason. To be called after it was judged.
    #[must_use]
    pub fn because(mut self, why: &str) -> Self {
        if !matches!(self.verdict, Verdict::Reproduced | Verdict::Consistent) {
            self.why = why.to_owned();
        }
        self
    }
}

/// Whether a claim of the paper holds here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// The criterion is met.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// Nothing contradicts it, but the test is weak: an inequality kept with a slack above
    /// [`SLACK_LIMIT`], or premises that hold only where the setting was chosen for them.
    #[serde(rename = "consistent")]
    Consistent,
    /// Part of it is met.
    #[serde(rename = "partly")]
    Partly,
    /// It is not met.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// There is nothing to measure.
    #[default]
    #[serde(rename = "not testable")]
    NotTestable,
}

/// An inequality whose right-hand side is more than this many times what was measured is consistent with the
/// measurement rather than reproduced by it.
pub const SLACK_LIMIT: f64 = 10.0;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its name as in JSON, padded where asked.
        self.serialize(f)
    }
}

impl Verdict {
    /// All verdicts, from the best.
    pub const ALL: [Verdict; 5] =
        [Self::Reproduced, Self::Consistent, Self::Partly, Self::NotReproduced, Self::NotTestable];

    /// By how many of its parts are met: all, none, or some.
    pub fn by_share(met: u64, parts: u64) -> Self {
        match met {
            0 => Self::NotReproduced,
            met if met == parts => Self::Reproduced,
            _ => Self::Partly,
        }
    }

    /// Two conditions, of which the second alone is nothing.
    pub(super) fn stepwise(first: bool, second: bool) -> Self {
        if first { Self::both(first, second) } else { Self::NotReproduced }
    }

    /// Two conditions, each half of a claim.
    pub fn both(first: bool, second: bool) -> Self {
        Self::by_share(u64::from(first) + u64::from(second), 2)
    }
}

/// Reproduced or not, where there is nothing between.
pub fn verdict(holds: bool) -> Verdict {
    if holds { Verdict::Reproduced } else { Verdict::NotReproduced }
}
