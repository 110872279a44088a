//! How often a verdict is the same when the whole study is run with other seeds.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Drift, Timing, claim_directory, run};
use crate::LabError;
use crate::studies::{Claim, Plan, Study, Verdict};

/// The verdicts of every claim over [`SEEDS`], as `ictd reproduce --stability` wrote them.
const STORED: &str = include_str!("stability.json");
/// Seeds of the whole reproduction. Pretraining takes the seeds from there on, so that a hundred apart no two share one.
const SEEDS: std::ops::Range<u64> = 0..20;
const SEED_STRIDE: u64 = 100;
/// A verdict that differs on more seeds than this says so wherever it stands.
const TOLERATED: u64 = 1;

/// Agreement of a verdict over seeds of the whole study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stability {
    /// Seeds of the whole study.
    pub seeds: u64,
    /// Those with this verdict.
    pub same: u64,
}

impl Stability {
    /// Whether another seed may well give another verdict.
    pub fn is_doubtful(&self) -> bool {
        self.seeds.saturating_sub(self.same) > TOLERATED
    }
}

/// The verdicts of a claim over seeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdicts {
    /// The claim.
    pub id: String,
    /// Seeds by verdict.
    pub verdicts: BTreeMap<String, u64>,
}

impl Verdicts {
    fn of(&self, verdict: Verdict) -> Stability {
        let same = self.verdicts.get(&verdict.to_string()).copied().unwrap_or(0);
        Stability { seeds: self.verdicts.values().sum(), same }
    }
}

/// The verdicts of all claims over seeds; as JSON a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct VerdictCounts {
    /// One entry per claim.
    pub claims: Vec<Verdicts>,
}

fn stored() -> Result<Vec<Verdicts>, LabError> {
    serde_json::from_str(STORED).map_err(|e| LabError::internal("stored stability", e))
}

/// Notes with every claim of a full run how often its verdict was found over seeds.
pub(super) fn annotate(claims: &mut [Claim], plan: &Plan) -> Result<(), LabError> {
    if plan.quick || plan.seeds.is_some() {
        return Ok(());
    }
    let stored = stored()?;
    for claim in claims {
        claim.stability = stored.iter().find(|v| v.id == claim.id).map(|v| v.of(claim.verdict));
    }
    Ok(())
}

/// Runs the studies once per seed, each in a directory of its own below `path`, and counts verdicts. A run that was
/// interrupted continues; `progress` hears of every study that ends.
pub fn measure(
    studies: &[Study],
    path: &Path,
    fresh: bool,
    mut progress: impl FnMut(u64, &Timing),
) -> Result<VerdictCounts, LabError> {
    let _out = claim_directory(path, super::paper_of(studies))?;
    let none = |id: &&str| Verdicts { id: id.to_string(), verdicts: BTreeMap::new() };
    let mut claims: Vec<Verdicts> = studies.iter().flat_map(|s| s.claims).map(none).collect();
    for k in SEEDS {
        let plan = Plan { seed: k * SEED_STRIDE, seeds: None, quick: false };
        let below = path.join(format!("seed_{}", plan.seed));
        let reproduction = run(studies, &plan, &below, fresh, |_, result| {
            if let Some((timing, _)) = result {
                progress(k, timing);
            }
            Ok(())
        })?;
        // A study judges the claims it is listed with, in their order.
        for (counts, claim) in claims.iter_mut().zip(reproduction.claims) {
            *counts.verdicts.entry(claim.verdict.to_string()).or_default() += 1;
        }
    }
    Ok(VerdictCounts { claims })
}

/// The claims whose verdicts over seeds are not the stored ones.
pub fn stability_drifts(found: &[Verdicts]) -> Result<Vec<Drift>, LabError> {
    let stored = stored()?;
    let differs = |v: &&Verdicts| !stored.contains(v);
    let drift =
        |v: &Verdicts| Drift { id: v.id.clone(), what: format!("verdicts over seeds {:?}", v.verdicts) };
    Ok(found.iter().filter(differs).map(drift).collect())
}

/// How many seeds [`measure`] runs.
pub fn num_seeds() -> u64 {
    SEEDS.end - SEEDS.start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::STUDIES;

    /// Every claim has its counts, over all seeds.
    #[test]
    fn stored_counts_are_those_of_the_claims() {
        let ids: Vec<&str> = STUDIES.iter().flat_map(|s| s.claims.iter().copied()).collect();
        let stored = stored().unwrap();
        assert!(stored.iter().map(|v| v.id.as_str()).eq(ids));
        assert!(stored.iter().all(|v| v.verdicts.values().sum::<u64>() == num_seeds()));
    }

    #[test]
    fn only_full_runs_are_annotated() {
        let mut claims = [Claim::new("thm1", "", "", "")];
        claims[0].verdict = Verdict::Reproduced;
        annotate(&mut claims, &Plan { seed: 0, seeds: "0..1".parse().ok(), quick: false }).unwrap();
        assert_eq!(claims[0].stability, None);
        annotate(&mut claims, &Plan { seed: 0, seeds: None, quick: false }).unwrap();
        assert_eq!(claims[0].stability, Some(Stability { seeds: 20, same: 20 }));
    }
}
