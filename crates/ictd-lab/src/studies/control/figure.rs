//! The figure: learning curves, and the gap to the optimum over β.

use super::claims::{END, GAPS, OPTIMUM, START};
use super::learning::CurveRow;
use super::{ControlStudy, exact::GapRow};
use crate::counted;
use crate::figure::style::{INK, MUTED, PALETTE};
use crate::figure::{Axis, Chart, Color, Grid, Scene, Series};

/// Settings that are drawn: the one that is judged, Boltzmann's backup, and features that overlap most.
const DRAWN: [usize; 3] = [0, 2, 4];

impl ControlStudy {
    /// The drawing.
    pub(super) fn figure(&self) -> Scene {
        let panels = [self.curves_chart(), self.gap_chart()];
        Grid::new("Control by softmax TD on pairs", 2, panels, String::new()).scene()
    }

    fn curves_chart(&self) -> Chart {
        let curve = |(s, color): (usize, Color)| {
            let rows: Vec<&CurveRow> = self.curves.iter().filter(|r| r.setting == s).collect();
            let points = rows.iter().map(|r| (1.0 + r.update as f64, r.mean)).collect();
            let row = self.learning.get(s);
            let name = row.map_or_else(String::new, |row| format!("{}; {}", row.update, row.features));
            let band =
                rows.iter().map(|r| (r.mean - r.sem.unwrap_or(0.0), r.mean + r.sem.unwrap_or(0.0))).collect();
            Series::new(name, color, points).with_band(band)
        };
        let last = 1.0 + self.config.updates as f64;
        let level =
            |name: &str, color, of: f64| Series::new(name, color, vec![(1.0, of), (last, of)]).dashed();
        let mut series: Vec<Series> = DRAWN.into_iter().zip(PALETTE).map(curve).collect();
        if let Some(row) = self.learning.first() {
            series.push(level("best policy", INK, row.optimum));
            series.push(level("best policy with ε", MUTED, row.epsilon_optimum));
        }
        Chart::new(
            "(a) Return of the policy",
            Axis::log("updates + 1"),
            Axis::linear("return per step"),
            series,
        )
        .noted(format!(
            "mean ± standard error of {}; reference: {START} → {END}, best {OPTIMUM}",
            counted(self.config.mdps, "MDP"),
        ))
    }

    fn gap_chart(&self) -> Chart {
        let mut series = Series::lines(
            &self.gap,
            |r: &GapRow| r.beta,
            &[("mean", PALETTE[0], |r| r.gap), ("largest", PALETTE[1], |r| r.largest_gap)],
        );
        let bound = self.gap.iter().map(|r| (r.beta, r.bound)).collect();
        series.push(Series::new("bound", INK, bound).dashed());
        series.push(Series::new("reference", PALETTE[2], GAPS.to_vec()));
        let y = Axis::log("largest |*Q* − *Q*_{best}|");
        Chart::new("(b) Boltzmann TD and the optimum", Axis::log("β"), y, series).noted(format!(
            "exact expectations, {} layers, {}",
            self.config.sweeps,
            counted(self.config.exact_mdps, "MDP")
        ))
    }
}
