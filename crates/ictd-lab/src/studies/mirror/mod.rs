//! The mirror block: how training gets there, what it computes, and why it is the better end.

mod contexts;
mod ends;
mod estimator;
mod figure;
mod gradients;
mod held;
mod kernels;
mod path;
mod show;

use ictd::pretrain::PretrainConfig;
use serde::Serialize;

use contexts::{Contexts, Losses};
use ends::{EndRow, PairRow};
use estimator::Estimator;
use gradients::{FirstGradientRow, PullRow};
use held::HeldRow;
use path::{PathRow, PredictedPhase, Settling};

use super::{in_parallel, mean_and_sem};
use crate::counted;
use crate::error::{LabError, check_range};
use crate::memory;
use crate::{Progress, Seeds};

/// Score scales at which the fixed point is sought, besides 1: outward from it. Towards 0 it is no longer
/// determined: under uniform attention u matters through one number only.
const SMALLER: [f64; 3] = [0.8, 0.6, 0.4];
const LARGER: [f64; 2] = [1.3, 1.6];

/// What to do.
#[derive(Clone, Debug)]
pub struct MirrorConfig {
    /// Seeds of the path; the first half of them, at least one, of the ends, and the first quarter of training with A held.
    pub seeds: Seeds,
    /// Epochs of every training run.
    pub epochs: u64,
    /// Fresh tasks of everything that is measured at a point; four times as many where blocks are compared.
    pub tasks: u64,
}

/// The best u for an A = a·I, and the losses there: no numbers where the search did not settle.
#[derive(Clone, Debug, Serialize)]
struct BestRow {
    a: f64,
    found: bool,
    p_r: Option<f64>,
    p_t: Option<f64>,
    p_v: Option<f64>,
    td_loss: Option<f64>,
    msve: Option<f64>,
    /// Why there are no numbers.
    reason: Option<&'static str>,
}

impl BestRow {
    fn of((a, point): (f64, Option<([f64; 3], Losses)>)) -> Self {
        let [p_r, p_t, p_v] = [0, 1, 2].map(|k| point.map(|(u, _)| u[k]));
        let (td_loss, msve) = point.map(|(_, losses)| (losses.td_loss, losses.msve)).unzip();
        let reason = point.is_none().then_some("the search did not settle");
        Self { a, found: point.is_some(), p_r, p_t, p_v, td_loss, msve, reason }
    }
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Mirror {
    first_gradients: Vec<FirstGradientRow>,
    settling: Vec<Settling>,
    predicted_phase: PredictedPhase,
    path: Vec<PathRow>,
    pulls: Vec<PullRow>,
    held: Vec<HeldRow>,
    best: Vec<BestRow>,
    estimator: Estimator,
    ends: Vec<EndRow>,
    pairs: Vec<PairRow>,
}

/// Mean and standard error.
fn statistic(samples: impl IntoIterator<Item = f64>) -> Result<(f64, f64), LabError> {
    mean_and_sem("seeds", samples)
}

/// Runs the study; tells `tell` about each part.
pub fn run(
    config: &MirrorConfig,
    progress: &Progress,
    mut tell: impl FnMut(&str),
) -> Result<Mirror, LabError> {
    check_range("seeds", config.seeds.len(), 1..=100_000)?;
    check_range("tasks", config.tasks, 1..=100_000)?;
    let literal = PretrainConfig { epochs: config.epochs, ..PretrainConfig::paper() };
    literal.check()?;
    // Paths keep what they were at every epoch.
    let path = 8.0 * 8.0 * config.epochs as f64 + literal.memory().state;
    let task = 40e3 * 4.0 * config.tasks as f64;
    memory::admit(config.seeds.len() as f64 * path + task, "--seeds, --epochs or --tasks")?;
    let seeds = &config.seeds;
    let (half, quarter) = (seeds.len().div_ceil(2), seeds.len().div_ceil(4));
    let trained = seeds.len() + held::HELD.len() * quarter + (ends::SETTINGS.len() - 1) * half;
    progress.begin("mirror: first gradients", "epochs", config.epochs.saturating_mul(trained as u64))?;
    // What is measured at a point uses tasks of a seed that nothing was trained on; seeds leave room for it.
    let last = seeds.iter().max().map_or(0, |last| last + 1);
    let contexts = Contexts::sample(&literal, last, config.tasks)?;
    let first_gradients = gradients::first_gradients(&literal, last, &contexts, config.tasks)?;
    progress.rename("mirror: path");
    let traces = in_parallel(seeds.iter(), |&seed| path::trace(&literal, seed, progress))?;
    tell(&format!("path: {} trained", counted(traces.len(), "seed")));
    let pulls = gradients::pulls(&literal, last, &contexts, config.tasks, &traces)?;
    tell("pulls along the mean path measured");
    progress.rename("mirror: training with A held");
    let held = held::held(&literal, &seeds[..quarter], config.tasks, progress)?;
    tell(&format!("training with A held: {} values", held.len()));
    progress.rename("mirror: best u");
    let best: Vec<BestRow> = contexts.fixed_points(&SMALLER, &LARGER).into_iter().map(BestRow::of).collect();
    tell(&format!("best u: {} of {} found", best.iter().filter(|b| b.found).count(), best.len()));
    progress.check()?;
    progress.rename("mirror: estimator");
    let estimator = estimator::run(&literal, last, &contexts, config.tasks)?;
    tell(&format!("estimator: discrepancy {:.1e}", estimator.discrepancy));
    let (ends, pairs) = ends::run(config, &seeds[..half], &traces[..half], progress, |row| {
        tell(&format!("{}: {} td, {} mirror, {} none", row.setting, row.td, row.mirror, row.none));
    })?;
    Ok(Mirror {
        first_gradients,
        settling: path::settling(&traces),
        predicted_phase: path::predicted_phase(&traces),
        path: path::path(&traces),
        pulls,
        held,
        best,
        estimator,
        ends,
        pairs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Records;

    /// A search that did not settle has no numbers and a reason, in JSON and in CSV.
    #[test]
    fn a_search_that_does_not_settle_says_so() {
        let found = Some(([1.0, 2.0, 3.0], Losses { td_loss: 0.5, msve: 0.25 }));
        let rows = [(-1.0, None), (1.0, found)].map(BestRow::of);
        let csv = "a,found,p_r,p_t,p_v,td_loss,msve,reason\n-1.0,false,,,,,,the search did not settle\n1.0,true,1.0,2.0,3.0,0.5,0.25,\n";
        assert_eq!(Records::of("best", &rows).unwrap().csv(), csv);
        let json = serde_json::to_value(&rows).unwrap();
        assert!(json[0]["msve"].is_null() && json[0]["reason"].is_string());
        assert!(json[1]["msve"] == 0.25 && json[1]["reason"].is_null());
    }
}
