//! Theorem 1, Lemma 1, the special cases, Figure 7, step sizes.

mod constructions;
mod step_size;
pub mod verify;

use ictd::statistics::largest;

use super::{Claim, Plan, Section, Study, verdict};
use crate::files::OutputDir;
use crate::report::Report as _;
use crate::{LabError, Progress};
use verify::{Verification, VerifyConfig};

/// Theorem 1 and what follows from it.
pub const STUDY: Study = Study::new(
    "equivalence",
    Section::Equivalence,
    &["thm1", "lem1", "special-cases", "fig7", "step-size"],
    judge,
);

/// Runs the verification once and judges five claims by its prompts.
fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let config = VerifyConfig { seed: plan.seed, num_trials: plan.samples(50, 10), ..Default::default() };
    let found = verify::run(&config, &Progress::default())?;
    found.write(out)?;
    let steps = step_size::run(&config)?;
    out.csv("step_size", &steps)?;
    Ok(claims(&config, &found, largest(steps.iter().map(|s| s.discrepancy))))
}

/// What the largest discrepancies say.
fn claims(config: &VerifyConfig, found: &Verification, steps: f64) -> Vec<Claim> {
    let tolerance = config.tolerance;
    let worst = |of: &dyn Fn(&verify::KernelDiscrepancies) -> f64| largest(found.kernels.iter().map(of));
    let softmax =
        found.kernels.iter().find(|k| k.kernel == "softmax").map_or(f64::INFINITY, |k| k.tsm_vs_direct);
    let special = largest(found.special_cases.iter().map(|s| s.discrepancy));
    let criterion = format!(
        "every discrepancy at most {tolerance:.0e}, divided by the largest value where that exceeds 1"
    );
    let uncertainty = format!("exact up to rounding: {} prompts, float64", config.num_trials);
    let claim = |(id, paper, says, data, worst): (&str, &str, &str, &str, f64)| {
        let measured = format!("largest discrepancy {worst:.1e}");
        Claim::new(id, paper, says, &criterion).shown(Some("fig7"), Some(data)).found(
            verdict(worst <= tolerance),
            worst,
            measured,
            uncertainty.clone(),
        )
    };
    let says = [
        "A layer of softmax attention at theta_* is one step of weighted softmax TD.",
        "Two heads equal one head and a temporal shift, on every entry of Z.",
        "Tabular, batch linear and non-parametric TD are special cases of the kernel.",
        "The equality holds layer by layer for every kernel tried.",
        "Replacing V_l by α_l·V_l makes α_l the step size of layer l, in both constructions.",
    ];
    let claims = [
        ("thm1", "Theorem 1", says[0], "verification.csv", softmax),
        ("lem1", "Lemma 1", says[1], "verification.csv", worst(&|k| k.dual_vs_tsm)),
        ("special-cases", "Section 3, special cases", says[2], "special_cases.csv", special),
        ("fig7", "Figure 7", says[3], "fig7.csv", worst(&|k| k.tsm_vs_direct)),
        ("step-size", "Remark after Theorem 1", says[4], "step_size.csv", steps),
    ];
    claims.map(claim).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::Verdict;

    /// A discrepancy above rounding, and one that is no number, fail the claims that rest on them, and no others.
    #[test]
    fn one_discrepancy_fails_its_claims() {
        let config = VerifyConfig { num_trials: 1, ..Default::default() };
        let good = verify::run(&config, &Progress::default()).unwrap();
        let failed = |found: &Verification, steps: f64| -> Vec<String> {
            let failed = claims(&config, found, steps).into_iter();
            failed.filter(|c| c.verdict != Verdict::Reproduced).map(|c| c.id).collect()
        };
        assert_eq!(failed(&good, 0.0), [""; 0]);
        assert_eq!(failed(&good, f64::NAN), ["step-size"]);
        let (mut heads, mut relu, mut special) = (good.clone(), good.clone(), good.clone());
        heads.kernels[0].dual_vs_tsm = 1e-9;
        relu.kernels[1].tsm_vs_direct = f64::NAN;
        special.special_cases[0].discrepancy = 1e-11;
        let all = [heads, relu, special].map(|found| failed(&found, 0.0));
        assert_eq!(all, [["lem1"], ["fig7"], ["special-cases"]]);
    }
}
