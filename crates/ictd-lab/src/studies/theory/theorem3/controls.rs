//! J at points other than theta_*: what does not vanish, and what else does.

use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::transformer::AttentionParams;

use super::{Ends, NeuConfig, NeuPoint, points, softmax, unless_diverged};
use crate::counted;
use crate::figure::style::PALETTE;
use crate::figure::{Axis, Chart, Scene, Series, Width};
use crate::{LabError, Progress};

/// J above which a control is named below the figure instead of drawn: layers there diverge with depth.
const DRAWN: f64 = 1e3;
/// How far the random points are from theta_*, in every entry.
const DISTANCE: f64 = 0.5;

/// A point of Θ^Looped that J is compared at.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) theta: String,
    /// Whether layers there have the values v_π as their fixed point, so that J vanishes too.
    pub(super) solves: bool,
    /// J over lengths, at the shallowest and the deepest network; empty where layers diverge.
    pub(super) points: Vec<NeuPoint>,
}

/// The fixed point of layers at u = (a, b, c) solves a·r + bγPv + cv = 0: it is v_π where a = b = -c, and nowhere else.
fn others(feature_dim: usize, seed: u64) -> Vec<(String, bool, AttentionParams)> {
    let d = feature_dim;
    let block = Matrix::identity(d);
    let with = |value_row: [f64; 3]| AttentionParams::looped(value_row, &block);
    let mut stream = Stream::new(seed, Purpose::Init, 0);
    let mut moved = |x: f64| x + stream.uniform_in(-DISTANCE, DISTANCE);
    let value_row = [1.0, 1.0, -1.0].map(&mut moved);
    let random = AttentionParams::looped(value_row, &block.map(moved));
    let control = |name: &str, solves, params| (name.to_owned(), solves, params);
    vec![
        control("mirror block, u = (−1, −1, 1), A = −I", false, AttentionParams::mirror(d)),
        control("no bootstrapping, u = (1, 0, −1)", false, with([1.0, 0.0, -1.0])),
        control("twice the reward, u = (2, 1, −1)", false, with([2.0, 1.0, -1.0])),
        control("theta_* moved by up to ½ at random", false, random),
        control("half the step, u = (½, ½, −½)", true, with([0.5, 0.5, -0.5])),
    ]
}

/// Estimates J at other points, with the tasks and trajectories of theta_*.
pub(super) fn controls(config: &NeuConfig) -> Result<Vec<Control>, LabError> {
    let ends =
        |list: &[usize]| [list.iter().min(), list.iter().max()].into_iter().flatten().copied().collect();
    let layers: Vec<usize> = ends(&config.layers);
    let (attention, mut found) = (softmax()?, Vec::new());
    for (theta, solves, params) in others(config.family.feature_dim(), config.family.seed) {
        let at = |&n| {
            points(
                &config.family,
                &attention,
                (&theta, &params),
                n,
                &layers,
                config.samples,
                &Progress::default(),
            )
        };
        let points = unless_diverged(config.lengths.iter().map(at).collect::<Result<Vec<_>, _>>())?;
        let points = points.unwrap_or_default().concat();
        found.push(Control { theta, solves, points });
    }
    Ok(found)
}

impl Control {
    /// Whether J falls with the context as it does at theta_*; what diverges does not.
    pub(super) fn vanishes(&self) -> bool {
        Ends::of(&self.points).is_some_and(|ends| ends.falls().0)
    }

    /// J at both ends in the deepest network, in words.
    pub(super) fn describe(&self) -> String {
        match Ends::of(&self.points) {
            Some(e) => {
                let number = |x: f64| if x < DRAWN { format!("{x:.3}") } else { format!("{x:.1e}") };
                format!("{} → {} ({})", number(e.short.split), number(e.last.split), self.theta)
            }
            None => format!("diverges ({})", self.theta),
        }
    }
}

/// J over lengths in the deepest network, beside theta_*.
pub(super) fn controls_figure(config: &NeuConfig, controls: &[Control], star: &[NeuPoint]) -> Scene {
    let deepest = star.iter().map(|p| p.layers).max().unwrap_or(0);
    let line = |points: &[NeuPoint]| -> Vec<(f64, f64)> {
        let own = points.iter().filter(|p| p.layers == deepest && p.split > 0.0);
        own.map(|p| (p.n as f64, p.split)).collect()
    };
    let mut all = vec![Series::new("θ_{∗}", PALETTE[0], line(star))];
    let mut note = format!("{}; {} per estimate", config.family.describe(), counted(config.samples, "task"));
    for (k, control) in controls.iter().enumerate() {
        let name = control.theta.split(", ").next().unwrap_or_default().replace("theta_*", "θ_{∗}");
        let largest = control.points.iter().map(|p| p.split).fold(0.0, f64::max);
        if !(largest < DRAWN) || control.points.is_empty() {
            note += &format!("; not drawn: {name}, where layers diverge");
            continue;
        }
        let series = Series::new(name, PALETTE[(k + 1) % PALETTE.len()], line(&control.points));
        all.push(if control.solves { series.dashed() } else { series });
    }
    let title = format!("The expected update at θ_{{∗}} and elsewhere, *L* = {deepest}");
    let (x, y) = (Axis::log("context length *n*"), Axis::log("NEU *J* without noise"));
    Chart::new(title, x, y, all).noted(note).scene(Width::Column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::Tasks;

    /// Where layers solve for v_π J vanishes as at theta_*, elsewhere it stays.
    #[test]
    fn only_points_that_solve_the_task_vanish() {
        let config = NeuConfig {
            family: Tasks::certified(5),
            lengths: vec![30, 1000],
            layers: vec![2, 40],
            samples: 400,
        };
        for control in controls(&config).unwrap() {
            assert_eq!(control.vanishes(), control.solves, "{}", control.describe());
        }
    }
}
