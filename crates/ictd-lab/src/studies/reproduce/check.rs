//! Comparing a run with stored values.

use serde::Deserialize;

use crate::LabError;
use crate::studies::{Claim, Paper, Verdict};

/// Verdicts and values of a full run with seed 0, each with the tolerance within which another machine must find it.
const fn expected_of(paper: Paper) -> &'static str {
    match paper {
        Paper::Main => include_str!("expected.json"),
        Paper::Predecessor => include_str!("../predecessor/expected.json"),
    }
}

#[derive(Deserialize)]
struct Expected {
    id: String,
    verdict: Verdict,
    value: Option<f64>,
    /// Largest difference of values: 0 for counts, what other instructions or another mathematics library may change
    /// for the rest.
    tolerance: f64,
}

/// A claim that came out differently.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The claim.
    pub id: String,
    /// What was expected and found.
    pub what: String,
}

/// The claims of a full run of a paper with seed 0 that differ from the stored ones.
pub fn drifts(paper: Paper, claims: &[Claim]) -> Result<Vec<Drift>, LabError> {
    let expected: Vec<Expected> =
        serde_json::from_str(expected_of(paper)).map_err(|e| LabError::internal("expected values", e))?;
    Ok(claims.iter().filter_map(|claim| drift(claim, &expected)).collect())
}

fn drift(claim: &Claim, expected: &[Expected]) -> Option<Drift> {
    let differs = |what: String| Some(Drift { id: claim.id.clone(), what });
    let Some(known) = expected.iter().find(|e| e.id == claim.id) else {
        return differs("no value is stored for it".into());
    };
    if claim.verdict != known.verdict {
        return differs(format!("expected '{}', found '{}'", known.verdict, claim.verdict));
    }
    match (claim.value, known.value) {
        (None, None) => None,
        (Some(found), Some(value)) if (found - value).abs() <= known.tolerance => None,
        (found, value) => {
            let text = |x: Option<f64>| x.map_or_else(|| "nothing".into(), |x| format!("{x}"));
            differs(format!("expected {} ± {}, found {}", text(value), known.tolerance, text(found)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every claim has a stored value, and every stored value a claim.
    #[test]
    fn stored_values_are_those_of_the_claims() {
        for paper in Paper::ALL {
            let expected: Vec<Expected> = serde_json::from_str(expected_of(paper)).unwrap();
            let ids: Vec<&str> = paper.studies().iter().flat_map(|s| s.claims.iter().copied()).collect();
            let stored: Vec<&str> = expected.iter().map(|e| e.id.as_str()).collect();
            assert_eq!(stored, ids);
        }
    }

    #[test]
    fn differences_are_found() {
        let known =
            [Expected { id: "a".into(), verdict: Verdict::Reproduced, value: Some(1.0), tolerance: 0.1 }];
        let claim = |verdict, value: f64| {
            Claim::new("a", "", "", "").found(verdict, value, String::new(), String::new())
        };
        assert_eq!(drift(&claim(Verdict::Reproduced, 1.05), &known), None);
        assert!(drift(&claim(Verdict::Reproduced, 1.2), &known).is_some());
        assert!(drift(&claim(Verdict::Partly, 1.0), &known).is_some());
        assert!(drift(&claim(Verdict::Reproduced, f64::NAN), &known).is_some());
        assert!(drift(&Claim::new("b", "", "", ""), &known).is_some());
    }
}
