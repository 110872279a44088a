//! Theorem 1, Lemma 1, the special cases, Figure 7, step sizes.

mod show;
pub mod step_size;
pub mod verify;

use ictd::statistics::largest;

use super::{Claim, Plan, Section, Study, verdict};
use crate::LabError;
use crate::files::OutputDir;
use crate::report::Report as _;
use verify::VerifyConfig;

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
    let found = verify::run(&config)?;
    found.write(out)?;
    let steps = step_size::run(&config)?;
    out.csv("step_size", &steps)?;
    let tolerance = config.tolerance;
    let judged = |claim: Claim, worst: f64| {
        let measured = format!("largest discrepancy {worst:.1e}");
        let uncertainty = format!("exact up to rounding: {} prompts, float64", config.num_trials);
        claim.found(verdict(worst <= tolerance), worst, measured, uncertainty)
    };
    let worst = |of: &dyn Fn(&verify::KernelDiscrepancies) -> f64| largest(found.kernels.iter().map(of));
    let softmax =
        found.kernels.iter().find(|k| k.kernel == "softmax").map_or(f64::INFINITY, |k| k.tsm_vs_direct);
    let special = largest(found.special_cases.iter().map(|s| s.discrepancy));
    let criterion = format!(
        "every discrepancy at most {tolerance:.0e}, divided by the largest value where that exceeds 1"
    );
    let claim = |id, paper, says| {
        let data = match id {
            "fig7" => "fig7.csv",
            "special-cases" => "special_cases.csv",
            "step-size" => "step_size.csv",
            _ => "verification.csv",
        };
        Claim::new(id, paper, says, &criterion).shown(Some("fig7"), Some(data))
    };
    Ok(vec![
        judged(
            claim(
                "thm1",
                "Theorem 1",
                "A layer of softmax attention at theta_* is one step of weighted softmax TD.",
            ),
            softmax,
        ),
        judged(
            claim("lem1", "Lemma 1", "Two heads equal one head and a temporal shift, on every entry of Z."),
            worst(&|k| k.dual_vs_tsm),
        ),
        judged(
            claim(
                "special-cases",
                "Section 3, special cases",
                "Tabular, batch linear and non-parametric TD are special cases of the kernel.",
            ),
            special,
        ),
        judged(
            claim("fig7", "Figure 7", "The equality holds layer by layer for every kernel tried."),
            worst(&|k| k.tsm_vs_direct),
        ),
        judged(
            claim(
                "step-size",
                "Remark after Theorem 1",
                "Replacing V_l by α_l·V_l makes α_l the step size of layer l, in both constructions.",
            ),
            largest(steps.iter().map(|s| s.discrepancy)),
        ),
    ])
}
