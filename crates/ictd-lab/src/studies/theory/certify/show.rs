//! A certificate as a figure, as files and as text.

use ictd::theory::{Helps, Status};
use serde::Serialize;

use super::{Report, SuggestionJson};
use crate::LabError;
use crate::figure::{Axis, Chart, Scene, Series, Width, style::PALETTE};
use crate::report::{Records, wrapped};

impl Report {
    /// The error to infinite depth against depth: as it is, and with the first suggestion of every kind.
    fn figure(&self) -> Scene {
        let series = self.curves.iter().zip(PALETTE.iter().cycle()).map(|(curve, &color)| {
            let every = curve.errors.len().div_ceil(250).max(1);
            let points = curve.errors.iter().enumerate().step_by(every).map(|(l, &e)| (l as f64, e));
            Series::new(&curve.name, color, points.collect())
        });
        let title = format!("What depth does: {}", self.certificate.status.as_str());
        let (x, y) = (Axis::linear("layers *L*"), Axis::log("error to infinite depth / largest value"));
        Chart::new(title, x, y, series.collect()).noted(&self.drawn).scene(Width::Column)
    }
}

impl crate::report::Report for Report {
    fn text(&self, width: usize) -> String {
        let (certificate, c) = (&self.certificate, &self.certificate.contraction);
        let optional = |x: Option<f64>| x.map_or_else(|| "none".into(), |x| format!("{x:.6}"));
        let status = certificate.status;
        let mut text =
            format!("{}: {}\n{}\n", status.as_str().to_uppercase(), in_words(status), self.subject);
        if self.trained.is_some() {
            text += &format!(
                "trained layers: steps of TD of size {:.4} with discount {:.4} and rewards of their own\n",
                certificate.step_size, self.gamma
            );
        }
        certificate.reasons.iter().for_each(|r| text += &format!("  - {r}\n"));
        self.subsample.iter().for_each(|part| text += &format!("  - {}\n", part.warning()));
        text += &format!("suggestion: {}\n", self.suggestion);
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
        let steps = &certificate.steps;
        let (radius, stable, best) =
            (c.spectral_radius.map(rate), optional(steps.largest_stable), optional(steps.best));
        let missing = if certificate.krylov.is_some() { "not found" } else { "none" };
        let (norm, radius) = (optional(c.norm_inf), radius.unwrap_or_else(|| missing.into()));
        let best_rate = steps.best_spectral_radius.map_or_else(|| "none".into(), rate);
        text += &format!("norm_inf of a layer  {norm}\nspectral radius      {radius}\n");
        match &certificate.krylov {
            None => {
                text += &format!(
                    "step sizes           stable below {stable}, best {best} with rate {best_rate}\n"
                );
            }
            Some(found) => {
                let (products, size) = (found.products, rate(found.ritz.modulus()));
                let which = if found.ritz.modulus() > 1.0 { "one found" } else { "the outermost" };
                text += &format!(
                    "eigenvalues          {which} after {products} products has size {size}, residual {:.1e}\n",
                    found.residual
                );
            }
        }
        if let Some(examined) = &self.examined {
            let (states, route) = (examined.states, examined.route.as_str());
            text += &format!("examined             all {states} states, by {route}: {}\n", examined.reason);
        }
        text += &format!("regime               {}\n", certificate.stability.regime.as_str());
        if let Some(f) = &certificate.fixed_point {
            let bound = f.error_bound.map_or_else(|| "none".into(), |b| format!("{b:.3e}"));
            let (error, layers, tolerance) = (f.error, f.num_layers, f.tolerance);
            text += &format!("after {layers} layers      error {error:.3e} (proved bound: {bound})\n");
            let [rate, contraction] = [f.layers_predicted, f.layers_sufficient]
                .map(|l| l.map_or_else(|| "unknown".into(), |l| l.to_string()));
            text += &format!(
                "layers for {tolerance:.0e}      {rate} by the rate, {contraction} by contraction\n"
            );
            f.notes.iter().for_each(|note| text += &format!("                     {note}\n"));
        }
        text += &format!("\n{}\n", self.suggestions_note);
        for (helps, title) in [
            (Helps::AtThisDepth, "what helps at this depth"),
            (Helps::InTheLongRun, "what is best in the long run, proof before speed"),
        ] {
            let mut of_this_kind = self.suggestions.iter().filter(|s| s.found.helps == helps).peekable();
            if of_this_kind.peek().is_some() {
                text += &format!("{title}, recomputed:\n");
            }
            for SuggestionJson { change, found: s, .. } in of_this_kind {
                let radius = rate(s.spectral_radius);
                text += &format!("  - {change}: {}, spectral radius {radius}", s.status.as_str());
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
        text += &format!("\nthis is about {}\n", self.certifies);
        text += "not checked: that the transitions are the policy's own, and that equal features are the same state\n";
        let attention = self.attention.as_ref().map_or_else(String::new, |weights| weights.text(width));
        wrapped(&text, width) + &attention
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        let attention = self.attention.iter().map(|weights| ("attention".into(), weights.figure()));
        [("depth".into(), self.figure())].into_iter().chain(attention).collect()
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        #[derive(Serialize)]
        struct Row<'a> {
            case: &'a str,
            layer: usize,
            error: f64,
        }
        let rows = self.curves.iter().flat_map(|c| {
            c.errors.iter().enumerate().map(|(layer, &error)| Row { case: &c.name, layer, error })
        });
        let mut tables = vec![Records::of("depth", rows)?];
        if let Some(attention) = &self.attention {
            tables.push(attention.records()?);
        }
        Ok(tables)
    }

    fn json_name(&self) -> Option<&str> {
        Some("certificate")
    }
}

/// What a status says about depth.
fn in_words(status: Status) -> &'static str {
    match status {
        Status::Certified => "layers converge with depth, by proof",
        Status::Estimated => "layers converge with depth in the long run, by the numbers",
        Status::Refused => "layers do not converge with depth, or it cannot be told",
        Status::Undecided => "whether layers converge with depth could not be found out",
    }
}

/// A rate; near 1 its distance from it, which is what counts.
fn rate(rate: f64) -> String {
    if (1.0 - 1e-4..1.0).contains(&rate) { format!("1 - {:.1e}", 1.0 - rate) } else { format!("{rate:.6}") }
}
