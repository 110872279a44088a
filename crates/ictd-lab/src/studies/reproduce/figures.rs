//! Figures 1, 2 and 4.

use super::{Claim, Plan, Scope};
use crate::LabError;
use crate::files::OutputDir;
use crate::studies::{Verdict, chain_topology, msve, shift_picture};

/// Figure 1: the error falls with the context length.
pub fn figure_1(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let config = msve::MsveConfig { seed: plan.seed, num_tasks: plan.samples(300, 60), ..Default::default() };
    let curve = msve::run(&config)?;
    curve.write(out)?;
    let (first, last) = (&curve.points[0], &curve.points[curve.points.len() - 1]);
    let measured = format!(
        "MSVE {:.2} at n = {}, {:.2} at n = {}; rank correlation {:.2}",
        first.mean, first.context_len, last.mean, last.context_len, curve.rank_correlation
    );
    let uncertainty = format!("± {:.2} and ± {:.2} (s.e.m. over {} tasks)", first.sem, last.sem, first.tasks);
    Ok(vec![
        Claim::new(
            "fig1",
            "Figure 1",
            "The value error of a fixed Transformer falls as its context grows.",
            "the drop from the shortest to the longest context exceeds three standard errors and the rank correlation of error and length is at most −0.9",
        )
        .found(curve.verdict, curve.rank_correlation, measured, uncertainty)
        .shown(Some("fig1"), Some("fig1.csv")),
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
