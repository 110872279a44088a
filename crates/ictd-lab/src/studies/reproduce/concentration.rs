//! Section 5's forward reference: self-concentration emerges over pretraining.

use super::{Claim, Plan};
use crate::LabError;
use crate::files::OutputDir;
use crate::studies::Verdict;
use crate::studies::self_concentration::{self, Concentration};
use crate::studies::setting::{LITERAL, SOURCE, Setting};

/// Trains both readings and follows the self-weights.
pub fn run(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let seeds = plan.seeds(5);
    let follow = |setting: &Setting| {
        let settings = setting.settings("paper", &[])?;
        self_concentration::run(setting.title, &settings.config, &seeds, plan.seed)
    };
    let found = [follow(&LITERAL)?, follow(&SOURCE)?];
    out.csv("self_concentration", found.iter().flat_map(|f| &f.points))?;
    out.figure("self_concentration", &self_concentration::figure(&found))?;
    let [literal, source] = &found;
    Ok(vec![judge(&LITERAL, literal), judge(&SOURCE, source)])
}

fn judge(setting: &Setting, found: &Concentration) -> Claim {
    let rising = found.ends.iter().filter(|(before, after)| after > before).count();
    let (holds, total) = found.assumption;
    let verdict = match (rising == found.ends.len(), holds == total) {
        (true, true) => Verdict::Reproduced,
        (true, false) => Verdict::Partly,
        (false, _) => Verdict::NotReproduced,
    };
    let (Some(first), Some(last)) = (found.points.first(), found.points.last()) else {
        return Claim::new(&setting.id("self-concentration"), "", "", "");
    };
    Claim::new(
        &setting.id("self-concentration"),
        &setting.place("Section 5, after Assumption 5.1"),
        "The self-concentration that the assumption asks for emerges over pretraining.",
        "the mean M(s, s) is larger after training than before on every seed, and Assumption 5.1 then holds; partly when it only grows",
    )
    .found(
        verdict,
        last.mean / first.mean,
        format!(
            "mean M(s, s) {:.4} before, {:.4} after training, larger on {rising} of {} seeds; smallest {:.4} where {} is needed; the assumption \
             holds on {holds} of {total} tasks",
            first.mean,
            last.mean,
            found.ends.len(),
            last.smallest,
            found.required
        ),
        format!("± {:.1e} after training (s.e.m. over seeds)", last.mean_sem),
    )
    .shown(Some("self_concentration"), Some("self_concentration.csv"))
    .because(if last.mean < first.mean {
        "A's diagonal becomes negative in the mirror block: a state attends away from itself."
    } else {
        "64 states share 4 features: A grows in training, but a state's neighbours in feature space keep most of its attention."
    })
    .scoped(setting.scope)
}
