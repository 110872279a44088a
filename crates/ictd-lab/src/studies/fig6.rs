//! Figure 6: the mask relaxed, and what diagonal mixing does.

use ictd::pretrain::{Metric, TrainState};

use super::fig3_5::{EMERGED, EmergenceFigures, branches, judge, mean, text};
use super::pretrain::RunResult;
use super::setting::{self, Setting};
use super::{Claim, Plan, Section, Study, Verdict};
use crate::LabError;
use crate::counted;
use crate::figure::{Grid, Legend, Panel, Scene, Width};
use crate::files::OutputDir;

/// Figure 6 as the paper's equations have it.
pub const LITERAL: Study = Study::new("fig6", Section::Emergence, &["fig6", "rho"], |plan, out| {
    with_mixing(&setting::LITERAL, plan, out)
});

/// The same read so that the query is a source, with mixing on the columns before it.
pub const SOURCE: Study =
    Study::new("fig6-source", Section::Emergence, &["fig6-source", "rho-source"], |plan, out| {
        with_mixing(&setting::SOURCE, plan, out)
    });

/// The same with stationary queries, TD signs and no mixing.
pub const STATIONARY: Study =
    Study::new("fig6-stationary", Section::Emergence, &["fig6-stationary"], |plan, out| {
        Ok(vec![figure_6(&setting::STATIONARY, plan, out)?.0])
    });

/// Trains both masks with mixing, draws the figure and judges it. Returns the runs with the full mask too.
fn figure_6(setting: &Setting, plan: &Plan, out: &OutputDir) -> Result<(Claim, RunResult), LabError> {
    let seeds = plan.seeds(10);
    let run = |preset: &str| -> Result<(EmergenceFigures, RunResult), LabError> {
        let result = setting.train_mixed(preset, &seeds)?;
        Ok((EmergenceFigures::new(setting.mixed_title, &result), result))
    };
    let (full, relaxed) = (run("mask-full")?, run("mask-relaxed")?);
    let name = format!("fig6{}", setting.suffix);
    for (mask, figures) in [("full", &full.0), ("relaxed", &relaxed.0)] {
        let tables = figures.tables(&format!("{name}_{mask}"), &format!("{name}_{mask}_steps"))?;
        tables.iter().try_for_each(|table| out.records(table))?;
    }
    out.figure(&name, &figure(&full.0, &relaxed.0))?;
    let verdicts = [judge(&full.1), judge(&relaxed.1)];
    let verdict = if verdicts[0] == verdicts[1] { verdicts[0] } else { Verdict::Partly };
    let claim = Claim::new(
        &setting.id("fig6"),
        &setting.mixed_place("Figure 6"),
        if setting.signs_given {
            "Started with the TD block's signs and without mixing, training ends in the TD block with either mask; the signs did not emerge."
        } else {
            "Relaxing the mask preserves emergence."
        },
        "with either mask the mean over seeds of min(V_em, A_em) at each one's best step exceeds 0.5 by two standard errors; partly when with one \
         mask, or more than half of the seeds reach 0.5",
    )
    .found(
        verdict,
        mean(&full.1).min(mean(&relaxed.1)),
        format!("full mask: {}; relaxed mask: {}", text(&full.1), text(&relaxed.1)),
        format!("{} per mask", counted(seeds.len(), "seed")),
    )
    .shown(Some(&name), Some(&format!("{name}_full_steps.csv")))
    .because(
        "The ablation mixes the identity into attention (ρ from 0.68 to 0.80): every column but the query's gets its own TD error, whatever it attends \
         to. docs/readings.md has what other readings of the mixing do.",
    )
    .scoped(setting.scope);
    Ok((claim, full.1))
}

/// Full mask on the left, relaxed mask on the right; trajectories, diagonality, matrices.
fn figure(full: &EmergenceFigures, relaxed: &EmergenceFigures) -> Scene {
    let note = format!(
        "{} and {} seeds, 9000 steps; mean ± s.e.m. over seeds (a, b), mean and 25–75 % of points per bin (c, d), means divided by the largest entry (e to h)",
        full.num_seeds, relaxed.num_seeds
    );
    let masks = [(full, "full mask", ["a", "c", "e", "g"]), (relaxed, "relaxed mask", ["b", "d", "f", "h"])];
    // A column per mask, turned into rows.
    let [left, right] = masks.map(|(of, mask, panel)| {
        let [scores, diagonal] = of.over_steps(&format!("({}) {mask}: training", panel[0]));
        let against = of.against_diagonal(&format!("({}) {mask}: against diagonality", panel[1]));
        let learned = [panel[2], panel[3]].map(|panel| format!("({panel}) {mask}: learned"));
        let [values, weights] = of.heatmaps(learned.each_ref().map(String::as_str));
        let boxed = |chart| Box::new(chart) as Box<dyn Panel>;
        [boxed(scores), boxed(diagonal), boxed(against), Box::new(values), Box::new(weights)]
    });
    let rows = left.into_iter().zip(right).map(|(left, right)| vec![left, right]).collect();
    let title = format!("Mask relaxation on Boyan’s chain — {}", full.title);
    Grid { title, width: Width::Page, legend: Legend::default(), rows, note }.scene()
}

/// What the paper says of mixing: it accelerates training "without changing the qualitative emergence behavior".
fn mixing(setting: &Setting, plan: &Plan, mixed: &RunResult) -> Result<Claim, LabError> {
    let seeds = plan.seeds(10);
    let plain = setting.train("mask-full", &["rho.start=0.0", "rho.end=0.0"], &seeds)?;
    let same = mixed.seeds.iter().zip(&plain.seeds).filter(|(a, b)| a.last.branch == b.last.branch).count();
    let (with, without) = (onset_steps(mixed), onset_steps(&plain));
    let (fast, slow) = (median(&with), median(&without));
    let accelerates = match (fast, slow) {
        (Some(fast), Some(slow)) => fast < slow,
        (Some(_), None) => true,
        (None, _) => false,
    };
    let words = |steps: &[Option<usize>], median: Option<usize>| {
        let reached = steps.iter().flatten().count();
        let when = median.map_or_else(|| "most of them never".into(), |m| format!("median step {m}"));
        format!("{reached} of {}, {when}", counted(steps.len(), "seed"))
    };
    let preserved = 2 * same > seeds.len();
    Ok(Claim::new(
        &setting.id("rho"),
        &setting.mixed_place("Appendix, mask relaxation"),
        "Diagonal mixing speeds training up without changing what emerges.",
        "more than half of the seeds end in the same block with and without mixing, and with it both scores reach 0.5 earlier (median over seeds); partly \
         when one of the two",
    )
    .found(
        Verdict::both(preserved, accelerates),
        same as f64 / seeds.len() as f64,
        format!(
            "the same block on {same} of {} seeds; with mixing {}, without {}; both scores reach 0.5 with mixing on {}, without on {}",
            seeds.len(),
            branches(mixed),
            branches(&plain),
            words(&with, fast),
            words(&without, slow)
        ),
        format!("{}, full mask, 9000 steps", counted(seeds.len(), "seed")),
    )
    .shown(Some(&format!("fig6{}", setting.suffix)), Some(&format!("fig6{}_full_steps.csv", setting.suffix)))
    .because("Mixing gives every column before the query its own TD error and keeps (1−ρ) of what it learns of others, which changes what is best.")
    .scoped(setting.scope))
}

/// The first step at which both scores reach ½, seed by seed.
fn onset_steps(result: &RunResult) -> Vec<Option<usize>> {
    let reached = |(v, a): (&f32, &f32)| f64::from(v.min(*a)) >= EMERGED;
    let first = |s: &TrainState<f32>| {
        s.history[Metric::Value].iter().zip(&s.history[Metric::Score]).position(reached).map(|k| k + 1)
    };
    result.states.iter().map(first).collect()
}

/// The median; `None` when more than half never get there.
fn median(steps: &[Option<usize>]) -> Option<usize> {
    let mut sorted: Vec<usize> = steps.iter().map(|s| s.unwrap_or(usize::MAX)).collect();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().filter(|&m| m < usize::MAX)
}

fn with_mixing(setting: &Setting, plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let (claim, mixed) = figure_6(setting, plan, out)?;
    Ok(vec![claim, mixing(setting, plan, &mixed)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_count_those_that_never_arrive() {
        assert_eq!(median(&[Some(3), None, Some(1)]), Some(3));
        assert_eq!(median(&[Some(3), None, None]), None);
        assert_eq!(median(&[Some(3), Some(5), None, None]), Some(5));
        assert_eq!(median(&[]), None);
    }
}
