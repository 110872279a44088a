//! `ictd mirror`.

use std::path::Path;

use clap::Args;
use ictd_lab::LabError;
use ictd_lab::files::OutputDir;
use ictd_lab::studies::mirror::{self, Mirror, MirrorConfig};

use crate::{Common, Outcome, message, print_data, print_json, table};

/// Arguments of `ictd mirror`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Seeds of the path, counted from --seed; half as many per end, a quarter with A held
    #[arg(long, default_value_t = 40, allow_negative_numbers = true)]
    seeds: u64,
    /// Epochs of every training run
    #[arg(long, default_value_t = 3000, allow_negative_numbers = true)]
    epochs: u64,
    /// Fresh tasks of what is measured at a point
    #[arg(long, default_value_t = 100, allow_negative_numbers = true)]
    tasks: u64,
    #[command(flatten)]
    common: Common,
}

pub fn run(arguments: Arguments) -> Result<Outcome, LabError> {
    let Arguments { seeds, epochs, tasks, common } = arguments;
    let found = mirror::run(&MirrorConfig { seed: common.seed, seeds, epochs, tasks }, message)?;
    let out = common.out.as_deref().unwrap_or(Path::new("out/mirror"));
    found.write(&OutputDir::create(out)?)?;
    if common.json {
        print_json(&found)?;
    } else {
        print_data(&tables(&found))?;
    }
    message(&format!("figure and tables: {}", out.display()));
    Ok(Outcome::Success)
}

fn number(x: f64) -> String {
    format!("{x:.3}")
}

fn with_error(mean: f64, sem: f64) -> String {
    format!("{mean:.4} ± {sem:.4}")
}

/// The tables of the page on the mirror block, in its order.
fn tables(found: &Mirror) -> String {
    let mut text = table::render(
        &["first gradient by", "formula", "predicted", "measured"],
        &found
            .first_gradients
            .iter()
            .map(|g| {
                let predicted = format!("{:.4}", g.predicted);
                vec![g.parameter.into(), g.formula.into(), predicted, with_error(g.measured, g.sem)]
            })
            .collect::<Vec<_>>(),
    );
    let phase = &found.predicted_phase;
    text.push_str(&format!(
        "\nsigns (−, +, +) with a negative diagonal: {} of {} seeds, median from epoch {} to {} (last one between {} and {}); p_t leaves first in {}\n\n",
        phase.seen, phase.seeds, phase.from, phase.until, phase.until_first, phase.until_last,
        phase.target_leaves_first,
    ));
    text.push_str(&table::render(
        &["sign of", "ends positive", "settled: first", "median", "last"],
        &found
            .settling
            .iter()
            .map(|s| {
                let epochs = [s.first, s.median, s.last].map(|e| e.to_string());
                [s.parameter.into(), format!("{}/{}", s.positive, s.seeds)]
                    .into_iter()
                    .chain(epochs)
                    .collect()
            })
            .collect::<Vec<_>>(),
    ));
    text.push('\n');
    text.push_str(&table::render(
        &[
            "epoch", "p_r", "p_t", "p_v", "diag A", "pull p_r", "scale", "split", "diag A", "order 0",
            "order 1", "order 2", "δ²",
        ],
        &found
            .pulls
            .iter()
            .map(|p| {
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
            })
            .collect::<Vec<_>>(),
    ));
    text.push('\n');
    text.push_str(&table::render(
        &["A held at", "seeds", "(+,+,−)", "(−,−,+)", "(−,+,+)", "other", "p_r", "p_t", "p_v", "δ²"],
        &found
            .held
            .iter()
            .map(|h| {
                let counts = [h.seeds, h.td, h.mirror, h.predicted, h.other].map(|n| n.to_string());
                let u = [h.p_r, h.p_t, h.p_v].map(number);
                let loss = with_error(h.td_loss, h.td_loss_sem);
                [format!("{:.1}", h.a)].into_iter().chain(counts).chain(u).chain([loss]).collect()
            })
            .collect::<Vec<_>>(),
    ));
    text.push('\n');
    text.push_str(&table::render(
        &["a", "best p_r", "p_t", "p_v", "δ²", "msve"],
        &found
            .best
            .iter()
            .map(|b| {
                let numbers = [b.p_r, b.p_t, b.p_v, b.td_loss, b.msve];
                let cell = |x: f64| if b.found { number(x) } else { "none".into() };
                [format!("{:.1}", b.a)].into_iter().chain(numbers.map(cell)).collect()
            })
            .collect::<Vec<_>>(),
    ));
    text.push_str(&estimator_tables(found));
    text
}

fn estimator_tables(found: &Mirror) -> String {
    let e = &found.estimator;
    let mut text = format!(
        "\nmirror block against TD on reflected transitions: largest discrepancy {:.1e} ({} contexts, {} layers)\n\n",
        e.discrepancy, e.contexts, e.layers
    );
    text.push_str(&table::render(
        &["τ", "constant", "difference − constant", "spread of TD values"],
        &e.temperatures
            .iter()
            .map(|t| {
                let numbers = [t.constant, t.rest, t.spread].map(|x| format!("{x:.3e}"));
                [format!("{}", t.temperature)].into_iter().chain(numbers).collect()
            })
            .collect::<Vec<_>>(),
    ));
    for (name, slope) in [("difference − constant", e.rest_slope), ("spread", e.spread_slope)] {
        if let Some(s) = slope {
            text.push_str(&format!("slope of log {name}: {:.3} ± {:.3}\n", s.slope, s.half_width));
        }
    }
    text.push('\n');
    text.push_str(&table::render(
        &["uniform, query", "E[r(q)·mean R]", "E[r(q)·mean R′]", "E[v(q)·mean R]", "k for δ²", "k for msve"],
        &e.constants
            .iter()
            .map(|c| {
                let averages = [c.reward_own, c.reward_next, c.value_own].map(|x| format!("{x:.4}"));
                let best = [c.best_for_td_loss, c.best_for_msve].map(|x| format!("{x:.2}"));
                [c.query.to_owned()].into_iter().chain(averages).chain(best).collect()
            })
            .collect::<Vec<_>>(),
    ));
    text.push('\n');
    text.push_str(&table::render(
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
        &e.estimators
            .iter()
            .map(|r| {
                let numbers = [r.td_loss, r.msve, r.best_step, r.best_score, r.best_td_loss, r.best_msve];
                let correlation = with_error(r.correlation, r.correlation_sem);
                [r.query.into(), correlation, r.block.into()].into_iter().chain(numbers.map(number)).collect()
            })
            .collect::<Vec<_>>(),
    ));
    text.push('\n');
    text.push_str(&table::render(
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
        &found
            .ends
            .iter()
            .map(|r| {
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
            })
            .collect::<Vec<_>>(),
    ));
    text.push('\n');
    text.push_str(&table::render(
        &["TD − mirror, loss", "δ²", "msve", "mirror lower"],
        &found
            .pairs
            .iter()
            .map(|p| {
                let lower = format!("{}/{}", p.mirror_lower, p.seeds);
                let gaps = [with_error(p.td_loss, p.td_loss_sem), with_error(p.msve, p.msve_sem)];
                [p.loss.to_owned()].into_iter().chain(gaps).chain([lower]).collect()
            })
            .collect::<Vec<_>>(),
    ));
    text
}
