//! The study as text and in files.

use ictd::statistics::fit::Slope;

use super::{Mirror, PredictedPhase};
use crate::LabError;
use crate::figure::Scene;
use crate::report::{Records, Report, wrapped};

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
            self.shown(&["kernels", "constants", "estimators", "ends", "pairs"], width),
        ]
        .concat()
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("mirror".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        let e = &self.estimator;
        Ok(vec![
            Records::of("first_gradients", &self.first_gradients)?,
            Records::of("settling", &self.settling)?,
            Records::of("path", &self.path)?,
            Records::of("pulls", &self.pulls)?,
            Records::of("held", &self.held)?,
            Records::of("best", &self.best)?,
            Records::of("temperatures", &e.temperatures)?,
            Records::of("kernels", &e.kernels)?,
            Records::of("constants", &e.constants)?,
            Records::of("estimators", &e.estimators)?,
            Records::of("ends", &self.ends)?,
            Records::of("pairs", &self.pairs)?,
        ])
    }
}
