//! The study as text and in files.

use super::ControlStudy;
use crate::LabError;
use crate::figure::Scene;
use crate::report::{Records, Report, Table, wrapped};
use crate::studies::Verdict;

impl Report for ControlStudy {
    fn text(&self, width: usize) -> String {
        let head = "Largest discrepancies from the algorithms, written transition by transition:\n\n";
        let rows = self.claims.iter().map(|c| vec![c.id.clone(), c.verdict.to_string(), c.measured.clone()]);
        let claims = Table::new(&["claim", "verdict", "measured"], rows).words([1, 2]).text(width);
        let why = self.claims.iter().filter(|c| !c.why.is_empty());
        let why: String = why.map(|c| format!("{}: {}\n", c.id, c.why)).collect();
        [
            wrapped(head, width),
            self.shown(&["verification", "learning", "gap", "gap_choices", "certificates"], width),
            claims,
            wrapped(&why, width),
        ]
        .concat()
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        if self.config.verify { Vec::new() } else { vec![("control".into(), self.figure())] }
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        let verification = Records::of("verification", &self.verification)?;
        if self.config.verify {
            return Ok(vec![verification]);
        }
        Ok(vec![
            verification,
            Records::of("learning", &self.learning)?,
            Records::of("learning_curves", &self.curves)?,
            Records::of("learning_mdps", &self.mdps)?,
            Records::of("gap", &self.gap)?,
            Records::of("gap_choices", &self.choices)?,
            Records::of("certificates", &self.certificates)?,
        ])
    }

    fn json_name(&self) -> Option<&str> {
        Some("control")
    }

    fn holds(&self) -> bool {
        self.claims.iter().all(|c| matches!(c.verdict, Verdict::Reproduced | Verdict::Consistent))
    }
}
