//! A comparison as a figure, as files and as text.

use ictd::theory::Constants;

use super::super::slope_text;
use super::{BoundReport, Comparison, ConstantsJson, SWEEP, SweepPoint, floors};
use crate::LabError;
use crate::figure::{Axis, Chart, Grid, Scene, Series, style::PALETTE};
use crate::report::{Records, Report, wrapped};

/// A logarithm of a rate, where there is one.
fn decay_text(decay: Option<f64>) -> String {
    decay.map_or_else(|| "nothing".into(), |d| format!("{d:.4}"))
}

impl BoundReport {
    /// The same under another name for its files.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// Error against depth at several lengths, and the floor against the length.
    fn figure(&self) -> Scene {
        let note = format!("{}; mean over {} contexts", self.describe, self.config.contexts.min(200));
        let title = "Error against depth and context length";
        Grid::new(title, 2, [self.depth_chart(), self.floor_chart()], note).scene()
    }

    /// The mean error over depth at a length, down to a depth.
    pub(in super::super) fn over_depth(&self, n: usize, deepest: usize) -> Vec<(f64, f64)> {
        let own = self.sweep.iter().filter(|p| p.n == n && p.error > 0.0);
        let layers = |p: &SweepPoint| p.layers.filter(|&l| l <= deepest);
        own.filter_map(|p| Some((layers(p)? as f64, p.error))).collect()
    }

    fn depth_chart(&self) -> Chart {
        let drawn = [SWEEP[0], SWEEP[2], SWEEP[4], SWEEP[5]];
        let line = |(n, color)| Series::new(format!("*n* = {n}"), color, self.over_depth(n, 40));
        let mut series: Vec<Series> = drawn.into_iter().zip(PALETTE).map(line).collect();
        if let Some(decay) = self.decay {
            let line = |l: f64| (l, (decay.intercept + decay.slope * l).exp());
            let floor = floors(&self.sweep).into_iter().find(|p| p.0 == SWEEP[5] as f64);
            let end = ((floor.map_or(1e-3, |p| p.1).ln() - decay.intercept) / decay.slope).clamp(1.0, 40.0);
            series.push(Series::new("fit above floor", PALETTE[4], vec![line(0.0), line(end)]).dashed());
        }
        let note = match self.decay {
            None => "no decay could be fitted".into(),
            slope => {
                let (slope, radius) = (slope_text(slope, 4, ""), decay_text(self.predicted_decay));
                format!("slope {slope} per layer; log spectral radius {radius}").replace('-', "−")
            }
        };
        let (x, y) = (Axis::linear("layers *L*"), Axis::log("mean error ‖*v*_{*L*} − *v*_{π}‖_{∞}"));
        Chart::new("(a) error against depth", x, y, series).noted(note)
    }

    fn floor_chart(&self) -> Chart {
        let limits = floors(&self.sweep);
        let mut series = vec![Series::new("infinite depth", PALETTE[0], limits.clone())];
        if let (Some(fit), Some(first), Some(last)) = (self.floor, limits.first(), limits.last()) {
            let line = |n: f64| (n, (fit.intercept + fit.slope * n.ln()).exp());
            series.push(Series::new("fit", PALETTE[4], vec![line(first.0), line(last.0)]).dashed());
        }
        let note = match self.floor {
            None => "fewer than three lengths at which every context visits every state".into(),
            slope => format!("slope {}; −1/2 for 1/√n", slope_text(slope, 3, "")).replace('-', "−"),
        };
        let (x, y) = (Axis::log("context length *n*"), Axis::log("mean error at infinite depth"));
        Chart::new("(b) floor against context length", x, y, series).noted(note)
    }

    /// The task, its constants, its slopes.
    fn summary(&self) -> String {
        let ConstantsJson { all: c, contraction_threshold } = &self.constants;
        let mut text = format!("{}\n\n", self.describe);
        let Constants { num_states, mu_min, lambda_r, pair_mu_min, pair_lambda_r, .. } = c;
        let Constants { feature_bound, reward_bound, value_bound, margin, .. } = c;
        let from = contraction_threshold.map_or_else(|| "never".into(), |n| format!("{n:.3e}"));
        text += &format!(
            "|S| = {num_states}, mu_min = {mu_min:.4}, lambda_r = {lambda_r:.4}, pairs: mu_min = {pair_mu_min:.2e}, lambda_r = {pair_lambda_r:.4}\n\
             C_x = {feature_bound:.4}, C_R = {reward_bound:.4}, |v| = {value_bound:.4}, C = {margin:.4}, contraction from n = {from}\n",
        );
        self.failed_premises.iter().for_each(|premise| text += &format!("premise fails: {premise}\n"));
        text += &format!(
            "error above the floor, per layer: log slope {} (spectral radius says {}, the paper's rate {})\nfloor against n: log slope {} (1/sqrt(n): -0.5)\n",
            slope_text(self.decay, 4, "none"),
            decay_text(self.predicted_decay),
            decay_text(self.paper_decay),
            slope_text(self.floor, 4, "none")
        );
        text
    }
}

impl Report for BoundReport {
    fn text(&self, width: usize) -> String {
        let comparisons = format!("{}_comparisons", self.name);
        wrapped(&self.summary(), width) + "\n" + &self.shown(&[&comparisons], width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![(self.name.clone(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![
            Records::of(&format!("{}_comparisons", self.name), &self.comparisons)?,
            Records::of(&format!("{}_sweep", self.name), &self.sweep)?,
        ])
    }

    fn json_name(&self) -> Option<&str> {
        Some(&self.name)
    }

    /// Whether every statement whose premises hold covered its promised share, and Theorem 2 every context.
    fn holds(&self) -> bool {
        let kept = |c: &Comparison, covered| covered as f64 >= c.promised * c.contexts as f64;
        // What cannot be tested is not violated.
        self.comparisons
            .iter()
            .filter(|c| c.premises)
            .all(|c| c.covered.is_none_or(|covered| kept(c, covered)))
    }
}
