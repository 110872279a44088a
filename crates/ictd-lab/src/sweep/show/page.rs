//! The page of a sweep: one HTML file in which axes are chosen and runs are filtered, without a network.

use std::collections::BTreeMap;

use ictd::parallel;
use ictd::statistics::Centre;
use serde::Serialize;

use super::curves::{Band, column_of};
use super::estimate::{Bootstraps, Estimate, Sample, Statistic};
use super::runs::{ENDS, Runs};
use super::view::{Axis, View, axes_of_plan, plain};
use crate::report::escape;
use crate::sweep::{Metrics, curve_columns};
use crate::{LabError, shell_word};

/// Its name.
pub const PAGE: &str = "index.html";
/// Runs that are put into the page one by one.
const MOST_RUNS: usize = 50_000;
/// Settings times metrics: of more only the metrics that come first are there.
const MOST_ESTIMATES: usize = 60_000;
/// Points of all curves.
const MOST_POINTS: usize = 200_000;
/// Points of a curve, and what is left of it where there are many.
const POINTS: (usize, usize) = (100, 20);
/// Digits of numbers.
const DIGITS: usize = 7;

/// The whole page, but for its title and data.
const HTML: &str = include_str!("page/page.html");
/// Colours and sizes that all pages have, and those of this one.
const STYLES: [&str; 2] = [include_str!("../../report/page.css"), include_str!("page/page.css")];
/// What computes, what draws, what is clicked.
const SCRIPTS: [&str; 3] =
    [include_str!("page/statistics.js"), include_str!("page/pictures.js"), include_str!("page/page.js")];

/// What the page knows.
#[derive(Serialize)]
struct Data<'a> {
    name: &'a str,
    /// Runs that are done, and all.
    done: usize,
    total: usize,
    keys: &'a [String],
    /// The values of every key, and for every setting the places of its values.
    values: Vec<Vec<String>>,
    settings: Vec<Vec<usize>>,
    /// The keys of every axis of the plan: what tells settings apart, and what changes together.
    axes: Vec<Vec<usize>>,
    /// Every key with those that change together with it.
    labels: Vec<String>,
    ends: [&'static str; 4],
    metrics: Vec<&'a str>,
    metrics_left_out: usize,
    /// As text: JavaScript's numbers are exact up to 2^53 only.
    seeds: Vec<String>,
    /// How often each end, by setting.
    counts: Vec<[u64; 4]>,
    /// IQM, median and mean with their intervals, by metric and setting.
    estimates: Vec<Vec<[Ends; 3]>>,
    /// How many numbers these are of.
    numbers: Vec<Vec<usize>>,
    runs: Option<Each>,
    /// Names of curves, and by setting steps and the middle, lower and upper numbers.
    curves: Vec<String>,
    bands: Vec<Option<Bands>>,
    /// The command of a run but for its setting and seed, and what makes every setting.
    command: String,
    changes: Vec<String>,
    view: Chosen,
}

type Ends = [Option<f64>; 3];

/// Every run: its number, where some are missing; the place of its end, a digit each; numbers by metric.
#[derive(Serialize)]
struct Each {
    numbers: Option<Vec<usize>>,
    ends: String,
    values: Vec<Vec<Option<f64>>>,
}

/// Steps, and for each curve the middle, low and high line.
#[derive(Serialize)]
struct Bands {
    steps: Vec<u64>,
    lines: Vec<[Vec<Option<f64>>; 3]>,
}

/// What the page shows first.
#[derive(Serialize)]
struct Chosen {
    metric: usize,
    statistic: &'static str,
    x: Option<usize>,
    y: Option<usize>,
    /// The curve of the metric, as in the figure.
    curve: usize,
    /// What its line is of the seeds.
    line: &'static str,
}

/// The page.
pub fn html(runs: &Runs, view: &View) -> Result<String, LabError> {
    let data = serde_json::to_string(&data(runs, view)?).map_err(|e| LabError::internal("page", e))?;
    let parts = BTreeMap::from([
        ("TITLE", escape(&format!("Sweep {}", runs.plan.name))),
        ("STYLE", STYLES.concat()),
        ("SCRIPT", SCRIPTS.concat()),
        // Nothing in it ends the element that it stands in.
        ("DATA", data.replace('<', "\\u003c")),
    ]);
    let mut page = String::new();
    for piece in HTML.split("{{") {
        match piece.split_once("}}").and_then(|(name, rest)| Some((parts.get(name)?, rest))) {
            Some((part, rest)) => page += &(part.clone() + rest),
            None => page += piece,
        }
    }
    Ok(page)
}

fn data<'a>(runs: &'a Runs, view: &View) -> Result<Data<'a>, LabError> {
    let count = runs.settings.len();
    let keys: Vec<Axis> = (0..runs.varied.len()).map(|key| Axis::of(runs, key)).collect();
    let all = runs.metrics.len();
    let kept = (MOST_ESTIMATES / count.max(1)).clamp(1, all);
    // The metric that was asked for is always there.
    let shown: Vec<usize> =
        [view.metric].into_iter().chain((0..all).filter(|k| *k != view.metric)).take(kept).collect();
    let bootstraps = Bootstraps::default();
    let samples = parallel::map(count * shown.len(), |k| {
        let sample = Sample::of(runs, shown[k / count], runs.rows(k % count));
        let estimates = Centre::ALL.map(|centre| ends(bootstraps.estimate(centre, &sample.sorted)));
        (sample.counts, sample.sorted.len(), estimates)
    });
    let by_metric = || samples.chunks(count.max(1));
    let each = (runs.numbers.len() <= MOST_RUNS).then(|| Each {
        numbers: (runs.numbers.len() < runs.num_runs()).then(|| runs.numbers.clone()),
        ends: runs.ends.iter().map(|end| char::from(b'0' + end)).collect(),
        values: shown.iter().map(|&k| runs.metrics[k].values.iter().map(|x| rounded(*x)).collect()).collect(),
    });
    let (curves, bands) = bands(runs, view)?;
    let place = |axis: &Option<Axis>| {
        axis.as_ref().and_then(|axis| runs.varied.iter().position(|key| *key == axis.key))
    };
    Ok(Data {
        name: &runs.plan.name,
        done: runs.numbers.len(),
        total: runs.num_runs(),
        keys: &runs.varied,
        values: keys.iter().map(|key| key.values.iter().map(|v| plain(&key.key, v)).collect()).collect(),
        settings: (0..count).map(|k| keys.iter().map(|key| key.places[k]).collect()).collect(),
        axes: axes_of_plan(runs),
        labels: keys.iter().map(|key| key.label.clone()).collect(),
        ends: ENDS,
        metrics: shown.iter().map(|&k| runs.metrics[k].name.as_str()).collect(),
        metrics_left_out: all - shown.len(),
        seeds: runs.plan.seeds.iter().map(u64::to_string).collect(),
        counts: samples.iter().take(count).map(|sample| sample.0).collect(),
        estimates: by_metric().map(|samples| samples.iter().map(|sample| sample.2).collect()).collect(),
        numbers: by_metric().map(|samples| samples.iter().map(|sample| sample.1).collect()).collect(),
        runs: each,
        curves,
        bands,
        command: command(runs),
        changes: (0..count).map(|setting| changes(runs, setting)).collect(),
        view: Chosen {
            metric: 0,
            statistic: view.statistic.name(),
            x: place(&view.x),
            y: place(&view.y),
            // The first column is the step.
            curve: column_of(&runs.metrics[view.metric].name) - 1,
            line: Statistic::Centre(view.middle()).name(),
        },
    })
}

/// The names of curves, and those of every setting as far as there is room.
fn bands(runs: &Runs, view: &View) -> Result<(Vec<String>, Vec<Option<Bands>>), LabError> {
    if !matches!(runs.plan.metrics, Metrics::Every(_)) {
        return Ok((Vec::new(), Vec::new()));
    }
    let names: Vec<String> = curve_columns().split_off(1);
    let count = runs.settings.len();
    let points = (MOST_POINTS / (count * names.len())).clamp(POINTS.1, POINTS.0);
    let numbers = |values: Vec<f64>| values.into_iter().map(rounded).collect();
    let of_setting = |setting: usize| {
        if setting * names.len() * points >= MOST_POINTS {
            return Ok(None);
        }
        let curves = runs.curves(setting)?;
        let mut all = (1..=names.len()).map(|column| Band::of(&curves, column, view.middle(), points));
        let Some(first) = all.next() else { return Ok(None) };
        let steps = first.steps.clone();
        let bands = [first].into_iter().chain(all);
        // A curve that is known at fewer steps, or at none, has no place beside the others.
        let of_steps = |band: Band| if band.steps == steps { band } else { Band::default() };
        let lines =
            bands.map(of_steps).map(|b| [numbers(b.middle), numbers(b.low), numbers(b.high)]).collect();
        Ok(Some(Bands { steps, lines }))
    };
    let bands = (0..count).map(of_setting).collect::<Result<_, LabError>>()?;
    Ok((names, bands))
}

fn ends(estimate: Estimate) -> Ends {
    let (low, high) = estimate.interval.unzip();
    [rounded(estimate.value), low.and_then(rounded), high.and_then(rounded)]
}

/// As many digits as anybody looks at; nothing for what is no number.
fn rounded(x: f64) -> Option<f64> {
    format!("{x:.*e}", DIGITS - 1).parse().ok().filter(|x: &f64| x.is_finite())
}

/// The command that trains what all settings have in common.
fn command(runs: &Runs) -> String {
    let base = &runs.plan.base;
    let start = match base.toml {
        Some(_) => format!("ictd pretrain {}", shell_word(&format!("{}.toml", base.name))),
        None => format!("ictd pretrain --preset {}", shell_word(&base.name)),
    };
    start + &options(runs.plan.set.iter())
}

/// The options that make a setting.
fn changes(runs: &Runs, setting: usize) -> String {
    options(runs.plan.choices(setting).into_iter().flat_map(|choice| &choice.set))
}

fn options<'a>(changes: impl Iterator<Item = &'a String>) -> String {
    changes.map(|change| format!(" --set {}", shell_word(change))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_seven_digits() {
        assert_eq!(rounded(1.0 / 3.0), Some(0.333_333_3));
        assert_eq!(rounded(-1.234_567_89e-12), Some(-1.234_568e-12));
        assert_eq!([f64::NAN, f64::INFINITY].map(rounded), [None, None]);
    }

    /// Words that a page has for one of its parts stand in it once.
    #[test]
    fn every_part_has_its_place() {
        for part in ["TITLE", "STYLE", "SCRIPT", "DATA"] {
            assert!(HTML.contains(&format!("{{{{{part}}}}}")), "{part}");
        }
    }
}
