//! The figure of the study: the path, what is unexplained and what pulls along it, the best u by a and its loss,
//! and both blocks over temperature.

use super::{BestRow, Mirror, PullRow};
use crate::counted;
use crate::figure::style::{INK, PALETTE};
use crate::figure::{Axis, Chart, Color, Grid, Scene, Series};

impl Mirror {
    /// The drawing.
    pub fn figure(&self) -> Scene {
        // A logarithmic axis has no place for the start.
        let pulls: Vec<&PullRow> = self.pulls.iter().filter(|p| p.epoch > 0).collect();
        let along = |title: &str, y: Axis, lines: &[(&str, Color, fn(&&PullRow) -> f64)]| {
            Chart::new(title, Axis::log("epoch"), y, Series::lines(&pulls, |p| p.epoch as f64, lines))
        };
        let by_score = |title: &str, y: &str, lines: &[(&str, Color, fn(&&BestRow) -> Option<f64>)]| {
            Chart::new(title, Axis::linear("*a*"), Axis::linear(y), self.by_score(lines))
        };
        let e = &self.estimator;
        let panels = [
            self.path_chart(),
            along(
                "(b) What δ still correlates with",
                Axis::linear("correlation"),
                &[
                    ("mean reward (order 0)", PALETTE[0], |p| p.order_0),
                    ("reward covariance (1)", PALETTE[1], |p| p.order_1),
                    ("bootstrap (2)", PALETTE[2], |p| p.order_2),
                ],
            )
            .noted("at the mean path; each order without its part along those before"),
            along(
                "(c) Where training pulls",
                Axis::linear("minus the expected gradient").over(-0.06, 0.06),
                &[
                    ("scale: (γ, 1) of (*p*_{t}, *p*_{v})", PALETTE[1], |p| p.pull_scale),
                    ("split: (1, −γ)", PALETTE[2], |p| p.pull_split),
                    ("diagonal of *A*", INK, |p| p.pull_a),
                ],
            )
            .noted("at the mean path"),
            by_score(
                "(d) Where TD stands still for A = a·I",
                "value",
                &[
                    ("*p*_{r}", PALETTE[0], |b| b.p_r),
                    ("*p*_{t}", PALETTE[1], |b| b.p_t),
                    ("*p*_{v}", PALETTE[2], |b| b.p_v),
                ],
            )
            .noted("semi-gradient fixed points of the block with four numbers"),
            by_score(
                "(e) What it costs there",
                "loss",
                &[
                    ("mean δ^{2}", PALETTE[3], |b| b.td_loss),
                    ("mean square value error", PALETTE[4], |b| b.msve),
                ],
            )
            .noted("at the points of (d)"),
            Chart::new(
                "(f) TD block minus mirror block",
                Axis::log("temperature τ"),
                Axis::log("root mean square"),
                Series::lines(
                    &e.temperatures,
                    |r| r.temperature,
                    &[
                        ("constant", INK, |r| r.constant),
                        ("spread of the TD values", PALETTE[0], |r| r.spread),
                        ("difference − constant", PALETTE[1], |r| r.rest),
                    ],
                ),
            )
            .noted(format!("the TD block at scale 1 and its mirror image, {} contexts", e.contexts)),
        ];
        Grid::new("How training finds the mirror block", 2, panels, String::new()).scene()
    }

    fn path_chart(&self) -> Chart {
        let lines = [
            ("*p*_{r}", PALETTE[0]),
            ("*p*_{t}", PALETTE[1]),
            ("*p*_{v}", PALETTE[2]),
            ("mean diagonal of *A*", INK),
        ];
        let series = lines.into_iter().enumerate().map(|(k, (name, color))| {
            Series::new(name, color, self.path.iter().map(|r| (r.epoch as f64, r.means[k])).collect())
                .with_band(self.path.iter().map(|r| r.ranges[k]).collect())
        });
        let (x, y) = (Axis::log("epoch"), Axis::linear("value"));
        Chart::new("(a) From (−, +, +) to the mirror", x, y, series.collect())
            .noted(format!("{}: mean, smallest and largest", counted(self.predicted_phase.seeds, "seed")))
    }

    /// Lines on either side of a = 0, where the best u is not unique, through what was found; those on the right have no name.
    fn by_score(&self, lines: &[(&str, Color, fn(&&BestRow) -> Option<f64>)]) -> Vec<Series> {
        let side = |sign: f64| {
            lines.iter().map(move |&(name, color, of)| {
                let own = self.best.iter().filter(|b| b.a * sign > 0.0);
                let name = if sign < 0.0 { name } else { "" };
                Series::new(name, color, own.filter_map(|b| Some((b.a, of(&b)?))).collect())
            })
        };
        side(-1.0).chain(side(1.0)).collect()
    }
}
