//! Lemmas 4 to 7 and Theorem 2: what is claimed, and when it counts.

use ictd::theory::Constants;

use super::{BoundConfig, BoundReport, Comparison, run};
use crate::files::OutputDir;
use crate::report::Report as _;
use crate::studies::{Claim, Plan, Section, Study, Tasks, verdict};
use crate::{LabError, Progress};

/// The statements of Theorem 2 and the lemmas before it, as inequalities.
pub const STUDY: Study =
    Study::new("theorem2", Section::Convergence, &["lem4", "lem5", "lem6", "lem7", "thm2-bound"], judge_all);

/// The statements at the smallest n at which the premises hold, on the mildest family.
fn judge_all(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let config = BoundConfig::new(Tasks::fastest(plan.seed), plan.samples(60, 10));
    let report = run(&BoundConfig { at_threshold: true, ..config }, &Progress::default())?.named("theorem2");
    report.write(out)?;
    let says = [
        "M̂ is close to M_π in long contexts.",
        "Under the assumption layers contract in long contexts.",
        "The exact values are nearly a fixed point of a layer.",
        "The expected TD error at theta_* decays with depth and length.",
        "The error is at most a term that decays with depth plus one that decays with length.",
    ];
    let claims = [
        ("lem4", "Lemma 4 (concentration)", says[0], "Lemma 4"),
        ("lem5", "Lemma 5 (contraction)", says[1], "Lemma 5"),
        ("lem6", "Lemma 6 (bias)", says[2], "Lemma 6"),
        ("lem7", "Lemma 7 (decay)", says[3], "Lemma 7"),
        ("thm2-bound", "Theorem 2, the inequality", says[4], "Theorem 2"),
    ];
    let claim = |(id, paper, says, statement)| judge(id, paper, says, statement, &report);
    Ok(claims.map(claim).to_vec())
}

/// Holds when the statement was kept in every context, which asks more than its probability. The tasks were chosen so that
/// premises hold at lengths that can be sampled.
fn judge(id: &str, paper: &str, says: &str, statement: &str, report: &BoundReport) -> Claim {
    let own = report.comparisons.iter().filter(|c| c.statement.starts_with(statement) && c.premises);
    let rows: Vec<&Comparison> = own.clone().filter(|c| c.covered.is_some()).collect();
    let criterion =
        "where all premises hold, the right-hand side is never below what is measured in any sampled context";
    let claim =
        Claim::new(id, paper, says, criterion).shown(Some("theorem2"), Some("theorem2_comparisons.csv"));
    if own.count() > rows.len() {
        return claim.untested("a side of the inequality is no number in double precision".into());
    }
    let ratio = |c: &&Comparison| c.measured_max.unwrap_or(0.0) / c.bound.unwrap_or(f64::INFINITY);
    // The tightest row that says something; any row where none does.
    let telling = |c: &&Comparison| !c.vacuous || rows.iter().all(|r| r.vacuous);
    let candidates = rows.iter().copied().filter(telling);
    let Some(tightest) = candidates.max_by(|a, b| ratio(a).total_cmp(&ratio(b))) else {
        return claim.untested(format!("premises fail: {}", report.failed_premises.join("; ")));
    };
    let covered: u64 = rows.iter().filter_map(|c| c.covered).sum();
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

/// Premises that fail, in words.
pub(super) fn failed_premises(constants: &Constants, threshold: Option<f64>, longest: usize) -> Vec<String> {
    let mut failed = Vec::new();
    if !(constants.margin > 0.0) {
        let (margin, required) = (constants.margin, 0.5 * (1.0 + constants.gamma));
        failed.push(format!(
            "Assumption 5.1: the smallest M_pi(s, s) is {:.4}, below (1+gamma)/2 = {required}",
            margin + required
        ));
    }
    failed.extend(threshold.filter(|n| (longest as f64) < *n).map(|n| {
        format!("context length: the largest n sampled is {longest}, the contraction lemma needs {n:.3e}")
    }));
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::Verdict;

    /// One context in which the statement fails is enough, whatever share it promises; failed premises make it
    /// untestable; a loose bound is consistent at best.
    #[test]
    fn one_context_breaks_a_statement() {
        let mut report = run(&BoundConfig::new(Tasks::fastest(0), 2), &Progress::default()).unwrap();
        let row = |covered, bound, premises| Comparison {
            statement: "Lemma 4, made up".into(),
            bound: Some(bound),
            measured_max: Some(1.0),
            contexts: 100,
            covered,
            promised: 0.9,
            premises,
            ..Comparison::default()
        };
        let mut verdict = |row: Comparison| {
            report.comparisons = vec![row];
            let claim = judge("lem4", "", "", "Lemma 4", &report);
            (claim.verdict, claim.slack)
        };
        assert_eq!(verdict(row(Some(100), 2.0, true)), (Verdict::Consistent, Some(2.0)));
        assert_eq!(verdict(row(Some(99), 2.0, true)).0, Verdict::NotReproduced);
        assert_eq!(verdict(row(Some(0), 2.0, false)).0, Verdict::NotTestable);
        assert_eq!(verdict(row(None, 2.0, true)).0, Verdict::NotTestable);
    }
}
