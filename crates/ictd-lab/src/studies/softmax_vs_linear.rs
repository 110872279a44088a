//! Softmax attention against linear attention at theta_*, on the same tasks and contexts.

use ictd::kernel::KernelName;
use ictd::task::{Family, Kind};
use serde::Serialize;

use super::fig1::errors_of_task;
use super::{Claim, Plan, Scope, Section, Study, Tasks, Verdict, in_parallel, mean_and_sem, theta_star};
use crate::LabError;
use crate::figure::style::PALETTE;
use crate::figure::{Axis, Chart, Grid, Scene, Series};
use crate::files::OutputDir;

/// Softmax against linear attention, which the paper sets out from.
pub const STUDY: Study = Study::new("softmax-vs-linear", Section::Evaluation, &["softmax-vs-linear"], judge);

/// Context lengths: the paper's range of Figure 1 and beyond.
const LENGTHS: [usize; 7] = [1, 5, 19, 39, 100, 300, 1000];
/// Depths.
const LAYERS: [usize; 6] = [1, 3, 7, 15, 30, 60];
/// The depth that the figure shows over lengths: Figure 1's.
const SHOWN_DEPTH: usize = 15;

/// The errors of both kernels at a length and a depth.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AttentionPoint {
    pub n: usize,
    pub layers: usize,
    /// Mean square value error with softmax attention, mean over tasks.
    pub softmax: f64,
    pub softmax_sem: f64,
    pub linear: f64,
    pub linear_sem: f64,
    /// Mean over tasks of log₁₀(softmax/linear), tasks paired: negative where softmax is better. Logarithms, because a few
    /// short contexts on which linear attention diverges would decide a mean of differences.
    pub log_ratio: f64,
    pub log_ratio_sem: f64,
    pub tasks: usize,
}

/// Compares on the tasks of Figure 1, whose values are linear in the features.
pub fn run(seed: u64, tasks: u64) -> Result<Vec<AttentionPoint>, LabError> {
    let deepest = LAYERS[LAYERS.len() - 1];
    let transformer = |kernel| theta_star(kernel, deepest, 0.9);
    let (softmax, linear) = (transformer(KernelName::Softmax)?, transformer(KernelName::Linear)?);
    let family = Tasks::of_family(Family::of(Kind::Figure1), seed);
    // By task: errors of both kernels at every length and depth.
    let errors = in_parallel(0..tasks, |index| {
        let errors = |transformer| errors_of_task(&family, transformer, &LENGTHS, &LAYERS, index);
        Ok([errors(&softmax)?.found, errors(&linear)?.found])
    })?;
    let cells = LENGTHS.into_iter().flat_map(|n| LAYERS.map(|layers| (n, layers)));
    let point = |(cell, (n, layers)): (usize, (usize, usize))| -> Result<AttentionPoint, LabError> {
        let statistic = |of: &dyn Fn(f64, f64) -> f64| {
            mean_and_sem("tasks", errors.iter().map(|[a, b]| of(a[cell], b[cell])))
        };
        let (softmax, softmax_sem) = statistic(&|a, _| a)?;
        let (linear, linear_sem) = statistic(&|_, b| b)?;
        let (log_ratio, log_ratio_sem) = statistic(&|a, b| (a / b).log10())?;
        let tasks = errors.len();
        Ok(AttentionPoint {
            n,
            layers,
            softmax,
            softmax_sem,
            linear,
            linear_sem,
            log_ratio,
            log_ratio_sem,
            tasks,
        })
    };
    cells.enumerate().map(point).collect()
}

/// Errors over lengths at Figure 1's depth, and over depths at the longest context.
pub fn figure(points: &[AttentionPoint]) -> Scene {
    let longest = LENGTHS[LENGTHS.len() - 1];
    let chart = |title: String,
                 label: &str,
                 of: &dyn Fn(&&AttentionPoint) -> bool,
                 x: fn(&AttentionPoint) -> usize| {
        let own: Vec<&AttentionPoint> = points.iter().filter(|p| of(p)).collect();
        let line = |name: &str, color, y: fn(&AttentionPoint) -> [f64; 2]| {
            let band = own.iter().map(|p| ((y(p)[0] - y(p)[1]).max(0.3 * y(p)[0]), y(p)[0] + y(p)[1]));
            Series::new(name, color, own.iter().map(|p| (x(p) as f64, y(p)[0])).collect())
                .with_band(band.collect())
        };
        let series = vec![
            line("softmax", PALETTE[0], |p| [p.softmax, p.softmax_sem]),
            line("linear", PALETTE[1], |p| [p.linear, p.linear_sem]),
        ];
        Chart::new(title, Axis::log(label), Axis::log("mean square value error"), series)
    };
    let by_length = format!("(a) context length, *L* = {SHOWN_DEPTH}");
    let by_depth = format!("(b) depth, *n* = {longest}");
    let panels = [
        chart(by_length, "context length *n*", &|p| p.layers == SHOWN_DEPTH, |p| p.n),
        chart(by_depth, "layers *L*", &|p| p.n == longest, |p| p.layers),
    ];
    let tasks = points.first().map_or(0, |p| p.tasks);
    let note = format!("θ_{{∗}}; mean ± s.e.m. (drawn down to 0.3 of the mean) over {tasks} Loop tasks");
    Grid::new("Softmax against linear attention", 2, panels, note).scene()
}

fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let points = run(plan.seed, plan.samples(200, 50))?;
    out.csv("softmax_vs_linear", &points)?;
    out.figure("softmax_vs_linear", &figure(&points))?;
    Ok(vec![claim(&points)])
}

/// What the points say.
fn claim(points: &[AttentionPoint]) -> Claim {
    // Better by more than three standard errors.
    let softmax = points.iter().filter(|p| p.log_ratio < -3.0 * p.log_ratio_sem).collect::<Vec<_>>();
    let linear = points.iter().filter(|p| p.log_ratio > 3.0 * p.log_ratio_sem).count();
    let total = points.len();
    let judged = Verdict::by_share((total - linear) as u64, total as u64);
    let place = |of: &[&AttentionPoint]| {
        let depths: Vec<String> = of.iter().map(|p| p.layers.to_string()).collect();
        format!("n = {} (L {})", of[0].n, depths.join(", "))
    };
    let places = softmax.chunk_by(|a, b| a.n == b.n).map(place).collect::<Vec<_>>().join(", ");
    let at = |n, layers| points.iter().find(|p| p.n == n && p.layers == layers);
    let shown = [(39, 15), (1000, 15), (1000, 60)].into_iter().filter_map(|(n, layers)| at(n, layers));
    let shown: Vec<String> = shown
        .map(|p| format!("{:.3} and {:.3} at n = {}, L = {}", p.softmax, p.linear, p.n, p.layers))
        .collect();
    let largest = points.iter().map(|p| p.log_ratio_sem).fold(0.0, f64::max);
    let tasks = points.first().map_or(0, |p| p.tasks);
    Claim::new(
            "softmax-vs-linear",
            "Section 1, against linear attention",
            "Softmax attention at theta_* evaluates policies comparably to linear attention. The paper asks for comparable behaviour and does not compare.",
            "at no length and depth is linear attention better by more than three paired standard errors of log MSVE; partly when at some",
        )
        .found(
            judged,
            linear as f64 / total as f64,
            format!(
                "of {total} lengths and depths linear is better at {linear}, softmax at {}: {places}; MSVE of softmax and linear {}",
                softmax.len(),
                shown.join("; ")
            ),
            format!("{tasks} tasks, paired; s.e. of log₁₀(softmax/linear) at most {largest:.3}"),
        )
        .shown(Some("softmax_vs_linear"), Some("softmax_vs_linear.csv"))
        .scoped(Scope::PastThePaper)
        .because(
            "Values of these tasks are linear in the features, which is what linear attention fits with 5 numbers; softmax attention has to learn them \
             state by state. Linear attention diverges on single transitions, where its step is too large.",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where linear attention is better beyond doubt, the claim fails there; everywhere, it fails.
    #[test]
    fn losses_count() {
        let point = |log_ratio| AttentionPoint { log_ratio, log_ratio_sem: 0.1, ..AttentionPoint::default() };
        let verdict = |ratios: [f64; 2]| claim(&ratios.map(point)).verdict;
        assert_eq!(verdict([-1.0, 0.2]), Verdict::Reproduced);
        assert_eq!(verdict([-1.0, 0.4]), Verdict::Partly);
        assert_eq!(verdict([0.4, 0.4]), Verdict::NotReproduced);
    }
}
