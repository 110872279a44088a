//! Theorem 1, Lemma 1, the special cases, Figure 7, step sizes, and what the temporal shift saves.

pub mod step_size;
pub mod verify;

use ictd::statistics::largest;

use super::reproduce::{Claim, Plan, verdict};
use crate::LabError;
use crate::files::OutputDir;
use crate::studies::tsm_cost as cost;
use verify::VerifyConfig;

/// Runs the verification once and judges five claims by its prompts.
pub fn run(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let config = VerifyConfig { seed: plan.seed, num_trials: plan.samples(50, 10), ..Default::default() };
    let found = verify::run(&config)?;
    found.write(out)?;
    let steps = step_size::run(&config)?;
    step_size::write(&steps, out)?;
    let tolerance = config.tolerance;
    let judge = |claim: Claim, worst: f64| {
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
        judge(
            claim(
                "thm1",
                "Theorem 1",
                "A layer of softmax attention at theta_* is one step of weighted softmax TD.",
            ),
            softmax,
        ),
        judge(
            claim("lem1", "Lemma 1", "Two heads equal one head and a temporal shift, on every entry of Z."),
            worst(&|k| k.dual_vs_tsm),
        ),
        judge(
            claim(
                "special-cases",
                "Section 3, special cases",
                "Tabular, batch linear and non-parametric TD are special cases of the kernel.",
            ),
            special,
        ),
        judge(
            claim("fig7", "Figure 7", "The equality holds layer by layer for every kernel tried."),
            worst(&|k| k.tsm_vs_direct),
        ),
        judge(
            claim(
                "step-size",
                "Remark after Theorem 1",
                "Replacing V_l by α_l·V_l makes α_l the step size of layer l, in both constructions.",
            ),
            largest(steps.iter().map(|s| s.discrepancy)),
        ),
    ])
}

/// What one head and the temporal shift cost, against two heads.
pub fn cost(_: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let rows = cost::run()?;
    cost::write(&rows, out)?;
    let claim = Claim::new(
        "tsm-cost",
        "Section 4, cost",
        "One head and the temporal shift, which has no parameters, equal two heads and reduce computation: O(n²p) + O(np) against 2·O(n²p) with p = d + 3.",
        "counted by the shapes of what a layer computes as written, two heads need more operations at every length and between 1.95 and 2 times as many at \
         n = 1000; parameters are not more; what was computed equals the Transformer to rounding",
    )
    .shown(Some("tsm_cost"), Some("tsm_cost.csv"));
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(vec![claim]) };
    let holds = rows.iter().all(|r| {
        r.two_heads > r.temporal_shift
            && r.parameters_temporal_shift <= r.parameters_two_heads
            && r.discrepancy <= 1e-12
    }) && (1.95..=2.0).contains(&last.ratio);
    let measured = format!(
        "{:.3} times the operations at n = {}, {:.4} at n = {} ({} against {}); {} parameters per layer either way, because the heads share V and A ({} with \
         their own). Two heads that also share what they compute need {}: the saving is that of not computing it twice",
        first.ratio,
        first.n,
        last.ratio,
        last.n,
        last.two_heads,
        last.temporal_shift,
        last.parameters_temporal_shift,
        last.parameters_unshared,
        last.shared_heads
    );
    let uncertainty = "counts; measured times are in timings.json".to_owned();
    Ok(vec![claim.found(verdict(holds), last.ratio, measured, uncertainty)])
}
