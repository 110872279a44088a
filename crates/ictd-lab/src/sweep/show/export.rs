//! Runs for TensorBoard.

use std::path::Path;

use ictd::pretrain::Metric;

use super::runs::Runs;
use super::view::plain;
use crate::files::{EventFile, OutputDir};
use crate::sweep::Metrics;
use crate::{LabError, Progress};

/// Every event has it, so that the same runs give the same bytes.
const WALL_TIME: f64 = 0.0;
/// TensorBoard looks for this name.
const FILE: &str = "events.out.tfevents.0000000000.ictd";
/// Characters of a directory's name that say what its setting is.
const LONGEST: usize = 120;

/// Writes an event file per run, in `SETTING/SEED`: its curves where the sweep has them, otherwise its final numbers at the last
/// step. How many runs there are.
pub fn tensorboard(runs: &Runs, out: &Path, progress: &Progress) -> Result<usize, LabError> {
    progress.begin("writing events", "runs", runs.numbers.len() as u64)?;
    let has_curves = matches!(runs.plan.metrics, Metrics::Every(_));
    // Where there are no curves, steps are what the configurations say.
    let sweep = if has_curves { None } else { Some(runs.sweep()?) };
    let seeds = &runs.plan.seeds;
    for setting in 0..runs.settings.len() {
        let curves = if has_curves { runs.curves(setting)? } else { Vec::new() };
        for row in runs.rows(setting) {
            let seed = seeds[runs.numbers[row] % seeds.len()];
            let mut events = EventFile::new(WALL_TIME);
            for point in curves.iter().filter(|curve| curve.seed == seed).flat_map(|curve| &curve.points) {
                let Some((step, values)) = point.split_first() else { continue };
                for (metric, value) in Metric::ALL.iter().zip(values).filter(|(_, value)| !value.is_nan()) {
                    events.scalar(metric.tag(), *step as u64, *value as f32);
                }
            }
            if let Some(sweep) = &sweep {
                let last = sweep.settings[setting].settings.config.num_steps();
                for metric in runs.metrics.iter().filter(|metric| !metric.values[row].is_nan()) {
                    events.scalar(&format!("final/{}", metric.name), last, metric.values[row] as f32);
                }
            }
            let dir = OutputDir::create(&out.join(directory(runs, setting)).join(format!("seed_{seed:04}")))?;
            dir.write(FILE, &events.into_bytes())?;
            progress.step(1)?;
        }
    }
    Ok(runs.numbers.len())
}

/// The name of a setting's directory: its number, which tells it from all others, and what it has of the keys that vary.
fn directory(runs: &Runs, setting: usize) -> String {
    let parts = runs.varied.iter().zip(&runs.settings[setting]);
    let words: Vec<String> = parts.map(|(key, value)| format!("{key}={}", plain(key, value))).collect();
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "=,._-+".contains(c);
    let text: String =
        words.join(",").chars().map(|c| if is_kept(c) { c } else { '_' }).take(LONGEST).collect();
    let gap = if text.is_empty() { "" } else { "-" };
    format!("{setting:05}{gap}{text}")
}
