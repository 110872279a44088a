//! The demonstration: TD(0) as linear attention does it, on contexts that grow.

use ictd::predecessor::{Transition, td_weights};
use ictd::random::{Purpose, Stream};
use ictd::statistics::{msve, spearman};
use ictd::task::{Family, Kind};
use serde::Serialize;

use crate::LabError;
use crate::figure::style::PALETTE;
use crate::figure::{Axis, Chart, Series, Width};
use crate::files::OutputDir;
use crate::studies::{Claim, Plan, Tasks, Verdict, in_parallel, mean_and_sem};

/// Depth and step size of the demonstration.
const LAYERS: usize = 15;
const STEP_SIZE: f64 = 0.2;

#[derive(Serialize)]
struct Point {
    n: usize,
    msve: f64,
    sem: f64,
}

/// Mean square value errors on prefixes of a trajectory of a task, by context length.
fn errors(tasks: &Tasks, lens: &[usize], index: u64) -> Result<Vec<f64>, LabError> {
    let task = tasks.draw(index)?;
    let longest = lens.last().copied().unwrap_or(1);
    let states = task.mrp().sample_states(longest, &mut Stream::new(tasks.seed, Purpose::Trajectory, index));
    let (features, rewards) = (task.features(), task.mrp().rewards());
    let transition = |pair: &[usize]| Transition {
        features: features.row(pair[0]),
        successor: features.row(pair[1]),
        reward: rewards[pair[0]],
    };
    let context: Vec<Transition<'_>> = states.windows(2).map(transition).collect();
    let error = |n: &usize| {
        let weights = td_weights(&context[..*n], task.mrp().gamma(), STEP_SIZE, LAYERS);
        msve(&features.mul_vec(&weights), task.values(), task.stationary_distribution())
    };
    Ok(lens.iter().map(error).collect())
}

/// Judges whether the error falls.
pub fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let tasks = Tasks::of_family(Family::of(Kind::Figure1), plan.seed);
    let lens: Vec<usize> = (1..40).step_by(2).collect();
    let found = in_parallel(0..plan.samples(300, 60), |index| errors(&tasks, &lens, index))?;
    let mut points = Vec::new();
    for (k, &n) in lens.iter().enumerate() {
        let (msve, sem) = mean_and_sem("tasks", found.iter().map(|e| e[k]))?;
        points.push(Point { n, msve, sem });
    }
    let (drop, drop_sem) = mean_and_sem("tasks", found.iter().map(|e| e[0] - e[lens.len() - 1]))?;
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().map(|p| (p.n as f64, p.msve)).unzip();
    let correlation = spearman(&x, &y);
    let curve = points.iter().map(|p| (p.n as f64, p.msve)).collect();
    let band = points.iter().map(|p| (p.msve - p.sem, p.msve + p.sem)).collect();
    let series = Series::new(format!("{LAYERS} layers of TD(0), *α* = {STEP_SIZE}"), PALETTE[0], curve);
    let chart = Chart::new(
        "Value error against context length — linear attention",
        Axis::linear("context length *n* (transitions)"),
        Axis::linear("mean square value error"),
        vec![series.with_band(band)],
    );
    let note = format!("mean ± s.e.m. over {} tasks: {}", found.len(), tasks.describe());
    out.csv("predecessor_demo", &points)?;
    out.figure("predecessor_demo", &chart.noted(note).scene(Width::Column))?;
    let (first, last) = (&points[0], &points[points.len() - 1]);
    let claim = Claim::new(
        "demo",
        "Demonstration",
        "The value error of linear attention at the TD(0) parameters falls as its context grows.",
        "over lengths 1 to 39 the drop from the shortest to the longest context exceeds three standard errors and the rank correlation of error and \
         length is at most −0.9; partly when only the drop is there",
    );
    Ok(vec![
        claim
            .found(
                Verdict::stepwise(drop > 3.0 * drop_sem, correlation <= -0.9),
                correlation,
                format!(
                    "MSVE {:.2} at n = 1, {:.2} at n = 39; rank correlation {correlation:.2}",
                    first.msve, last.msve
                ),
                format!("± {:.2} and ± {:.2} (s.e.m. over {} tasks)", first.sem, last.sem, found.len()),
            )
            .shown(Some("predecessor_demo"), Some("predecessor_demo.csv")),
    ])
}
