//! The study as text and in files.

use ictd::statistics::fit::Slope;

use super::{Mirror, PredictedPhase};
use crate::LabError;
use crate::figure::Scene;
use crate::report::{Report, Table, wrapped};

impl Report for Mirror {
    fn text(&self, width: usize) -> String {
        let e = &self.estimator;
        let PredictedPhase { seeds, seen, from, until, until_first, until_last, target_leaves_first } =
            self.predicted_phase;
        let signs = format!(
            "signs (−, +, +) with a negative diagonal: {seen} of {seeds} seeds, median from epoch {from} to {until} (last one between {until_first} and {until_last}); p_t leaves first in {target_leaves_first}\n\n"
        );
        let exact = format!(
            "mirror block against TD on reflected transitions: largest discrepancy {:.1e} ({} contexts, {} layers)\n\n",
            e.discrepancy, e.contexts, e.layers
        );
        let slope = |name: &str, slope: Option<Slope>| {
            slope.map_or_else(String::new, |s| {
                format!("slope of log {name} against log τ: {:.3} ± {:.3}\n", s.slope, s.half_width)
            })
        };
        [
            self.shown(&["first_gradients"], width),
            wrapped(&signs, width),
            self.shown(&["settling", "pulls", "held", "best"], width),
            wrapped(&exact, width),
            self.shown(&["temperatures"], width),
            slope("rest", e.rest_slope) + &slope("spread", e.spread_slope) + "\n",
            self.shown(&["constants", "estimators", "ends", "pairs"], width),
        ]
        .concat()
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("mirror".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Table>, LabError> {
        let e = &self.estimator;
        Ok(vec![
            Table::of("first_gradients", &self.first_gradients)?,
            Table::of("settling", &self.settling)?,
            Table::of("path", &self.path)?,
            Table::of("pulls", &self.pulls)?,
            Table::of("held", &self.held)?,
            Table::of("best", &self.best)?,
            Table::of("temperatures", &e.temperatures)?,
            Table::of("constants", &e.constants)?,
            Table::of("estimators", &e.estimators)?,
            Table::of("ends", &self.ends)?,
            Table::of("pairs", &self.pairs)?,
        ])
    }
}
