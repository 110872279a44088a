//! The states that values are wanted of: those of the log, the last ones of its ids, or those of a file of queries.

use std::collections::HashMap;

use ictd::evaluate::{Interval, Intervals, Keys, Log, Reach, Sample, Scaler, share_unknown};
use ictd::matrix::Matrix;
use serde::Serialize;

use super::{Logged, failed, ranks};
use crate::logs::{Queries, Reading, States, whole_label};
use crate::{LabError, Progress};

/// Entries of a table of weights that is made at once.
const MAX_WEIGHTS: usize = 1 << 24;

/// Arrivals after which a state that was never left is one that is not left.
const OFTEN: f64 = 5.0;
/// A share of a value beyond which it mostly rests on what nothing is known of.
const MOSTLY: f64 = 0.5;

/// A state or an id and its value.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// Of an id, whether nothing follows any more: the value is that of the state it was last seen in, before the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<bool>,
    /// How often the log left the state.
    pub(super) visits: u64,
    #[serde(flatten)]
    pub(super) interval: Interval,
    /// Whether nothing like the state was seen to be left, or nothing like what mostly follows it.
    pub(super) extrapolated: bool,
}

impl Row {
    /// Its value, and where that lies at 95 %.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Whether nothing like the state was seen to be left, or nothing like what mostly follows it.
    pub fn is_extrapolated(&self) -> bool {
        self.extrapolated
    }
}

/// One wanted state.
struct Wanted {
    /// Its number in the log, where it is one of the log's.
    known: Option<usize>,
    id: Option<String>,
    /// Of an id of the log, whether its episode terminated there.
    ended: Option<bool>,
}

/// Wanted states with their features, scaled as those of the log.
pub(super) struct Asked<'a> {
    wanted: Vec<Wanted>,
    features: Matrix,
    /// As they are shown.
    states: Shown<'a>,
}

/// Where the names of wanted states are found.
enum Shown<'a> {
    /// By the numbers of the file.
    OfLog(&'a States, Vec<u32>),
    /// In the order of the queries.
    OfQueries(&'a States),
}

/// Values of the wanted states, and what they rest on.
pub(super) struct Answers {
    pub rows: Vec<Row>,
    pub effective: Vec<f64>,
    pub extrapolated: Vec<bool>,
    /// Which share of what an episode is worth, and of values over visits, rests on states that nothing is known of.
    pub unknown_of_mean: f64,
    pub unknown: f64,
}

/// What tells how much is known of a state.
#[derive(Debug)]
pub(super) struct Support {
    /// How far the states of the log reach; labels reach nowhere.
    reach: Option<Reach>,
    /// The share of the value of every state that rests on states nothing like which was left.
    unknown: Vec<f64>,
    /// Whether episodes could be held out and drawn anew: where there is one alone, intervals are all that is possible.
    is_tested: bool,
}

impl Support {
    pub fn of(whole: &Sample<'_>, keys: Option<&Keys>, is_label: bool, is_tested: bool) -> Self {
        let reach = (!is_label).then(|| Reach::of(whole, keys));
        let unknown = unknown(whole, reach.as_ref());
        Self { reach, unknown, is_tested }
    }
}

impl<'a> Asked<'a> {
    /// The last states of ids where there are ids, else all states of the log. `log` has the features scaled.
    pub fn of_log(logged: &'a Logged, log: &Log, scaler: &Scaler) -> Self {
        let reading = &logged.reading;
        let numbers: Vec<u32> = if reading.ids.is_empty() {
            // By the features of the file: scaling may round two of them to one.
            order(logged).into_iter().map(|s| s as u32).collect()
        } else {
            reading.ids.iter().map(|last| last.state).collect()
        };
        let known = |s: u32| ((s as usize) < reading.visited).then(|| log.number_of(s));
        let wanted = |(k, &s): (usize, &u32)| {
            let seen = reading.ids.get(k);
            Wanted { known: known(s), id: seen.map(|l| l.id.clone()), ended: seen.map(|l| l.ended) }
        };
        let wanted: Vec<Wanted> = numbers.iter().enumerate().map(wanted).collect();
        let features = match &reading.states {
            States::Labels(_) => of_labels(log, &wanted),
            States::Features { rows, .. } => {
                let given =
                    Matrix::from_fn(numbers.len(), rows.num_cols(), |k, a| rows[(numbers[k] as usize, a)]);
                scaler.apply(&given)
            }
        };
        Self { wanted, features, states: Shown::OfLog(&reading.states, numbers) }
    }

    /// The states of a file.
    pub fn of_queries(queries: &'a Queries, reading: &Reading, log: &Log, scaler: &Scaler) -> Self {
        let id = |k: usize| queries.ids.get(k).cloned();
        let (wanted, features) = match (&queries.states, &reading.states) {
            (States::Features { rows, .. }, States::Features { rows: known, .. }) => {
                let bits = |row: &[f64]| row.iter().map(|x| (x + 0.0).to_bits()).collect::<Vec<u64>>();
                let numbers: HashMap<Vec<u64>, usize> =
                    (0..reading.visited).map(|s| (bits(known.row(s)), log.number_of(s as u32))).collect();
                let wanted = rows.rows().enumerate();
                let wanted = wanted
                    .map(|(k, row)| Wanted {
                        known: numbers.get(&bits(row)).copied(),
                        id: id(k),
                        ended: None,
                    })
                    .collect();
                (wanted, scaler.apply(rows))
            }
            (States::Labels(asked), States::Labels(known)) => {
                let numbers: HashMap<&str, u32> =
                    known[..reading.visited].iter().map(String::as_str).zip(0..).collect();
                // Whole numbers are kept without leading zeros and signs.
                let find = |label: &String| {
                    let plain = label.parse::<i64>().map_or_else(|_| label.clone(), |n| n.to_string());
                    let number = numbers.get(label.as_str()).or_else(|| numbers.get(plain.as_str()));
                    number.map(|&s| log.number_of(s))
                };
                let wanted: Vec<Wanted> = asked
                    .iter()
                    .enumerate()
                    .map(|(k, label)| Wanted { known: find(label), id: id(k), ended: None })
                    .collect();
                let features = of_labels(log, &wanted);
                (wanted, features)
            }
            // Queries are read by the columns of the log, so that they are of its kind.
            _ => (Vec::new(), Matrix::zeros(0, log.features().num_cols())),
        };
        Self { wanted, features, states: Shown::OfQueries(&queries.states) }
    }

    /// Their features, and which of them are states of the log.
    pub fn known(self) -> (Matrix, Vec<bool>) {
        (self.features, self.wanted.iter().map(|wanted| wanted.known.is_some()).collect())
    }

    /// Their values.
    pub fn answers(
        self,
        whole: &Sample<'_>,
        keys: Option<&Keys>,
        intervals: &Intervals,
        support: &Support,
        progress: &Progress,
    ) -> Result<Answers, LabError> {
        let Self { wanted, features, states } = self;
        let Support { reach, unknown, is_tested } = support;
        let is_label = reach.is_none();
        let sources = keys.map_or(whole.num_states(), |keys| keys.states().len()).max(1);
        let step = (MAX_WEIGHTS / sources).max(1);
        progress.begin("evaluate: values", "rows", wanted.len() as u64)?;
        let (mean, initial) = (whole.mean_value(), whole.initial());
        let sum = |counts: &[f64]| counts.iter().zip(unknown).map(|(n, share)| n * share).sum::<f64>();
        let (begun, left) = (sum(&initial), sum(whole.visits()));
        let mut answers = Answers {
            rows: Vec::new(),
            effective: Vec::new(),
            extrapolated: Vec::new(),
            unknown_of_mean: begun / initial.iter().sum::<f64>(),
            unknown: left / whole.num_visits(),
        };
        for start in (0..wanted.len()).step_by(step) {
            let end = (start + step).min(wanted.len());
            let points = Matrix::from_fn(end - start, features.num_cols(), |k, a| features[(start + k, a)]);
            let visits = |k: usize| wanted[k].known.map_or(0, |s| whole.visits()[s] as u64);
            // What was never left is like others or not; a label never is.
            let beyond =
                reach.as_ref().map_or_else(|| vec![true; end - start], |reach| reach.beyond(&points));
            let share = |k: usize| match wanted[k].known {
                Some(s) => unknown[s],
                None => f64::from(u8::from(beyond[k - start])),
            };
            let extrapolated: Vec<bool> = (start..end).map(|k| share(k) > MOSTLY).collect();
            let values = intervals.predict(&points).map_err(failed)?;
            answers.effective.extend(intervals.effective(&points).map_err(failed)?);
            for (k, mut interval) in (start..end).zip(values) {
                if is_label && wanted[k].known.is_none() {
                    // There is no place for it among the labels.
                    interval.value = mean;
                }
                let unsure = if *is_tested { share(k) } else { 1.0 };
                let interval = interval.resting_on(unsure, intervals.range());
                let id = wanted[k].id.clone();
                let state = id.is_none().then(|| states.json(k));
                let extrapolated = extrapolated[k - start];
                answers.rows.push(Row {
                    state,
                    id,
                    ended: wanted[k].ended,
                    visits: visits(k),
                    interval,
                    extrapolated,
                });
            }
            answers.extrapolated.extend(extrapolated);
            progress.step((end - start) as u64)?;
        }
        Ok(answers)
    }
}

/// The share of the value of every state that rests on states nothing like which was left.
fn unknown(whole: &Sample<'_>, reach: Option<&Reach>) -> Vec<f64> {
    let never: Vec<usize> = (0..whole.num_states()).filter(|&s| whole.visits()[s] == 0.0).collect();
    let mut arrivals = vec![0.0; whole.num_states()];
    for s in 0..whole.num_states() {
        whole.successors(s).for_each(|(next, n)| arrivals[next] += n);
    }
    let x = whole.features();
    // A label is like no other.
    let beyond = reach.map_or_else(
        || vec![true; never.len()],
        |reach| reach.beyond(&Matrix::from_fn(never.len(), x.num_cols(), |k, a| x[(never[k], a)])),
    );
    let mut is_unknown = vec![false; whole.num_states()];
    // What is reached again and again and never left is no place where recording happened to stop.
    let ends = |s: usize| arrivals[s] >= OFTEN;
    never.into_iter().zip(beyond).for_each(|(s, beyond)| is_unknown[s] = beyond || ends(s));
    share_unknown(whole, &is_unknown)
}

/// The states of a log in an order that is not that of its file: numbers by size, words by letters.
pub(super) fn order(Logged { reading, log }: &Logged) -> Vec<usize> {
    let mut states: Vec<usize> = (0..reading.visited).collect();
    match &reading.states {
        States::Labels(labels) => {
            let ranks = ranks(&labels[..reading.visited]);
            states.sort_by_key(|&s| ranks[s]);
        }
        States::Features { .. } => states.sort_by_key(|&s| log.number_of(s as u32)),
    }
    states
}

/// The features that stand for labels; nothing for a label that is not known.
fn of_labels(log: &Log, wanted: &[Wanted]) -> Matrix {
    let known = log.features();
    Matrix::from_fn(wanted.len(), known.num_cols(), |k, a| wanted[k].known.map_or(0.0, |s| known[(s, a)]))
}

impl Shown<'_> {
    /// A wanted state as JSON: a label, or features by name.
    fn json(&self, k: usize) -> serde_json::Value {
        let (states, row) = match self {
            Self::OfLog(states, numbers) => (states, numbers[k] as usize),
            Self::OfQueries(states) => (states, k),
        };
        match states {
            States::Labels(labels) => {
                whole_label(&labels[row]).map_or_else(|| labels[row].clone().into(), serde_json::Value::from)
            }
            States::Features { names, rows } => {
                let entries = names.iter().cloned().zip(rows.row(row).iter().map(|&x| x.into()));
                serde_json::Value::Object(entries.collect())
            }
        }
    }
}
