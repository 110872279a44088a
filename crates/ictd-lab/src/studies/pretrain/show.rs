//! A run as text and as figures.

use super::RunResult;
use crate::LabError;
use crate::counted;
use crate::figure::Scene;
use crate::report::{Records, Report, Table};
use crate::studies::fig3_5::EmergenceFigures;

impl RunResult {
    fn emergence(&self) -> EmergenceFigures {
        let title: Vec<&str> =
            [&self.settings.name].into_iter().chain(&self.settings.overrides).map(String::as_str).collect();
        EmergenceFigures::new(&title.join(", "), self)
    }
}

impl Report for RunResult {
    fn text(&self, width: usize) -> String {
        let rows = self.seeds.iter().map(|s| {
            let p = &s.last;
            let numbers = [p.v_em, p.a_em, p.v_em_signed, p.a_em_signed, p.diag_mean, p.td_loss, p.msve];
            let first = [s.seed.to_string(), p.branch.clone()];
            first
                .into_iter()
                // Values of some tasks are not known, and so is the error against them.
                .chain(numbers.map(|x| if x.is_nan() { "unknown".into() } else { format!("{x:.3}") }))
                .chain([s.best_step.to_string()])
                .collect()
        });
        let header =
            ["seed", "branch", "V_em", "A_em", "signed V", "signed A", "d_t", "TD loss", "MSVE", "best step"];
        let config = &self.settings.config;
        let contexts = config.num_steps() * config.batch as u64 * self.trained as u64;
        let done = match self.seeds.len() - self.trained {
            0 => String::new(),
            finished => format!(", {finished} finished before"),
        };
        let trained = match self.trained {
            0 => String::new(),
            _ => format!(", {contexts} contexts in {:.3} s", self.train_seconds),
        };
        let seeds = counted(self.seeds.len(), "seed");
        Table::new(&header, rows).words([1]).text(width) + &format!("\n{seeds}{done}{trained}\n")
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        if self.states.is_empty() {
            return Vec::new();
        }
        let figures = self.emergence();
        vec![("fig3".into(), figures.figure_3()), ("fig5".into(), figures.figure_5())]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        if self.states.is_empty() {
            return Ok(Vec::new());
        }
        self.emergence().tables("fig3", "fig5")
    }
}
