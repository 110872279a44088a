//! Theorem 2's two rates over many tasks: decay with depth and floor over length.

use ictd::statistics::fit;
use serde::Serialize;

use super::theorem2::{self, BoundConfig, BoundReport, floors};
use super::{Tasks, on_tasks};
use crate::counted;
use crate::figure::{Axis, Chart, Grid, Scene, Series, style::PALETTE};
use crate::files::OutputDir;
use crate::studies::{Claim, Plan, Section, Study, Verdict, verdict};
use crate::{LabError, Progress};

/// Theorem 2's rates, pooled over tasks.
pub const STUDY: Study = Study::new("rates", Section::Convergence, &["thm2-decay", "thm2-floor"], judge);

/// Deepest layer that the figure shows.
const SHOWN: usize = 30;

/// The rates of one task.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TaskRates {
    pub task: u64,
    /// Fitted slope per layer of log ‖v_L - v_∞‖∞, the part of the error that depth takes away, at the longest context;
    /// absent when a context there misses a state.
    pub decay: Option<f64>,
    pub decay_half_width: Option<f64>,
    /// log(1 - C), the paper's rate; absent when Assumption 5.1 fails.
    pub paper_decay: Option<f64>,
    /// log of the spectral radius in the population.
    pub spectral_decay: Option<f64>,
    /// Fitted slope of log floor against log n; absent when too few lengths visit every state in every context.
    pub floor: Option<f64>,
    pub floor_half_width: Option<f64>,
}

impl TaskRates {
    /// The fitted slope minus the paper's: negative when decay is faster than promised.
    fn beyond(&self) -> Option<f64> {
        Some(self.decay? - self.paper_decay?)
    }

    /// Whether the task alone contradicts the paper's rate: its whole interval lies above.
    fn contradicts(&self) -> bool {
        self.beyond().zip(self.decay_half_width).is_some_and(|(d, half)| d - half > 0.0)
    }
}

/// A mean over tasks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pooled {
    pub mean: f64,
    /// Half the width of its 95 % interval, from the scatter over tasks.
    pub half_width: f64,
    /// Tasks that have a value.
    pub tasks: usize,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Rates {
    pub tasks: Vec<TaskRates>,
    pub decay: Option<Pooled>,
    /// Fitted decay minus log(1 - C), task by task: negative means faster than promised.
    pub beyond: Option<Pooled>,
    /// Tasks whose own interval lies above log(1 - C).
    pub contradictions: usize,
    pub floor: Option<Pooled>,
    #[serde(skip)]
    reports: Vec<BoundReport>,
}

fn pooled(values: impl Iterator<Item = Option<f64>>) -> Option<Pooled> {
    let values: Vec<f64> = values.flatten().collect();
    fit::mean(&values).map(|(mean, half_width)| Pooled { mean, half_width, tasks: values.len() })
}

/// Fits the rates of the first `tasks` tasks, `contexts` contexts per length each.
pub fn run(family: &Tasks, tasks: u64, contexts: u64) -> Result<Rates, LabError> {
    let config = |index| BoundConfig { index, ..BoundConfig::new(family.clone(), contexts) };
    let reports = on_tasks(family, tasks, |index, _| theorem2::run(&config(index), &Progress::default()))?;
    let rates = |r: &BoundReport| TaskRates {
        task: r.config.index,
        decay: r.decay.map(|d| d.slope),
        decay_half_width: r.decay.map(|d| d.half_width),
        paper_decay: r.paper_decay,
        spectral_decay: r.predicted_decay,
        floor: r.floor.map(|f| f.slope),
        floor_half_width: r.floor.map(|f| f.half_width),
    };
    let tasks: Vec<TaskRates> = reports.iter().map(rates).collect();
    Ok(Rates {
        decay: pooled(tasks.iter().map(|t| t.paper_decay.and(t.decay))),
        beyond: pooled(tasks.iter().map(TaskRates::beyond)),
        contradictions: tasks.iter().filter(|t| t.contradicts()).count(),
        floor: pooled(tasks.iter().map(|t| t.floor)),
        tasks,
        reports,
    })
}

impl Rates {
    /// Error against depth at the longest context, slopes of all tasks, floors of all tasks.
    fn figure(&self) -> Scene {
        let note = self.reports.first().map_or_else(String::new, |r| {
            format!(
                "{}; {}, {} each",
                r.describe,
                counted(self.tasks.len(), "task"),
                counted(r.config.contexts, "context")
            )
        });
        let panels = [self.depth_chart(), self.decay_chart(), self.floor_chart()];
        Grid::new("Theorem 2's rates", 3, panels, note).scene()
    }

    /// A thin line per task, without names.
    fn per_task(&self, points: impl Fn(&BoundReport) -> Vec<(f64, f64)>) -> Vec<Series> {
        self.reports.iter().map(|r| Series::new("", PALETTE[0].with_alpha(0.45), points(r))).collect()
    }

    fn depth_chart(&self) -> Chart {
        let longest = self.reports.iter().flat_map(|r| r.sweep.iter().map(|p| p.n)).max().unwrap_or(0);
        let depth = |r: &BoundReport| r.over_depth(longest, SHOWN);
        let (x, y) = (Axis::linear("layers *L*"), Axis::log("mean error ‖*v*_{*L*} − *v*_{π}‖_{∞}"));
        Chart::new(format!("(a) depth, *n* = {longest}"), x, y, self.per_task(depth))
            .noted("one line per task")
    }

    fn decay_chart(&self) -> Chart {
        let order: Vec<&TaskRates> = self.tasks.iter().filter(|t| t.beyond().is_some()).collect();
        let line = |name: &str, color, y: fn(&TaskRates) -> f64| {
            Series::new(name, color, order.iter().enumerate().map(|(k, t)| (k as f64 + 1.0, y(t))).collect())
        };
        let interval = |t: &&TaskRates| {
            let (slope, half) = (t.decay.unwrap_or(f64::NAN), t.decay_half_width.unwrap_or(f64::NAN));
            (slope - half, slope + half)
        };
        let fit = line("fit", PALETTE[0], |t| t.decay.unwrap_or(f64::NAN));
        let series = vec![
            line("log(1 − *C*)", PALETTE[1], |t| t.paper_decay.unwrap_or(f64::NAN)),
            fit.with_band(order.iter().map(interval).collect()),
            line("log spectral radius", PALETTE[2], |t| t.spectral_decay.unwrap_or(f64::NAN)).dashed(),
        ];
        let (x, y) = (Axis::linear("task"), Axis::linear("slope of log ‖*v*_{*L*} − *v*_{∞}‖_{∞}"));
        Chart::new("(b) decay per layer", x, y, series).noted("band: 95 % interval of a task's fit")
    }

    fn floor_chart(&self) -> Chart {
        let note = self.floor.map_or_else(String::new, |f| {
            format!("mean slope {:.3}\u{a0}±\u{a0}{:.3}; −1/2 for 1/√n", f.mean, f.half_width)
        });
        let (x, y) = (Axis::log("context length *n*"), Axis::log("mean error at infinite depth"));
        Chart::new("(c) floor", x, y, self.per_task(|r| floors(&r.sweep))).noted(note.replace('-', "−"))
    }
}

/// Decay with depth and floor with length, pooled over tasks of a family chosen so that the assumption holds.
fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let found = run(&Tasks::certified(plan.seed), plan.samples(25, 20), plan.samples(20, 10))?;
    out.csv("rates", &found.tasks)?;
    out.json("rates", &found)?;
    out.figure("rates", &found.figure())?;
    Ok(claims(&found))
}

fn claims(found: &Rates) -> Vec<Claim> {
    let claim = |id, paper, says, criterion| {
        Claim::new(id, paper, says, criterion).shown(Some("rates"), Some("rates.csv"))
    };
    let decay = claim(
        "thm2-decay",
        "Theorem 2, decay with depth",
        "The error decays geometrically with depth, at least as fast as (1 − C)^L.",
        "over at least 20 tasks, the 95 % interval of the mean of (fitted slope of log ‖v_L − v_∞‖∞ per layer, the part of the error that depth takes away, \
         − that task's log(1 − C)) lies below 0, and no task's own interval lies above log(1 − C)",
    );
    let floor = claim(
        "thm2-floor",
        "Theorem 2, floor over length",
        "What depth leaves falls like 1/√n.",
        "over at least 20 tasks, the 95 % interval of the mean slope of log error against log n lies between −0.6 and −0.4",
    );
    let untested = |claim: Claim, what: &str| {
        claim.untested(format!("fewer than 20 of {} tasks have {what}", found.tasks.len()))
    };
    let many = |p: &Pooled| p.tasks >= 20;
    let decay = match (found.decay, found.beyond.filter(many)) {
        (Some(slope), Some(beyond)) => {
            let judged = match (beyond.mean + beyond.half_width < 0.0, found.contradictions) {
                (true, 0) => Verdict::Reproduced,
                (true, _) => Verdict::Partly,
                (false, _) => Verdict::NotReproduced,
            };
            let (contradictions, tasks, paper) =
                (found.contradictions, beyond.tasks, slope.mean - beyond.mean);
            let measured = format!(
                "mean slope {:.4} per layer where log(1 − C) is {paper:.4}; {contradictions} of {tasks} tasks contradict",
                slope.mean
            );
            let halves = [slope.half_width, beyond.half_width].map(|half| format!("± {half:.4}"));
            decay.found(
                judged,
                beyond.mean,
                measured,
                format!("{} (95 %, {tasks} tasks)", halves.join(" and ")),
            )
        }
        _ => untested(decay, "a rate to compare with and contexts that visit every state"),
    };
    let floor = match found.floor.filter(many) {
        Some(f) => floor.found(
            verdict((f.mean + 0.5).abs() + f.half_width < 0.1),
            f.mean,
            format!("mean slope {:.3}", f.mean),
            format!("± {:.3} (95 %, {} tasks)", f.half_width, f.tasks),
        ),
        None => untested(floor, "three lengths at which every context visits every state"),
    };
    vec![decay.in_chosen_setting(), floor.in_chosen_setting()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slower decay than promised, a task that contradicts, too few tasks and another floor are all seen.
    #[test]
    fn rates_that_differ_are_not_consistent() {
        let pooled = |mean, half_width, tasks| Some(Pooled { mean, half_width, tasks });
        let good = || Rates {
            decay: pooled(-0.3, 0.01, 25),
            beyond: pooled(-0.1, 0.01, 25),
            floor: pooled(-0.5, 0.02, 25),
            ..Rates::default()
        };
        let verdicts = |found: Rates| <[Claim; 2]>::try_from(claims(&found)).unwrap().map(|c| c.verdict);
        use Verdict::{Consistent, NotReproduced, NotTestable, Partly};
        assert_eq!(verdicts(good()), [Consistent, Consistent]);
        assert_eq!(verdicts(Rates { contradictions: 1, ..good() })[0], Partly);
        assert_eq!(verdicts(Rates { beyond: pooled(-0.1, 0.2, 25), ..good() })[0], NotReproduced);
        assert_eq!(verdicts(Rates { floor: pooled(-0.5, 0.2, 25), ..good() })[1], NotReproduced);
        assert_eq!(verdicts(Rates { floor: pooled(-1.0, 0.01, 25), ..good() })[1], NotReproduced);
        assert_eq!(verdicts(Rates { floor: pooled(f64::NAN, 0.01, 25), ..good() })[1], NotReproduced);
        let few = Rates { beyond: pooled(-0.1, 0.01, 19), floor: None, ..good() };
        assert_eq!(verdicts(few), [NotTestable, NotTestable]);
    }

    /// A task whose interval lies above the paper's rate contradicts it; one whose interval meets it does not.
    #[test]
    fn a_contradiction_needs_its_whole_interval() {
        let paper = TaskRates { paper_decay: Some(-0.2), ..TaskRates::default() };
        let task =
            |decay, half| TaskRates { decay: Some(decay), decay_half_width: Some(half), ..paper.clone() };
        assert!(task(-0.1, 0.05).contradicts());
        assert!(!task(-0.1, 0.15).contradicts() && !task(-0.3, 0.01).contradicts());
        assert!(!TaskRates { paper_decay: None, ..task(-0.1, 0.01) }.contradicts());
    }

    #[test]
    fn thread_counts_do_not_change_a_bit() {
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| run(&Tasks::certified(1), 3, 4)).unwrap();
            serde_json::to_string(&found).unwrap()
        };
        assert_eq!(with(1), with(3));
    }
}
