//! Judgements: a level, and reasons in plain words.

/// Fewer episodes cannot be held out in turn.
pub(super) const FEWEST_EPISODES: usize = 5;
/// A value that rests on fewer transitions is little more than what happened once.
const FEW_TRANSITIONS: f64 = 3.0;

/// How far results can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing speaks against them.
    Trust,
    /// They may be off in a way that is said.
    Caution,
    /// They should not be used.
    Refuse,
}

impl Level {
    /// In lower case, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Caution => "caution",
            Self::Refuse => "refuse",
        }
    }
}

/// Something to know of the results.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Reason {
    /// What it does to the judgement; a remark leaves it at trust.
    pub level: Level,
    /// In plain words.
    pub text: String,
}

/// A level and what it rests on, the gravest first.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Judgement {
    /// The gravest level of the reasons.
    pub level: Level,
    /// Reasons and remarks.
    pub reasons: Vec<Reason>,
}

impl Judgement {
    /// That of a log of which nothing can be held out.
    pub fn too_few_episodes(found: usize) -> Self {
        let text = format!(
            "too few episodes: {found}, expected at least {FEWEST_EPISODES}, of which some are held out"
        );
        Self::of(vec![Reason { level: Level::Refuse, text }])
    }

    /// That of a fit without values.
    pub fn diverged(why: &dyn std::fmt::Display) -> Self {
        let text =
            format!("values diverge: {why}; scale the features, lower the depth, or take another kernel");
        Self::of(vec![Reason { level: Level::Refuse, text }])
    }

    /// The same with a reason more.
    #[must_use]
    pub fn and(mut self, level: Level, text: String) -> Self {
        self.reasons.push(Reason { level, text });
        Self::of(self.reasons)
    }

    /// The judgement that follows from reasons.
    pub fn of(mut reasons: Vec<Reason>) -> Self {
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
        Self { level: reasons.first().map_or(Level::Trust, |reason| reason.level), reasons }
    }
}

/// Mean losses on held-out episodes.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Losses {
    /// That of the estimate.
    pub loss: f64,
    /// That of one number for all states.
    pub constant: f64,
    /// The standard error of their difference.
    pub error: f64,
}

/// The largest value less the smallest.
pub(super) fn range(values: &[f64]) -> f64 {
    let fold = |f: fn(f64, f64) -> f64, start| values.iter().copied().fold(start, f);
    fold(f64::max, f64::NEG_INFINITY) - fold(f64::min, f64::INFINITY)
}

/// Says when most of the values rest on few transitions.
pub(super) fn thin(effective: &[f64], rows: usize, say: &mut impl FnMut(Level, String)) {
    let thin = effective.iter().filter(|n| !(**n >= FEW_TRANSITIONS)).count();
    if 2 * thin > rows {
        say(
            Level::Caution,
            format!("{thin} of {rows} values rest on fewer than {FEW_TRANSITIONS} transitions"),
        );
    }
}
