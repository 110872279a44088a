//! When Assumption 5.1 holds: where scores separate a state from all others.

use ictd::matrix::Matrix;
use ictd::task::FiniteTask;
use serde::Serialize;

use super::{Tasks, on_tasks, population};
use crate::LabError;

/// Score scales.
const SCALES: [f64; 6] = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5];

/// How many tasks satisfy what at a score scale.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SeparationRow {
    /// Features divided by their length, or as they are.
    pub unit_norm: bool,
    pub score_scale: f64,
    pub tasks: u64,
    /// Tasks where g(s, s) > g(s, s') for all s' ≠ s.
    pub separated: u64,
    /// Tasks where the difference is large enough at every state to prove the assumption: above
    /// log((1 - μ(s))/μ(s)·(1 + γ)/(1 - γ)), because M(s, s) ≥ μ(s)/(μ(s) + (1 - μ(s))·exp(-difference)).
    pub enough: u64,
    pub holds: u64,
    /// Tasks where the difference is enough and the assumption does not hold: none, by proof.
    pub contradictions: u64,
}

/// Examines the first `tasks` tasks of a family at every scale, with raw and with unit-norm features.
pub fn run(family: &Tasks, tasks: u64) -> Result<Vec<SeparationRow>, LabError> {
    let settings = [false, true].into_iter().flat_map(|unit| SCALES.map(|scale| (unit, scale)));
    let row = |(unit_norm, score_scale)| {
        let family = family.rescaled(unit_norm, score_scale);
        let flags = on_tasks(&family, tasks, |_, task| examine(task))?;
        let count = |of: fn(&[bool; 3]) -> bool| flags.iter().filter(|f| of(f)).count() as u64;
        Ok(SeparationRow {
            unit_norm,
            score_scale,
            tasks,
            separated: count(|f| f[0]),
            enough: count(|f| f[1]),
            holds: count(|f| f[2]),
            contradictions: count(|f| f[1] && !f[2]),
        })
    };
    settings.map(row).collect()
}

/// Separated, separated enough, and the assumption itself.
fn examine(task: &FiniteTask) -> Result<[bool; 3], LabError> {
    let (gamma, mu) = (task.mrp().gamma(), task.stationary_distribution());
    let x = task.features();
    let scores = x.matmul(&x.transpose());
    let needed = |s: usize| ((1.0 - mu[s]) / mu[s] * (1.0 + gamma) / (1.0 - gamma)).ln();
    let gaps: Vec<f64> = (0..mu.len()).map(|s| gap(&scores, s)).collect();
    let smallest = population(task)?.self_weights().into_iter().fold(f64::INFINITY, f64::min);
    Ok([
        gaps.iter().all(|g| *g > 0.0),
        gaps.iter().enumerate().all(|(s, g)| *g > needed(s)),
        smallest > 0.5 * (1.0 + gamma),
    ])
}

/// The smallest g(s, s) - g(s, s').
fn gap(scores: &Matrix, s: usize) -> f64 {
    let others = (0..scores.num_cols()).filter(|&u| u != s).map(|u| scores[(s, u)]);
    scores[(s, s)] - others.fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Unit-norm features are always separated and, sharp enough, always enough; raw ones with 64 states in 4 dimensions
    /// never are.
    #[test]
    fn separation_is_what_the_assumption_needs() {
        let rows = run(&Tasks::paper(1), 5).unwrap();
        assert!(rows.iter().all(|r| r.contradictions == 0 && r.enough <= r.holds));
        assert!(rows.iter().all(|r| r.separated == if r.unit_norm { 5 } else { 0 }));
        let last = rows.last().unwrap();
        assert_eq!((last.enough, last.holds), (5, 5));
        assert!(rows.iter().filter(|r| !r.unit_norm).all(|r| r.holds == 0));
    }
}
