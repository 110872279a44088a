//! What depth does on the paper's own tasks, where no theorem speaks: the largest error of a state against the
//! number of layers.

use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::statistics::MeanSem;
use ictd::task::FiniteTask;
use serde::Serialize;

use super::{Tasks, apart, counted, layers, limit, on_tasks, softmax};
use crate::LabError;
use crate::figure::style::PALETTE;
use crate::figure::{Axis, Chart, Scene, Series, Width};
use crate::files::OutputDir;
use crate::studies::{Claim, Plan, Scope, Section, Study, Verdict};

/// The second question of the paper's introduction on its own tasks, where Theorem 2's premise fails.
pub const STUDY: Study = Study::new("depth", Section::Convergence, &["depth"], judge);

/// Context lengths: prefixes of one trajectory per task.
const LENGTHS: [usize; 3] = [100, 1000, LONGEST];
const LONGEST: usize = 30_000;
/// Depths.
const LAYERS: [usize; 17] = [0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 130, 160, DEEPEST];
const DEEPEST: usize = 200;

/// The mean error at a length and a depth.
#[derive(Clone, Debug, Serialize)]
pub struct DepthPoint {
    pub n: usize,
    /// Depth L; `None` for infinite depth, over the contexts that visit every state.
    pub layers: Option<usize>,
    /// Mean over tasks of the largest |v_L(s) - v_π(s)| over all states.
    pub error: f64,
    pub sem: f64,
    /// Mean over tasks of (this error - that of answering 0), tasks paired.
    pub change: f64,
    pub change_sem: f64,
    pub tasks: usize,
}

#[derive(Clone, Debug)]
pub struct DepthCurves {
    /// Every length with every depth, then infinite depth.
    pub points: Vec<DepthPoint>,
    describe: String,
}

/// The errors of one context by depth, then at infinite depth.
type Errors = (Vec<f64>, Option<f64>);

/// Measures on the first `tasks` tasks of a family.
pub fn run(family: &Tasks, tasks: u64) -> Result<DepthCurves, LabError> {
    let found = on_tasks(family, tasks, |index, task| {
        errors_of_task(task, Stream::new(family.seed, Purpose::Trajectory, index))
    })?;
    let mut points = Vec::new();
    for (k, n) in LENGTHS.into_iter().enumerate() {
        let point = |layers, pairs: Vec<(f64, f64)>| {
            let MeanSem { mean: error, sem, count: tasks } =
                MeanSem::of(&pairs.iter().map(|p| p.0).collect::<Vec<_>>())?;
            let MeanSem { mean: change, sem: change_sem, .. } =
                MeanSem::of(&pairs.iter().map(|p| p.0 - p.1).collect::<Vec<_>>())?;
            Some(DepthPoint { n, layers, error, sem, change, change_sem, tasks })
        };
        let of_length = || found.iter().map(|task| &task[k]);
        for (l, layers) in LAYERS.into_iter().enumerate() {
            points.extend(point(Some(layers), of_length().map(|e| (e.0[l], e.0[0])).collect()));
        }
        points.extend(point(None, of_length().filter_map(|e| Some((e.1?, e.0[0]))).collect()));
    }
    Ok(DepthCurves { points, describe: family.describe() })
}

fn errors_of_task(task: &FiniteTask, mut stream: Stream) -> Result<Vec<Errors>, LabError> {
    let states = task.mrp().sample_states(LONGEST, &mut stream);
    let distance = |v: Vec<f64>| apart(&v, task.values());
    let of_length = |n| {
        let operator = StateOperator::of(counted(task, &states[..=n]), &softmax()?, task.mrp().gamma())?;
        let shown = layers(&operator, 1.0).take(DEEPEST + 1).enumerate().filter(|(l, _)| LAYERS.contains(l));
        Ok((shown.map(|(_, v)| distance(v)).collect(), limit(&operator).map(distance)))
    };
    LENGTHS.into_iter().map(of_length).collect()
}

impl DepthCurves {
    /// The points of a length, by depth.
    fn at(&self, n: usize) -> Vec<&DepthPoint> {
        self.points.iter().filter(|p| p.n == n && p.layers.is_some()).collect()
    }

    /// The mean error at infinite depth, over the tasks whose context visits every state.
    fn limit(&self, n: usize) -> Option<&DepthPoint> {
        self.points.iter().find(|p| p.n == n && p.layers.is_none())
    }

    /// The shallowest, the best and the deepest network at a length.
    fn ends(&self, n: usize) -> Option<[&DepthPoint; 3]> {
        let points = self.at(n);
        let best = points.iter().min_by(|a, b| a.error.total_cmp(&b.error))?;
        Some([points.first()?, best, points.last()?])
    }

    /// Whether the error decays with depth at a length: the deepest network is better than answering 0, and not worse than
    /// any shallower one, each by three standard errors.
    fn decays(&self, n: usize) -> bool {
        self.ends(n).is_some_and(|[_, best, last]| {
            last.change < -3.0 * last.change_sem
                && last.change - best.change <= 3.0 * last.change_sem.hypot(best.change_sem)
        })
    }

    /// The error against depth.
    fn figure(&self) -> Scene {
        let series = LENGTHS.into_iter().zip(PALETTE).map(|(n, color)| {
            // A logarithmic axis has no place for L = 0, which is the line of answering 0.
            let own: Vec<&DepthPoint> =
                self.at(n).into_iter().filter(|p| p.layers.is_some_and(|l| l > 0)).collect();
            let points = own.iter().map(|p| (p.layers.unwrap_or(0) as f64, p.error)).collect();
            let band = own.iter().map(|p| (p.error - p.sem, p.error + p.sem)).collect();
            Series::new(format!("*n* = {n}"), color, points).with_band(band)
        });
        let mut series: Vec<Series> = series.collect();
        let line = |name: &str, color, y: f64| {
            Series::new(name, color, vec![(1.0, y), (DEEPEST as f64, y)]).dashed()
        };
        if let Some(zero) = self.points.first() {
            series.push(line("answering 0", PALETTE[3], zero.error));
        }
        if let Some(limit) = self.limit(LONGEST) {
            let name = format!("infinite depth, *n* = {LONGEST} ({} tasks)", limit.tasks);
            series.push(line(&name, PALETTE[4], limit.error));
        }
        let tasks = self.points.first().map_or(0, |p| p.tasks);
        let (x, y) = (Axis::log("layers *L*"), Axis::linear("mean error ‖*v*_{*L*} − *v*_{π}‖_{∞}"));
        Chart::new("Error against depth on the paper's tasks", x, y, series)
            .noted(format!("{}; mean ± s.e.m. over {tasks} tasks", self.describe))
            .scene(Width::Column)
    }
}

fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let curves = run(&Tasks::paper(plan.seed), plan.samples(100, 25))?;
    out.csv("depth", &curves.points)?;
    out.figure("depth", &curves.figure())?;
    Ok(vec![claim(&curves)])
}

fn claim(curves: &DepthCurves) -> Claim {
    let claim = Claim::new(
        "depth",
        "Question (Q2), on the paper's own tasks",
        "The error decays with depth to a floor that vanishes as the context grows.",
        "at every length the deepest network is better than answering 0 and not worse than a shallower one, and its error falls with the length, \
         each by three standard errors; partly when that is so at some length and the error falls with the length",
    )
    .scoped(Scope::ChangedSetting)
    .shown(Some("depth"), Some("depth.csv"));
    let mut texts = Vec::new();
    let mut last: Vec<&DepthPoint> = Vec::new();
    for n in LENGTHS {
        let Some(ends) = curves.ends(n) else { return claim };
        let ([zero, best, deep], [_, at, end]) = (ends.map(|p| p.error), ends.map(|p| p.layers.unwrap_or(0)));
        texts.push(format!(
            "n = {n}: {zero:.2} without layers, at best {best:.2} at L = {at}, {deep:.2} at L = {end}"
        ));
        last.push(ends[2]);
    }
    let decays = LENGTHS.map(|n| curves.decays(n));
    let falls = last.windows(2).all(|w| w[0].error - w[1].error > 3.0 * w[0].sem.hypot(w[1].sem));
    let judged = match (falls, decays) {
        (true, all) if all.iter().all(|d| *d) => Verdict::Reproduced,
        (true, some) if some.iter().any(|d| *d) => Verdict::Partly,
        _ => Verdict::NotReproduced,
    };
    let errors: Vec<String> = last.iter().map(|p| format!("{:.3}", p.sem)).collect();
    let limit = curves.limit(LONGEST).map_or_else(String::new, |DepthPoint { n, error, sem, tasks, .. }| {
        format!("; at infinite depth {error:.2} ± {sem:.3} at n = {n} on the {tasks} contexts that visit every state")
    });
    let uncertainty = format!("s.e. {} at the deepest, {} tasks{limit}", errors.join(", "), last[0].tasks);
    let ratio = last[0].error / last[last.len() - 1].error;
    claim.found(judged, ratio, texts.join("; "), uncertainty).because(
        "Assumption 5.1 fails on these tasks. Layers solve for the values that the counted transitions of the context have, whatever the \
         kernel, because M̂ − γP̂ = W(D − γN) with W invertible. Those of short contexts are far off, and the more layers, the nearer they get \
         to them: few layers are better. Long contexts have nearly the right ones, which takes millions of layers (claim 'stability').",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(n: usize, layers: usize, error: f64) -> DepthPoint {
        let change = error - 1.0;
        DepthPoint { n, layers: Some(layers), error, sem: 0.01, change, change_sem: 0.01, tasks: 100 }
    }

    /// Errors that rise again with depth, at some length or at all, and errors that longer contexts do not lower.
    #[test]
    fn errors_that_do_not_fall_are_not_reproduced() {
        let verdict = |deepest: [f64; 3]| {
            let of = |(n, error)| [point(n, 0, 1.0), point(n, 1, 0.6), point(n, 200, error)];
            let points = LENGTHS.into_iter().zip(deepest).flat_map(of).collect();
            claim(&DepthCurves { points, describe: String::new() }).verdict
        };
        assert_eq!(verdict([0.5, 0.3, 0.1]), Verdict::Reproduced);
        assert_eq!(verdict([0.8, 0.3, 0.1]), Verdict::Partly);
        assert_eq!(verdict([1.3, 1.2, 1.1]), Verdict::NotReproduced);
        assert_eq!(verdict([0.3, 0.3, 0.3]), Verdict::NotReproduced);
        assert_eq!(verdict([0.5, 0.3, f64::NAN]), Verdict::NotReproduced);
    }

    /// On a family with Assumption 5.1 depth decays at every length, to the floor of infinite depth.
    #[test]
    fn depth_decays_where_the_assumption_holds() {
        let found = run(&Tasks::certified(3), 12).unwrap();
        assert!(LENGTHS.into_iter().all(|n| found.decays(n)));
        let limit = found.limit(30_000).unwrap();
        let last = found.at(30_000).pop().unwrap();
        assert!((last.error - limit.error).abs() < 1e-9);
    }
}
