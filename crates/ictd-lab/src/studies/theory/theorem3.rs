//! Theorem 3's inequality with every constant as a number, beside the expected update itself.

use ictd::theory::Theorem3;
use ictd::transformer::AttentionParams;
use serde::Serialize;

use super::{TaskFamily, neu};
use crate::LabError;
use crate::files::OutputDir;

/// Depths.
const LAYERS: [usize; 6] = [1, 2, 5, 10, 20, 40];

/// The inequality at a length and a depth.
#[derive(Clone, Debug, Serialize)]
pub struct InequalityRow {
    /// The tasks in words.
    pub tasks: String,
    /// Context length n.
    pub n: usize,
    /// n₀, from which on the theorem speaks.
    pub threshold: f64,
    /// Depth L.
    pub layers: usize,
    /// J as the sum of absolute means, which errs upwards.
    pub neu: f64,
    /// Its standard error.
    pub sem: f64,
    /// Samples.
    pub samples: u64,
    /// C₂(1 - C)^L.
    pub depth_term: f64,
    /// C₂√(log n / n).
    pub sampling_term: f64,
    /// C₃·L(2+γ)^{2L}/n.
    pub event_term: f64,
    /// Their sum, the right-hand side.
    pub bound: f64,
    /// bound/(J + 3 standard errors).
    pub slack: f64,
    /// The bound says no more than what the proof knows of every trajectory, C₃·L(2+γ)^{2L}.
    pub vacuous: bool,
}

/// Evaluates the inequality on a family, at a length or at the smallest at which the theorem speaks. Empty where Assumption
/// 5.1 does not hold uniformly.
pub fn run(family: &TaskFamily, length: Option<usize>, samples: u64) -> Result<Vec<InequalityRow>, LabError> {
    let d = family.feature_dim();
    let Some(theorem) = Theorem3::of(&neu::uniform_constants(family)?, d) else { return Ok(Vec::new()) };
    let threshold = theorem.threshold();
    let n = length.unwrap_or(threshold.ceil() as usize);
    let found = neu::estimate(family, &AttentionParams::theta_star(d), n, &LAYERS, samples)?;
    let row = |f: &ictd::theory::Neu| {
        let layers = f.num_layers as f64;
        let [depth_term, sampling_term, event_term] = theorem.terms(layers, n as f64);
        let bound = depth_term + sampling_term + event_term;
        InequalityRow {
            tasks: family.describe(),
            n,
            threshold,
            layers: f.num_layers,
            neu: f.norm,
            sem: f.norm_sem,
            samples: f.samples,
            depth_term,
            sampling_term,
            event_term,
            bound,
            slack: bound / (f.norm + 3.0 * f.norm_sem),
            vacuous: !(bound < theorem.everywhere(layers)),
        }
    };
    Ok(found.iter().map(row).collect())
}

impl InequalityRow {
    /// Whether n is long enough for the theorem.
    pub fn premises(&self) -> bool {
        self.n as f64 >= self.threshold
    }
}

/// Writes the table.
pub fn write(rows: &[InequalityRow], out: &OutputDir) -> Result<(), LabError> {
    out.csv("theorem3_bound", rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_contexts_are_marked_and_constants_are_those_of_the_theorem() {
        let rows = run(&TaskFamily::fastest(0), Some(500), 8).unwrap();
        assert!(rows.len() == LAYERS.len() && rows.iter().all(|r| !r.premises() && r.slack > 1.0));
        assert!(rows.iter().all(|r| r.bound >= r.depth_term + r.sampling_term));
        // Without the assumption there is no inequality.
        assert!(run(&TaskFamily::paper(0), Some(20), 4).unwrap().is_empty());
    }
}
