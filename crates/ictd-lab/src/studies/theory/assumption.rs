//! Assumption 5.1: when it holds, whether it does on the paper's tasks, and what does there.

use ictd::statistics::wilson;

use super::certify::{self, Counts, LayerConfig};
use super::separation::{self, SeparationRow};
use super::{Tasks, regimes};
use crate::files::OutputDir;
use crate::report::Report as _;
use crate::studies::{Claim, Plan, Scope, Section, Study, Verdict};
use crate::{LabError, Progress};

/// Assumption 5.1 and stability without it.
pub const STUDY: Study =
    Study::new("assumption", Section::Convergence, &["ass5.1", "ass5.1-at-identity", "stability"], judge);

fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let family = Tasks::paper(plan.seed);
    let counts =
        certify::count(&family, plan.samples(200, 50), &LayerConfig::default(), &Progress::default())?;
    out.json("assumption", &counts)?;
    let map = regimes::run(&family, plan.samples(3, 1), &Progress::default())?;
    map.write(out)?;
    let separation = separation::run(&family, plan.samples(100, 20))?;
    out.csv("separation", &separation)?;
    Ok(claims(&counts, &separation))
}

fn claims(counts: &Counts, separation: &[SeparationRow]) -> Vec<Claim> {
    let tasks = counts.tasks;
    let interval = |count: u64| {
        let (low, high) = wilson(count, tasks);
        format!("95 % interval of the share: {low:.3} to {high:.3} (Wilson, {tasks} tasks)")
    };
    let fails = tasks - counts.assumption_holds;
    let share = |count: u64| count as f64 / tasks as f64;
    let (stable, norm) = (counts.spectral_radius_below_one, counts.norm_inf_below_one);
    let layers = |x: Option<f64>| x.map_or_else(|| "no number".into(), |x| format!("{x:.1e}"));
    vec![
        where_separated(separation),
        Claim::new(
            "ass5.1-at-identity",
            "Assumption 5.1, on the paper's own tasks at A = I",
            "At A = I, where Theorems 1 to 3 place theta_*, the paper's own tasks do not meet the assumption, so Theorems 2 and 3 do \
             not speak about them. The paper does not say that they do.",
            "the assumption fails on every task",
        )
        .found(
            Verdict::by_share(fails, tasks),
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
            Verdict::by_share(stable, tasks),
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
    ]
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
    let unit = rows.iter().filter(|r| r.unit_norm);
    let unit = unit.map(|r| format!("{} at scale {}", r.holds, r.score_scale)).collect::<Vec<_>>().join(", ");
    let raw = |of: fn(&SeparationRow) -> u64| rows.iter().filter(|r| !r.unit_norm).map(of).max().unwrap_or(0);
    let (separated, at_any_scale) = (raw(|r| r.separated), raw(|r| r.holds));
    let SeparationRow { tasks, holds, enough, .. } = *sharpest;
    let judged = match (holds == tasks && contradictions == 0, holds) {
        (true, _) => Verdict::Reproduced,
        (false, 0) => Verdict::NotReproduced,
        (false, _) => Verdict::Partly,
    };
    let measured = format!(
        "of {tasks} tasks with unit-norm features it holds on {unit}; raw features separate the pairs of {separated} tasks, and it holds on {at_any_scale} at any scale",
    );
    let uncertainty = format!("large enough for a proof on {enough} tasks at the sharpest scores");
    claim.found(judged, holds as f64 / tasks as f64, measured, uncertainty).in_chosen_setting()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One task that meets the assumption, one that is unstable, one that contradicts the proof.
    #[test]
    fn one_task_makes_a_difference() {
        let counts = |assumption_holds, spectral_radius_below_one| Counts {
            tasks: 50,
            assumption_holds,
            spectral_radius_below_one,
            ..Counts::default()
        };
        let row = |holds, contradictions| SeparationRow {
            unit_norm: true,
            tasks: 9,
            holds,
            contradictions,
            ..SeparationRow::default()
        };
        let verdicts =
            |counts, row| claims(&counts, &[row]).into_iter().map(|c| c.verdict).collect::<Vec<_>>();
        use Verdict::{Consistent, NotReproduced, Partly, Reproduced};
        assert_eq!(verdicts(counts(0, 50), row(9, 0)), [Consistent, Reproduced, Reproduced]);
        assert_eq!(verdicts(counts(1, 49), row(8, 0)), [Partly, Partly, Partly]);
        assert_eq!(verdicts(counts(50, 0), row(0, 0)), [NotReproduced; 3]);
        assert_eq!(verdicts(counts(0, 50), row(9, 1))[0], Partly);
    }
}
