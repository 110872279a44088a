//! The figure of the study: the path, what is unexplained and what pulls along it, the best u by a and its loss,
//! and both blocks over temperature.

use super::{BestRow, Mirror, PathRow, PullRow};
use crate::figure::style::{INK, PALETTE};
use crate::figure::{Axis, Chart, Color, Grid, Scene, Series};

impl Mirror {
    /// The drawing.
    pub fn figure(&self) -> Scene {
        let panels = [
            self.path_chart(),
            self.order_chart(),
            self.pull_chart(),
            self.best_chart(),
            self.loss_chart(),
            self.temperature_chart(),
        ];
        Grid::new("How training finds the mirror block", 2, panels, String::new()).scene()
    }

    fn path_chart(&self) -> Chart {
        type Of = fn(&PathRow) -> [f64; 3];
        let lines: [(&str, Color, Of); 4] = [
            ("*p*_{r}", PALETTE[0], |r| [r.p_r, r.p_r_low, r.p_r_high]),
            ("*p*_{t}", PALETTE[1], |r| [r.p_t, r.p_t_low, r.p_t_high]),
            ("*p*_{v}", PALETTE[2], |r| [r.p_v, r.p_v_low, r.p_v_high]),
            ("mean diagonal of *A*", INK, |r| [r.a, r.a_low, r.a_high]),
        ];
        let of = |(name, color, of): (&str, Color, Of)| {
            Series::new(name, color, self.path.iter().map(|r| (r.epoch as f64, of(r)[0])).collect())
                .with_band(self.path.iter().map(|r| (of(r)[1], of(r)[2])).collect())
        };
        Chart {
            title: "(a) From (−, +, +) to the mirror".into(),
            x: Axis::log("epoch"),
            y: Axis::linear("value"),
            series: lines.into_iter().map(of).collect(),
            note: format!("{} seeds: mean, smallest and largest", self.predicted_phase.seeds),
        }
    }

    /// Lines along the mean path.
    fn along(&self, lines: &[(&str, Color, fn(&PullRow) -> f64)]) -> Vec<Series> {
        // A logarithmic axis has no place for the start.
        let rows = || self.pulls.iter().filter(|p| p.epoch > 0);
        lines
            .iter()
            .map(|(name, color, of)| {
                Series::new(*name, *color, rows().map(|p| (p.epoch as f64, of(p))).collect())
            })
            .collect()
    }

    fn order_chart(&self) -> Chart {
        Chart {
            title: "(b) What δ still correlates with".into(),
            x: Axis::log("epoch"),
            y: Axis::linear("correlation"),
            series: self.along(&[
                ("mean reward (order 0)", PALETTE[0], |p| p.order_0),
                ("reward covariance (1)", PALETTE[1], |p| p.order_1),
                ("bootstrap (2)", PALETTE[2], |p| p.order_2),
            ]),
            note: "at the mean path; each order without its part along those before".into(),
        }
    }

    fn pull_chart(&self) -> Chart {
        Chart {
            title: "(c) Where training pulls".into(),
            x: Axis::log("epoch"),
            y: Axis::linear("minus the expected gradient").over(-0.06, 0.06),
            series: self.along(&[
                ("scale: (γ, 1) of (*p*_{t}, *p*_{v})", PALETTE[1], |p| p.pull_scale),
                ("split: (1, −γ)", PALETTE[2], |p| p.pull_split),
                ("diagonal of *A*", INK, |p| p.pull_a),
            ]),
            note: "at the mean path".into(),
        }
    }

    /// Lines on either side of a = 0, where the best u is not unique; those on the right have no name.
    fn by_score(&self, lines: &[(&str, Color, fn(&BestRow) -> f64)]) -> Vec<Series> {
        let side = |sign: f64| {
            let found = move || self.best.iter().filter(move |b| b.found && b.a * sign > 0.0);
            lines.iter().map(move |(name, color, of)| {
                let name = if sign < 0.0 { name } else { "" };
                Series::new(name, *color, found().map(|b| (b.a, of(b))).collect())
            })
        };
        side(-1.0).chain(side(1.0)).collect()
    }

    fn best_chart(&self) -> Chart {
        let series = self.by_score(&[
            ("*p*_{r}", PALETTE[0], |b| b.p_r),
            ("*p*_{t}", PALETTE[1], |b| b.p_t),
            ("*p*_{v}", PALETTE[2], |b| b.p_v),
        ]);
        Chart {
            title: "(d) Where TD stands still for A = a·I".into(),
            x: Axis::linear("*a*"),
            y: Axis::linear("value"),
            series,
            note: "semi-gradient fixed points of the block with four numbers".into(),
        }
    }

    fn loss_chart(&self) -> Chart {
        let series = self.by_score(&[
            ("mean δ^{2}", PALETTE[3], |b| b.td_loss),
            ("mean square value error", PALETTE[4], |b| b.msve),
        ]);
        Chart {
            title: "(e) What it costs there".into(),
            x: Axis::linear("*a*"),
            y: Axis::linear("loss"),
            series,
            note: "at the points of (d)".into(),
        }
    }

    fn temperature_chart(&self) -> Chart {
        let rows = &self.estimator.temperatures;
        Chart {
            title: "(f) TD block minus mirror block".into(),
            x: Axis::log("temperature τ"),
            y: Axis::log("root mean square"),
            series: vec![
                Series::new("constant", INK, rows.iter().map(|r| (r.temperature, r.constant)).collect()),
                Series::new(
                    "spread of the TD values",
                    PALETTE[0],
                    rows.iter().map(|r| (r.temperature, r.spread)).collect(),
                ),
                Series::new(
                    "difference − constant",
                    PALETTE[1],
                    rows.iter().map(|r| (r.temperature, r.rest)).collect(),
                ),
            ],
            note: format!(
                "the TD block at scale 1 and its mirror image, {} contexts",
                self.estimator.contexts
            ),
        }
    }
}
