//! Assumption 5.1, Lemmas 4 to 7 and Theorem 2.

use ictd::kernel::KernelName;

use super::{Claim, Plan, Scope, verdict};
use crate::LabError;
use crate::files::OutputDir;
use crate::studies::Verdict;
use crate::studies::branches::wilson;
use crate::studies::theory::bound::{self, BoundConfig, BoundReport, Comparison};
use crate::studies::theory::certify::{self, Draw, LayerConfig};
use crate::studies::theory::{TaskFamily, regimes};

/// Whether the assumption holds on the paper's tasks, and what does.
pub fn assumption(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let family = TaskFamily::paper(plan.seed);
    let layer = LayerConfig {
        kernel: KernelName::Softmax,
        temperature: 1.0,
        alpha: 1.0,
        num_layers: 0,
        tolerance: 1e-3,
        draw: Draw::No,
    };
    let tasks = plan.samples(200, 50);
    let counts = certify::count(&family, tasks, &layer)?;
    out.json("assumption", &counts)?;
    let map = regimes::run(&family, plan.samples(4, 1))?;
    map.write(out)?;
    let interval = |count: u64| {
        let (low, high) = wilson(count, tasks);
        format!("95 % interval of the share: {low:.3} to {high:.3} (Wilson, {tasks} tasks)")
    };
    let holds = counts.assumption_holds;
    let share = |count: u64| count as f64 / tasks as f64;
    let of = |count: u64| match count {
        0 => Verdict::NotReproduced,
        n if n == tasks => Verdict::Reproduced,
        _ => Verdict::Partly,
    };
    let (stable, norm) = (counts.spectral_radius_below_one, counts.norm_inf_below_one);
    Ok(vec![
        Claim::new(
            "ass5.1",
            "Assumption 5.1, on the paper's own tasks at A = I",
            "The diagonal of M_π exceeds (1+γ)/2, so that layers contract.",
            "the assumption holds on every task",
        )
        .found(
            of(holds),
            share(holds),
            format!("holds on {holds} of {tasks} tasks; a layer contracts (‖J‖∞ < 1) on {norm}"),
            interval(holds),
        )
        .shown(Some("regimes"), Some("assumption.json"))
        .because(
            "64 states share 4 features, so a state attends mostly to others. Sharper scores do not help with raw features, where a state of \
             small norm attends to a neighbour of larger norm (docs/theory.md).",
        ),
        Claim::new(
            "stability",
            "Section 5, without the assumption",
            "At step size 1 errors vanish in the long run on the paper's tasks.",
            "the spectral radius of a layer is below 1 on every task",
        )
        .found(
            of(stable),
            share(stable),
            format!(
                "spectral radius below 1 on {stable} of {tasks} tasks; on {} of them some step size converges by proof, without diagonal dominance",
                counts.provably_stable
            ),
            interval(stable),
        )
        .shown(Some("regimes"), Some("assumption.json"))
        .scoped(Scope::PastThePaper),
    ])
}

/// The statements at the smallest n at which the premises hold, on the mildest family.
pub fn theorem_2(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let config = BoundConfig {
        family: TaskFamily::fastest(plan.seed),
        index: 0,
        lengths: Vec::new(),
        at_threshold: true,
        contexts: plan.samples(100, 10),
        delta: 0.1,
    };
    let report = bound::run(&config)?;
    report.write(out, "theorem2")?;
    let claim = |id, paper, says, statement: &str| judge(id, paper, says, statement, &report);
    Ok(vec![
        claim("lem4", "Lemma 4 (concentration)", "M̂ is close to M_π in long contexts.", "Lemma 4"),
        claim(
            "lem5",
            "Lemma 5 (contraction)",
            "Under the assumption layers contract in long contexts.",
            "Lemma 5",
        ),
        claim("lem6", "Lemma 6 (bias)", "The exact values are nearly a fixed point of a layer.", "Lemma 6"),
        claim(
            "lem7",
            "Lemma 7 (decay)",
            "The expected TD error at theta_* decays with depth and length.",
            "Lemma 7",
        ),
        claim(
            "thm2-bound",
            "Theorem 2, the inequality",
            "The error is at most a term that decays with depth plus one that decays with length.",
            "Theorem 2",
        ),
    ])
}

/// Holds when the statement was kept in every context, which asks more than its probability.
fn judge(id: &str, paper: &str, says: &str, statement: &str, report: &BoundReport) -> Claim {
    let rows: Vec<&Comparison> =
        report.comparisons.iter().filter(|c| c.statement.starts_with(statement) && c.premises).collect();
    let claim = Claim::new(
        id,
        paper,
        says,
        "where all premises hold, the right-hand side is never below what is measured in any sampled context",
    )
    .shown(Some("theorem2"), Some("theorem2_comparisons.csv"));
    let ratio = |c: &&Comparison| c.measured_max / c.bound.unwrap_or(f64::INFINITY);
    // The tightest row that says something; any row where none does.
    let telling = |c: &&Comparison| !c.vacuous || rows.iter().all(|r| r.vacuous);
    let candidates = rows.iter().copied().filter(telling);
    let Some(tightest) = candidates.max_by(|a, b| ratio(a).total_cmp(&ratio(b))) else {
        return claim.found(
            Verdict::NotTestable,
            f64::NAN,
            format!("premises fail: {}", report.failed_premises.join("; ")),
            String::new(),
        );
    };
    let covered: u64 = rows.iter().map(|c| c.covered).sum();
    let total: u64 = rows.iter().map(|c| c.contexts).sum();
    let vacuous = rows.iter().filter(|c| c.vacuous).count();
    let place = tightest.layers.map_or_else(String::new, |l| format!(" at L = {l}"));
    let mut measured = format!(
        "held {covered} of {total} times at n = {}; largest measured/bound that is not vacuous {:.2e}{place}",
        tightest.n,
        ratio(&tightest)
    );
    if rows.len() > 1 {
        measured += &format!("; vacuous at {vacuous} of {} depths", rows.len());
    }
    let uncertainty = format!("{} contexts, δ = {}", tightest.contexts, report.config.delta);
    claim.found(verdict(covered == total), ratio(&tightest), measured, uncertainty)
}

/// Decay with depth and floor with length, on a family where the assumption holds.
pub fn rates(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let config = BoundConfig {
        family: TaskFamily::certified(plan.seed),
        index: 0,
        lengths: vec![1000],
        at_threshold: false,
        contexts: plan.samples(200, 40),
        delta: 0.1,
    };
    let report = bound::run(&config)?;
    report.write(out, "rates")?;
    let claim = |id, paper, says, criterion| {
        Claim::new(id, paper, says, criterion).shown(Some("rates"), Some("rates_sweep.csv"))
    };
    let decay = claim(
        "thm2-decay",
        "Theorem 2, decay with depth",
        "The error decays geometrically with depth, at least as fast as (1 − C)^L.",
        "the 95 % interval of the fitted slope of log error per layer lies below log(1 − C)",
    );
    let floor = claim(
        "thm2-floor",
        "Theorem 2, floor over length",
        "What depth leaves falls like 1/√n.",
        "the fitted slope of log error against log n is between −0.6 and −0.4",
    );
    let decay = match (report.decay, report.paper_decay) {
        (Some(d), Some(paper)) => decay.found(
            verdict(d.slope + d.half_width < paper),
            d.slope,
            format!(
                "slope {:.4} per layer; log(1 − C) = {paper:.4}, log spectral radius {:.4}",
                d.slope, report.predicted_decay
            ),
            format!("± {:.4} (95 %, {} depths)", d.half_width, d.points),
        ),
        (None, Some(_)) => decay.found(
            Verdict::NotTestable,
            f64::NAN,
            "fewer than three depths lie between the third layer and the floor of this task: no decay to fit"
                .into(),
            String::new(),
        ),
        (_, None) => decay.found(
            Verdict::NotTestable,
            f64::NAN,
            "Assumption 5.1 does not hold on this task: there is no rate to compare with".into(),
            String::new(),
        ),
    };
    let floor = match report.floor {
        Some(f) => floor.found(
            verdict((-0.6..=-0.4).contains(&f.slope)),
            f.slope,
            format!("slope {:.3}", f.slope),
            format!("± {:.3} (95 %, {} lengths)", f.half_width, f.points),
        ),
        None => floor.found(
            Verdict::NotTestable,
            f64::NAN,
            "too few lengths at which every context visits every state".into(),
            String::new(),
        ),
    };
    Ok(vec![decay, floor])
}
