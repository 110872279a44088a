//! The appendix on compute resources: the main experiment, timed. The time itself is in `timings.json`.

use super::setting::LITERAL;
use super::{Claim, Plan, Scope, Section, Study};
use crate::LabError;
use crate::files::OutputDir;

/// An hour on an H100.
pub const STUDY: Study = Study::new("compute", Section::Emergence, &["compute"], judge);

fn judge(plan: &Plan, _: &OutputDir) -> Result<Vec<Claim>, LabError> {
    LITERAL.train("paper", &[], &plan.seeds(5))?;
    let claim = Claim::new(
        "compute",
        "Appendix, compute resources",
        "The main experiment takes about an hour on an H100.",
        "none: there is no H100 here",
    );
    let measured = "the same experiment on this machine's CPU: seconds of study 'compute' in timings.json";
    let claim = claim.untested(measured.into()).shown(None, Some("timings.json"));
    Ok(vec![claim.scoped(Scope::Illustration)])
}
