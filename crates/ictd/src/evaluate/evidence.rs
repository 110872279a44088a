//! Whether values that were estimated from a log can be trusted, in plain words.

use super::judgement::{FEWEST_EPISODES, Judgement, Level, Losses, Reason, thin};
use super::stationarity::{Drift, Drifts};
use super::wording::plain;

/// Resampling fewer episodes gives intervals that are too short: a standard deviation of 30 numbers is known to 13 %.
const FEW_EPISODES: usize = 30;
/// The same where states do not repeat: in simulations intervals of 30 to 100 episodes cover 88 to 92 % instead of 95 %.
const FEW_WITHOUT_REPEATS: usize = 200;
/// States repeat where there are so many transitions per state.
const REPEATS: f64 = 2.0;
/// Beyond this share of values it matters what follows states that no episode leaves.
const UNKNOWN: f64 = 0.1;
/// Beyond this share of values lying after the end of episodes intervals hold less than they say: of simulated subscriptions 60 to 90 %.
const MOSTLY_BEYOND: f64 = 0.8;
/// Standard errors by which an advantage is clear.
const CLEARLY: f64 = 2.0;
/// A value that rests on this share of all transitions weighs them all alike.
const ALIKE: f64 = 0.999;
/// One row in so many may lie beyond all data without a caution for all.
const FEW_ROWS: usize = 100;
/// A bias of so many times the scatter says that little is known, not that the estimate is bad.
const WIDE: f64 = 3.0;
/// How many times as wide is said, as far as it says anything.
const MANY: f64 = 1000.0;
/// Of ten phases and sixteen stretches one exceeds this by chance in one log of 600.
const DRIFT_Z: f64 = 4.0;
/// Sums of fewer TD errors are not normal, and 4 standard errors are then nothing rare.
const DRIFT_TRANSITIONS: f64 = 30.0;
/// Drift below this share of the spread of returns changes no decision.
const DRIFT_SHARE: f64 = 0.1;

/// Beyond this many times what states that are taken together differ by, it is the time and not the states.
const DRIFT_MISFIT: f64 = 2.0;

/// What is known of an estimate.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// Episodes of the log.
    pub episodes: usize,
    /// Its transitions.
    pub transitions: usize,
    /// Episodes that were truncated.
    pub truncated: usize,
    /// Discount.
    pub gamma: f64,
    /// Losses on held-out episodes.
    pub losses: Option<Losses>,
    /// Depth, and how far its values are from those of infinite depth as a share of their spread, where both are known.
    pub depth: Option<(usize, Option<f64>)>,
    /// How far apart the values of states that were left are, and how far what follows them on average.
    pub ranges: (f64, f64),
    /// The values that were asked for.
    pub values: &'a [f64],
    /// How many transitions each of them rests on, 1/Σ w² for weights w of transitions; empty where not known.
    pub effective: &'a [f64],
    /// Which of them lie farther from all data than data from each other.
    pub extrapolated: &'a [bool],
    /// The share of values that rests on states which no episode leaves and nothing like which is known.
    pub unknown: f64,
    /// The share of values that lies beyond the end of episodes that were cut short.
    pub beyond_end: f64,
    /// Whether the log says which episodes terminated.
    pub tells_ends: bool,
    /// The feature in which a few visits are so far away, in standard deviations, that the others look alike.
    pub outlier: Option<(String, f64)>,
    /// The smallest and largest return that was seen.
    pub returns: (f64, f64),
    /// Standard deviation of returns.
    pub return_spread: f64,
    /// Distance of states from the landmarks that stand for them over the width of the kernel, where there are landmarks.
    pub landmark_gap: Option<f64>,
    /// States that were left.
    pub states: usize,
    /// What intervals account for: the bias of the estimate, and the scatter of its values.
    pub widths: (f64, f64),
    /// Whether intervals account for the bias of the estimate and not for its scatter alone.
    pub is_corrected: bool,
    /// Changes over time.
    pub drifts: &'a Drifts,
}

impl Evidence<'_> {
    /// What follows.
    pub fn judge(&self) -> Judgement {
        let mut reasons = Vec::new();
        let mut say = |level, text: String| reasons.push(Reason { level, text });
        self.amount(&mut say);
        self.fit(&mut say);
        self.rows(&mut say);
        self.time(&mut say);
        let unchecked = "not checked: that the state has all that matters for the future (Markov), and that the \
                         log comes from the policy whose values are wanted; values are those of the policy that acted";
        say(Level::Trust, unchecked.into());
        Judgement::of(reasons)
    }

    fn amount(&self, say: &mut impl FnMut(Level, String)) {
        let n = self.episodes;
        let repeats = self.transitions as f64 >= REPEATS * self.states as f64;
        let few = if repeats { FEW_EPISODES } else { FEW_WITHOUT_REPEATS };
        if n < FEWEST_EPISODES {
            Judgement::too_few_episodes(n).reasons.into_iter().for_each(|r| say(r.level, r.text));
        } else if n < few {
            let why = if repeats { "" } else { " where states do not repeat" };
            let text = format!("few episodes: with {n}, fewer than {few}{why}, intervals may be too short");
            say(Level::Caution, text);
        }
        let (bias, scatter) = self.widths;
        if self.is_corrected && bias > WIDE * scatter && scatter > 0.0 {
            let factor = bias.hypot(scatter) / scatter;
            // Where returns are all the same, they scatter by rounding alone.
            let factor = if factor < MANY { format!("{factor:.0}") } else { format!("more than {MANY}") };
            let text = format!(
                "intervals are {factor} times as wide as the scatter of values alone: how far values are off because the estimate is \
                 smooth can hardly be told from so much noise"
            );
            say(Level::Caution, text);
        }
        if !self.is_corrected {
            let text = "intervals come from resampled episodes alone: they do not account for the bias of this estimator and may be \
                        too short";
            say(Level::Caution, text.into());
        }
        self.ends(say);
        if let Some((feature, deviations)) = &self.outlier {
            let text = format!(
                "a few visits are up to {deviations:.0} standard deviations away in {feature}, beside which the others look alike: numbers \
                 that stand for a missing value should be left empty, and others may want a logarithm"
            );
            say(Level::Caution, text);
        }
    }

    /// What follows the ends of episodes.
    fn ends(&self, say: &mut impl FnMut(Level, String)) {
        let percent = |share: f64| 100.0 * share;
        if !self.tells_ends {
            let text = "the log does not say which episodes terminated: all are taken as cut short, and what follows their end from the \
                        values";
            say(Level::Caution, text.into());
        } else if self.truncated == self.episodes && self.episodes > 0 {
            say(Level::Trust, "no episode terminates: what follows its end is taken from the values".into());
        }
        if self.unknown > UNKNOWN {
            let level = if self.unknown > 0.5 { Level::Refuse } else { Level::Caution };
            let text = format!(
                "{:.0} % of values rests on states that no episode leaves: nobody knows what follows them; where nothing does, \
                 say so by terminated",
                percent(self.unknown)
            );
            say(level, text);
        }
        if self.beyond_end > MOSTLY_BEYOND {
            let text = format!(
                "episodes are short: {:.0} % of a value lies beyond the end of what was recorded, and intervals may be too short",
                percent(self.beyond_end)
            );
            say(Level::Caution, text);
        }
    }

    fn fit(&self, say: &mut impl FnMut(Level, String)) {
        match self.losses {
            // Negated, so that NaN is no advantage.
            Some(Losses { loss, constant, error }) if !(constant - loss > CLEARLY * error) => say(
                Level::Caution,
                format!(
                    "on held-out episodes the values are not clearly better than one number for all states (loss {} \
                     against {}, difference ± {}): the states tell little of what follows, or there is too little data",
                    plain(loss),
                    plain(constant),
                    plain(error)
                ),
            ),
            Some(Losses { loss, constant, .. }) => say(
                Level::Trust,
                format!(
                    "on held-out episodes the loss is {:.0} % of that of one number for all states",
                    100.0 * loss / constant
                ),
            ),
            None => say(
                Level::Caution,
                "settings were given, not chosen: nothing was held out to test them".into(),
            ),
        }
        if let Some((layers, Some(gap))) = self.depth {
            let layers = if layers == 1 { "1 layer is".into() } else { format!("{layers} layers are") };
            let text = if gap < 0.005 {
                format!("{layers} as good as infinitely many: values are those of tabular LSTD")
            } else {
                format!(
                    "{layers} {:.0} % from the values of infinitely many, on purpose: those would repeat the data, noise included",
                    100.0 * gap
                )
            };
            say(Level::Trust, text);
        }
        if let Some(gap) = self.landmark_gap {
            // The weight of a state at this distance is exp(-1/2) of that of its landmark.
            let level = if gap > 1.0 { Level::Caution } else { Level::Trust };
            say(level, format!("landmarks stand for states that are {gap:.2} kernel widths away on average"));
        }
    }

    fn rows(&self, say: &mut impl FnMut(Level, String)) {
        let rows = self.values.len();
        let (low, high) = self.returns;
        // Rounding of values of this size.
        let rounding = 1e-12 * low.abs().max(high.abs());
        if self.values.iter().any(|v| !v.is_finite()) {
            say(Level::Refuse, "some values are not finite: the estimate diverged".into());
        }
        let is_told = self.ranges.1 > rounding && self.depth.is_some_and(|(layers, _)| layers > 0);
        if is_told && self.ranges.0 <= rounding {
            let text = "attention has collapsed: all states look alike to the kernel and have the same value; scale the features";
            say(Level::Refuse, text.into());
        }
        let alike = self.effective.iter().filter(|n| **n >= ALIKE * self.transitions as f64).count();
        if is_told && alike == rows && rows > 0 {
            let text = "attention has collapsed: every value is the same average over all transitions, whatever the state; \
                        scale the features or lower the temperature";
            say(Level::Refuse, text.into());
        }
        let outside = self.values.iter().filter(|v| **v < low - rounding || **v > high + rounding).count();
        if outside > 0 {
            say(
                Level::Caution,
                format!(
                    "{outside} of {rows} values lie outside the returns that were seen, {} to {}",
                    plain(low),
                    plain(high)
                ),
            );
        }
        let extrapolated = self.extrapolated.iter().filter(|far| **far).count();
        if extrapolated > 0 {
            let level = match extrapolated {
                n if 2 * n > rows => Level::Refuse,
                n if FEW_ROWS * n > rows => Level::Caution,
                _ => Level::Trust,
            };
            say(
                level,
                format!(
                    "{extrapolated} of {rows} values are extrapolated: nothing like these states was seen"
                ),
            );
        }
        thin(self.effective, rows, say);
    }

    fn time(&self, say: &mut impl FnMut(Level, String)) {
        // If TD errors stayed shifted, values would be off by the shift over the steps that count.
        let length = self.transitions as f64 / self.episodes.max(1) as f64;
        let horizon = if self.gamma < 1.0 { length.min(1.0 / (1.0 - self.gamma)) } else { length };
        let share = |drift: &Drift| horizon * drift.shift.abs() / self.return_spread;
        let worst = |drifts: &[Drift]| {
            let is_drift = |d: &&Drift| {
                d.transitions >= DRIFT_TRANSITIONS
                    && d.z.abs() > DRIFT_Z
                    && share(d) > DRIFT_SHARE
                    && d.shift.abs() > DRIFT_MISFIT * d.misfit
            };
            let counts = drifts.iter().filter(is_drift).copied();
            counts.max_by(|a, b| share(a).total_cmp(&share(b)))
        };
        let phase = |k: usize| match k {
            0 => "the first step".to_owned(),
            1 => "step 1".to_owned(),
            k => format!("steps {} to {}", 1u64 << (k - 1), (1u64 << k) - 1),
        };
        let found = [
            worst(&self.drifts.phases).map(|d| (d, format!("at {} of an episode", phase(d.part)))),
            worst(&self.drifts.calendar).map(|d| (d, format!("in stretch {} of time", d.part + 1))),
        ];
        if self.drifts.phases.iter().chain(&self.drifts.calendar).all(|drift| drift.z == 0.0) {
            let text =
                "not checked: whether the process changes over time, for which states repeat too little";
            say(Level::Trust, text.into());
        }
        for (drift, place) in found.into_iter().flatten() {
            let direction = if drift.shift > 0.0 { "more" } else { "less" };
            say(
                Level::Caution,
                format!(
                    "not stationary: {place} the same states are followed by {direction} reward than at all times ({:.3} per step, {:.0} standard errors): \
                     one value per state is an average over times that differ",
                    drift.shift,
                    drift.z.abs()
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static STILL: Drifts = Drifts { phases: Vec::new(), calendar: Vec::new() };

    fn losses(loss: f64, error: f64) -> Option<Losses> {
        Some(Losses { loss, constant: 1.0, error })
    }

    fn sound() -> Evidence<'static> {
        Evidence {
            episodes: 100,
            transitions: 1000,
            truncated: 0,
            gamma: 0.9,
            losses: losses(0.5, 0.1),
            depth: Some((16, Some(0.2))),
            ranges: (0.2, 0.5),
            values: &[0.1, 0.2, 0.3],
            effective: &[30.0, 40.0, 50.0],
            extrapolated: &[false, false, false],
            unknown: 0.0,
            beyond_end: 0.5,
            tells_ends: true,
            outlier: None,
            returns: (0.0, 1.0),
            return_spread: 0.5,
            landmark_gap: None,
            states: 50,
            widths: (0.1, 0.1),
            is_corrected: true,
            drifts: &STILL,
        }
    }

    fn assert_level(evidence: &Evidence<'_>, level: Level, word: &str) {
        let judgement = evidence.judge();
        assert_eq!(judgement.level, level, "{judgement:?}");
        assert!(judgement.reasons[0].text.contains(word), "{judgement:?}");
    }

    #[test]
    fn every_fault_lowers_the_judgement_and_says_why() {
        use Level::{Caution, Refuse, Trust};
        assert_level(&sound(), Trust, "50 %");
        assert_level(&Evidence { episodes: 4, ..sound() }, Refuse, "too few episodes");
        assert_level(&Evidence { episodes: 29, ..sound() }, Caution, "few episodes");
        assert_level(&Evidence { episodes: 199, states: 501, ..sound() }, Caution, "do not repeat");
        assert_level(&Evidence { is_corrected: false, ..sound() }, Caution, "resampled episodes alone");
        assert_level(&Evidence { losses: losses(0.9, 0.06), ..sound() }, Caution, "not clearly better");
        assert_level(&Evidence { losses: losses(f64::NAN, 0.1), ..sound() }, Caution, "not clearly better");
        assert_level(&Evidence { losses: None, ..sound() }, Caution, "not chosen");
        assert_level(&Evidence { values: &[0.1, f64::NAN], ..sound() }, Refuse, "not finite");
        assert_level(&Evidence { ranges: (0.0, 0.5), ..sound() }, Refuse, "collapsed");
        // Asked twice for one state, or where the same follows all, one value is right.
        assert_level(&Evidence { values: &[0.1, 0.1], ..sound() }, Trust, "50 %");
        assert_level(&Evidence { ranges: (0.0, 1e-16), ..sound() }, Trust, "50 %");
        assert_level(&Evidence { values: &[0.1, 2.0, 0.3], ..sound() }, Caution, "outside");
        assert_level(&Evidence { extrapolated: &[true, false, false], ..sound() }, Caution, "1 of 3");
        assert_level(&Evidence { extrapolated: &[true, true, false], ..sound() }, Refuse, "2 of 3");
        assert_level(&Evidence { effective: &[1.0, 2.0, f64::NAN], ..sound() }, Caution, "fewer than 3");
        assert_level(
            &Evidence { effective: &[1000.0, 999.5, 999.9], ..sound() },
            Refuse,
            "whatever the state",
        );
        assert_level(&Evidence { unknown: 0.2, ..sound() }, Caution, "20 % of values rests on");
        assert_level(&Evidence { unknown: 0.6, ..sound() }, Refuse, "terminated");
        assert_level(&Evidence { beyond_end: 0.95, ..sound() }, Caution, "95 % of a value");
        assert_level(&Evidence { tells_ends: false, ..sound() }, Caution, "which episodes terminated");
        assert_level(&Evidence { outlier: Some(("x".into(), 40.0)), ..sound() }, Caution, "40 standard");
        assert_level(&Evidence { widths: (0.4, 0.1), ..sound() }, Caution, "4 times as wide");
        assert_level(&Evidence { widths: (0.4, 1e-16), ..sound() }, Caution, "more than 1000 times as wide");
        assert_level(&Evidence { landmark_gap: Some(1.5), ..sound() }, Caution, "landmarks");
        // One number for all is what depth 0 promises.
        assert_level(&Evidence { ranges: (0.0, 0.5), depth: Some((0, None)), ..sound() }, Trust, "50 %");
    }

    #[test]
    fn a_drift_counts_when_it_is_both_certain_and_large() {
        let drift = |shift, z| Drift { part: 3, transitions: 500.0, shift, z, misfit: 0.0 };
        let judged = |phases: Vec<Drift>, calendar| {
            let drifts = Drifts { phases, calendar };
            Evidence { drifts: &drifts, ..sound() }.judge()
        };
        assert_eq!(judged(vec![drift(0.1, 3.0)], vec![]).level, Level::Trust);
        assert_eq!(judged(vec![drift(0.004, 9.0)], vec![]).level, Level::Trust);
        assert_eq!(judged(vec![Drift { transitions: 29.0, ..drift(0.1, 9.0) }], vec![]).level, Level::Trust);
        let among_groups = Drift { misfit: 0.06, ..drift(-0.1, -9.0) };
        assert_eq!(judged(vec![among_groups], vec![]).level, Level::Trust);
        let found = judged(vec![drift(-0.1, -9.0)], vec![drift(0.1, 5.0)]);
        assert_eq!(found.level, Level::Caution);
        let text = &found.reasons[0].text;
        assert!(text.contains("steps 4 to 7") && text.contains("less reward"), "{text}");
        assert!(found.reasons[1].text.contains("stretch 4"), "{found:?}");
    }
}
