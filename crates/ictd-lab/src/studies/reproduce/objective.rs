//! Theorem 3 and the lemmas behind it.

use super::{Claim, Plan, verdict};
use crate::LabError;
use crate::files::OutputDir;
use crate::studies::Verdict;
use crate::studies::theory::TaskFamily;
use crate::studies::theory::lemmas::{self, LemmaRow};
use crate::studies::theory::neu::{self, NeuConfig, NeuReport};

/// NEU at theta_* over length and depth, where the assumption holds and on the paper's tasks.
pub fn theorem_3(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let run = |family, lengths: &[usize], layers: &[usize], samples| {
        neu::run(&NeuConfig { family, lengths: lengths.to_vec(), layers: layers.to_vec(), samples })
    };
    let certified = run(
        TaskFamily::certified(plan.seed),
        &[30, 100, 300, 1000],
        &[2, 3, 4, 5, 6, 8, 10, 12, 40],
        plan.samples(2000, 400),
    )?;
    let paper = run(
        TaskFamily::paper(plan.seed),
        &[20, 50, 100, 200, 1000],
        &[2, 3, 4, 6, 8, 20],
        plan.samples(600, 100),
    )?;
    certified.write(out, "neu_certified")?;
    paper.write(out, "neu_paper")?;
    out.figure("neu", &neu::figure(&[certified.clone(), paper.clone()]))?;
    let claim = |id, place, data: &str, report: &NeuReport| {
        let claim = Claim::new(
            id,
            place,
            "The expected update at theta_* vanishes as first the context and then the depth grows.",
            "the 95 % intervals of the slopes of log J against log n and against L lie below 0",
        )
        .shown(Some("neu"), Some(data));
        match (report.length_slope, report.depth_slope) {
            (Some(n), Some(l)) => claim.found(
                match (n.slope + n.half_width < 0.0, l.slope + l.half_width < 0.0) {
                    (true, true) => Verdict::Reproduced,
                    (false, false) => Verdict::NotReproduced,
                    _ => Verdict::Partly,
                },
                n.slope,
                format!("slope {:.2} in log n, {:.3} per layer", n.slope, l.slope),
                format!(
                    "± {:.2} and ± {:.3} (95 %), {} tasks per estimate",
                    n.half_width, l.half_width, report.config.samples
                ),
            ),
            _ => claim
                .because("Too few estimates stand out of the sampling noise; --quick has few samples.")
                .found(Verdict::NotReproduced, f64::NAN, "no slope above noise".into(), String::new()),
        }
    };
    Ok(vec![
        claim("thm3", "Theorem 3, where Assumption 5.1 holds uniformly", "neu_certified.csv", &certified),
        claim(
            "thm3-paper",
            "Theorem 3's conclusion on the paper's tasks, where its premise fails",
            "neu_paper.csv",
            &paper,
        ),
    ])
}

/// Lemmas 8 to 10: no random input breaks them.
pub fn lemmas(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let rows = lemmas::run(plan.seed, plan.samples(5000, 500))?;
    lemmas::write(&rows, out)?;
    let claim = |id, paper, says, lemma: &str| {
        let own: Vec<&LemmaRow> = rows.iter().filter(|r| r.lemma.starts_with(lemma)).collect();
        let worst = own.iter().map(|r| r.ratio).fold(0.0, f64::max);
        let trials: u64 = own.iter().map(|r| r.trials).sum();
        let premise = own.iter().find(|r| !r.premises.is_empty()).map_or("", |r| r.premises);
        let mut measured = format!("largest measured/bound {worst:.2e}");
        if !premise.is_empty() {
            measured += &format!(" (premise fails: {premise})");
        }
        // A bound whose premise fails promises nothing; that it is kept proves nothing.
        let judged = if premise.is_empty() { verdict(worst <= 1.0 + 1e-12) } else { Verdict::NotTestable };
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
