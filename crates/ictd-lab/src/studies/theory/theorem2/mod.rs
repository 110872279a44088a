//! Lemmas 4 to 6 and Theorem 2: every constant as a number, beside what sampled contexts show.

mod claims;
mod show;
mod slopes;

pub use claims::STUDY;

use ictd::context::ContextStatistics;
use ictd::kernel::{Attention, KernelName};
use ictd::matrix::Matrix;
use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::statistics::fit::Slope;
use ictd::task::FiniteTask;
use ictd::theory::{Constants, Stability};
use rayon::prelude::*;
use serde::Serialize;

use super::Tasks;
use crate::error::{LabError, check_range};
use claims::failed_premises;
use slopes::{decay, floor};

/// Depths at which Theorem 2 is compared.
const LAYERS: [usize; 9] = [0, 1, 2, 5, 10, 20, 50, 100, 200];
/// The deepest network of the sweeps.
const DEEPEST: usize = 200;
/// Context lengths of the sweeps.
const SWEEP: [usize; 6] = [100, 300, 1000, 3000, 10_000, 30_000];
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
    /// Three settings: one in which the premises hold at lengths that can be sampled, one in which only
    /// the assumption does, and the paper's.
    pub fn defaults(seed: u64, contexts: u64) -> Vec<Self> {
        let setting = |family, lengths: &[usize], at_threshold| Self {
            family,
            index: 0,
            lengths: lengths.to_vec(),
            at_threshold,
            contexts,
            delta: 0.1,
        };
        vec![
            setting(Tasks::fastest(seed), &[1000], true),
            setting(Tasks::certified(seed), &[1000, 30_000], false),
            setting(Tasks::paper(seed), &[1000, 30_000], false),
        ]
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
    /// The largest left-hand side over the contexts.
    measured_max: f64,
    measured_mean: f64,
    contexts: u64,
    /// Contexts in which the statement held.
    covered: u64,
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
    pub config: BoundConfig,
    describe: String,
    /// |S|, μ_min, λ_r and so on.
    pub constants: ConstantsJson,
    /// Premises that fail, in words; empty when all hold at the largest n.
    pub failed_premises: Vec<String>,
    pub comparisons: Vec<Comparison>,
    /// Mean error by depth at the lengths of the sweep.
    pub sweep: Vec<SweepPoint>,
    /// Slope of log ‖v_L - v_∞‖∞ against L, what depth takes away of the error at the longest context.
    pub decay: Option<Slope>,
    /// log of the spectral radius in the population.
    pub predicted_decay: f64,
    /// log(1 - C), the paper's rate.
    pub paper_decay: Option<f64>,
    /// Slope of log floor against log n: -1/2 for 1/√n.
    pub floor: Option<Slope>,
}

/// The constants, as written to JSON.
#[derive(Clone, Debug, Serialize)]
pub struct ConstantsJson {
    states: f64,
    gamma: f64,
    mu_min: f64,
    lambda_r: f64,
    pair_mu_min: f64,
    pair_lambda_r: f64,
    feature_bound: f64,
    reward_bound: f64,
    value_bound: f64,
    margin: f64,
    /// The smallest n at which contraction is promised.
    contraction_threshold: Option<f64>,
}

/// The mean error over contexts at a length and a depth.
#[derive(Clone, Debug, Serialize)]
pub struct SweepPoint {
    pub n: usize,
    /// Depth L; `None` for infinite depth.
    pub layers: Option<usize>,
    /// Mean over contexts of ‖v_L - v_π‖∞.
    pub error: f64,
    /// The part of it that depth takes away: mean over contexts of ‖v_L - v_∞‖∞, where every context has a limit.
    pub transient: Option<f64>,
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

/// Samples contexts and compares.
pub fn run(config: &BoundConfig) -> Result<BoundReport, LabError> {
    config.family.check()?;
    if !(config.delta > 0.0 && config.delta < 1.0) {
        return Err(LabError::value("delta", config.delta, "0 < delta < 1"));
    }
    check_range("contexts", config.contexts, 2..=1_000_000)?;
    check_range("states", config.family.num_states(), 1..=MAX_STATES)?;
    config.lengths.iter().try_for_each(|&n| check_range("lengths", n, 1..=MAX_LENGTH as usize))?;
    let task = config.family.task(config.index)?;
    let attention = Attention::new(KernelName::Softmax.at(1.0)?, 0.0)?;
    let operator = StateOperator::population(&task, &attention)?;
    let stability = Stability::of(&operator)?;
    let constants = Constants::of(&task, stability.margin)?;
    let population = operator.predecessor_matrix();
    let setting = Setting { task, attention, population, constants, seed: config.family.seed };

    let threshold = constants.contraction_threshold(config.delta);
    let mut lengths = config.lengths.clone();
    let sampled_threshold = threshold.filter(|n| config.at_threshold && *n <= MAX_LENGTH);
    lengths.extend(sampled_threshold.map(|n| n.ceil() as usize));
    lengths.sort_unstable();
    lengths.dedup();
    let mut comparisons = Vec::new();
    for &n in &lengths {
        comparisons.extend(setting.compare(n, config)?);
    }
    let mut sweep = Vec::new();
    for n in SWEEP {
        sweep.extend(setting.sweep(n, config.contexts.min(200))?);
    }
    let predicted_decay = stability.spectrum.spectral_radius(1.0).ln();
    Ok(BoundReport {
        name: "bound".into(),
        describe: config.family.describe(),
        failed_premises: failed_premises(&constants, threshold, lengths.last().copied().unwrap_or(0)),
        constants: ConstantsJson {
            states: constants.num_states,
            gamma: constants.gamma,
            mu_min: constants.mu_min,
            lambda_r: constants.lambda_r,
            pair_mu_min: constants.pair_mu_min,
            pair_lambda_r: constants.pair_lambda_r,
            feature_bound: constants.feature_bound,
            reward_bound: constants.reward_bound,
            value_bound: constants.value_bound,
            margin: constants.margin,
            contraction_threshold: threshold,
        },
        decay: decay(&sweep),
        predicted_decay,
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
        let visited = statistics.visits().iter().all(|&c| c > 0.0);
        let operator = StateOperator::of(statistics, &self.attention, gamma)?;
        let empirical = operator.predecessor_matrix();
        let difference = Matrix::from_fn(empirical.num_rows(), empirical.num_rows(), |i, j| {
            empirical[(i, j)] - self.population[(i, j)]
        });
        let apart = |v: &[f64], w: &[f64]| v.iter().zip(w).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let distance = |v: &[f64]| apart(v, task.values());
        let limit = visited.then(|| operator.infinite_depth().ok()).flatten();
        let mut transients = Vec::new();
        let mut v = vec![0.0; task.values().len()];
        let mut errors = Vec::new();
        let mut residuals = Vec::new();
        for layer in 0..=DEEPEST {
            errors.push(distance(&v));
            transients.extend(limit.as_ref().map(|limit| apart(&v, limit)));
            if LAYERS.contains(&layer) {
                let gap =
                    task.mrp().bellman(&v).iter().zip(&v).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                residuals.push(gap);
            }
            v = operator.apply(1.0, &v);
        }
        Ok(Sample {
            concentration: difference.norm_inf(),
            norm: operator.jacobian_norm(1.0),
            bias: distance(&operator.apply(1.0, task.values())),
            errors,
            residuals,
            limit: limit.map(|limit| (distance(&limit), transients)),
        })
    }

    fn samples(&self, n: usize, contexts: u64) -> Result<Vec<Sample>, LabError> {
        (0..contexts).into_par_iter().map(|index| self.sample(n, index)).collect()
    }

    fn compare(&self, n: usize, config: &BoundConfig) -> Result<Vec<Comparison>, LabError> {
        let samples = self.samples(n, config.contexts)?;
        let (c, delta, length) = (&self.constants, config.delta, n as f64);
        let assumption = c.margin > 0.0;
        let long_enough = c.contraction_threshold(delta).is_some_and(|t| length >= t);
        let compare =
            |statement: &str, layers, bound: f64, promised, premises, trivial: f64, measured: Vec<f64>| {
                Comparison {
                    statement: statement.into(),
                    n,
                    layers,
                    bound: bound.is_finite().then_some(bound),
                    measured_max: measured.iter().copied().fold(0.0, f64::max),
                    measured_mean: measured.iter().sum::<f64>() / measured.len() as f64,
                    contexts: config.contexts,
                    covered: measured.iter().filter(|x| **x <= bound).count() as u64,
                    promised,
                    premises,
                    vacuous: !(bound < trivial),
                }
            };
        let of = |f: fn(&Sample) -> f64| samples.iter().map(f).collect::<Vec<f64>>();
        // Two stochastic matrices are at most 2 apart; I - M + γP has norm at most 2 + γ.
        let mut found = vec![
            compare(
                "Lemma 4, ‖M̂ - M‖",
                None,
                c.concentration(length, delta),
                1.0 - delta,
                true,
                2.0,
                of(|s| s.concentration),
            ),
            compare(
                "Lemma 5, ‖J‖",
                None,
                if assumption { 1.0 - c.margin } else { f64::INFINITY },
                1.0 - 0.5 * delta,
                assumption && long_enough,
                2.0 + c.gamma,
                of(|s| s.norm),
            ),
            compare(
                "Lemma 6, bias",
                None,
                c.bias(length, delta),
                1.0 - 0.5 * delta,
                true,
                2.0 * c.gamma * c.value_bound,
                of(|s| s.bias),
            ),
        ];
        for layers in LAYERS {
            let measured = samples.iter().map(|s| s.errors[layers]).collect();
            let bound = c.theorem_2(layers as f64, length, delta);
            // Answering 0 has error ‖v_π‖: a larger bound is of no use.
            found.push(compare(
                "Theorem 2, ‖v_L - v‖",
                Some(layers),
                bound,
                1.0 - delta,
                assumption && long_enough,
                c.value_bound * (1.0 + 1e-12),
                measured,
            ));
        }
        for (k, layers) in LAYERS.into_iter().enumerate() {
            // The expected TD error at theta_*, on the same prompt as in the lemma's proof; 0 has at most (1+γ)‖v_π‖.
            let factor = 1.0 + c.gamma;
            found.push(compare(
                "Lemma 7, E[δ_L]",
                Some(layers),
                factor * c.theorem_2(layers as f64, length, delta),
                1.0 - delta,
                assumption && long_enough,
                factor * c.value_bound * (1.0 + 1e-12),
                samples.iter().map(|s| s.residuals[k]).collect(),
            ));
        }
        Ok(found)
    }

    fn sweep(&self, n: usize, contexts: u64) -> Result<Vec<SweepPoint>, LabError> {
        let samples = self.samples(n, contexts)?;
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
