//! Theorem 3's inequality with every constant as a number, beside the expected update itself.

use ictd::theory::Theorem3;
use ictd::transformer::AttentionParams;
use serde::Serialize;

use super::{estimate, softmax, uniform_constants};
use crate::files::OutputDir;
use crate::studies::{Claim, Plan, Section, Study, Tasks, verdict};
use crate::{LabError, Progress};

/// Theorem 3's inequality as numbers, where its premises hold and can be sampled.
pub const STUDY: Study = Study::new("thm3-bound", Section::Objective, &["thm3-bound"], judge);

/// Depths.
const LAYERS: [usize; 6] = [1, 2, 5, 10, 20, 40];

/// The inequality at a length and a depth.
#[derive(Clone, Debug, Serialize)]
pub struct InequalityRow {
    pub tasks: String,
    pub n: usize,
    /// n₀, from which on the theorem speaks.
    pub threshold: f64,
    pub layers: usize,
    /// J as the sum of absolute means, which errs upwards.
    pub neu: f64,
    pub sem: f64,
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
pub fn run(family: &Tasks, length: Option<usize>, samples: u64) -> Result<Vec<InequalityRow>, LabError> {
    let d = family.feature_dim();
    let Some(theorem) = Theorem3::of(&uniform_constants(family)?) else { return Ok(Vec::new()) };
    let threshold = theorem.threshold();
    let n = length.unwrap_or(threshold.ceil() as usize);
    let found = estimate(
        family,
        softmax()?,
        &AttentionParams::theta_star(d),
        n,
        &LAYERS,
        samples,
        &Progress::default(),
    )?;
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
    fn premises(&self) -> bool {
        self.n as f64 >= self.threshold
    }
}

fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let mut rows = run(&Tasks::fastest(plan.seed), None, plan.samples(8, 4))?;
    rows.extend(run(&Tasks::certified(plan.seed), Some(1000), plan.samples(500, 100))?);
    out.csv("theorem3_bound", &rows)?;
    Ok(vec![claim(&rows)])
}

fn claim(rows: &[InequalityRow]) -> Claim {
    let claim = Claim::new(
        "thm3-bound",
        "Theorem 3, the inequality",
        "J is at most a term that decays with depth, one that decays with length and one of bad events.",
        "where all premises hold, the right-hand side is above J plus three standard errors at every depth",
    )
    .shown(None, Some("theorem3_bound.csv"));
    let (own, others): (Vec<&InequalityRow>, Vec<_>) = rows.iter().partition(|r| r.premises());
    // The tightest row that says something; any row where none does.
    let telling = |r: &&&InequalityRow| !r.vacuous || own.iter().all(|r| r.vacuous);
    let Some(tightest) = own.iter().filter(telling).min_by(|a, b| a.slack.total_cmp(&b.slack)) else {
        return claim;
    };
    // Overflow on both sides decides nothing.
    if own.iter().any(|r| r.slack.is_nan()) {
        return claim.untested("a side of the inequality is no number in double precision".into());
    }
    let vacuous = own.iter().filter(|r| r.vacuous).count();
    let elsewhere = others.iter().map(|r| r.bound).fold(f64::INFINITY, f64::min);
    let InequalityRow { n, layers, neu, depth_term, sampling_term, event_term, bound, slack, .. } = tightest;
    let measured = format!(
        "at n = {n}, L = {layers}: J {neu:.1e}, bound {bound:.1e} = {depth_term:.1e} + {sampling_term:.1e} + {event_term:.1e}, slack {slack:.1e}; \
         vacuous at {vacuous} of {} depths. Where n₀ cannot be sampled ({}) the smallest bound at n = 1000 is {elsewhere:.0e}",
        own.len(),
        others.first().map_or("nowhere", |r| r.tasks.as_str())
    );
    let kept = own.iter().all(|r| r.slack >= 1.0);
    let uncertainty = format!("{} tasks per estimate", tightest.samples);
    claim.found(verdict(kept), 1.0 / slack, measured, uncertainty).with_slack(*slack).in_chosen_setting()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::Verdict;

    /// One depth at which J is above the bound breaks the inequality; short contexts promise nothing.
    #[test]
    fn one_depth_breaks_the_inequality() {
        let mut rows = run(&Tasks::fastest(0), Some(500), 4).unwrap();
        assert_eq!(claim(&rows).verdict, Verdict::NotTestable);
        rows.iter_mut().for_each(|r| (r.threshold, r.slack) = (100.0, 5.0));
        assert_eq!(claim(&rows).verdict, Verdict::Consistent);
        rows[3].slack = 0.9;
        assert_eq!(claim(&rows).verdict, Verdict::NotReproduced);
        rows[3].slack = f64::NAN;
        assert_eq!(claim(&rows).verdict, Verdict::NotTestable);
    }

    #[test]
    fn short_contexts_are_marked_and_constants_are_those_of_the_theorem() {
        let rows = run(&Tasks::fastest(0), Some(500), 8).unwrap();
        assert!(rows.len() == LAYERS.len() && rows.iter().all(|r| !r.premises() && r.slack > 1.0));
        assert!(rows.iter().all(|r| r.bound >= r.depth_term + r.sampling_term));
        // Without the assumption there is no inequality.
        assert!(run(&Tasks::paper(0), Some(20), 4).unwrap().is_empty());
    }
}
