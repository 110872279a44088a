//! Theorem 3 and the lemmas behind it.

use super::{Claim, Plan, Scope, largest, verdict};
use crate::LabError;
use crate::files::OutputDir;
use crate::studies::Verdict;
use crate::studies::theory::lemmas::{self, LemmaRow};
use crate::studies::theory::neu::{self, NeuConfig, NeuPoint, NeuReport};
use crate::studies::theory::{Slope, TaskFamily};

/// NEU at theta_* over length and depth, where the assumption holds and on the paper's tasks.
pub fn theorem_3(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let run = |family, lengths: &[usize], layers: &[usize], samples| {
        neu::run(&NeuConfig { family, lengths: lengths.to_vec(), layers: layers.to_vec(), samples })
    };
    let certified = run(
        TaskFamily::certified(plan.seed),
        &[30, 100, 300, 1000],
        &[2, 3, 4, 5, 6, 8, 10, 12, 40],
        plan.samples(1000, 300),
    )?;
    let paper = run(
        TaskFamily::paper(plan.seed),
        &[20, 50, 100, 200, 1000],
        &[2, 3, 4, 6, 8, 20],
        plan.samples(300, 100),
    )?;
    certified.write(out, "neu_certified")?;
    paper.write(out, "neu_paper")?;
    out.figure("neu", &neu::figure(&[certified.clone(), paper.clone()]))?;
    let claim = |id, place, data: &str, report: &NeuReport| {
        let claim = Claim::new(
            id,
            place,
            "The expected update at theta_* vanishes as first the context and then the depth grows.",
            "J is smaller by more than three standard errors at the longest context than at the shortest, in the deepest network, and \
             in the deepest network than in the shallowest, at the longest context",
        )
        .shown(Some("neu"), Some(data));
        let ends = |list: &[usize]| (list.iter().min().copied(), list.iter().max().copied());
        let (Some(short), Some(long)) = ends(&report.config.lengths) else { return claim };
        let (Some(shallow), Some(deep)) = ends(&report.config.layers) else { return claim };
        let points = (report.at(short, deep), report.at(long, deep), report.at(long, shallow));
        let (Some(first), Some(last), Some(flat)) = points else { return claim };
        let falls = |from: &NeuPoint| (from.neu - last.neu) / from.sem.hypot(last.sem);
        let judged = match (falls(first) > 3.0, falls(flat) > 3.0) {
            (true, true) => Verdict::Reproduced,
            (false, false) => Verdict::NotReproduced,
            _ => Verdict::Partly,
        };
        let slope = |s: Option<Slope>| {
            s.map_or_else(
                || "none".into(),
                |s| format!("{:.2} ± {:.2} ({} points)", s.slope, s.half_width, s.points),
            )
        };
        claim.found(
            judged,
            last.neu / first.neu,
            format!(
                "J {:.3} at n = {short}, {:.4} at n = {long} (L = {deep}); {:.4} at L = {shallow} (n = {long})",
                first.neu, last.neu, flat.neu
            ),
            format!(
                "s.e. {:.3}, {:.4}, {:.4}; {} tasks per estimate; slopes of the points marked in the CSV: {} in log n, {} per layer",
                first.sem,
                last.sem,
                flat.sem,
                report.config.samples,
                slope(report.length_slope),
                slope(report.depth_slope)
            ),
        )
    };
    Ok(vec![
        claim("thm3", "Theorem 3, where Assumption 5.1 holds uniformly", "neu_certified.csv", &certified),
        claim(
            "thm3-paper",
            "Theorem 3's conclusion on the paper's tasks, where its premise fails",
            "neu_paper.csv",
            &paper,
        )
        .scoped(Scope::ChangedSetting),
    ])
}

/// Lemmas 8 to 10: no random input breaks them.
pub fn lemmas(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let rows = lemmas::run(plan.seed, plan.samples(5000, 500))?;
    lemmas::write(&rows, out)?;
    let claim = |id, paper, says, lemma: &str| {
        let own: Vec<&LemmaRow> = rows.iter().filter(|r| r.lemma.starts_with(lemma)).collect();
        let worst = largest(own.iter().map(|r| r.ratio));
        let trials: u64 = own.iter().map(|r| r.trials).sum();
        let premise = own.iter().find(|r| !r.premises.is_empty()).map_or("", |r| r.premises);
        let mut measured = format!("largest measured/bound {worst:.2e}");
        if !premise.is_empty() {
            measured += &format!(" (premise fails: {premise})");
        }
        // A bound whose premise fails promises nothing; that it is kept proves nothing.
        let judged = if premise.is_empty() && !own.is_empty() {
            verdict(worst <= 1.0 + 1e-12)
        } else {
            Verdict::NotTestable
        };
        Claim::new(
            id,
            paper,
            says,
            "where its premises hold, measured/bound is at most 1 for every random input",
        )
        .found(judged, worst, measured, format!("{trials} random inputs"))
        .shown(None, Some("lemmas.csv"))
    };
    Ok(vec![
        claim(
            "lem8",
            "Lemma 8 (softmax columns)",
            "Softmax columns move by at most twice the largest change of a score.",
            "softmax columns, 2",
        ),
        claim(
            "lem9",
            "Lemma 9 (kernel bound)",
            "The kernel's derivative by a parameter is bounded.",
            "kernel bound",
        ),
        claim(
            "lem10",
            "Lemma 10 (gradient bound)",
            "The gradient of the output is bounded at every depth.",
            "gradient bound",
        ),
    ])
}
