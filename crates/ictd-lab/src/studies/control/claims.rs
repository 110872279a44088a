//! What the study claims, and when that counts as met.

use ictd::statistics::largest;

use super::ControlStudy;
use super::exact::GapRow;
use crate::studies::{Claim, Scope, Verdict, verdict};

/// Names of the claims, in their order.
pub const ALL: [&str; 4] = ["control-attention", "control-return", "control-gap", "control-certificate"];

/// Largest discrepancy that counts as rounding.
const TOLERANCE: f64 = 1e-12;
/// The reference figures: returns before and after, and of the best policy, on 30 processes; gaps at two β on 20.
pub const START: f64 = 0.104;
pub const END: f64 = 0.533;
pub const OPTIMUM: f64 = 0.621;
pub const GAPS: [(f64, f64); 2] = [(1.0, 0.2465), (20.0, 0.0113)];

/// Judges what was found; without the experiments only the first claim.
pub fn judge(found: &ControlStudy) -> Vec<Claim> {
    let attention = attention(found);
    let claims = if found.config.verify {
        vec![attention]
    } else {
        vec![attention, improvement(found), gap(found), certificate(found)]
    };
    let command = format!("ictd control{}", if found.config.verify { " --verify" } else { "" });
    claims.into_iter().map(|c| Claim { command: command.clone(), ..c.scoped(Scope::PastThePaper) }).collect()
}

fn attention(found: &ControlStudy) -> Claim {
    let rows = &found.verification;
    let worst = largest(
        rows.iter().flat_map(|r| [Some(r.attention), Some(r.pairs), r.transformer].into_iter().flatten()),
    );
    Claim::new(
        ALL[0],
        "past the paper, after Theorem 1",
        "Two softmax heads per layer are SARSA, Expected SARSA and Boltzmann TD on pairs.",
        &format!(
            "every discrepancy at most {TOLERANCE:.0e}, divided by the largest value where that exceeds 1"
        ),
    )
    .shown(None, Some("verification.csv"))
    .found(
        verdict(worst <= TOLERANCE),
        worst,
        format!("largest discrepancy {worst:.1e}"),
        format!("exact up to rounding: {} prompts, float64", found.config.trials),
    )
}

/// Whether a mean is within two standard errors of the difference from one over other processes drawn alike, as many of them.
/// Without standard errors nothing is.
fn agrees(mean: f64, sem: Option<f64>, reference: f64) -> bool {
    sem.is_some_and(|sem| (mean - reference).abs() <= 2.0 * std::f64::consts::SQRT_2 * sem)
}

fn improvement(found: &ControlStudy) -> Claim {
    let claim = Claim::new(
        ALL[1],
        "past the paper",
        "SARSA with softmax TD on the transitions of its own policy improves every policy, nearly to the best.",
        &format!(
            "the return is higher after the last update than before the first on every process; its mean and that of the best policy are within 2 standard errors of the difference from the reference {END} and {OPTIMUM}"
        ),
    )
    .shown(Some("control"), Some("learning.csv"));
    let Some(row) = found.learning.first() else { return claim };
    let (improved, end, optimum) = (
        row.improved == row.mdps,
        agrees(row.end, row.end_sem, END),
        agrees(row.optimum, row.optimum_sem, OPTIMUM),
    );
    let measured = format!(
        "return {:.3} before, {:.3} after, best {:.3} (reference {START}, {END}, {OPTIMUM}); better on {} of {}",
        row.start, row.end, row.optimum, row.improved, row.mdps
    );
    let uncertainty = match (row.end_sem, row.optimum_sem) {
        (Some(end), Some(optimum)) => format!("standard errors {end:.3} and {optimum:.3}"),
        _ => "one process has no standard errors".into(),
    };
    let met = [improved, end, optimum].map(u64::from).iter().sum();
    claim.found(Verdict::by_share(met, 3), row.end, measured, uncertainty)
}

fn gap(found: &ControlStudy) -> Claim {
    let rows = &found.gap;
    let falls = rows.windows(2).all(|w| w[1].gap < w[0].gap);
    let below = rows.iter().all(|r| r.below == r.mdps);
    let at = |beta: f64| rows.iter().find(|r| r.beta == beta).map_or(f64::NAN, |r| r.gap);
    let slack = |r: &GapRow| r.bound / r.largest_gap;
    let tightest = rows.iter().map(slack).fold(f64::INFINITY, f64::min);
    let found_at: Vec<String> = GAPS
        .iter()
        .map(|(beta, reference)| format!("{:.4} at β = {beta} (reference {reference})", at(*beta)))
        .collect();
    Claim::new(
        ALL[2],
        "past the paper",
        "With exact expectations the values of Boltzmann TD approach the optimum as β grows.",
        "the mean gap falls from each β to the next, and no gap is above γ·log|A|/(β(1−γ))",
    )
    .shown(Some("control"), Some("gap.csv"))
    .found(
        Verdict::both(falls, below),
        at(GAPS[1].0),
        format!("mean gap {}", found_at.join(", ")),
        format!("{} processes, the bound tightest by a factor {tightest:.1}", found.config.exact_mdps),
    )
    .with_slack(tightest)
}

fn certificate(found: &ControlStudy) -> Claim {
    let rows = &found.certificates;
    let exceeded: u64 = rows.iter().map(|r| r.exceeded).sum();
    let (certified, all): (u64, u64) =
        (rows.iter().map(|r| r.certified).sum(), rows.iter().map(|r| r.mdps).sum());
    let full = rows.iter().filter(|r| r.certified == r.mdps);
    let tightest = full.filter_map(|r| Some(r.rate? / r.measured_rate)).fold(f64::INFINITY, f64::min);
    Claim::new(
        ALL[3],
        "past the paper, after Assumption 5.1",
        "Layers of which contraction is certified contract by the certified rate at least.",
        "something is certified, and no change from layer to layer is larger than the rate times the one before",
    )
    .shown(None, Some("certificates.csv"))
    .found(
        verdict(certified > 0 && exceeded == 0),
        exceeded as f64,
        format!("{certified} of {all} certified, {exceeded} exceed their rate"),
        "by proof; changes below 1e-9 are not compared".into(),
    )
    .with_slack(tightest)
}

#[cfg(test)]
mod tests {
    use super::super::{ControlStudyConfig, run};
    use super::*;
    use crate::Progress;

    /// Each claim fails by what it is about, and by nothing else; what is no number passes nowhere.
    #[test]
    fn one_change_fails_its_claim() {
        let small =
            ControlStudyConfig { mdps: 2, updates: 3, exact_mdps: 2, trials: 2, ..Default::default() };
        let mut good = run(&small, &Progress::default()).unwrap();
        // The means of the reference, which two processes do not have.
        good.learning
            .iter_mut()
            .for_each(|row| (row.end, row.optimum, row.improved) = (END, OPTIMUM, row.mdps));
        let failed = |change: &dyn Fn(&mut ControlStudy)| -> Vec<(String, Verdict)> {
            let mut found = good.clone();
            change(&mut found);
            let judged = judge(&found).into_iter();
            judged.filter(|c| c.verdict != Verdict::Reproduced).map(|c| (c.id, c.verdict)).collect()
        };
        let only = |claim: &str, verdict| vec![(claim.to_owned(), verdict)];
        assert_eq!(failed(&|_| {}), []);
        assert_eq!(failed(&|f| f.verification[1].attention = 1e-11), only(ALL[0], Verdict::NotReproduced));
        assert_eq!(
            failed(&|f| f.verification[0].transformer = Some(f64::NAN)),
            only(ALL[0], Verdict::NotReproduced)
        );
        assert_eq!(failed(&|f| f.learning[0].improved -= 1), only(ALL[1], Verdict::Partly));
        assert_eq!(failed(&|f| f.learning[0].end = f64::NAN), only(ALL[1], Verdict::Partly));
        assert_eq!(
            failed(&|f| f.learning[0].optimum += 4.0 * f.learning[0].optimum_sem.unwrap()),
            only(ALL[1], Verdict::Partly)
        );
        // Other settings are shown and not judged.
        assert_eq!(failed(&|f| f.learning[1].end = 0.0), []);
        assert_eq!(failed(&|f| f.gap[3].below = 0), only(ALL[2], Verdict::Partly));
        assert_eq!(failed(&|f| f.gap[3].gap = f64::NAN), only(ALL[2], Verdict::Partly));
        assert_eq!(failed(&|f| f.certificates[4].exceeded = 1), only(ALL[3], Verdict::NotReproduced));
        let none = |f: &mut ControlStudy| f.certificates.iter_mut().for_each(|r| r.certified = 0);
        assert_eq!(failed(&none), only(ALL[3], Verdict::NotReproduced));
    }
}
