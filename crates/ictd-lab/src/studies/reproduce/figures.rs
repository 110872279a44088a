//! Figures 1, 2 and 4, and softmax against linear attention.

use super::{Claim, Plan, Scope};
use crate::LabError;
use crate::files::OutputDir;
use crate::studies::softmax_vs_linear::{self as attention, AttentionPoint};
use crate::studies::{Verdict, fig1 as msve, fig2 as shift_picture, fig4 as chain_topology};

/// Figure 1: the error falls with the context length.
pub fn figure_1(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let config = msve::MsveConfig { seed: plan.seed, num_tasks: plan.samples(300, 60), ..Default::default() };
    let curve = msve::run(&config)?;
    curve.write(out)?;
    let (first, last) = (&curve.points[0], &curve.points[curve.config.context_lens.len() - 1]);
    let beats = curve.beats_zero_from.map_or_else(
        || "at no length tried".into(),
        |n| {
            format!(
                "from n = {n} on, so {} the paper's range",
                if n <= last.context_len { "within" } else { "beyond" }
            )
        },
    );
    let longest = &curve.points[curve.points.len() - 1];
    let measured = format!(
        "MSVE {:.2} at n = {}, {:.2} at n = {}; rank correlation {:.2}. The predictor 0 has {:.2}: the Transformer is better {beats} ({:.3} at n = {})",
        first.mean,
        first.context_len,
        last.mean,
        last.context_len,
        curve.rank_correlation,
        curve.zero,
        longest.mean,
        longest.context_len
    );
    let uncertainty = format!("± {:.2} and ± {:.2} (s.e.m. over {} tasks)", first.sem, last.sem, first.tasks);
    Ok(vec![
        Claim::new(
            "fig1",
            "Figure 1",
            "The value error of a fixed Transformer falls as its context grows.",
            "over the paper's lengths, 1 to 39, the drop from the shortest to the longest context exceeds three standard errors and the rank correlation \
             of error and length is at most −0.9",
        )
        .found(curve.verdict, curve.rank_correlation, measured, uncertainty)
        .shown(Some("fig1"), Some("fig1.csv")),
    ])
}

/// Softmax against linear attention, which the paper sets out from.
pub fn softmax_against_linear(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let points = attention::run(plan.seed, plan.samples(200, 50))?;
    attention::write(&points, out)?;
    let (softmax, linear) = (
        points.iter().filter(|p| p.softmax_wins()).collect::<Vec<_>>(),
        points.iter().filter(|p| p.linear_wins()).collect::<Vec<_>>(),
    );
    let judged = match (linear.len(), points.len()) {
        (0, _) => Verdict::Reproduced,
        (lost, all) if lost == all => Verdict::NotReproduced,
        _ => Verdict::Partly,
    };
    let places = |of: &[&AttentionPoint]| {
        let mut lengths: Vec<usize> = of.iter().map(|p| p.n).collect();
        lengths.dedup();
        let depths = |n: usize| {
            let own: Vec<String> = of.iter().filter(|p| p.n == n).map(|p| p.layers.to_string()).collect();
            format!("n = {n} (L {})", own.join(", "))
        };
        lengths.into_iter().map(depths).collect::<Vec<_>>().join(", ")
    };
    let at = |n, layers| points.iter().find(|p| p.n == n && p.layers == layers);
    let shown = [(39, 15), (1000, 15), (1000, 60)].into_iter().filter_map(|(n, layers)| at(n, layers));
    let shown: Vec<String> = shown
        .map(|p| format!("{:.3} and {:.3} at n = {}, L = {}", p.softmax, p.linear, p.n, p.layers))
        .collect();
    let largest = points.iter().map(|p| p.log_ratio_sem).fold(0.0, f64::max);
    Ok(vec![
        Claim::new(
            "softmax-vs-linear",
            "Section 1, against linear attention",
            "Softmax attention at theta_* evaluates policies comparably to linear attention. The paper asks for comparable behaviour and does not compare.",
            "at no length and depth is linear attention better by more than three paired standard errors of log MSVE; partly when at some",
        )
        .found(
            judged,
            linear.len() as f64 / points.len() as f64,
            format!(
                "of {} lengths and depths linear is better at {}, softmax at {}: {}; MSVE of softmax and linear {}",
                points.len(),
                linear.len(),
                softmax.len(),
                places(&softmax),
                shown.join("; ")
            ),
            format!(
                "{} tasks, paired; s.e. of log₁₀(softmax/linear) at most {largest:.3}",
                points.first().map_or(0, |p| p.tasks)
            ),
        )
        .shown(Some("softmax_vs_linear"), Some("softmax_vs_linear.csv"))
        .scoped(Scope::PastThePaper)
        .because(
            "Values of these tasks are linear in the features, which is what linear attention fits with 5 numbers; softmax attention has to learn them \
             state by state. Linear attention diverges on single transitions, where its step is too large.",
        ),
    ])
}

fn illustration(id: &str, paper: &str, says: &str, measured: &str) -> Claim {
    let mut claim = Claim::new(id, paper, says, "none: an illustration makes no claim")
        .shown(Some(id), Some(&format!("{id}.csv")))
        .scoped(Scope::Illustration);
    claim.verdict = Verdict::NotTestable;
    claim.measured = measured.to_owned();
    claim
}

/// Figure 2: what the temporal shift does to the memory rows.
pub fn figure_2(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    shift_picture::run(plan.seed)?.write(out)?;
    let says = "The memory rows before and after the temporal shift.";
    Ok(vec![illustration("fig2", "Figure 2", says, "drawn from a real forward pass")])
}

/// Figure 4: Boyan's chain.
pub fn figure_4(_: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    chain_topology::ChainTopology { num_states: 9 }.write(out)?;
    let says = "The transitions of Boyan's chain.";
    Ok(vec![illustration("fig4", "Figure 4", says, "drawn from the support of the task generator")])
}
