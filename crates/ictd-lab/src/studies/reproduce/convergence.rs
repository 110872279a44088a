//! Assumption 5.1, Lemmas 4 to 7, Theorem 2, and depth on the paper's own tasks.

use ictd::kernel::KernelName;
use ictd::statistics::wilson;

use super::{Claim, Plan, Scope, verdict};
use crate::LabError;
use crate::files::OutputDir;
use crate::studies::Verdict;
use crate::studies::theory::bound::{self, BoundConfig, BoundReport, Comparison};
use crate::studies::theory::certify::{self, Draw, LayerConfig};
use crate::studies::theory::depth::{self, DepthPoint};
use crate::studies::theory::rates::{self, Pooled};
use crate::studies::theory::separation::{self, SeparationRow};
use crate::studies::theory::{TaskFamily, regimes};

/// When the assumption holds, whether it does on the paper's tasks, and what does there.
pub fn assumption(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let family = TaskFamily::paper(plan.seed);
    let layer = LayerConfig {
        kernel: KernelName::Softmax,
        temperature: 1.0,
        step_size: 1.0,
        num_layers: 0,
        tolerance: 1e-3,
        draw: Draw::No,
    };
    let tasks = plan.samples(200, 50);
    let counts = certify::count(&family, tasks, &layer)?;
    out.json("assumption", &counts)?;
    let map = regimes::run(&family, plan.samples(3, 1))?;
    map.write(out)?;
    let separation = separation::run(&family, plan.samples(100, 20))?;
    separation::write(&separation, out)?;
    let interval = |count: u64| {
        let (low, high) = wilson(count, tasks);
        format!("95 % interval of the share: {low:.3} to {high:.3} (Wilson, {tasks} tasks)")
    };
    let fails = tasks - counts.assumption_holds;
    let share = |count: u64| count as f64 / tasks as f64;
    let of = |count: u64| match count {
        0 => Verdict::NotReproduced,
        n if n == tasks => Verdict::Reproduced,
        _ => Verdict::Partly,
    };
    let (stable, norm) = (counts.spectral_radius_below_one, counts.norm_inf_below_one);
    let layers = |x: Option<f64>| x.map_or_else(|| "no number".into(), |x| format!("{x:.1e}"));
    Ok(vec![
        where_separated(&separation),
        Claim::new(
            "ass5.1-at-identity",
            "Assumption 5.1, on the paper's own tasks at A = I",
            "At A = I, where Theorems 1 to 3 place theta_*, the paper's own tasks do not meet the assumption, so Theorems 2 and 3 do \
             not speak about them. The paper does not say that they do.",
            "the assumption fails on every task",
        )
        .found(
            of(fails),
            share(fails),
            format!(
                "holds on {} of {tasks} tasks; a layer contracts (‖J‖∞ < 1) on {norm}",
                counts.assumption_holds
            ),
            interval(fails),
        )
        .shown(Some("regimes"), Some("assumption.json"))
        .scoped(Scope::PastThePaper)
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
                "spectral radius below 1 on {stable} of {tasks} tasks; on {} of them some step size converges by proof. The long run is long: the \
                 slowest error falls tenfold in {} layers on the median task and in {} on the worst",
                counts.provably_stable,
                layers(counts.layers_per_tenfold_median),
                layers(counts.layers_per_tenfold_worst)
            ),
            interval(stable),
        )
        .shown(Some("regimes"), Some("assumption.json"))
        .scoped(Scope::PastThePaper),
    ])
}

/// The paper's own words about the assumption, which are conditional.
fn where_separated(rows: &[SeparationRow]) -> Claim {
    let claim = Claim::new(
        "ass5.1",
        "Assumption 5.1",
        "It “is expected to hold when the score function separates self-pairs from cross-pairs, i.e., g(s, s) − g(s, s') is sufficiently \
         positive”. That self-concentration “emerges empirically over pretraining” is judged by itself (self-concentration).",
        "on the paper's chains with unit-norm features, which separate every pair, the assumption holds on every task at the sharpest scores, \
         and wherever the difference is large enough for a proof",
    )
    .shown(None, Some("separation.csv"));
    let Some(sharpest) = rows.iter().rfind(|r| r.unit_norm) else { return claim };
    let contradictions: u64 = rows.iter().map(|r| r.contradictions).sum();
    let of = |unit: bool| {
        let own = rows.iter().filter(|r| r.unit_norm == unit);
        own.map(|r| format!("{} at scale {}", r.holds, r.score_scale)).collect::<Vec<_>>().join(", ")
    };
    let raw = rows.iter().filter(|r| !r.unit_norm);
    let separated = raw.clone().map(|r| r.separated).max().unwrap_or(0);
    claim.found(
        match (sharpest.holds == sharpest.tasks && contradictions == 0, sharpest.holds) {
            (true, _) => Verdict::Reproduced,
            (false, 0) => Verdict::NotReproduced,
            (false, _) => Verdict::Partly,
        },
        sharpest.holds as f64 / sharpest.tasks as f64,
        format!(
            "of {} tasks with unit-norm features it holds on {}; raw features separate the pairs of {separated} tasks, and it holds on {} at any scale",
            sharpest.tasks,
            of(true),
            raw.map(|r| r.holds).max().unwrap_or(0)
        ),
        format!("large enough for a proof on {} tasks at the sharpest scores", sharpest.enough),
    )
    .in_chosen_setting()
}

/// The statements at the smallest n at which the premises hold, on the mildest family.
pub fn theorem_2(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let config = BoundConfig {
        family: TaskFamily::fastest(plan.seed),
        index: 0,
        lengths: Vec::new(),
        at_threshold: true,
        contexts: plan.samples(60, 10),
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

/// Holds when the statement was kept in every context, which asks more than its probability. The tasks were chosen so that
/// premises hold at lengths that can be sampled.
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
    let slack = 1.0 / ratio(&tightest);
    let telling = if tightest.vacuous { "" } else { " that is not vacuous" };
    let mut measured = format!(
        "held {covered} of {total} times at n = {}; the tightest bound{telling} is {slack:.3} times the largest measured{place}",
        tightest.n
    );
    if rows.len() > 1 {
        measured += &format!("; vacuous at {vacuous} of {} depths", rows.len());
    }
    let uncertainty = format!("{} contexts, δ = {}", tightest.contexts, report.config.delta);
    claim
        .found(verdict(covered == total), ratio(&tightest), measured, uncertainty)
        .with_slack(slack)
        .in_chosen_setting()
}

/// Decay with depth and floor with length, pooled over tasks of a family chosen so that the assumption holds.
pub fn rates(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let found = rates::run(&TaskFamily::certified(plan.seed), plan.samples(25, 20), plan.samples(20, 10))?;
    found.write(out)?;
    let claim = |id, paper, says, criterion| {
        Claim::new(id, paper, says, criterion).shown(Some("rates"), Some("rates.csv"))
    };
    let decay = claim(
        "thm2-decay",
        "Theorem 2, decay with depth",
        "The error decays geometrically with depth, at least as fast as (1 − C)^L.",
        "over at least 20 tasks, the 95 % interval of the mean of (fitted slope of log ‖v_L − v_∞‖∞ per layer, the part of the error that depth takes away, \
         − that task's log(1 − C)) lies below 0, and no task's own interval lies above log(1 − C)",
    );
    let floor = claim(
        "thm2-floor",
        "Theorem 2, floor over length",
        "What depth leaves falls like 1/√n.",
        "over at least 20 tasks, the 95 % interval of the mean slope of log error against log n lies between −0.6 and −0.4",
    );
    let untested = |claim: Claim, what: &str| {
        let measured = format!("fewer than 20 of {} tasks have {what}", found.tasks.len());
        claim.found(Verdict::NotTestable, f64::NAN, measured, String::new())
    };
    let many = |p: &Pooled| p.tasks >= 20;
    let decay = match (found.decay, found.beyond.filter(many)) {
        (Some(slope), Some(beyond)) => {
            let judged = match (beyond.mean + beyond.half_width < 0.0, found.contradictions) {
                (true, 0) => Verdict::Reproduced,
                (true, _) => Verdict::Partly,
                (false, _) => Verdict::NotReproduced,
            };
            decay.found(
                judged,
                beyond.mean,
                format!(
                    "mean slope {:.4} per layer where log(1 − C) is {:.4}; {} of {} tasks contradict",
                    slope.mean,
                    slope.mean - beyond.mean,
                    found.contradictions,
                    beyond.tasks
                ),
                format!(
                    "± {:.4} and ± {:.4} (95 %, {} tasks)",
                    slope.half_width, beyond.half_width, beyond.tasks
                ),
            )
        }
        _ => untested(decay, "a rate to compare with and contexts that visit every state"),
    };
    let floor = match found.floor.filter(many) {
        Some(f) => floor.found(
            verdict((f.mean + 0.5).abs() + f.half_width < 0.1),
            f.mean,
            format!("mean slope {:.3}", f.mean),
            format!("± {:.3} (95 %, {} tasks)", f.half_width, f.tasks),
        ),
        None => untested(floor, "three lengths at which every context visits every state"),
    };
    Ok(vec![decay.in_chosen_setting(), floor.in_chosen_setting()])
}

/// The second question of the paper's introduction on its own tasks, where Theorem 2's premise fails.
pub fn depth(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let curves = depth::run(&TaskFamily::paper(plan.seed), plan.samples(100, 25))?;
    curves.write(out)?;
    let claim = Claim::new(
        "depth",
        "Question (Q2), on the paper's own tasks",
        "The error decays with depth to a floor that vanishes as the context grows.",
        "at every length the deepest network is better than answering 0 and not worse than a shallower one, and its error falls with the length, \
         each by three standard errors; partly when that is so at some length and the error falls with the length",
    )
    .scoped(Scope::ChangedSetting)
    .shown(Some("depth"), Some("depth.csv"));
    let mut texts = Vec::new();
    let mut last: Vec<&DepthPoint> = Vec::new();
    for n in depth::LENGTHS {
        let points = curves.at(n);
        let best = points.iter().min_by(|a, b| a.error.total_cmp(&b.error));
        let (Some(first), Some(best), Some(&end)) = (points.first(), best, points.last()) else {
            return Ok(vec![claim]);
        };
        texts.push(format!(
            "n = {n}: {:.2} without layers, at best {:.2} at L = {}, {:.2} at L = {}",
            first.error,
            best.error,
            best.layers.unwrap_or(0),
            end.error,
            end.layers.unwrap_or(0)
        ));
        last.push(end);
    }
    let decays = depth::LENGTHS.map(|n| curves.decays(n));
    let falls = last.windows(2).all(|w| w[0].error - w[1].error > 3.0 * w[0].sem.hypot(w[1].sem));
    let judged = match (falls, decays) {
        (true, all) if all.iter().all(|d| *d) => Verdict::Reproduced,
        (true, some) if some.iter().any(|d| *d) => Verdict::Partly,
        _ => Verdict::NotReproduced,
    };
    let errors: Vec<String> = last.iter().map(|p| format!("{:.3}", p.sem)).collect();
    let limit = curves.limit(depth::LENGTHS[depth::LENGTHS.len() - 1]);
    let limit = limit.map_or_else(String::new, |p| {
        format!(
            "; at infinite depth {:.2} ± {:.3} at n = {} on the {} contexts that visit every state",
            p.error, p.sem, p.n, p.tasks
        )
    });
    Ok(vec![
        claim
            .found(
                judged,
                last[0].error / last[last.len() - 1].error,
                texts.join("; "),
                format!("s.e. {} at the deepest, {} tasks{limit}", errors.join(", "), last[0].tasks),
            )
            .because(
                "Assumption 5.1 fails on these tasks. Layers solve for the values that the counted transitions of the context have, whatever the \
                 kernel, because M̂ − γP̂ = W(D − γN) with W invertible. Those of short contexts are far off, and the more layers, the nearer they get \
                 to them: few layers are better. Long contexts have nearly the right ones, which takes millions of layers (claim 'stability').",
            ),
    ])
}
