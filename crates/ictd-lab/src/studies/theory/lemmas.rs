//! The lemmas behind Theorem 3: the largest measured/bound ratios over random inputs.

use ictd::kernel::{Attention, KernelName};
use ictd::matrix::Matrix;
use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::theory::lemmas::{Ratio, kernel_derivative, softmax_lipschitz, softmax_lipschitz_sharp};
use ictd::theory::{Constants, LoopedParams, Stability, StatePass};
use serde::Serialize;

use super::TaskFamily;
use crate::LabError;
use crate::files::OutputDir;

/// Depth at which gradients are measured.
const LAYERS: usize = 30;
/// Context length at which kernels and gradients are measured.
const LENGTH: usize = 200;
/// Tasks at most.
const TASKS: u64 = 100;
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
    for family in [TaskFamily::certified(seed), TaskFamily::paper(seed)] {
        let (kernel, gradient, holds) = on_tasks(&family, trials.min(TASKS))?;
        let describe = family.describe();
        rows.push(LemmaRow { trials: trials.min(TASKS), ..row("kernel bound", &describe, kernel, "") });
        let premises = if holds { "n below the contraction threshold" } else { "Assumption 5.1 fails" };
        if let Some(gradient) = gradient {
            rows.push(LemmaRow {
                trials: trials.min(TASKS),
                ..row("gradient bound", &describe, gradient, premises)
            });
        }
    }
    Ok(rows)
}

fn on_tasks(family: &TaskFamily, trials: u64) -> Result<(Ratio, Option<Ratio>, bool), LabError> {
    let attention = Attention::new(KernelName::Softmax.at(1.0)?, 0.0)?;
    let none = Ratio { measured: 0.0, bound: 1.0 };
    let (mut kernel, mut gradient, mut holds) = (none, Some(none), true);
    let mut pass = StatePass::default();
    for index in 0..trials {
        let task = family.task(index)?;
        let d = task.features().num_cols();
        let margin = Stability::of(&StateOperator::population(&task, &attention)?)?.margin;
        let constants = Constants::of(&task, margin)?;
        let states =
            task.mrp().sample_states(LENGTH, &mut Stream::new(family.seed, Purpose::Trajectory, index));
        let rows =
            |states: &[usize]| Matrix::from_fn(states.len(), d, |i, a| task.features()[(states[i], a)]);
        let measured = kernel_derivative(&rows(&states[..LENGTH]), &rows(&states));
        kernel = kernel.worse(Ratio { measured, bound: constants.kernel_bound(d) });
        holds &= margin > 0.0;
        if margin > 0.0 {
            let theta = LoopedParams::theta_star(d);
            let query = states[LENGTH];
            let mut numbers = vec![0.0; theta.num_free()];
            pass.load(task.mrp().num_states(), &states);
            pass.forward(&theta, task.features(), task.mrp().rewards(), family.gamma, LAYERS, query);
            pass.backward(&theta, task.features(), task.mrp().rewards(), family.gamma, query, &mut numbers);
            let measured = numbers.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            let bound = constants.gradient_bound(d, LENGTH as f64, DELTA);
            gradient = gradient.map(|g| g.worse(Ratio { measured, bound }));
        } else {
            // Without the assumption there is no bound to compare with.
            gradient = None;
        }
    }
    Ok((kernel, gradient, holds))
}

/// Writes the table.
pub fn write(rows: &[LemmaRow], out: &OutputDir) -> Result<(), LabError> {
    out.csv("lemmas", rows)
}
