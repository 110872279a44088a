//! What is said of the runs of a cell: a share or the middle of a metric, and how far it can be trusted.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use ictd::statistics::{Bootstrap, Centre, wilson};
use serde::Serialize;

use super::runs::{ENDS, Runs};
use crate::{LabError, did_you_mean};

/// Sizes of samples whose resamples are kept.
const KEPT: usize = 8;

/// A number that sums up runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The share of runs that ended so, as a place in the order of counts: td, mirror, none, diverged.
    Share(usize),
    /// The middle of a metric.
    Centre(Centre),
}

/// A number and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The number; NaN where there are no runs.
    pub value: f64,
    /// The interval: Wilson's of a share, from resamples otherwise; `None` of fewer than two numbers.
    pub interval: Option<(f64, f64)>,
}

impl Statistic {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self); 7] = [
        (ENDS[0], Self::Share(0)),
        (ENDS[1], Self::Share(1)),
        (ENDS[2], Self::Share(2)),
        (ENDS[3], Self::Share(3)),
        ("iqm", Self::Centre(Centre::Iqm)),
        ("median", Self::Centre(Centre::Median)),
        ("mean", Self::Centre(Centre::Mean)),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// What it is of a metric, in words.
    pub fn of(self, metric: &str) -> String {
        match self {
            Self::Share(_) => format!("share of {}", self.name()),
            Self::Centre(Centre::Iqm) => format!("IQM of {metric}"),
            Self::Centre(_) => format!("{} of {metric}", self.name()),
        }
    }

    /// What its interval is.
    pub fn interval(self) -> &'static str {
        match self {
            Self::Share(_) => "95 % interval (Wilson)",
            Self::Centre(_) => "95 % interval (bootstrap)",
        }
    }
}

impl FromStr for Statistic {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let known = Self::ALL.map(|(name, _)| name);
        Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, own)| own).ok_or_else(|| {
            let meant = did_you_mean(text, known);
            LabError::value("statistic", format!("'{text}'"), format!("one of {}{meant}", known.join(", ")))
        })
    }
}

/// Resamples by size of sample: settings have as many seeds as one another, mostly.
#[derive(Debug, Default)]
pub struct Bootstraps(Mutex<BTreeMap<usize, Arc<Bootstrap>>>);

impl Bootstraps {
    /// The centre of sorted numbers with its interval.
    pub fn estimate(&self, centre: Centre, sorted: &[f64]) -> Estimate {
        Estimate { value: centre.of(sorted), interval: self.of(sorted.len()).interval(centre, sorted) }
    }

    fn of(&self, size: usize) -> Arc<Bootstrap> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT && !kept.contains_key(&size) {
            kept.pop_first();
        }
        kept.entry(size).or_insert_with(|| Arc::new(Bootstrap::new(size))).clone()
    }
}

/// Some of the runs: what they ended in, and one metric of those that have it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// How many ended in what.
    pub counts: [u64; 4],
    /// The metric, sorted.
    pub sorted: Vec<f64>,
}

impl Sample {
    /// Of these rows.
    pub fn of(runs: &Runs, metric: usize, rows: impl Iterator<Item = usize>) -> Self {
        let mut sample = Self::default();
        let values = &runs.metrics[metric].values;
        for row in rows {
            sample.counts[usize::from(runs.ends[row])] += 1;
            sample.sorted.extend(Some(values[row]).filter(|value| !value.is_nan()));
        }
        sample.sorted.sort_unstable_by(f64::total_cmp);
        sample
    }

    /// How many runs there are.
    pub fn runs(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// A statistic of them.
    pub fn estimate(&self, statistic: Statistic, bootstraps: &Bootstraps) -> Estimate {
        match statistic {
            Statistic::Centre(centre) => bootstraps.estimate(centre, &self.sorted),
            Statistic::Share(_) if self.runs() == 0 => Estimate { value: f64::NAN, interval: None },
            Statistic::Share(end) => {
                let (count, runs) = (self.counts[end], self.runs());
                Estimate { value: count as f64 / runs as f64, interval: Some(wilson(count, runs)) }
            }
        }
    }
}

impl fmt::Display for Estimate {
    /// `0.75 (0.3 to 0.95)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.interval {
            _ if self.value.is_nan() => f.write_str("–"),
            Some((low, high)) => write!(f, "{} ({} to {})", short(self.value), short(low), short(high)),
            None => f.write_str(&short(self.value)),
        }
    }
}

/// A number in three digits, with the sign of typography.
pub fn short(x: f64) -> String {
    let size = x.abs();
    let text = if x == 0.0 {
        "0".to_owned()
    } else if (1e-3..1e5).contains(&size) {
        let decimals = (2 - size.log10().floor() as i32).max(0) as usize;
        let text = format!("{x:.decimals$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        format!("{x:.1e}")
    };
    text.replace('-', "−")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (x, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (-0.0123456, "−0.0123"),
            (1234.5, "1234"),
            (99_999.0, "99999"),
            (1.5e-7, "1.5e−7"),
            (2e6, "2.0e6"),
        ] {
            assert_eq!(short(x), text);
        }
    }
}
