//! A certificate as a figure, as files and as text.

use serde::Serialize;

use super::Report;
use crate::LabError;
use crate::figure::{Axis, Chart, Scale, Scene, Series, style::PALETTE};
use crate::report::{Table, wrapped};

impl Report {
    /// The error to infinite depth against depth: as it is, and with the first suggestion of every kind.
    pub fn figure(&self) -> Scene {
        let series = self.curves.iter().zip(PALETTE.iter().cycle()).map(|(curve, &color)| {
            let every = curve.errors.len().div_ceil(250).max(1);
            Series {
                name: curve.name.clone(),
                color,
                dash: Vec::new(),
                points: curve.errors.iter().enumerate().step_by(every).map(|(l, &e)| (l as f64, e)).collect(),
                band: Vec::new(),
            }
        });
        let chart = Chart {
            title: format!("What depth does: {}", self.status),
            x: Axis { label: "layers *L*".into(), scale: Scale::Linear, range: None },
            y: Axis {
                label: "error to infinite depth / largest value".into(),
                scale: Scale::Log,
                range: None,
            },
            series: series.collect(),
            note: self.subject.clone(),
        };
        chart.scene(620.0, 380.0)
    }
}

impl crate::report::Report for Report {
    fn text(&self, width: usize) -> String {
        let c = &self.contraction;
        let optional = |x: Option<f64>| x.map_or_else(|| "none".into(), |x| format!("{x:.6}"));
        let mut text = format!("{}\n{}\n", self.status.to_uppercase(), self.subject);
        self.reasons.iter().for_each(|r| text += &format!("  - {r}\n"));
        text += &format!(
            "\ndiagonal weights     min {:.4}, mean {:.4}, required {:.4}; {} of {} states below\n",
            c.min_diag, c.mean_diag, c.required_diag, c.violating_states, self.coverage.states_seen
        );
        for o in &c.offenders {
            text += &format!("    state {:<5} {:.4}", o.state, o.self_weight);
            if let (Some(other), Some(weight)) = (o.attracted_by, o.attracting_weight) {
                text += &format!("  (state {other} weighs {weight:.4})");
            }
            text += "\n";
        }
        text += &format!("norm_inf of a layer  {:.6}\nspectral radius      {}\n", c.norm_inf, rate(c.rho));
        text += &format!(
            "step sizes           stable below {}, best {} with rate {}\n",
            optional(self.steps.largest_stable),
            optional(self.steps.best),
            self.steps.best_rate.map_or_else(|| "none".into(), rate)
        );
        text += &format!("regime               {}\n", self.stability.regime);
        if let Some(f) = &self.fixed_point {
            text += &format!(
                "after {} layers      error {:.3e} (proved bound: {})\n",
                f.iterations,
                f.error_to_empirical_fixed_point_inf,
                f.error_bound_inf.map_or_else(|| "none".into(), |b| format!("{b:.3e}"))
            );
            let layers = |l: Option<u64>| l.map_or_else(|| "unknown".into(), |l| l.to_string());
            text += &format!(
                "layers for {:.0e}     {} by the rate, {} by contraction\n",
                f.tolerance,
                layers(f.layers_predicted),
                layers(f.layers_sufficient)
            );
        }
        for note in self.fixed_point.iter().flat_map(|f| &f.notes) {
            text += &format!("                     {note}\n");
        }
        text += &format!("\n{}\n", self.suggestions_note);
        for (helps, title) in [
            ("at this depth", "what helps at this depth"),
            ("in the long run", "what helps in the long run only"),
        ] {
            let mut of_this_kind = self.suggestions.iter().filter(|s| s.helps == helps).peekable();
            if of_this_kind.peek().is_some() {
                text += &format!("{title}, recomputed:\n");
            }
            for s in of_this_kind {
                text += &format!("  - {}: {}, spectral radius {}", s.change, s.status, rate(s.rho));
                if let Some(error) = s.error_at_depth {
                    text += &format!(", relative error {error:.1e} after the same depth");
                }
                // Below this it is rounding of the closed form.
                if let Some(change) = s.limit_change.filter(|&c| c > 1e-6) {
                    text += &format!("; the limit itself moves by {change:.1e}");
                }
                text += "\n";
            }
        }
        text += "\nnot checked: that the transitions are the policy's own, and that equal features are the same state\n";
        wrapped(&text, width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("depth".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Table>, LabError> {
        #[derive(Serialize)]
        struct Row<'a> {
            case: &'a str,
            layer: usize,
            error: f64,
        }
        let rows = self.curves.iter().flat_map(|c| {
            c.errors.iter().enumerate().map(|(layer, &error)| Row { case: &c.name, layer, error })
        });
        Ok(vec![Table::of("depth", rows)?])
    }

    fn json_name(&self) -> Option<&str> {
        Some("certificate")
    }
}

/// A rate; near 1 its distance from it, which is what counts.
fn rate(rate: f64) -> String {
    if (1.0 - 1e-4..1.0).contains(&rate) { format!("1 - {:.1e}", 1.0 - rate) } else { format!("{rate:.6}") }
}
