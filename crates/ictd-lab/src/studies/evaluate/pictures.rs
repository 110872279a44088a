//! What is drawn of an evaluation beside its values: the way there, the features, and the test on held-out episodes.

use std::ops::ControlFlow;

use ictd::evaluate::{Bin, Folds, Intervals, Log, Method as _, calibration, depths};
use serde::Serialize;

use super::candidates::{Setting, Settings, Tuned, tabular_td};
use super::show::short;
use super::{Estimator, failed};
use crate::LabError;
use crate::logs::{Reading, States};

/// States whose way is drawn, from the smallest to the largest value.
const WAYS: usize = 5;
/// How much deeper than the chosen depth the way is followed.
const DEEPER: usize = 8;
/// No way is followed further.
const DEEPEST: usize = 1024;
/// Features that are drawn: those along which values change most.
const FEATURES: usize = 6;
/// Points along a feature, of about equal numbers of visits.
const POINTS: usize = 12;
/// Bins of the test on held-out episodes.
const BINS: usize = 10;

/// The value of a state after every layer.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Way {
    pub state: String,
    pub layers: Vec<usize>,
    pub values: Vec<f64>,
}

/// Values of states with about the same entry of a feature.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Point {
    pub x: f64,
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Pictures {
    pub ways: Vec<Way>,
    pub features: Vec<(String, Vec<Point>)>,
    pub bins: Vec<Bin>,
}

impl Pictures {
    pub fn of(
        log: &Log,
        folds: &Folds,
        settings: &Settings,
        tuned: &Tuned,
        intervals: &Intervals,
        reading: &Reading,
    ) -> Result<Self, LabError> {
        let method = settings.method(tuned.estimator, tuned.setting())?;
        Ok(Self {
            ways: ways(log, settings, tuned, intervals, reading)?,
            features: along(log, intervals, reading),
            bins: calibration(log, folds, &*method, BINS).map_err(failed)?,
        })
    }
}

/// Values of some states, layer by layer.
fn ways(
    log: &Log,
    settings: &Settings,
    tuned: &Tuned,
    intervals: &Intervals,
    reading: &Reading,
) -> Result<Vec<Way>, LabError> {
    let (Estimator::SoftmaxTd, Some(chosen)) = (tuned.estimator, tuned.setting().layers) else {
        return Ok(Vec::new());
    };
    let whole = log.whole();
    let mut numbers: Vec<u32> = (0..reading.visited as u32).collect();
    let of_states = intervals.states();
    numbers.sort_by(|&a, &b| {
        let [a, b] = [a, b].map(|s| log.number_of(s));
        of_states[a].value.total_cmp(&of_states[b].value).then(a.cmp(&b))
    });
    // In the middle of equal parts.
    let shown = WAYS.min(numbers.len());
    let numbers: Vec<u32> = (0..shown).map(|k| numbers[(2 * k + 1) * numbers.len() / (2 * shown)]).collect();
    let deepest = (DEEPER * chosen.max(1)).min(DEEPEST).max(chosen);
    let mut layers = depths(deepest);
    layers.push(chosen);
    layers.sort_unstable();
    layers.dedup();
    let way = |&s: &u32| Way { state: name(&reading.states, s), layers: Vec::new(), values: Vec::new() };
    let mut ways: Vec<Way> = numbers.iter().map(way).collect();
    let mut next = layers.iter();
    let mut show = |values: &[f64]| {
        let finite = values.iter().all(|v| v.is_finite());
        let (true, Some(&depth)) = (finite, next.next()) else { return ControlFlow::Break(()) };
        for (way, &s) in ways.iter_mut().zip(&numbers) {
            way.layers.push(depth);
            way.values.push(values[log.number_of(s)]);
        }
        ControlFlow::Continue(())
    };
    if tuned.setting().temperature.is_none() {
        for &depth in &layers {
            let method = tabular_td(Setting { layers: Some(depth), ..tuned.setting() });
            if show(method.fit(&whole).map_err(failed)?.values()).is_break() {
                break;
            }
        }
    } else {
        let mut method = settings.softmax_td(tuned.setting())?;
        method.num_layers = deepest;
        let samples = std::slice::from_ref(&whole);
        method.fit_all(samples, &layers, |values| show(values.as_slice())).map_err(failed)?;
    }
    Ok(ways)
}

/// A state in few words.
fn name(states: &States, s: u32) -> String {
    match states {
        States::Labels(labels) => labels[s as usize].clone(),
        States::Features { rows, .. } => {
            rows.row(s as usize).iter().take(4).map(|&x| short(x)).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Mean values along the features along which they change most.
fn along(log: &Log, intervals: &Intervals, reading: &Reading) -> Vec<(String, Vec<Point>)> {
    let States::Features { names, rows } = &reading.states else { return Vec::new() };
    let (whole, of_states) = (log.whole(), intervals.states());
    let total = whole.num_visits();
    let line = |a: usize| {
        let mut states: Vec<usize> =
            (0..reading.visited).filter(|&s| whole.visits()[log.number_of(s as u32)] > 0.0).collect();
        states.sort_by(|&s, &t| {
            let order = rows[(s, a)].total_cmp(&rows[(t, a)]);
            order.then_with(|| log.number_of(s as u32).cmp(&log.number_of(t as u32)))
        });
        let mut sums = vec![[0.0; 5]; POINTS];
        let (mut before, mut last, mut bin) = (0.0, f64::NAN, 0);
        for s in states {
            let number = log.number_of(s as u32);
            let (x, visits, i) = (rows[(s, a)], whole.visits()[number], of_states[number]);
            // Equal entries stay together.
            if x != last {
                bin = ((before / total * POINTS as f64) as usize).min(POINTS - 1);
                last = x;
            }
            before += visits;
            let terms = [1.0, x, i.value, i.low, i.high];
            sums[bin].iter_mut().zip(terms).for_each(|(sum, term)| *sum += visits * term);
        }
        let point = |[n, x, value, low, high]: [f64; 5]| Point {
            x: x / n,
            value: value / n,
            low: low / n,
            high: high / n,
        };
        let points: Vec<Point> = sums.into_iter().filter(|sums| sums[0] > 0.0).map(point).collect();
        (names[a].clone(), points)
    };
    let mut lines: Vec<(String, Vec<Point>)> = (0..names.len()).map(line).collect();
    lines.retain(|(_, points)| points.len() > 1);
    let change = |points: &[Point]| {
        let fold = |f: fn(f64, f64) -> f64, start| points.iter().map(|p| p.value).fold(start, f);
        fold(f64::max, f64::NEG_INFINITY) - fold(f64::min, f64::INFINITY)
    };
    // Stable, so that features that change values as much stay in their order.
    lines.sort_by(|a, b| change(&b.1).total_cmp(&change(&a.1)));
    lines.truncate(FEATURES);
    lines
}
