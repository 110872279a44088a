//! Lemmas 4 to 6 and Theorem 2: every constant as a number, beside what sampled contexts show.

mod claims;
mod show;

pub use claims::STUDY;

use ictd::context::ContextStatistics;
use ictd::kernel::Attention;
use ictd::matrix::Matrix;
use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::statistics::fit::{self, Slope};
use ictd::statistics::largest;
use ictd::task::FiniteTask;
use ictd::theory::{Constants, Stability};
use serde::Serialize;

use super::{Tasks, apart, layers, limit, population, softmax};
use crate::Progress;
use crate::error::{LabError, check_range};
use crate::memory::{self, DOUBLE};
use crate::studies::in_parallel;
use claims::failed_premises;

/// Depths at which Theorem 2 is compared.
const LAYERS: [usize; 9] = [0, 1, 2, 5, 10, 20, 50, 100, 200];
/// The deepest network of the sweeps.
const DEEPEST: usize = 200;
/// Context lengths of the sweeps.
const SWEEP: [usize; 6] = [100, 300, 1000, 3000, 10_000, 30_000];
/// Contexts per length of the sweeps, at most.
const SWEEP_CONTEXTS: u64 = 200;
/// Longest context that is sampled.
const MAX_LENGTH: f64 = 1e8;
/// Most states: contexts are kept as counts of transitions between all pairs.
const MAX_STATES: usize = 200;

/// What to sample.
#[derive(Clone, Debug, Serialize)]
pub struct BoundConfig {
    /// Tasks.
    pub family: Tasks,
    /// Which task.
    pub index: u64,
    /// Context lengths n; with `at_threshold` the smallest n at which the premises hold is added.
    pub lengths: Vec<usize>,
    /// Also sample at the threshold of the contraction lemma, if it can be sampled.
    pub at_threshold: bool,
    /// Contexts per length.
    pub contexts: u64,
    /// Confidence δ.
    pub delta: f64,
}

impl BoundConfig {
    /// The first task of a family at δ = 0.1, without lengths but those of the sweep.
    pub fn new(family: Tasks, contexts: u64) -> Self {
        Self { family, index: 0, lengths: Vec::new(), at_threshold: false, contexts, delta: 0.1 }
    }

    /// Three settings: one in which the premises hold at lengths that can be sampled, one in which only
    /// the assumption does, and the paper's.
    pub fn defaults(seed: u64, contexts: u64) -> Vec<Self> {
        let lengths = vec![1000, 30_000];
        vec![
            Self { lengths: vec![1000], at_threshold: true, ..Self::new(Tasks::fastest(seed), contexts) },
            Self { lengths: lengths.clone(), ..Self::new(Tasks::certified(seed), contexts) },
            Self { lengths, ..Self::new(Tasks::paper(seed), contexts) },
        ]
    }

    /// The settings asked for: one where tasks, an index or lengths are given, else the three that are compared.
    pub fn settings(
        tasks: Option<Tasks>,
        index: Option<u64>,
        lengths: Option<Vec<usize>>,
        contexts: u64,
        delta: f64,
        seed: u64,
    ) -> Vec<Self> {
        if tasks.is_none() && index.is_none() && lengths.is_none() {
            let all = Self::defaults(seed, contexts);
            return all.into_iter().map(|setting| Self { delta, ..setting }).collect();
        }
        vec![Self {
            index: index.unwrap_or(0),
            lengths: lengths.unwrap_or_else(|| vec![1000, 30_000]),
            at_threshold: true,
            delta,
            ..Self::new(tasks.unwrap_or_else(|| Tasks::certified(seed)), contexts)
        }]
    }

    /// Bytes: what all contexts of a length show, and on every thread a context and its layers.
    fn memory(&self) -> f64 {
        let [m, d] = [self.family.num_states(), self.family.feature_dim()].map(|x| x as f64);
        let sample = DOUBLE * (2 * DEEPEST + LAYERS.len()) as f64 + 300.0;
        // Scores of features are a matrix of their number squared, and its product with the features.
        let thread = DOUBLE * (m * ((DEEPEST as f64) + 12.0 * m + 4.0 * d) + 2.0 * d * d);
        let constants = DOUBLE * m * (40.0 * m + 2.0 * d);
        self.contexts as f64 * sample + memory::threads(self.contexts as f64) * thread + constants
    }

    /// Refuses what cannot be sampled.
    pub fn check(&self) -> Result<(), LabError> {
        if !(self.delta > 0.0 && self.delta < 1.0) {
            return Err(LabError::value("delta", self.delta, "0 < delta < 1"));
        }
        check_range("contexts", self.contexts, 2..=1_000_000)?;
        check_range("states", self.family.num_states(), 1..=MAX_STATES)?;
        self.lengths.iter().try_for_each(|&n| check_range("lengths", n, 1..=MAX_LENGTH as usize))?;
        memory::admit(self.memory(), "--contexts, --states or --features")?;
        // Last, as it may draw a task.
        self.family.check()
    }
}

/// A bound beside what was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    statement: String,
    n: usize,
    layers: Option<usize>,
    /// The right-hand side; absent where the statement needs Assumption 5.1 and it fails.
    bound: Option<f64>,
    /// The largest left-hand side over the contexts; absent, as their mean, where one of them is no number.
    measured_max: Option<f64>,
    measured_mean: Option<f64>,
    contexts: u64,
    /// Contexts in which the statement held; absent where it cannot be tested, because a side of it is no number.
    covered: Option<u64>,
    /// The share that it promises, 1 - δ or 1 - δ/2.
    promised: f64,
    /// Whether every premise holds; if not, the statement promises nothing.
    premises: bool,
    /// The bound says no more than what is known without it.
    vacuous: bool,
}

/// What was found for a task.
#[derive(Clone, Debug, Serialize)]
pub struct BoundReport {
    /// What its files are called.
    #[serde(skip)]
    name: String,
    pub(super) config: BoundConfig,
    pub(super) describe: String,
    constants: ConstantsJson,
    /// Premises that fail, in words; empty when all hold at the largest n.
    failed_premises: Vec<String>,
    /// Statements beside measurements.
    pub comparisons: Vec<Comparison>,
    /// Mean error by depth at the lengths of the sweep.
    pub(super) sweep: Vec<SweepPoint>,
    /// Slope of log ‖v_L - v_∞‖∞ against L, what depth takes away of the error at the longest context.
    pub(super) decay: Option<Slope>,
    /// log of the spectral radius in the population; absent where it could not be found.
    pub(super) predicted_decay: Option<f64>,
    /// log(1 - C), the paper's rate.
    pub(super) paper_decay: Option<f64>,
    /// Slope of log floor against log n: -1/2 for 1/√n.
    pub(super) floor: Option<Slope>,
}

#[derive(Clone, Debug, Serialize)]
struct ConstantsJson {
    #[serde(flatten)]
    all: Constants,
    /// The smallest n at which contraction is promised.
    contraction_threshold: Option<f64>,
}

/// The mean error over contexts at a length and a depth.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SweepPoint {
    pub(super) n: usize,
    /// Depth L; `None` for infinite depth.
    pub(super) layers: Option<usize>,
    /// Mean over contexts of ‖v_L - v_π‖∞.
    pub(super) error: f64,
    /// The part of it that depth takes away: mean over contexts of ‖v_L - v_∞‖∞, where every context has a limit.
    transient: Option<f64>,
}

/// What one context shows.
struct Sample {
    concentration: f64,
    norm: f64,
    bias: f64,
    /// ‖v_L - v_π‖∞ at L = 0, …, [`DEEPEST`].
    errors: Vec<f64>,
    /// The largest |r + γPv_L - v_L| over states at [`LAYERS`].
    residuals: Vec<f64>,
    /// The error at infinite depth and ‖v_L - v_∞‖∞ at L = 0, …, [`DEEPEST`]; `None` when a state was not visited.
    limit: Option<(f64, Vec<f64>)>,
}

struct Setting {
    task: FiniteTask,
    attention: Attention,
    population: Matrix,
    constants: Constants,
    seed: u64,
}

/// What is found for every setting, each under a name of its own.
pub fn run_all(settings: &[BoundConfig], progress: &Progress) -> Result<Vec<BoundReport>, LabError> {
    settings.iter().try_for_each(BoundConfig::check)?;
    let named =
        |(k, config): (usize, &BoundConfig)| Ok(run(config, progress)?.named(&format!("bound{}", k + 1)));
    settings.iter().enumerate().map(named).collect()
}

/// Samples contexts and compares.
pub fn run(config: &BoundConfig, progress: &Progress) -> Result<BoundReport, LabError> {
    config.check()?;
    let task = config.family.task(config.index)?;
    progress.begin("bound: constants", "", 0)?;
    let operator = population(&task)?;
    let stability = Stability::of(&operator)?;
    let constants = Constants::of(&task, &stability)?;
    let setting = Setting {
        task,
        attention: softmax()?,
        population: operator.predecessor_matrix(),
        constants,
        seed: config.family.seed,
    };

    let threshold = constants.contraction_threshold(config.delta);
    let mut lengths = config.lengths.clone();
    let sampled_threshold = threshold.filter(|n| config.at_threshold && *n <= MAX_LENGTH);
    lengths.extend(sampled_threshold.map(|n| n.ceil() as usize));
    lengths.sort_unstable();
    lengths.dedup();
    let in_sweep = config.contexts.min(SWEEP_CONTEXTS);
    let sampled = lengths.iter().map(|&n| n as u64 * config.contexts);
    let total = sampled.chain(SWEEP.map(|n| n as u64 * in_sweep)).sum();
    progress.begin(format!("bound: {}", config.family.describe()), "transitions", total)?;
    let mut comparisons = Vec::new();
    for &n in &lengths {
        comparisons.extend(setting.compare(n, config, progress)?);
    }
    let mut sweep = Vec::new();
    for n in SWEEP {
        sweep.extend(setting.sweep(n, in_sweep, progress)?);
    }
    Ok(BoundReport {
        name: "bound".into(),
        describe: config.family.describe(),
        failed_premises: failed_premises(&constants, threshold, lengths.last().copied().unwrap_or(0)),
        constants: ConstantsJson { all: constants, contraction_threshold: threshold },
        decay: decay(&sweep),
        predicted_decay: stability
            .spectrum
            .map(|spectrum| spectrum.spectral_radius(1.0).ln())
            .filter(|decay| decay.is_finite()),
        paper_decay: (constants.margin > 0.0).then(|| (1.0 - constants.margin).ln()),
        floor: floor(&sweep),
        config: config.clone(),
        comparisons,
        sweep,
    })
}

impl Setting {
    /// The counts of transitions of a context of n transitions.
    fn counts(&self, n: usize, index: u64) -> Matrix {
        let mrp = self.task.mrp();
        let m = mrp.num_states();
        let mut stream = Stream::new(self.seed, Purpose::Trajectory, index);
        let mut state = mrp.sample_states(0, &mut stream)[0];
        let mut counts = vec![0u64; m * m];
        for _ in 0..n {
            let next = mrp.transitions().sample(state, &mut stream);
            counts[state * m + next] += 1;
            state = next;
        }
        Matrix::from_fn(m, m, |s, t| counts[s * m + t] as f64)
    }

    fn sample(&self, n: usize, index: u64) -> Result<Sample, LabError> {
        let (task, gamma) = (&self.task, self.task.mrp().gamma());
        let statistics =
            ContextStatistics::counted(task.features(), task.mrp().rewards(), &self.counts(n, index));
        let operator = StateOperator::of(statistics, &self.attention, gamma)?;
        let distance = |v: &[f64]| apart(v, task.values());
        let values: Vec<Vec<f64>> = layers(&operator, 1.0).take(DEEPEST + 1).collect();
        if values.iter().flatten().any(|v| !v.is_finite()) {
            return Err(LabError::diverged("values overflow within 200 layers: scale the rewards down"));
        }
        let transients = |limit: &[f64]| values.iter().map(|v| apart(v, limit)).collect();
        Ok(Sample {
            concentration: (&operator.predecessor_matrix() - &self.population).norm_inf(),
            norm: operator.jacobian_norm(1.0),
            bias: distance(&operator.apply(1.0, task.values())),
            errors: values.iter().map(|v| distance(v)).collect(),
            residuals: LAYERS.map(|l| apart(&task.mrp().bellman(&values[l]), &values[l])).to_vec(),
            limit: limit(&operator).map(|limit| (distance(&limit), transients(&limit))),
        })
    }

    fn samples(&self, n: usize, contexts: u64, progress: &Progress) -> Result<Vec<Sample>, LabError> {
        in_parallel(0..contexts, |index| {
            let sample = self.sample(n, index)?;
            progress.step(n as u64).map(|()| sample)
        })
    }

    fn compare(
        &self,
        n: usize,
        config: &BoundConfig,
        progress: &Progress,
    ) -> Result<Vec<Comparison>, LabError> {
        let samples = self.samples(n, config.contexts, progress)?;
        let (c, delta, length) = (&self.constants, config.delta, n as f64);
        let assumption = c.margin > 0.0;
        let speaks = assumption && c.contraction_threshold(delta).is_some_and(|t| length >= t);
        // A bound counts as vacuous from the `trivial` one on, which holds without it.
        let compare = |statement: &str, [bound, trivial]: [f64; 2], premises, of: &dyn Fn(&Sample) -> f64| {
            let measured: Vec<f64> = samples.iter().map(of).collect();
            let number = |x: f64| x.is_finite().then_some(x);
            let measured_max = number(largest(measured.iter().copied()));
            let testable = measured_max.is_some() && !bound.is_nan();
            Comparison {
                statement: statement.into(),
                n,
                layers: None,
                bound: bound.is_finite().then_some(bound),
                measured_max,
                measured_mean: number(measured.iter().sum::<f64>() / measured.len() as f64),
                contexts: config.contexts,
                covered: testable.then(|| measured.iter().filter(|x| **x <= bound).count() as u64),
                promised: 1.0 - delta,
                premises,
                vacuous: !(bound < trivial),
            }
        };
        let likelier = |comparison| Comparison { promised: 1.0 - 0.5 * delta, ..comparison };
        let contraction = if assumption { 1.0 - c.margin } else { f64::INFINITY };
        let bias = [c.bias(length, delta), 2.0 * c.gamma * c.value_bound];
        // Two stochastic matrices are at most 2 apart; I - M + γP has norm at most 2 + γ.
        let concentration = [c.concentration(length, delta), 2.0];
        let mut found = vec![
            compare("Lemma 4, ‖M̂ - M‖", concentration, true, &|s| s.concentration),
            likelier(compare("Lemma 5, ‖J‖", [contraction, 2.0 + c.gamma], speaks, &|s| s.norm)),
            likelier(compare("Lemma 6, bias", bias, true, &|s| s.bias)),
        ];
        // Answering 0 has error ‖v_π‖: a larger bound is of no use. Lemma 7 is about the expected TD error at theta_*, on the
        // same prompt as in its proof; 0 has at most (1+γ)‖v_π‖.
        let by_depth: [(&str, f64, fn(&Sample, usize) -> f64); 2] = [
            ("Theorem 2, ‖v_L - v‖", 1.0, |s, k| s.errors[LAYERS[k]]),
            ("Lemma 7, E[δ_L]", 1.0 + c.gamma, |s, k| s.residuals[k]),
        ];
        for (statement, factor, of) in by_depth {
            found.extend(LAYERS.into_iter().enumerate().map(|(k, layers)| {
                let bound = factor * c.theorem_2(layers as f64, length, delta);
                let trivial = factor * c.value_bound * (1.0 + 1e-12);
                let comparison = compare(statement, [bound, trivial], speaks, &|s| of(s, k));
                Comparison { layers: Some(layers), ..comparison }
            }));
        }
        Ok(found)
    }

    fn sweep(&self, n: usize, contexts: u64, progress: &Progress) -> Result<Vec<SweepPoint>, LabError> {
        let samples = self.samples(n, contexts, progress)?;
        let mean = |x: Vec<f64>| x.iter().sum::<f64>() / x.len() as f64;
        let limits: Vec<&(f64, Vec<f64>)> = samples.iter().filter_map(|s| s.limit.as_ref()).collect();
        // Contexts that miss a state have no limit on it; a mean over the others would flatter.
        let all = limits.len() == samples.len();
        let mut points: Vec<SweepPoint> = (0..=DEEPEST)
            .map(|layers| SweepPoint {
                n,
                layers: Some(layers),
                error: mean(samples.iter().map(|s| s.errors[layers]).collect()),
                transient: all.then(|| mean(limits.iter().map(|l| l.1[layers]).collect())),
            })
            .collect();
        if all {
            let error = mean(limits.iter().map(|l| l.0).collect());
            points.push(SweepPoint { n, layers: None, error, transient: None });
        }
        Ok(points)
    }
}

/// The slope of what depth takes away, ‖v_L - v_∞‖∞, at the longest context: from depth 3 on, where fast modes have died
/// out, and far above rounding. The error itself is this and the floor, which would bend the line.
fn decay(sweep: &[SweepPoint]) -> Option<Slope> {
    let longest = sweep.iter().filter(|p| p.n == SWEEP[SWEEP.len() - 1]);
    let seen = longest.filter_map(|p| Some((p.layers?, p.transient?)));
    let seen = seen.filter(|&(layers, transient)| layers >= 3 && transient > 1e-10);
    fit::line(&seen.map(|(layers, transient)| (layers as f64, transient.ln())).collect::<Vec<_>>())
}

/// What depth leaves, over the length.
pub(super) fn floors(sweep: &[SweepPoint]) -> Vec<(f64, f64)> {
    sweep.iter().filter(|p| p.layers.is_none()).map(|p| (p.n as f64, p.error)).collect()
}

/// Its slope.
fn floor(sweep: &[SweepPoint]) -> Option<Slope> {
    let points = floors(sweep);
    // Errors of rounding have no rate.
    if points.iter().any(|p| p.1 < 1e-12) { None } else { fit::power(&points) }
}
