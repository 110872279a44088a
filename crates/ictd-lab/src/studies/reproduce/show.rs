//! A reproduction, and verdicts over seeds, as text.

use super::{Reproduction, VerdictCounts};
use crate::report::{Report, Table, wrapped};
use crate::studies::{Scope, Verdict};

/// Characters of what was measured that a narrow terminal shows; the report has all of them.
const MEASURED: usize = 100;
/// What the other columns need.
const OTHERS: usize = 66;

impl Report for Reproduction {
    fn text(&self, width: usize) -> String {
        let seconds = |id: &str| {
            let timing = self.timings.iter().find(|t| t.claims.contains(&id));
            // The time of a study stands at its first claim.
            timing.filter(|t| t.claims[0] == id).map_or_else(String::new, |t| format!("{:.2}", t.seconds))
        };
        let room = MEASURED.max(width.saturating_sub(OTHERS));
        let shorten = |text: &str| match text.char_indices().nth(room) {
            // Between words, so that no number is read without its end.
            Some((end, _)) => format!("{} …", text[..end].rsplit_once(' ').map_or("", |(whole, _)| whole)),
            None => text.to_owned(),
        };
        let rows = self.claims.iter().map(|c| {
            let doubt = c.stability.filter(|s| s.is_doubtful());
            let doubt = doubt.map_or_else(String::new, |s| format!(" ({} of {} seeds)", s.same, s.seeds));
            vec![c.id.clone(), format!("{}{doubt}", c.verdict), shorten(&c.measured), seconds(&c.id)]
        });
        let table = Table::new(&["claim", "verdict", "measured", "seconds"], rows).words([1, 2]);
        let mut counts = String::from("\n");
        for (scope, name) in Scope::COUNTED {
            let count =
                |verdict| self.claims.iter().filter(|c| c.scope == scope && c.verdict == verdict).count();
            let found = Verdict::ALL.into_iter().filter(|v| count(*v) > 0);
            let parts: Vec<String> = found.map(|v| format!("{} {v}", count(v))).collect();
            if !parts.is_empty() {
                counts += &format!("{name}: {}\n", parts.join(", "));
            }
        }
        table.text(width) + &wrapped(&counts, width)
    }
}

impl Report for VerdictCounts {
    fn text(&self, width: usize) -> String {
        let rows = self.claims.iter().map(|v| {
            let counts: Vec<String> = v.verdicts.iter().map(|(name, n)| format!("{n} {name}")).collect();
            vec![v.id.clone(), counts.join(", ")]
        });
        Table::new(&["claim", "verdicts over seeds"], rows).words([1]).text(width)
    }

    fn json_name(&self) -> Option<&str> {
        Some("stability")
    }
}
