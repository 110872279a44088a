//! The lemmas behind Theorem 3: the largest measured/bound ratios over random inputs.

use ictd::matrix::Matrix;
use ictd::random::{Purpose, Stream};
use ictd::statistics::largest;
use ictd::theory::lemmas::{Ratio, kernel_derivative, softmax_lipschitz, softmax_lipschitz_sharp};
use ictd::transformer::{Adjoint, TransformerConfig};
use serde::Serialize;

use super::{Tasks, constants, counted, on_tasks, softmax};
use crate::Progress;
use crate::error::{LabError, check_range};
use crate::files::OutputDir;
use crate::memory::{self, DOUBLE};
use crate::report::{Records, Report};
use crate::studies::{Claim, Plan, Section, Study, Verdict, verdict};

/// The lemmas behind Theorem 3.
pub const STUDY: Study = Study::new("lemmas", Section::Objective, &["lem8", "lem9", "lem10"], judge);

/// Depths at which gradients are measured.
const DEPTHS: [usize; 4] = [1, 5, 30, 200];
/// Context length at which kernels, and gradients below the threshold, are measured.
const LENGTH: usize = 200;
/// Tasks at most.
const TASKS: u64 = 100;
/// Contexts at most at the threshold, each of more than a million transitions.
const CONTEXTS: u64 = 16;
/// A few roundings of numbers of order 1 do not break a bound.
const ROUNDING: f64 = 1e-12;
/// Confidence of the gradient bound.
const DELTA: f64 = 0.1;

/// Why a bound was not tested.
const NOT_A_NUMBER: &str = "both sides overflow: not testable";

/// The largest ratio found for a lemma.
#[derive(Clone, Debug, Serialize)]
pub struct LemmaRow {
    lemma: &'static str,
    on: String,
    trials: u64,
    /// The left-hand side of the trial with the largest ratio; absent where it overflows.
    measured: Option<f64>,
    /// Its right-hand side; absent where it overflows.
    bound: Option<f64>,
    /// The largest measured/bound; absent where it is no number.
    ratio: Option<f64>,
    /// Premises that fail, in words, or why it cannot be tested; a bound whose premises fail promises nothing.
    premises: &'static str,
}

/// What was found; as JSON the rows.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Lemmas {
    /// Every lemma on everything it was measured on.
    rows: Vec<LemmaRow>,
}

/// Measures `trials` random inputs per lemma; those about tasks on `given` ones, else on families where they speak.
pub fn run(seed: u64, trials: u64, given: Option<&Tasks>, progress: &Progress) -> Result<Lemmas, LabError> {
    check_range("trials", trials, 1..=1_000_000)?;
    given.map_or(Ok(()), Tasks::check)?;
    progress.begin("lemmas: softmax columns", "trials", trials)?;
    let finite = |x: f64| Some(x).filter(|x| x.is_finite());
    let row = |lemma, on: &str, ratio: Ratio, premises: &'static str| LemmaRow {
        lemma,
        on: on.to_owned(),
        trials,
        measured: finite(ratio.measured),
        bound: finite(ratio.bound),
        ratio: finite(ratio.value()),
        premises: if ratio.value().is_nan() && premises.is_empty() { NOT_A_NUMBER } else { premises },
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
        progress.step(1)?;
    }
    let mut rows = vec![
        row("softmax columns, 2 max|G - G'|", "random columns", paper, ""),
        row("softmax columns, max|G - G'| (sharp)", "random columns", sharp, ""),
    ];
    let tasks = trials.min(TASKS);
    let families =
        given.map_or_else(|| vec![Tasks::certified(seed), Tasks::paper(seed)], |own| vec![own.clone()]);
    for family in families {
        family.check()?;
        let [m, d] = [family.num_states(), family.feature_dim()].map(|x| x as f64);
        let thread = DOUBLE * (20.0 * m * m + 4.0 * d * d + 4.0 * LENGTH as f64 * (d + m));
        memory::admit(memory::threads(tasks as f64) * thread, "--states or --features")?;
        progress.begin("lemmas: kernel bound", "tasks", tasks)?;
        let kernel = kernel_bound(&family, tasks, progress)?;
        rows.push(LemmaRow { trials: tasks, ..row("kernel bound", &family.describe(), kernel, "") });
    }
    // The family on which the threshold can be sampled, and one on which it cannot. On the paper's tasks Assumption 5.1
    // fails, and there is no bound.
    let measured = match given {
        Some(given) => vec![(given.clone(), Some(LENGTH), tasks)],
        None => vec![
            (Tasks::fastest(seed), None, trials.min(CONTEXTS)),
            (Tasks::certified(seed), Some(LENGTH), tasks),
        ],
    };
    for (family, length, trials) in measured {
        progress.begin("lemmas: gradient bound", "contexts", trials)?;
        if let Some((gradient, reached)) = gradient_bound(&family, length, trials, progress)? {
            let premises = if reached { "" } else { "n below the contraction threshold" };
            rows.push(LemmaRow { trials, ..row("gradient bound", &family.describe(), gradient, premises) });
        }
    }
    Ok(Lemmas { rows })
}

fn kernel_bound(family: &Tasks, tasks: u64, progress: &Progress) -> Result<Ratio, LabError> {
    let found = on_tasks(family, tasks, |index, task| {
        let d = task.features().num_cols();
        let states =
            task.mrp().sample_states(LENGTH, &mut Stream::new(family.seed, Purpose::Trajectory, index));
        let rows =
            |states: &[usize]| Matrix::from_fn(states.len(), d, |i, a| task.features()[(states[i], a)]);
        let measured = kernel_derivative(&rows(&states[..LENGTH]), &rows(&states));
        let bound = constants(task)?.kernel_bound();
        progress.step(1).map(|()| Ratio { measured, bound })
    })?;
    found.into_iter().reduce(Ratio::worse).ok_or_else(|| LabError::value("tasks", 0, "at least 1"))
}

/// The largest gradient over all states, parameters and [`DEPTHS`], against the bound at a length, or at the smallest
/// length at which the lemma speaks, and whether the length is that long for all tasks. `None` where Assumption 5.1
/// fails.
fn gradient_bound(
    family: &Tasks,
    length: Option<usize>,
    tasks: u64,
    progress: &Progress,
) -> Result<Option<(Ratio, bool)>, LabError> {
    let found = on_tasks(family, tasks, |index, task| {
        let (d, m) = (task.features().num_cols(), task.mrp().num_states());
        let constants = constants(task)?;
        let Some(threshold) = constants.contraction_threshold(DELTA) else { return Ok(None) };
        let n = length.unwrap_or(threshold.ceil() as usize);
        let states = task.mrp().sample_states(n, &mut Stream::new(family.seed, Purpose::Trajectory, index));
        let deepest = DEPTHS[DEPTHS.len() - 1];
        let transformer = TransformerConfig::theta_star(softmax()?, deepest, family.gamma()).check()?;
        let statistics = counted(task, &states);
        let mut pass = Adjoint::default();
        pass.forward(&transformer, &statistics)?;
        let mut measured: f64 = 0.0;
        for query in (0..m).filter(|s| states.contains(s)) {
            let mut direction = vec![0.0; m];
            direction[query] = 1.0;
            for layers in DEPTHS {
                let gradient = pass.backward(&transformer, &statistics, layers, &direction)?;
                // Θ^Looped leaves V's entries on features at 0.
                let by_u = &gradient.value_rows.row(0)[d..];
                let numbers = by_u.iter().chain(gradient.score_blocks[0].as_slice());
                measured = largest(numbers.map(|x| x.abs()).chain([measured]));
            }
        }
        let bound = constants.gradient_bound(n as f64, DELTA);
        progress.step(1)?;
        Ok(Some((Ratio { measured, bound }, n as f64 >= threshold)))
    })?;
    let found: Option<Vec<(Ratio, bool)>> = found.into_iter().collect();
    Ok(found.and_then(|all| all.into_iter().reduce(|(a, x), (b, y)| (a.worse(b), x && y))))
}

impl LemmaRow {
    /// Whether the bound is kept, up to rounding, where it promises something.
    fn holds(&self) -> bool {
        !self.premises.is_empty() || self.ratio.is_some_and(|ratio| ratio <= 1.0 + ROUNDING)
    }
}

impl Report for Lemmas {
    fn text(&self, width: usize) -> String {
        self.shown(&["lemmas"], width)
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![Records::of("lemmas", &self.rows)?])
    }

    fn holds(&self) -> bool {
        self.rows.iter().all(LemmaRow::holds)
    }
}

fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let found = run(plan.seed, plan.samples(5000, 500), None, &Progress::default())?;
    found.write(out)?;
    Ok(claims(&found.rows))
}

/// The claims that rest on the rows.
fn claims(rows: &[LemmaRow]) -> Vec<Claim> {
    let claim = |id, paper, says, lemma: &str| {
        let all = rows.iter().filter(|r| r.lemma.starts_with(lemma));
        // A bound whose premise fails promises nothing; that it is kept proves nothing.
        let (own, others): (Vec<&LemmaRow>, Vec<_>) = all.partition(|r| r.premises.is_empty());
        let worst = largest(own.iter().map(|r| r.ratio.unwrap_or(f64::INFINITY)));
        let trials: u64 = own.iter().map(|r| r.trials).sum();
        let mut measured = format!("the bound is at least {:.3e} times what is measured", 1.0 / worst);
        for LemmaRow { ratio, on, premises, .. } in others {
            let times = ratio.map_or_else(|| "unknown".into(), |ratio| format!("{:.1e} times", 1.0 / ratio));
            measured += &format!("; {times} on {on}, where a premise fails: {premises}");
        }
        let judged = if own.is_empty() { Verdict::NotTestable } else { verdict(worst <= 1.0 + ROUNDING) };
        let criterion = "where its premises hold, measured/bound is at most 1 for every random input";
        Claim::new(id, paper, says, criterion)
            .found(judged, worst, measured, format!("{trials} random inputs"))
            .with_slack(1.0 / worst)
            .shown(None, Some("lemmas.csv"))
    };
    let says = [
        "Softmax columns move by at most twice the largest change of a score.",
        "The kernel's derivative by a parameter is bounded.",
        "The gradient of the output is bounded at every depth.",
    ];
    vec![
        claim("lem8", "Lemma 8 (softmax columns)", says[0], "softmax columns, 2"),
        claim("lem9", "Lemma 9 (kernel bound)", says[1], "kernel bound"),
        claim("lem10", "Lemma 10 (gradient bound)", says[2], "gradient bound").in_chosen_setting(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A broken bound is seen, by the command and by its claim alone; where a premise fails nothing is promised.
    #[test]
    fn a_broken_bound_is_seen() {
        let mut found = run(3, 2, None, &Progress::default()).unwrap();
        let verdicts =
            |found: &Lemmas| claims(&found.rows).into_iter().map(|c| c.verdict).collect::<Vec<_>>();
        assert!(found.holds() && !verdicts(&found).contains(&Verdict::NotReproduced));
        let at = |found: &Lemmas, premises: bool| {
            let fits = |r: &LemmaRow| r.lemma == "gradient bound" && r.premises.is_empty() == premises;
            found.rows.iter().position(fits).unwrap()
        };
        let without = at(&found, false);
        found.rows[without].ratio = Some(2.0);
        assert!(found.holds() && verdicts(&found)[2] != Verdict::NotReproduced);
        let with = at(&found, true);
        for ratio in [Some(1.1), None] {
            found.rows[with].ratio = ratio;
            assert!(!found.holds());
            let verdicts = verdicts(&found);
            assert_eq!(verdicts[2], Verdict::NotReproduced);
            assert!(!verdicts[..2].contains(&Verdict::NotReproduced));
        }
        // Overflow on both sides is neither kept nor broken.
        found.rows[with].premises = NOT_A_NUMBER;
        assert!(found.holds() && verdicts(&found)[2] != Verdict::NotReproduced);
    }
}
