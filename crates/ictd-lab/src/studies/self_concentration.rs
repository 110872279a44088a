//! Self-concentration over pretraining: how much of its attention a state pays to its own visits, M_π(s, s) of the
//! paper's Section 5, with the score matrix as learned so far.

use ictd::kernel::{Attention, KernelName};
use ictd::matrix::Matrix;
use ictd::pretrain::{ParamsView, PretrainConfig, Trainer};
use ictd::task::FiniteTask;
use ictd::theory::self_weights;
use serde::Serialize;

use super::setting::{LITERAL, SOURCE, Setting};
use super::{Claim, Plan, Section, Study, Tasks, Verdict, in_parallel, mean, mean_and_sem};
use crate::LabError;
use crate::figure::style::PALETTE;
use crate::figure::{Axis, Chart, Scene, Series, Width};
use crate::files::OutputDir;

/// Section 5's forward reference: self-concentration emerges over pretraining.
pub const STUDY: Study = Study::new(
    "self-concentration",
    Section::Emergence,
    &["self-concentration", "self-concentration-source"],
    judge,
);

/// Tasks that weights are averaged over.
const TASKS: u64 = 20;
/// Points of the curve.
const POINTS: u64 = 30;

/// The weights after a number of epochs, averaged over tasks, over the seeds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ConcentrationPoint {
    pub reading: String,
    pub epoch: u64,
    /// Mean over states of M(s, s).
    pub mean: f64,
    pub mean_sem: f64,
    /// Smallest M(s, s) of a task.
    pub smallest: f64,
    pub smallest_sem: f64,
}

/// What pretraining does to self-weights.
#[derive(Clone, Debug)]
pub struct Concentration {
    pub points: Vec<ConcentrationPoint>,
    /// Seed by seed: the mean weight before and after training.
    pub ends: Vec<(f64, f64)>,
    /// Tasks and seeds on which Assumption 5.1 holds after training, of how many.
    pub assumption: (u64, u64),
    /// (1+γ)/2, what the assumption asks of every state.
    pub required: f64,
}

/// Self-weights of the tasks with a score block: mean and minimum over states, task by task.
fn summaries(tasks: &[FiniteTask], block: &Matrix, tau: f64) -> Result<Vec<(f64, f64)>, LabError> {
    let attention = Attention::new(KernelName::Softmax.at(tau)?, 0.0)?;
    tasks
        .iter()
        .map(|task| {
            let weights = self_weights(task, &attention, block)?;
            let smallest = weights.iter().copied().fold(f64::INFINITY, f64::min);
            Ok((mean(weights.iter().copied()), smallest))
        })
        .collect()
}

/// Trains the seeds and measures on the way, on tasks that are the same for all and that no seed trains on.
fn run(reading: &str, config: &PretrainConfig, seeds: &[u64], seed: u64) -> Result<Concentration, LabError> {
    let family = Tasks::paper(seed);
    let tasks = (0..TASKS).map(|k| family.task(config.epochs + k)).collect::<Result<Vec<_>, _>>()?;
    let every = (config.epochs / POINTS).max(1);
    let measure = |trainer: &Trainer<f32>| {
        let block = ParamsView::new(&config.shape(), &trainer.state().params).score_block(0);
        summaries(&tasks, &block, config.temperature)
    };
    // Entry [seed][point]: the weights task by task.
    let curves = in_parallel(seeds, |&seed| {
        let mut trainer = Trainer::<f32>::new(config, seed)?;
        let mut points = vec![measure(&trainer)?];
        while !trainer.is_done() {
            trainer.epoch_unmeasured()?;
            if trainer.state().epoch % every == 0 || trainer.is_done() {
                points.push(measure(&trainer)?);
            }
        }
        Ok(points)
    })?;
    type Of = fn(&(f64, f64)) -> f64;
    let over_tasks = |point: &[(f64, f64)], of: Of| mean(point.iter().map(of));
    let statistic = |k: usize, of: Of| mean_and_sem("seeds", curves.iter().map(|c| over_tasks(&c[k], of)));
    let mut points = Vec::new();
    for k in 0..curves.iter().map(Vec::len).min().unwrap_or(0) {
        let ((mean, mean_sem), (smallest, smallest_sem)) = (statistic(k, |w| w.0)?, statistic(k, |w| w.1)?);
        let (reading, epoch) = (reading.to_owned(), (k as u64 * every).min(config.epochs));
        points.push(ConcentrationPoint { reading, epoch, mean, mean_sem, smallest, smallest_sem });
    }
    let required = 0.5 * (1.0 + config.task.gamma);
    let last = curves.iter().filter_map(|c| c.last());
    let holds = last.clone().flatten().filter(|w| w.1 > required).count() as u64;
    let ends = curves
        .iter()
        .filter_map(|c| Some((over_tasks(c.first()?, |w| w.0), over_tasks(c.last()?, |w| w.0))))
        .collect();
    Ok(Concentration { points, ends, assumption: (holds, last.flatten().count() as u64), required })
}

/// The curves of several readings.
pub fn figure(found: &[Concentration]) -> Scene {
    let mut series = Vec::new();
    for (one, color) in found.iter().zip(PALETTE) {
        let name = one.points.first().map_or("", |p| p.reading.as_str());
        let line = |of: fn(&ConcentrationPoint) -> f64| {
            one.points.iter().map(|p| (p.epoch as f64, of(p))).collect::<Vec<_>>()
        };
        let band = one.points.iter().map(|p| (p.mean - p.mean_sem, p.mean + p.mean_sem)).collect();
        series.push(Series::new(name, color, line(|p| p.mean)).with_band(band));
        series.push(Series::new(format!("{name}, smallest"), color, line(|p| p.smallest)).dashed());
    }
    if let Some(first) = found.first() {
        let end = first.points.last().map_or(0.0, |p| p.epoch as f64);
        let line = vec![(0.0, first.required), (end, first.required)];
        series.push(Series { dash: vec![1.5, 1.5], ..Series::new("Assumption 5.1", PALETTE[2], line) });
    }
    let (x, y) = (Axis::linear("tasks trained on"), Axis::log("*M*_{π}(*s*, *s*)"));
    Chart::new("Self-concentration over pretraining", x, y, series)
        .noted(format!("mean over states (dashed: the smallest), {TASKS} tasks; band: s.e.m. over seeds"))
        .scene(Width::Column)
}

/// Trains both readings and follows the self-weights.
fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let seeds = plan.seeds(5);
    let follow = |setting: &Setting| {
        let settings = setting.settings("paper", &[])?;
        run(setting.title, &settings.config, &seeds, plan.seed)
    };
    let found = [follow(&LITERAL)?, follow(&SOURCE)?];
    out.csv("self_concentration", found.iter().flat_map(|f| &f.points))?;
    out.figure("self_concentration", &figure(&found))?;
    let [literal, source] = &found;
    Ok(vec![claim(&LITERAL, literal), claim(&SOURCE, source)])
}

fn claim(setting: &Setting, found: &Concentration) -> Claim {
    let rising = found.ends.iter().filter(|(before, after)| after > before).count();
    let (holds, total) = found.assumption;
    let verdict = Verdict::stepwise(rising == found.ends.len(), holds == total);
    let claim = Claim::new(
        &setting.id("self-concentration"),
        &setting.place("Section 5, after Assumption 5.1"),
        "The self-concentration that the assumption asks for emerges over pretraining.",
        "the mean M(s, s) is larger after training than before on every seed, and Assumption 5.1 then holds; partly when it only grows",
    )
    .shown(Some("self_concentration"), Some("self_concentration.csv"))
    .scoped(setting.scope);
    let (Some(first), Some(last)) = (found.points.first(), found.points.last()) else { return claim };
    let (before, seeds, required) = (first.mean, found.ends.len(), found.required);
    let ConcentrationPoint { mean, mean_sem, smallest, .. } = last;
    let measured = format!(
        "mean M(s, s) {before:.4} before, {mean:.4} after training, larger on {rising} of {seeds} seeds; smallest {smallest:.4} where {required} is needed; \
         the assumption holds on {holds} of {total} tasks",
    );
    let uncertainty = format!("± {mean_sem:.1e} after training (s.e.m. over seeds)");
    claim.found(verdict, mean / before, measured, uncertainty).because(if *mean < before {
        "A's diagonal becomes negative in the mirror block: a state attends away from itself."
    } else {
        "64 states share 4 features: A grows in training, but a state's neighbours in feature space keep most of its attention."
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Growth on every seed without the assumption is half of the claim; one seed that falls loses it.
    #[test]
    fn growth_alone_is_partly() {
        let point = |mean| ConcentrationPoint { mean, ..ConcentrationPoint::default() };
        let verdict = |ends: [(f64, f64); 2], holds| {
            let (points, ends) = (vec![point(0.1), point(0.2)], ends.to_vec());
            let found = Concentration { points, ends, assumption: (holds, 40), required: 0.95 };
            claim(&LITERAL, &found).verdict
        };
        assert_eq!(verdict([(0.1, 0.2), (0.1, 0.3)], 40), Verdict::Reproduced);
        assert_eq!(verdict([(0.1, 0.2), (0.1, 0.3)], 39), Verdict::Partly);
        assert_eq!(verdict([(0.1, 0.2), (0.1, 0.1)], 40), Verdict::NotReproduced);
        assert_eq!(verdict([(0.1, 0.2), (0.1, f64::NAN)], 40), Verdict::NotReproduced);
    }
}
