//! The verification as text and in files.

use super::verify::Verification;
use crate::LabError;
use crate::figure::Scene;
use crate::report::{Report, Table};
use crate::studies::Verdict;

impl Report for Verification {
    fn text(&self, width: usize) -> String {
        let config = &self.config;
        format!(
            "Largest discrepancy over {} prompts × {} layers, float64 (d = {}, n = {}, γ = {}):\n\n{}worst {:.1e}, rounding level is ≤ {:.0e}: {}\n",
            config.num_trials,
            config.num_layers,
            config.feature_dim,
            config.context_len,
            config.gamma,
            self.shown(&["verification", "special_cases"], width),
            self.worst,
            config.tolerance,
            self.verdict
        )
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("fig7".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Table>, LabError> {
        Ok(vec![
            Table::of("verification", &self.kernels)?,
            Table::of("special_cases", &self.special_cases)?,
            Table::of("fig7", &self.figure_7)?,
        ])
    }

    fn json_name(&self) -> Option<&str> {
        Some("verification")
    }

    fn holds(&self) -> bool {
        self.verdict == Verdict::Reproduced
    }
}
