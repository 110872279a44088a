//! Where training ends, and what it costs: mirror and TD block on the same fresh tasks.

use ictd::pretrain::{Branch, Measurement, emergence_of, first_gradient, measure};
use serde::Serialize;

use super::path::{Point, Trace, trace};
use super::{MirrorConfig, statistic};
use crate::studies::pretrain::Settings;
use crate::studies::{extent, in_parallel, mean};
use crate::{LabError, Progress};

/// Overrides that lead to the TD block from the paper's query.
const TD_START: [&str; 3] = ["init.score_sign=td", "init.value_sign=td", "init.gain=1"];
/// The settings: name and overrides; the first is the literal one.
pub(super) const SETTINGS: [(&str, &[&str]); 5] = [
    ("literal", &[]),
    ("from TD signs, gain 1", &TD_START),
    ("literal, loss=true-value", &["loss=true-value"]),
    ("from TD signs, gain 1, loss=true-value", &["loss=true-value", TD_START[0], TD_START[1], TD_START[2]]),
    ("literal, representable=false", &["representable=false"]),
];

/// Where the seeds of a setting end: how many in which block, means over seeds, A's mean diagonal and its range.
#[derive(Clone, Debug, Serialize)]
pub struct EndRow {
    pub setting: &'static str,
    pub overrides: String,
    /// The first semi-gradient of TD by p_r, whatever the loss of training: mean over tasks.
    pub first_gradient: f64,
    /// E[v(query)·mean R] of its tasks.
    pub correlation: f64,
    pub seeds: usize,
    pub td: usize,
    pub mirror: usize,
    pub none: usize,
    /// The most frequent signs of (p_r, p_t, p_v).
    pub signs: String,
    pub with_signs: usize,
    pub p_r: f64,
    pub p_t: f64,
    pub p_v: f64,
    pub a: f64,
    pub a_low: f64,
    pub a_high: f64,
    pub td_loss: f64,
    pub td_loss_sem: f64,
    pub msve: f64,
    pub msve_sem: f64,
}

/// TD block minus mirror block, seed by seed on the same tasks, where both were reached.
#[derive(Clone, Debug, Serialize)]
pub struct PairRow {
    pub loss: &'static str,
    pub td_loss: f64,
    pub td_loss_sem: f64,
    pub msve: f64,
    pub msve_sem: f64,
    /// Seeds on which the mirror has the smaller δ².
    pub mirror_lower: usize,
    pub seeds: usize,
}

/// An end: point, branch, what it does on fresh tasks.
struct End {
    point: Point,
    branch: Branch,
    measured: Measurement,
}

/// Trains every setting but the first, whose traces are given, and measures all ends.
pub fn run(
    study: &MirrorConfig,
    seeds: &[u64],
    literal: &[Trace],
    progress: &Progress,
    mut tell: impl FnMut(&EndRow),
) -> Result<(Vec<EndRow>, Vec<PairRow>), LabError> {
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for (k, (setting, overrides)) in SETTINGS.into_iter().enumerate() {
        let overrides: Vec<String> =
            overrides.iter().map(|s| s.to_string()).chain([format!("epochs={}", study.epochs)]).collect();
        let config = Settings::preset("paper", &overrides)?.config;
        progress.rename(format!("mirror [{}/{}] ends: {setting}", k + 1, SETTINGS.len()));
        let ends = in_parallel(seeds.iter().enumerate(), |(s, &seed)| {
            let params =
                if k == 0 { literal[s].params.clone() } else { trace(&config, seed, progress)?.params };
            Ok(End {
                point: Point::of(&config, &params),
                branch: emergence_of(&config.shape(), &params).branch,
                measured: measure::<f32>(&config, seed, &params, study.tasks)?,
            })
        })?;
        let first = first_gradient(&config, seeds[0], study.tasks)?;
        let (first_gradient, _) = statistic(first.gradient)?;
        let (correlation, _) = statistic(first.value_correlation)?;
        let row = summarise(setting, overrides.join(" "), [first_gradient, correlation], &ends)?;
        tell(&row);
        rows.push(row);
        all.push(ends);
    }
    let mut pairs = Vec::new();
    for (loss, k) in [("td", 0), ("true-value", 2)] {
        pairs.extend(pair(loss, &all[k], &all[k + 1])?);
    }
    Ok((rows, pairs))
}

fn summarise(
    setting: &'static str,
    overrides: String,
    [first_gradient, correlation]: [f64; 2],
    ends: &[End],
) -> Result<EndRow, LabError> {
    let count = |branch| ends.iter().filter(|e| e.branch == branch).count();
    let (td_loss, td_loss_sem) = statistic(ends.iter().map(|e| e.measured.td_loss))?;
    let (msve, msve_sem) = statistic(ends.iter().map(|e| e.measured.msve))?;
    let [p_r, p_t, p_v] = [0, 1, 2].map(|k| mean(ends.iter().map(|e| e.point.u[k])));
    let (a_low, a_high) = extent(ends.iter().map(|e| e.point.a));
    let mut all: Vec<String> = ends.iter().map(|e| e.point.signs()).collect();
    all.sort_unstable();
    let (mut signs, mut with_signs) = (String::new(), 0);
    for run in all.chunk_by(|a, b| a == b) {
        if run.len() > with_signs {
            (signs, with_signs) = (run[0].clone(), run.len());
        }
    }
    Ok(EndRow {
        setting,
        overrides,
        first_gradient,
        correlation,
        seeds: ends.len(),
        td: count(Branch::Td),
        mirror: count(Branch::Mirror),
        none: count(Branch::None),
        signs,
        with_signs,
        p_r,
        p_t,
        p_v,
        a: mean(ends.iter().map(|e| e.point.a)),
        a_low,
        a_high,
        td_loss,
        td_loss_sem,
        msve,
        msve_sem,
    })
}

/// `None` where no seed has both blocks.
fn pair(loss: &'static str, literal: &[End], td: &[End]) -> Result<Option<PairRow>, LabError> {
    let gaps = |of: &dyn Fn(&End) -> f64| -> Vec<f64> {
        let both = literal.iter().zip(td);
        // A run from TD signs that ended elsewhere says nothing about the TD block.
        let both = both.filter(|(m, t)| m.branch == Branch::Mirror && t.branch == Branch::Td);
        both.map(|(m, t)| of(t) - of(m)).collect()
    };
    let losses = gaps(&|e| e.measured.td_loss);
    let mirror_lower = losses.iter().filter(|&&gap| gap > 0.0).count();
    let seeds = losses.len();
    if seeds == 0 {
        return Ok(None);
    }
    let (td_loss, td_loss_sem) = statistic(losses)?;
    let (msve, msve_sem) = statistic(gaps(&|e| e.measured.msve))?;
    Ok(Some(PairRow { loss, td_loss, td_loss_sem, msve, msve_sem, mirror_lower, seeds }))
}
