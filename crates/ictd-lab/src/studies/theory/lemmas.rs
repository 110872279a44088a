//! The lemmas behind Theorem 3: the largest measured/bound ratios over random inputs.

use ictd::context::ContextStatistics;
use ictd::kernel::{Attention, KernelName};
use ictd::matrix::Matrix;
use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::task::FiniteTask;
use ictd::theory::lemmas::{Ratio, kernel_derivative, softmax_lipschitz, softmax_lipschitz_sharp};
use ictd::theory::{Constants, Stability};
use ictd::transformer::{Adjoint, AdjointError, TransformerConfig};
use rayon::prelude::*;
use serde::Serialize;

use super::TaskFamily;
use crate::LabError;
use crate::files::OutputDir;

/// Depths at which gradients are measured.
const DEPTHS: [usize; 4] = [1, 5, 30, 200];
/// Context length at which kernels, and gradients below the threshold, are measured.
const LENGTH: usize = 200;
/// Tasks at most.
const TASKS: u64 = 100;
/// Contexts at most at the threshold, each of more than a million transitions.
const CONTEXTS: u64 = 16;
/// Confidence of the gradient bound.
const DELTA: f64 = 0.1;

/// The largest ratio found for a lemma.
#[derive(Clone, Debug, Serialize)]
pub struct LemmaRow {
    /// The lemma.
    pub lemma: &'static str,
    /// What it was measured on.
    pub on: String,
    /// Trials.
    pub trials: u64,
    /// The left-hand side of the trial with the largest ratio.
    pub measured: f64,
    /// Its right-hand side.
    pub bound: f64,
    /// The largest measured/bound.
    pub ratio: f64,
    /// Premises that fail, in words; a bound whose premises fail promises nothing.
    pub premises: &'static str,
}

/// Measures `trials` random inputs per lemma.
pub fn run(seed: u64, trials: u64) -> Result<Vec<LemmaRow>, LabError> {
    if !(1..=1_000_000).contains(&trials) {
        return Err(LabError::Invalid(format!("trials is {trials}, expected 1 to 1000000")));
    }
    let row = |lemma, on: &str, ratio: Ratio, premises| LemmaRow {
        lemma,
        on: on.to_owned(),
        trials,
        measured: ratio.measured,
        bound: ratio.bound,
        ratio: ratio.value(),
        premises,
    };
    let none = Ratio { measured: 0.0, bound: 1.0 };
    let (mut paper, mut sharp) = (none, none);
    let mut stream = Stream::new(seed, Purpose::Prompt, 0);
    for k in 0..trials {
        let n = 2 + stream.below(30) as usize;
        let (width, step) = ([0.1, 1.0, 10.0][k as usize % 3], [1e-3, 0.1, 1.0][k as usize / 3 % 3]);
        let g = stream.uniform_vec(n, -width, width);
        // Steps of one size and random sign: the worst case of the lemma.
        let h: Vec<f64> =
            g.iter().map(|x| if stream.uniform() < 0.5 { x + step } else { x - step }).collect();
        paper = paper.worse(softmax_lipschitz(&g, &h));
        sharp = sharp.worse(softmax_lipschitz_sharp(&g, &h));
    }
    let mut rows = vec![
        row("softmax columns, 2 max|G - G'|", "random columns", paper, ""),
        row("softmax columns, max|G - G'| (sharp)", "random columns", sharp, ""),
    ];
    let tasks = trials.min(TASKS);
    for family in [TaskFamily::certified(seed), TaskFamily::paper(seed)] {
        let kernel = kernel_bound(&family, tasks)?;
        rows.push(LemmaRow { trials: tasks, ..row("kernel bound", &family.describe(), kernel, "") });
    }
    // The family on which the threshold can be sampled, and one on which it cannot. On the paper's tasks Assumption 5.1
    // fails, and there is no bound.
    let contexts = trials.min(CONTEXTS);
    let fastest = TaskFamily::fastest(seed);
    if let Some(gradient) = gradient_bound(&fastest, None, contexts)? {
        rows.push(LemmaRow { trials: contexts, ..row("gradient bound", &fastest.describe(), gradient, "") });
    }
    let certified = TaskFamily::certified(seed);
    if let Some(gradient) = gradient_bound(&certified, Some(LENGTH), tasks)? {
        let premise = "n below the contraction threshold";
        rows.push(LemmaRow {
            trials: tasks,
            ..row("gradient bound", &certified.describe(), gradient, premise)
        });
    }
    Ok(rows)
}

fn attention() -> Result<Attention, LabError> {
    Ok(Attention::new(KernelName::Softmax.at(1.0)?, 0.0)?)
}

fn constants(task: &FiniteTask) -> Result<Constants, LabError> {
    let margin = Stability::of(&StateOperator::population(task, &attention()?)?)?.margin;
    Ok(Constants::of(task, margin)?)
}

/// The largest ratio of all; `None` when one is missing.
fn worst(ratios: Vec<Option<Ratio>>) -> Option<Ratio> {
    ratios.into_iter().reduce(|a, b| Some(a?.worse(b?))).flatten()
}

fn kernel_bound(family: &TaskFamily, tasks: u64) -> Result<Ratio, LabError> {
    let one = |index: u64| -> Result<Option<Ratio>, LabError> {
        let task = family.task(index)?;
        let d = task.features().num_cols();
        let states =
            task.mrp().sample_states(LENGTH, &mut Stream::new(family.seed, Purpose::Trajectory, index));
        let rows =
            |states: &[usize]| Matrix::from_fn(states.len(), d, |i, a| task.features()[(states[i], a)]);
        let measured = kernel_derivative(&rows(&states[..LENGTH]), &rows(&states));
        Ok(Some(Ratio { measured, bound: constants(&task)?.kernel_bound(d) }))
    };
    let found = (0..tasks).into_par_iter().map(one).collect::<Result<Vec<_>, LabError>>()?;
    worst(found).ok_or_else(|| LabError::Invalid("tasks: expected at least one".into()))
}

/// The largest gradient over all states, parameters and [`DEPTHS`], against the bound at a length, or at the smallest
/// length at which the lemma speaks. `None` where Assumption 5.1 fails.
fn gradient_bound(family: &TaskFamily, length: Option<usize>, tasks: u64) -> Result<Option<Ratio>, LabError> {
    let one = |index: u64| -> Result<Option<Ratio>, LabError> {
        let task = family.task(index)?;
        let (d, m) = (task.features().num_cols(), task.mrp().num_states());
        let constants = constants(&task)?;
        let Some(threshold) = constants.contraction_threshold(DELTA) else { return Ok(None) };
        let n = length.unwrap_or(threshold.ceil() as usize);
        let states = task.mrp().sample_states(n, &mut Stream::new(family.seed, Purpose::Trajectory, index));
        let deepest = DEPTHS[DEPTHS.len() - 1];
        let transformer = TransformerConfig::theta_star(attention()?, deepest, family.gamma).check()?;
        let mut counts = Matrix::zeros(m, m);
        states.windows(2).for_each(|pair| counts[(pair[0], pair[1])] += 1.0);
        let statistics = ContextStatistics::counted(task.features(), task.mrp().rewards(), &counts);
        let mut pass = Adjoint::default();
        let failed = |error: AdjointError| LabError::Failed(error.to_string());
        pass.forward(&transformer, &statistics).map_err(failed)?;
        let mut measured: f64 = 0.0;
        for query in (0..m).filter(|s| states.contains(s)) {
            let mut direction = vec![0.0; m];
            direction[query] = 1.0;
            for layers in DEPTHS {
                let gradient =
                    pass.backward(&transformer, &statistics, layers, &direction).map_err(failed)?;
                // Θ^Looped leaves V's entries on features at 0.
                let by_u = &gradient.value_rows.row(0)[d..];
                let numbers = by_u.iter().chain(gradient.score_blocks[0].as_slice());
                measured = numbers.fold(measured, |m, x| m.max(x.abs()));
            }
        }
        Ok(Some(Ratio { measured, bound: constants.gradient_bound(d, n as f64, DELTA) }))
    };
    Ok(worst((0..tasks).into_par_iter().map(one).collect::<Result<Vec<_>, LabError>>()?))
}

/// Writes the table.
pub fn write(rows: &[LemmaRow], out: &OutputDir) -> Result<(), LabError> {
    out.csv("lemmas", rows)
}
