//! NEU: the pretraining objective at theta_*, at a checkpoint, at other points of Θ^Looped, over depth and context
//! length, and as a landscape.

mod claims;
mod controls;
pub(in crate::studies) mod inequality;
mod landscape;
mod show;

pub use claims::STUDY;
use controls::{Control, controls, controls_figure};
use landscape::{Landscape, landscape, landscape_work};
pub use show::{NeuComparison, NeuSweeps};
use show::{figure, same_prompt_figure};

use ictd::kernel::Attention;
use ictd::statistics::fit::{self, Slope};
use ictd::task::TaskError;
use ictd::theory::{Constants, Neu, NeuSampler, Theorem3};
use ictd::transformer::{AttentionParams, Block, Parameters};
use serde::Serialize;

use super::{Tasks, constants, on_tasks, softmax};
use crate::Progress;
use crate::error::{LabError, check_range};
use crate::memory::{self, DOUBLE};

/// Tasks that uniform constants are taken over.
const CONSTANT_TASKS: u64 = 200;

/// What to estimate.
#[derive(Clone, Debug, Serialize)]
pub struct NeuConfig {
    /// Tasks.
    pub family: Tasks,
    /// Context lengths of the sweep.
    pub lengths: Vec<usize>,
    /// Depths of the sweep.
    pub layers: Vec<usize>,
    /// Tasks per estimate, one trajectory each; see `samples_at`.
    pub samples: u64,
}

impl NeuConfig {
    /// The sweeps asked for: over the tasks that are given, else over those on which Assumption 5.1 holds and the paper's.
    pub fn settings(
        tasks: Option<Tasks>,
        lengths: Option<Vec<usize>>,
        layers: Option<Vec<usize>>,
        samples: u64,
        seed: u64,
    ) -> Vec<Self> {
        let families =
            tasks.map_or_else(|| vec![Tasks::certified(seed), Tasks::paper(seed)], |own| vec![own]);
        let config = |family| Self {
            family,
            lengths: lengths.clone().unwrap_or_else(|| vec![30, 100, 300, 1000, 3000]),
            layers: layers.clone().unwrap_or_else(|| vec![1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 40]),
            samples,
        };
        families.into_iter().map(config).collect()
    }

    /// Tasks per estimate at a length: short contexts cost less and scatter more, and get up to four times as many.
    fn samples_at(&self, n: usize) -> u64 {
        let longest = self.lengths.iter().copied().max().unwrap_or(n);
        self.samples.saturating_mul((longest / (10 * n.max(1))).clamp(1, 4) as u64)
    }

    /// Transitions that the sweep samples.
    fn work(&self) -> u64 {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        lengths.dedup();
        let at = |&n: &usize| self.samples_at(n).saturating_mul(n as u64);
        lengths.iter().map(at).fold(0, u64::saturating_add)
    }

    /// Refuses what cannot be estimated.
    pub fn check(&self) -> Result<(), LabError> {
        if self.lengths.is_empty() || self.layers.is_empty() {
            return Err(LabError::refused("lengths and layers", "expected at least one each"));
        }
        self.family.check()?;
        self.layers.iter().try_for_each(|&l| check_range("layers", l, 1..=10_000))?;
        // A half of the samples needs two for a standard error; contexts are kept while they are counted.
        self.lengths.iter().try_for_each(|&n| {
            check_range("n", n, 1..=10_000_000)?;
            check_range("samples", self.samples_at(n), 4..=4_000_000)?;
            memory::admit(self.memory(n), "--samples, --features, --states, --layers or --lengths")
        })
    }

    /// Bytes at a length: the updates of all samples at every depth, and on every thread a task, its trajectory and the layers
    /// on it, or the constants of a task.
    fn memory(&self, n: usize) -> f64 {
        let [m, d] = [self.family.num_states(), self.family.feature_dim()].map(|x| x as f64);
        let deepest = self.layers.iter().copied().max().unwrap_or(0) as f64;
        let (samples, entries) = (self.samples_at(n) as f64, 3.0 + d * d);
        let updates = samples * self.layers.len() as f64 * DOUBLE * (entries + 2.0) + samples * 3.0 * DOUBLE;
        let pass = DOUBLE * (2.0 * deepest * m + 4.0 * m * m + 8.0 * m * d + 4.0 * entries) + 8.0 * n as f64;
        let task = memory::task(self.family.num_states(), self.family.feature_dim());
        let constants = DOUBLE * 20.0 * m * m;
        (updates + memory::threads(samples) * (task.max(2.0 * DOUBLE * m * m + pass)))
            .max(memory::threads(CONSTANT_TASKS as f64) * constants)
    }
}

/// An estimate.
#[derive(Clone, Debug, Default, Serialize)]
struct NeuPoint {
    /// `theta_*`, another point in words, or the name of a file.
    theta: String,
    n: usize,
    layers: usize,
    /// J as the sum of absolute means, which shows its noise where it is 0.
    neu: f64,
    sem: f64,
    /// What J would show if it were 0.
    noise: f64,
    /// J without the noise, from one half of the samples along the signs of the other.
    split: f64,
    /// An upper bound of its standard error.
    split_sem: f64,
    /// J with the successor's value read off the same prompt, as the proof does.
    same_prompt: f64,
    /// The mean of |E\[δ\]|.
    mean_error: f64,
    /// The mean difference of E\[δ\] and its value on the same prompt.
    prompt_gap: f64,
    prompt_gap_sem: f64,
    /// Theorem 3's terms: depth, sampling, bad events.
    bound_depth: Option<f64>,
    bound_sampling: Option<f64>,
    bound_events: Option<f64>,
    samples: u64,
    /// Whether the point is in the fit of the slope against n, and in that against L.
    in_length_fit: bool,
    in_depth_fit: bool,
}

/// What was found on a family.
#[derive(Clone, Debug, Serialize)]
pub struct NeuReport {
    /// What its files are called.
    #[serde(skip)]
    name: String,
    config: NeuConfig,
    describe: String,
    points: Vec<NeuPoint>,
    /// Slope of log J against log n at the largest depth, over the points above three times their standard error.
    length_slope: Option<Slope>,
    /// Slope of log J against L at the largest length, from the largest J to three times the floor.
    depth_slope: Option<Slope>,
    /// The smallest margin of Assumption 5.1 over the first tasks.
    margin: f64,
    /// From which n on Theorem 3 speaks.
    threshold: Option<f64>,
    theorem: TheoremJson,
}

/// The ends of a sweep: the shortest context and the deepest network, the longest with the shallowest, the longest with
/// the deepest.
#[derive(Clone, Copy, Debug)]
struct Ends<'a> {
    short: &'a NeuPoint,
    shallow: &'a NeuPoint,
    last: &'a NeuPoint,
}

impl<'a> Ends<'a> {
    /// The ends of the points of one θ; `None` when a corner is missing.
    fn of(points: &'a [NeuPoint]) -> Option<Self> {
        let (short, long) = (points.iter().map(|p| p.n).min()?, points.iter().map(|p| p.n).max()?);
        let shallow = points.iter().map(|p| p.layers).min()?;
        let deep = points.iter().map(|p| p.layers).max()?;
        let at = |n, layers| points.iter().find(|p| p.n == n && p.layers == layers);
        Some(Self { short: at(short, deep)?, shallow: at(long, shallow)?, last: at(long, deep)? })
    }

    /// J at the longest over J at the shortest context, in the deepest network.
    fn ratio(&self) -> f64 {
        self.last.split / self.short.split
    }

    /// What Theorem 3's √(log n / n) falls by between these lengths.
    fn rate(&self) -> f64 {
        let term = |n: usize| ((n as f64).ln() / n as f64).sqrt();
        term(self.last.n) / term(self.short.n)
    }

    /// Whether J falls with the length by more than three standard errors and at least by the theorem's rate, and whether
    /// it falls with the depth by more than three standard errors.
    fn falls(&self) -> (bool, bool) {
        let beyond =
            |from: &NeuPoint| from.split - self.last.split > 3.0 * from.split_sem.hypot(self.last.split_sem);
        (beyond(self.short) && self.ratio() <= self.rate(), beyond(self.shallow))
    }
}

#[derive(Clone, Debug, Serialize)]
struct TheoremJson {
    /// C₂, the factor of depth and sampling.
    depth_factor: Option<f64>,
    /// C₃, the factor of bad events.
    context_factor: Option<f64>,
    constants_over_tasks: u64,
}

/// Estimates J at a length and several depths.
fn estimate(
    family: &Tasks,
    attention: Attention,
    params: &AttentionParams,
    n: usize,
    layers: &[usize],
    samples: u64,
    progress: &Progress,
) -> Result<Vec<Neu>, LabError> {
    let config = NeuConfig { family: family.clone(), lengths: vec![n], layers: layers.to_vec(), samples };
    config.check()?;
    let (found, d) = (params.feature_dim(), family.feature_dim());
    if found != d {
        let problem = format!("the parameters are for {found} features, the tasks have {d}");
        return Err(LabError::refused("params", problem));
    }
    let (depths, seed) = (config.layers, family.seed);
    progress.check()?;
    let task = |index| {
        // The samples of a length are many. Of those that are stopped nothing is said but that they were.
        progress.step(n as u64).map_err(|stopped| TaskError::Own(stopped.to_string()))?;
        family.task(index)
    };
    let found = NeuSampler { task, attention, context_len: n, depths, samples, seed }.estimate(params);
    progress.check()?;
    Ok(found?)
}

/// What was estimated; `None` where layers diverge.
fn unless_diverged<T>(found: Result<T, LabError>) -> Result<Option<T>, LabError> {
    match found {
        Err(LabError::Diverged { .. }) => Ok(None),
        found => found.map(Some),
    }
}

/// Parameters from a file that all layers share and whose scores see features only.
fn looped(parameters: &Parameters) -> Result<AttentionParams, LabError> {
    let Parameters::Tied(params) = parameters else {
        return Err(LabError::refused("params", "expected one V and A for all layers"));
    };
    if params.needs_tokens(Block::TemporalShift) {
        let problem = "expected scores that depend on features alone (masks full or looped) and a V that writes the memory rows only";
        return Err(LabError::refused("params", problem));
    }
    Ok(params.clone())
}

/// The sweep at theta_*.
fn run(config: &NeuConfig, progress: &Progress) -> Result<NeuReport, LabError> {
    config.check()?;
    let mut config = config.clone();
    for list in [&mut config.lengths, &mut config.layers] {
        list.sort_unstable();
        list.dedup();
    }
    let (longest, deepest) = (last(&config.lengths), last(&config.layers));
    let d = config.family.feature_dim();
    let uniform = uniform_constants(&config.family)?;
    let theorem = Theorem3::of(&uniform);
    let star = AttentionParams::theta_star(d);
    let mut points = Vec::new();
    for &n in &config.lengths {
        let found =
            estimate(&config.family, softmax()?, &star, n, &config.layers, config.samples_at(n), progress)?;
        points.extend(found.iter().map(|f| point("theta_*", n, f, theorem.as_ref())));
    }
    // Against n: what stands out of noise. Against L: from the depth with the largest J on, as far as the floor of the longest
    // context, at least three times what the deepest network leaves. Points say whether they are in.
    let long = || points.iter().filter(|p| p.n == longest);
    let peak = long().max_by(|a, b| a.split.total_cmp(&b.split)).map_or(0, |p| p.layers);
    let floor = long().find(|p| p.layers == deepest).map_or(0.0, |p| p.split);
    for p in &mut points {
        let seen = p.split > 3.0 * p.split_sem;
        p.in_length_fit = p.layers == deepest && seen;
        p.in_depth_fit = p.n == longest && p.layers >= peak && seen && p.split > 3.0 * floor;
    }
    let by_length = points.iter().filter(|p| p.in_length_fit).map(|p| (p.n as f64, p.split));
    let by_depth = points.iter().filter(|p| p.in_depth_fit).map(|p| (p.layers as f64, p.split.ln()));
    let [by_length, by_depth]: [Vec<_>; 2] = [by_length.collect(), by_depth.collect()];
    let (length_slope, depth_slope) = (fit::power(&by_length), fit::line(&by_depth));
    Ok(NeuReport {
        name: "neu".into(),
        describe: config.family.describe(),
        config,
        points,
        length_slope,
        depth_slope,
        margin: uniform.margin,
        threshold: theorem.map(|t| t.threshold()).filter(|n| n.is_finite()),
        theorem: TheoremJson {
            depth_factor: theorem.map(|t| t.depth_factor),
            context_factor: theorem.map(|t| t.context_factor),
            constants_over_tasks: CONSTANT_TASKS,
        },
    })
}

/// J at named parameters, beside no theorem.
fn points(
    family: &Tasks,
    attention: &Attention,
    (theta, params): (&str, &AttentionParams),
    n: usize,
    layers: &[usize],
    samples: u64,
    progress: &Progress,
) -> Result<Vec<NeuPoint>, LabError> {
    let found = estimate(family, attention.clone(), params, n, layers, samples, progress)?;
    Ok(found.iter().map(|f| point(theta, n, f, None)).collect())
}

/// A point of a table.
fn point(theta: &str, n: usize, found: &Neu, theorem: Option<&Theorem3>) -> NeuPoint {
    let layers = found.num_layers;
    let terms = theorem.map(|t| t.terms(layers as f64, n as f64)).filter(|t| t.iter().all(|x| x.is_finite()));
    let [bound_depth, bound_sampling, bound_events] = terms.map_or([None; 3], |t| t.map(Some));
    NeuPoint {
        theta: theta.to_owned(),
        n,
        layers,
        neu: found.norm,
        sem: found.norm_sem,
        noise: found.noise,
        split: found.split,
        split_sem: found.split_sem,
        same_prompt: found.norm_same_prompt,
        mean_error: found.error.mean,
        prompt_gap: found.prompt_gap.mean,
        prompt_gap_sem: found.prompt_gap.sem,
        bound_depth,
        bound_sampling,
        bound_events,
        samples: found.samples,
        ..NeuPoint::default()
    }
}

/// Constants that hold for the first tasks of a family.
fn uniform_constants(family: &Tasks) -> Result<Constants, LabError> {
    let all = on_tasks(family, CONSTANT_TASKS, |_, task| constants(task))?;
    all.into_iter().reduce(Constants::worse).ok_or_else(|| LabError::value("tasks", 0, "at least 1"))
}

/// The largest of a sorted list.
fn last(sorted: &[usize]) -> usize {
    sorted.last().copied().unwrap_or(0)
}

impl NeuReport {
    /// The first words of what the tasks are.
    fn kind(&self) -> &str {
        self.describe.split(", ").next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: usize, layers: usize, split: f64) -> NeuPoint {
        NeuPoint { n, layers, neu: split, split, split_sem: 0.01, samples: 4, ..NeuPoint::default() }
    }

    /// √(log n / n) falls to a quarter from 30 to 1000.
    #[test]
    fn what_stays_does_not_fall() {
        let falls = |short: f64, shallow: f64, last: f64| {
            let points = [at(30, 40, short), at(1000, 2, shallow), at(1000, 40, last)];
            Ends::of(&points).unwrap().falls()
        };
        assert_eq!(falls(1.0, 1.0, 0.1), (true, true));
        assert_eq!(falls(1.0, 1.0, 0.5), (false, true));
        assert_eq!(falls(1.0, 0.12, 0.1), (true, false));
        assert_eq!(falls(0.03, 1.0, 0.001), (false, true));
        assert_eq!(falls(1.0, 1.0, f64::NAN), (false, false));
        assert!(Ends::of(&[at(30, 40, 1.0), at(1000, 2, 1.0)]).is_none());
    }
}
