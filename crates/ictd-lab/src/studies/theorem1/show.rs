//! The verification as text and in files.

use super::verify::Verification;
use crate::LabError;
use crate::figure::Scene;
use crate::report::{Report, Table};
use crate::studies::Verdict;

impl Report for Verification {
    fn text(&self, width: usize) -> String {
        let config = &self.config;
        let number = |x: f64| format!("{x:.1e}");
        let kernels = self
            .kernels
            .iter()
            .map(|row| [row.kernel.clone()].into_iter().chain(row.entries().map(number)).collect());
        let cases = self.special_cases.iter().map(|c| vec![c.name.clone(), number(c.discrepancy)]);
        let header = ["kernel", "dual vs tsm", "tsm vs direct TD", "full Z vs fast", "columns vs states"];
        format!(
            "Largest discrepancy over {} prompts × {} layers, float64 (d = {}, n = {}, γ = {}):\n\n{}\n{}\nworst {:.1e}, rounding level is ≤ {:.0e}: {}\n",
            config.num_trials,
            config.num_layers,
            config.feature_dim,
            config.context_len,
            config.gamma,
            Table::new(&header, kernels).text(width),
            Table::new(&["special case", "discrepancy"], cases).text(width),
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
