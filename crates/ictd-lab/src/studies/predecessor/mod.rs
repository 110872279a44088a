//! The predecessor's claims: its demonstration, its constructions, and what training finds (arXiv 2405.13861).
//!
//! `docs/predecessor.md` is the page of it all.

mod claims;
mod demo;
mod experiment;
mod figures;
mod settings;
mod verification;

pub use settings::{EXPERIMENTS, Experiment};

use super::{Claim, Paper, Plan, Section, Study};
use crate::LabError;
use crate::files::OutputDir;

/// All studies of the predecessor: its demonstration and verification, the nine experiments of its run script, then some of
/// them with every entry trained, and other tasks and losses that its code has.
pub const PREDECESSOR: [Study; 18] = [
    Study::new("demo", Section::Evaluation, &["demo"], demo::judge).of(Paper::Predecessor),
    Study::new(
        "verification",
        Section::Equivalence,
        &["construct-td", "construct-td-lambda", "construct-residual-gradient", "construct-average-reward"],
        verification::judge,
    )
    .of(Paper::Predecessor),
    trained(0, |plan, out| judge(0, plan, out)),
    trained(1, |plan, out| judge(1, plan, out)),
    trained(2, |plan, out| judge(2, plan, out)),
    trained(3, |plan, out| judge(3, plan, out)),
    trained(4, |plan, out| judge(4, plan, out)),
    trained(5, |plan, out| judge(5, plan, out)),
    trained(6, |plan, out| judge(6, plan, out)),
    trained(7, |plan, out| judge(7, plan, out)),
    trained(8, |plan, out| judge(8, plan, out)),
    trained(9, |plan, out| judge(9, plan, out)),
    trained(10, |plan, out| judge(10, plan, out)),
    trained(11, |plan, out| judge(11, plan, out)),
    trained(12, |plan, out| judge(12, plan, out)),
    trained(13, |plan, out| judge(13, plan, out)),
    trained(14, |plan, out| judge(14, plan, out)),
    trained(15, |plan, out| judge(15, plan, out)),
];

const fn trained(number: usize, run: fn(&Plan, &OutputDir) -> Result<Vec<Claim>, LabError>) -> Study {
    let Experiment { id, claims, .. } = &EXPERIMENTS[number];
    Study::new(id, Section::Emergence, claims, run).of(Paper::Predecessor)
}

fn judge(number: usize, plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let experiment = &EXPERIMENTS[number];
    let trained = experiment::Trained::run(experiment, plan)?;
    figures::write(&trained, out)?;
    Ok(claims::judge(&trained))
}
