//! Figure 1: the error of in-context policy evaluation falls with the context length.

use ictd::kernel::{Attention, KernelName};
use ictd::random::{Purpose, Stream};
use ictd::statistics::{msve, spearman};
use ictd::task::{Family, Kind};
use ictd::transformer::{Block, Evaluator, Transformer, TransformerConfig};
use serde::Serialize;

use super::{Claim, Plan, Section, Study, Tasks, Verdict, in_parallel, mean_and_sem};
use crate::counted;
use crate::figure::{Axis, Chart, Grid, Scene, Series, Width, style::PALETTE};
use crate::files::OutputDir;
use crate::memory::{self, DOUBLE};
use crate::report::{Records, Report, wrapped};
use crate::{LabError, Progress};

/// Figure 1: the error falls with the context length.
pub const STUDY: Study = Study::new("fig1", Section::Evaluation, &["fig1"], judge);

/// What to measure. The defaults are our reading of Figure 1, and contexts longer than it shows.
#[derive(Clone, Debug, Serialize)]
pub struct MsveConfig {
    /// Tasks, with the seed of all draws.
    #[serde(flatten)]
    pub tasks: Tasks,
    /// Number of tasks.
    #[serde(rename = "tasks")]
    pub num_tasks: u64,
    /// Context lengths n that the verdict rests on.
    #[serde(rename = "lengths")]
    pub context_lens: Vec<usize>,
    /// Longer contexts, shown beside.
    #[serde(rename = "longer_lengths")]
    pub longer_lens: Vec<usize>,
    /// Depth L.
    #[serde(rename = "layers")]
    pub num_layers: usize,
    /// Name of the kernel.
    pub kernel: String,
    /// Temperature τ.
    pub temperature: f64,
    /// Step size α.
    pub step_size: f64,
}

impl Default for MsveConfig {
    fn default() -> Self {
        Self {
            tasks: Tasks::of_family(Family::of(Kind::Figure1), 0),
            num_tasks: 300,
            context_lens: (1..40).step_by(2).collect(),
            longer_lens: vec![60, 100, 200, 300, 500, 1000],
            num_layers: 15,
            kernel: "softmax".into(),
            temperature: 1.0,
            step_size: 1.0,
        }
    }
}

impl MsveConfig {
    /// With context lengths that are asked for, and none beside them.
    #[must_use]
    pub fn with_lengths(self, lengths: Option<Vec<usize>>) -> Self {
        match lengths {
            Some(context_lens) => Self { context_lens, longer_lens: Vec::new(), ..self },
            None => self,
        }
    }

    /// Bytes: the errors of all tasks, and on every thread a task, its longest context and the values of all layers.
    fn memory(&self, lens: &[usize]) -> f64 {
        let (m, d) = (self.tasks.typical_states(), self.tasks.feature_dim() as f64);
        let [layers, tasks] = [self.num_layers as f64, self.num_tasks as f64];
        let columns = lens.last().map_or(0, |&n| n) as f64 + 1.0 + m;
        let context = columns * (DOUBLE * d + 60.0);
        // Twice while they are gathered; the allocator keeps some of what was freed.
        let values = 2.5 * DOUBLE * (layers + 1.0) * m;
        // Seldom do all threads hold all parts of a task that is drawn.
        let drawn = 0.65 * memory::task(self.tasks.num_states(), self.tasks.feature_dim());
        let thread = drawn.max(4.0 * DOUBLE * m * m + context + values);
        tasks * (DOUBLE * lens.len() as f64 + 64.0) + memory::threads(tasks) * thread
    }
}

/// A point of Figure 1: mean over tasks of the mean square value error.
#[derive(Clone, Debug, Serialize)]
struct MsvePoint {
    #[serde(rename = "n")]
    context_len: usize,
    #[serde(rename = "msve")]
    mean: f64,
    sem: f64,
    /// Mean over tasks of (error of the predictor 0 - error), tasks paired: positive where the Transformer is better.
    gain: f64,
    gain_sem: f64,
    tasks: usize,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct MsveCurve {
    config: MsveConfig,
    points: Vec<MsvePoint>,
    /// Mean error of the predictor 0, which no context changes.
    zero: f64,
    zero_sem: f64,
    /// The shortest context from which on the Transformer is better than the predictor 0 by more than three
    /// standard errors, at every longer context too.
    beats_zero_from: Option<usize>,
    /// Mean over tasks of (error at the shortest context - error at the longest): tasks are paired.
    drop: f64,
    drop_sem: f64,
    rank_correlation: f64,
    /// Reproduced when the drop exceeds three standard errors and the rank correlation is ≤ -0.9;
    /// partly when only the drop is there.
    verdict: Verdict,
}

/// Runs the study: per task one trajectory, whose prefixes are the contexts, and every state a query.
pub fn run(config: &MsveConfig, progress: &Progress) -> Result<MsveCurve, LabError> {
    if config.num_tasks < 2 {
        return Err(LabError::value("tasks", config.num_tasks, "at least 2"));
    }
    let mut config = config.clone();
    let judged = config.context_lens.iter().copied().max().unwrap_or(0);
    config.longer_lens.retain(|n| *n > judged);
    for lens in [&mut config.context_lens, &mut config.longer_lens] {
        lens.sort_unstable();
        lens.dedup();
    }
    let lens: Vec<usize> = config.context_lens.iter().chain(&config.longer_lens).copied().collect();
    let longest = lens.last().copied().unwrap_or(0);
    if config.context_lens.len() < 2 || config.context_lens[0] == 0 || longest > 100_000 {
        return Err(LabError::refused("lengths", "expected at least two different ones from 1 to 100000"));
    }
    config.tasks.check()?;
    memory::admit(config.memory(&lens), "--tasks, --layers, --lengths or --states")?;
    let kernel: KernelName = config.kernel.parse()?;
    let attention = Attention::new(kernel.at(config.temperature)?, 0.0)?;
    let transformer = TransformerConfig {
        block: Block::DualHead,
        step_sizes: vec![config.step_size],
        ..TransformerConfig::theta_star(attention, config.num_layers, config.tasks.gamma())
    }
    .check()?;
    progress.begin("msve", "tasks", config.num_tasks)?;
    let errors = in_parallel(0..config.num_tasks, |task| {
        let errors = errors_of_task(&config.tasks, &transformer, &lens, &[config.num_layers], task)?;
        progress.step(1).map(|()| errors)
    })?;
    let statistic = |of: &dyn Fn(&TaskErrors) -> f64| mean_and_sem("tasks", errors.iter().map(of));
    let mut points = Vec::new();
    for (i, &context_len) in lens.iter().enumerate() {
        let (mean, sem) = statistic(&|e| e.found[i])?;
        let (gain, gain_sem) = statistic(&|e| e.zero - e.found[i])?;
        if !sem.is_finite() {
            return Err(LabError::diverged(format!(
                "the error at context length {context_len} overflows; lower the step size"
            )));
        }
        points.push(MsvePoint { context_len, mean, sem, gain, gain_sem, tasks: errors.len() });
    }
    let last = config.context_lens.len() - 1;
    let (drop, drop_sem) = statistic(&|e| e.found[0] - e.found[last])?;
    let (lens, means): (Vec<f64>, Vec<f64>) =
        points[..=last].iter().map(|p| (p.context_len as f64, p.mean)).unzip();
    let rank_correlation = spearman(&lens, &means);
    let (zero, zero_sem) = statistic(&|e| e.zero)?;
    let better = points.iter().rev().take_while(|p| p.gain > 3.0 * p.gain_sem);
    let beats_zero_from = better.last().map(|p| p.context_len);
    let verdict = Verdict::stepwise(drop > 3.0 * drop_sem, rank_correlation <= -0.9);
    Ok(MsveCurve {
        config,
        points,
        zero,
        zero_sem,
        beats_zero_from,
        drop,
        drop_sem,
        rank_correlation,
        verdict,
    })
}

/// The errors of a task.
pub(super) struct TaskErrors {
    /// By context length, and for each by depth.
    pub found: Vec<f64>,
    /// That of the predictor 0.
    zero: f64,
}

/// Mean square value errors on prefixes of one trajectory of a task, every state a query.
pub(super) fn errors_of_task(
    tasks: &Tasks,
    transformer: &Transformer,
    lens: &[usize],
    depths: &[usize],
    index: u64,
) -> Result<TaskErrors, LabError> {
    let task = tasks.draw(index)?;
    let longest = lens.last().copied().unwrap_or(0);
    let states = task.mrp().sample_states(longest, &mut Stream::new(tasks.seed, Purpose::Trajectory, index));
    let queries: Vec<usize> = (0..task.mrp().num_states()).collect();
    let error_of = |estimates: &[f64]| msve(estimates, task.values(), task.stationary_distribution());
    let (mut evaluator, mut found) = (Evaluator::default(), Vec::new());
    for &n in lens {
        let values = evaluator.evaluate(transformer, &task.context_of(&states[..=n], &queries))?;
        found.extend(depths.iter().map(|&layers| {
            error_of(&queries.iter().map(|s| values.value(layers, n + 1 + s)).collect::<Vec<_>>())
        }));
    }
    Ok(TaskErrors { found, zero: error_of(&vec![0.0; queries.len()]) })
}

impl MsveCurve {
    /// Figure 1: mean error by context length with its standard error, in the paper's range and beyond, beside that of
    /// the predictor 0.
    pub fn figure(&self) -> Scene {
        let c = &self.config;
        let shortest = c.context_lens.first().copied().unwrap_or(1) as f64;
        let chart = |title: &str, x: Axis, last: usize| {
            let own: Vec<&MsvePoint> = self.points.iter().filter(|p| p.context_len <= last).collect();
            let curve = own.iter().map(|p| (p.context_len as f64, p.mean)).collect();
            let band = own.iter().map(|p| ((p.mean - p.sem).max(0.1 * p.mean), p.mean + p.sem)).collect();
            let zero = vec![(shortest, self.zero), (last as f64, self.zero)];
            let zero_band = vec![(self.zero - self.zero_sem, self.zero + self.zero_sem); 2];
            let series = vec![
                Series::new(&c.kernel, PALETTE[0], curve).with_band(band),
                Series::new("predictor 0", PALETTE[1], zero).dashed().with_band(zero_band),
            ];
            Chart::new(title, x, Axis::log("mean square value error"), series)
        };
        let note = format!(
            "{} attention, {} layers at θ_{{∗}}; mean ± s.e.m. (drawn down to 0.1 of the mean) over {}: {}",
            c.kernel,
            c.num_layers,
            counted(c.num_tasks, "task"),
            c.tasks.describe()
        );
        let title = "Value error against context length";
        let judged = c.context_lens.last().copied().unwrap_or(1);
        let short = Axis::linear("context length *n* (transitions)");
        let Some(&longest) = c.longer_lens.last() else {
            return chart(title, short, judged).noted(note).scene(Width::Column);
        };
        let long = Axis::log("context length *n* (transitions)");
        let panels =
            vec![chart("(a) the paper's range", short, judged), chart("(b) longer contexts", long, longest)];
        Grid::new(title, 2, panels, note).scene()
    }
}

impl Report for MsveCurve {
    fn text(&self, width: usize) -> String {
        let beats = self.beats_zero_from.map_or_else(|| "nowhere".into(), |n| format!("from n = {n} on"));
        let Self { zero, zero_sem, drop, drop_sem, rank_correlation, verdict, .. } = self;
        let tasks = self.config.num_tasks;
        let below = format!(
            "predictor 0: {zero:.4} ± {zero_sem:.4}; the Transformer is better {beats}\n{tasks} tasks; drop from first to last {drop:.4} ± {drop_sem:.4}, rank correlation {rank_correlation:.2}: {verdict}\n"
        );
        self.shown(&["fig1"], width) + &wrapped(&below, width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("fig1".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![Records::of("fig1", &self.points)?])
    }

    fn json_name(&self) -> Option<&str> {
        Some("fig1")
    }
}

fn judge(plan: &Plan, out: &OutputDir) -> Result<Vec<Claim>, LabError> {
    let tasks = Tasks::of_family(Family::of(Kind::Figure1), plan.seed);
    let config = MsveConfig { tasks, num_tasks: plan.samples(300, 60), ..MsveConfig::default() };
    let curve = run(&config, &Progress::default())?;
    curve.write(out)?;
    let (first, last) = (&curve.points[0], &curve.points[curve.config.context_lens.len() - 1]);
    let beats = match curve.beats_zero_from {
        Some(n) if n <= last.context_len => format!("from n = {n} on, so within the paper's range"),
        Some(n) => format!("from n = {n} on, so beyond the paper's range"),
        None => "at no length tried".into(),
    };
    let longest = &curve.points[curve.points.len() - 1];
    let at = |p: &MsvePoint| format!("{:.2} at n = {}", p.mean, p.context_len);
    let end = format!("{:.3} at n = {}", longest.mean, longest.context_len);
    let measured = format!(
        "MSVE {}, {}; rank correlation {:.2}. The predictor 0 has {:.2}: the Transformer is better {beats} ({end})",
        at(first),
        at(last),
        curve.rank_correlation,
        curve.zero
    );
    let uncertainty = format!("± {:.2} and ± {:.2} (s.e.m. over {} tasks)", first.sem, last.sem, first.tasks);
    Ok(vec![
        Claim::new(
            "fig1",
            "Figure 1",
            "The value error of a fixed Transformer falls as its context grows.",
            "over the paper's lengths, 1 to 39, the drop from the shortest to the longest context exceeds three standard errors and the rank correlation \
             of error and length is at most −0.9",
        )
        .found(curve.verdict, curve.rank_correlation, measured, uncertainty)
        .shown(Some("fig1"), Some("fig1.csv")),
    ])
}
