//! The study as text and in files.

use super::Mirror;
use crate::LabError;
use crate::figure::Scene;
use crate::report::{Report, Table, wrapped};

impl Report for Mirror {
    fn text(&self, width: usize) -> String {
        training(self, width) + &estimator(self, width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("mirror".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Table>, LabError> {
        Ok(vec![
            Table::of("first_gradients", &self.first_gradients)?,
            Table::of("settling", &self.settling)?,
            Table::of("path", &self.path)?,
            Table::of("pulls", &self.pulls)?,
            Table::of("held", &self.held)?,
            Table::of("best", &self.best)?,
            Table::of("temperatures", &self.estimator.temperatures)?,
            Table::of("constants", &self.estimator.constants)?,
            Table::of("estimators", &self.estimator.estimators)?,
            Table::of("ends", &self.ends)?,
            Table::of("pairs", &self.pairs)?,
        ])
    }
}

fn number(x: f64) -> String {
    format!("{x:.3}")
}

fn with_error(mean: f64, sem: f64) -> String {
    format!("{mean:.4} ± {sem:.4}")
}

/// The tables of the page on the mirror block, in its order.
fn training(found: &Mirror, width: usize) -> String {
    let mut text = Table::new(
        &["first gradient by", "formula", "predicted", "measured"],
        found.first_gradients.iter().map(|g| {
            let predicted = format!("{:.4}", g.predicted);
            vec![g.parameter.into(), g.formula.into(), predicted, with_error(g.measured, g.sem)]
        }),
    )
    .text(width);
    let phase = &found.predicted_phase;
    let signs = format!(
        "\nsigns (−, +, +) with a negative diagonal: {} of {} seeds, median from epoch {} to {} (last one between {} and {}); p_t leaves first in {}",
        phase.seen,
        phase.seeds,
        phase.from,
        phase.until,
        phase.until_first,
        phase.until_last,
        phase.target_leaves_first,
    );
    text.push_str(&wrapped(&signs, width));
    text.push('\n');
    text.push_str(
        &Table::new(
            &["sign of", "ends positive", "settled: first", "median", "last"],
            found.settling.iter().map(|s| {
                let epochs = [s.first, s.median, s.last].map(|e| e.to_string());
                [s.parameter.into(), format!("{}/{}", s.positive, s.seeds)]
                    .into_iter()
                    .chain(epochs)
                    .collect()
            }),
        )
        .text(width),
    );
    text.push('\n');
    text.push_str(
        &Table::new(
            &[
                "epoch", "p_r", "p_t", "p_v", "diag A", "pull p_r", "scale", "split", "diag A", "order 0",
                "order 1", "order 2", "δ²",
            ],
            found.pulls.iter().map(|p| {
                let numbers = [
                    p.p_r,
                    p.p_t,
                    p.p_v,
                    p.a,
                    p.pull_r,
                    p.pull_scale,
                    p.pull_split,
                    p.pull_a,
                    p.order_0,
                    p.order_1,
                    p.order_2,
                    p.td_loss,
                ];
                [p.epoch.to_string()].into_iter().chain(numbers.map(number)).collect()
            }),
        )
        .text(width),
    );
    text.push('\n');
    text.push_str(
        &Table::new(
            &["A held at", "seeds", "(+,+,−)", "(−,−,+)", "(−,+,+)", "other", "p_r", "p_t", "p_v", "δ²"],
            found.held.iter().map(|h| {
                let counts = [h.seeds, h.td, h.mirror, h.predicted, h.other].map(|n| n.to_string());
                let u = [h.p_r, h.p_t, h.p_v].map(number);
                let loss = with_error(h.td_loss, h.td_loss_sem);
                [format!("{:.1}", h.a)].into_iter().chain(counts).chain(u).chain([loss]).collect()
            }),
        )
        .text(width),
    );
    text.push('\n');
    text.push_str(
        &Table::new(
            &["a", "best p_r", "p_t", "p_v", "δ²", "msve"],
            found.best.iter().map(|b| {
                let numbers = [b.p_r, b.p_t, b.p_v, b.td_loss, b.msve];
                let cell = |x: f64| if b.found { number(x) } else { "none".into() };
                [format!("{:.1}", b.a)].into_iter().chain(numbers.map(cell)).collect()
            }),
        )
        .text(width),
    );
    text
}

fn estimator(found: &Mirror, width: usize) -> String {
    let e = &found.estimator;
    let text = format!(
        "\nmirror block against TD on reflected transitions: largest discrepancy {:.1e} ({} contexts, {} layers)",
        e.discrepancy, e.contexts, e.layers
    );
    let mut text = wrapped(&text, width) + "\n";
    text.push_str(
        &Table::new(
            &["τ", "constant", "difference − constant", "spread of TD values"],
            e.temperatures.iter().map(|t| {
                let numbers = [t.constant, t.rest, t.spread].map(|x| format!("{x:.3e}"));
                [format!("{}", t.temperature)].into_iter().chain(numbers).collect()
            }),
        )
        .text(width),
    );
    for (name, slope) in [("difference − constant", e.rest_slope), ("spread", e.spread_slope)] {
        if let Some(s) = slope {
            text.push_str(&format!("slope of log {name}: {:.3} ± {:.3}\n", s.slope, s.half_width));
        }
    }
    text.push('\n');
    text.push_str(
        &Table::new(
            &[
                "uniform, query",
                "E[r(q)·mean R]",
                "E[r(q)·mean R′]",
                "E[v(q)·mean R]",
                "k for δ²",
                "k for msve",
            ],
            e.constants.iter().map(|c| {
                let averages = [c.reward_own, c.reward_next, c.value_own].map(|x| format!("{x:.4}"));
                let best = [c.best_for_td_loss, c.best_for_msve].map(|x| format!("{x:.2}"));
                [c.query.to_owned()].into_iter().chain(averages).chain(best).collect()
            }),
        )
        .text(width),
    );
    text.push('\n');
    text.push_str(
        &Table::new(
            &[
                "query",
                "E[v(q)·mean R]",
                "block",
                "δ²",
                "msve",
                "best step",
                "best scale",
                "δ² there",
                "best msve",
            ],
            e.estimators.iter().map(|r| {
                let numbers = [r.td_loss, r.msve, r.best_step, r.best_score, r.best_td_loss, r.best_msve];
                let correlation = with_error(r.correlation, r.correlation_sem);
                [r.query.into(), correlation, r.block.into()].into_iter().chain(numbers.map(number)).collect()
            }),
        )
        .text(width),
    );
    text.push('\n');
    text.push_str(
        &Table::new(
            &[
                "setting",
                "first TD gradient",
                "E[v(q)·mean R]",
                "td",
                "mirror",
                "none",
                "signs",
                "diag A",
                "δ²",
                "msve",
            ],
            found.ends.iter().map(|r| {
                let counts = [r.td, r.mirror, r.none].map(|n| n.to_string());
                let signs = format!("{} ({}/{})", r.signs, r.with_signs, r.seeds);
                let diagonal = format!("{:.2} ({:.2} to {:.2})", r.a, r.a_low, r.a_high);
                let losses = [with_error(r.td_loss, r.td_loss_sem), with_error(r.msve, r.msve_sem)];
                let start = [r.first_gradient, r.correlation].map(|x| format!("{x:.4}"));
                [r.setting.to_owned()]
                    .into_iter()
                    .chain(start)
                    .chain(counts)
                    .chain([signs, diagonal])
                    .chain(losses)
                    .collect()
            }),
        )
        .text(width),
    );
    text.push('\n');
    text.push_str(
        &Table::new(
            &["TD − mirror, loss", "δ²", "msve", "mirror lower"],
            found.pairs.iter().map(|p| {
                let lower = format!("{}/{}", p.mirror_lower, p.seeds);
                let gaps = [with_error(p.td_loss, p.td_loss_sem), with_error(p.msve, p.msve_sem)];
                [p.loss.to_owned()].into_iter().chain(gaps).chain([lower]).collect()
            }),
        )
        .text(width),
    );
    text
}
