//! How long a sweep will take and how much it will write, from a moment of training in some of its settings.

use std::ops::Range;

use ictd::pretrain::{Metric, PretrainConfig, Trainer, measure};

use super::plan::{Checkpoints, Metrics};
use super::row;
use super::setting::{Setting, Sweep};
use crate::studies::pretrain::{MEASURED_TASKS, unmeasured_result};
use crate::{LabError, Moment, Progress};

/// Settings that are tried, evenly over all of them.
const TRIED: usize = 8;
/// Epochs that are timed, after one that is not.
const EPOCHS: u32 = 3;
/// Fresh tasks that are timed.
const TASKS: u64 = 2;
/// Bytes of a journal's line beside its cells: checksum, key, seed.
const LINE: f64 = 40.0;
/// Bytes of a point of the curves, in the journal and in the file of its setting.
const POINT: f64 = 2.0 * 110.0;

/// What is to be expected of some of a sweep's runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Seconds of one thread for one run, on average.
    pub run: f64,
    /// Seconds of one thread for the longest run.
    pub longest: f64,
    /// Bytes that are written of one run.
    pub bytes: f64,
}

impl Estimate {
    /// Tries some of the settings that `runs` belong to.
    pub fn of(sweep: &Sweep, runs: &Range<usize>, progress: &Progress) -> Result<Self, LabError> {
        let seeds = sweep.plan.seeds.len();
        let (first, end) = (runs.start / seeds, runs.end.div_ceil(seeds).max(runs.start / seeds + 1));
        let tried = (end - first).min(TRIED);
        let mut sum = Self { run: 0.0, longest: 0.0, bytes: 0.0 };
        for k in 0..tried {
            progress.check()?;
            // The ends are among them.
            let number = first + if tried > 1 { k * (end - 1 - first) / (tried - 1) } else { 0 };
            let found = trial(sweep, &sweep.settings[number])?;
            sum.run += found.run / tried as f64;
            sum.longest = sum.longest.max(found.run);
            sum.bytes += found.bytes / tried as f64;
        }
        Ok(sum)
    }
}

fn trial(sweep: &Sweep, setting: &Setting) -> Result<Estimate, LabError> {
    let (plan, config) = (&sweep.plan, &setting.settings.config);
    let seed = plan.seeds[0];
    let short = PretrainConfig { epochs: u64::from(EPOCHS) + 1, ..config.clone() };
    let start = Moment::now();
    let mut trainer = Trainer::<f32>::new(&short, seed)?;
    // One that diverges at once is told of when it is its turn.
    let mut goes_on = trainer.epoch_unmeasured().is_ok();
    let made = start.elapsed().as_secs_f64();
    let start = Moment::now();
    for _ in 0..EPOCHS {
        goes_on = goes_on && trainer.epoch_unmeasured().is_ok();
    }
    let epoch = start.elapsed().as_secs_f64() / f64::from(EPOCHS);
    let state = trainer.into_state();
    let start = Moment::now();
    let measured = plan.metrics != Metrics::None;
    if measured {
        measure::<f32>(config, seed, &state.params, TASKS)?;
    }
    let measuring = start.elapsed().as_secs_f64() / TASKS as f64 * 2.0 * MEASURED_TASKS as f64;
    let epochs = config.epochs as f64;
    // Numbers that are not measured here are as long as others.
    let more = if measured { 10.0 * 19.0 } else { 0.0 };
    let row = row::cells(&unmeasured_result(&setting.settings, seed, &state)).len() as f64 + more;
    let names = setting.values.iter().map(|value| value.len() + 1).sum::<usize>() as f64;
    let points = if let Metrics::Every(every) = plan.metrics { (epochs / every as f64).floor() } else { 0.0 };
    let kept = match plan.checkpoints {
        Checkpoints::None => 0.0,
        Checkpoints::Final | Checkpoints::Best => 1.0,
        Checkpoints::All => 2.0,
    };
    let per_step = Metric::ALL.into_iter().filter(|m| m.is_per_step()).count() as f64;
    let history = 4.0 * per_step * config.batches as f64 * epochs;
    let checkpoint = history + 4.0 * 5.0 * state.params.len() as f64 + 4096.0;
    Ok(Estimate {
        run: made + epoch * epochs + if measured { measuring } else { 0.0 },
        longest: 0.0,
        bytes: 2.0 * row + names + LINE + points * POINT + kept * checkpoint,
    })
}
