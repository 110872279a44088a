//! Theorem 1, Lemma 1, the special cases and Figure 7: the forward pass is weighted softmax TD.

use ictd::construction::Algorithm;
use ictd::context::{Context, End};
use ictd::kernel::{Attention, KernelName};
use ictd::operator::StateOperator;
use ictd::random::{Purpose, Stream};
use ictd::statistics::largest;
use ictd::task::{Family, TaskSource as _};
use ictd::td::{Estimator, LinearTd, NonParametricTd, TabularTd, WeightedSoftmaxTd};
use ictd::transformer::{Block, Evaluator, Path, TransformerConfig};
use serde::Serialize;

use super::constructions::{self, ConstructionDiscrepancies};
use crate::Progress;
use crate::error::{LabError, check_range};
use crate::figure::style::PALETTE;
use crate::figure::{Axis, Chart, Color, Grid, Scene, Series};
use crate::memory::{self, DOUBLE};
use crate::report::{Records, Report, wrapped};
use crate::studies::{Verdict, softmax, theta_star, verdict};

/// The kernels that Figure 7 shows.
const FIGURE_7: [KernelName; 4] = [KernelName::Softmax, KernelName::Relu, KernelName::Elu1, KernelName::Rbf];
/// Special cases that are compared.
const SPECIAL_CASES: usize = 5;
/// Where an exact zero is drawn on the logarithmic axis.
const FLOOR: f64 = 1e-17;

/// What to verify. The defaults are the paper's (Section "Numerical verification on Theorem 1").
#[derive(Clone, Debug, Serialize)]
pub struct VerifyConfig {
    /// Feature dimension d.
    #[serde(rename = "features")]
    pub feature_dim: usize,
    /// Context length n.
    #[serde(rename = "n")]
    pub context_len: usize,
    /// Depth L.
    #[serde(rename = "layers")]
    pub num_layers: usize,
    /// Discount γ.
    pub gamma: f64,
    /// Number of prompts.
    #[serde(rename = "trials")]
    pub num_trials: u64,
    /// States of the Boyan chain each prompt is drawn from; fewer than n, so that states repeat.
    #[serde(rename = "states")]
    pub num_states: usize,
    /// Largest discrepancy that counts as rounding.
    pub tolerance: f64,
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for VerifyConfig {
    fn default() -> Self {
        Self {
            feature_dim: 8,
            context_len: 20,
            num_layers: 10,
            gamma: 0.9,
            num_trials: 50,
            num_states: 10,
            tolerance: 1e-12,
            seed: 0,
        }
    }
}

/// The largest discrepancies of one kernel over all trials, layers and columns, each divided by the size of
/// the numbers compared where that exceeds 1.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KernelDiscrepancies {
    pub(super) kernel: String,
    /// All entries of Z: dual head against single head with temporal shift (Lemma 1).
    pub(super) dual_vs_tsm: f64,
    /// Values: single head with temporal shift against direct weighted softmax TD (Theorem 1).
    pub(super) tsm_vs_direct: f64,
    /// Values and targets: token matrices against the fast path.
    pub(super) full_vs_fast: f64,
    /// Values: one group per column against one group per state.
    pub(super) columns_vs_states: f64,
}

/// A special case and its largest discrepancy.
#[derive(Clone, Debug, Serialize)]
pub struct SpecialCase {
    pub(super) name: String,
    pub(super) discrepancy: f64,
}

/// A point of Figure 7: |transformer - TD| at the query after a layer, over the trials.
#[derive(Clone, Debug, Serialize)]
pub struct LayerDiscrepancy {
    pub(super) kernel: String,
    pub(super) layer: usize,
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) max: f64,
    pub(super) trials: u64,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    pub(super) config: VerifyConfig,
    pub(super) kernels: Vec<KernelDiscrepancies>,
    pub(super) special_cases: Vec<SpecialCase>,
    pub(super) constructions: Vec<ConstructionDiscrepancies>,
    pub(super) figure_7: Vec<LayerDiscrepancy>,
    pub(super) worst: f64,
    /// Whether every discrepancy is at rounding level.
    pub(super) verdict: Verdict,
}

/// Runs the verification.
pub fn run(config: &VerifyConfig, progress: &Progress) -> Result<Verification, LabError> {
    if config.num_trials == 0 {
        return Err(LabError::value("trials", 0, "at least 1"));
    }
    // Every trial holds L + 1 token matrices of (d + 3) × (n + 1) and an attention matrix of (n + 1)².
    check_range("length", config.context_len, 1..=2000)?;
    check_range("layers", config.num_layers, 1..=10_000)?;
    check_range("features", config.feature_dim, 1..=1000)?;
    config.family().check()?;
    memory::admit(config.memory(), "--trials, --length, --layers, --features or --states")?;
    if !(config.tolerance >= 0.0) {
        return Err(LabError::value("tolerance", config.tolerance, "a number >= 0"));
    }
    prompt(config, 0)?;
    // Drawn once, then given to every kernel, special case and construction.
    let passes = (1 + KernelName::ALL.len() + SPECIAL_CASES + Algorithm::ALL.len()) as u64;
    progress.begin("verify", "prompts", config.num_trials.saturating_mul(passes))?;
    let draw = |trial| prompt(config, trial).and_then(|context| progress.step(1).map(|()| context));
    let contexts = (0..config.num_trials).map(draw).collect::<Result<Vec<_>, _>>()?;
    let (mut kernels, mut figure_7) = (Vec::new(), Vec::new());
    for kernel in KernelName::ALL {
        let mut row = KernelDiscrepancies { kernel: kernel.to_string(), ..Default::default() };
        // Entry [layer][trial]: |v_l - y_l| at the query.
        let mut at_query = vec![Vec::new(); config.num_layers + 1];
        for context in &contexts {
            let query = compare(config, kernel, context, &mut row)?;
            at_query.iter_mut().zip(query).for_each(|(layer, gap)| layer.push(gap));
            progress.step(1)?;
        }
        if FIGURE_7.contains(&kernel) {
            figure_7.extend(at_query.into_iter().enumerate().map(|(layer, mut gaps)| {
                gaps.sort_by(f64::total_cmp);
                let (min, median, max) = (gaps[0], median_of_sorted(&gaps), gaps[gaps.len() - 1]);
                let (kernel, trials) = (kernel.to_string(), config.num_trials);
                LayerDiscrepancy { kernel, layer, min, median, max, trials }
            }));
        }
        kernels.push(row);
    }
    let special_cases = special_cases(config, &contexts, progress)?;
    let entries = kernels.iter().flat_map(|k: &KernelDiscrepancies| {
        [k.dual_vs_tsm, k.tsm_vs_direct, k.full_vs_fast, k.columns_vs_states]
    });
    let constructions = constructions::run(config, &contexts, progress)?;
    let other = constructions.iter().flat_map(|c| [c.tokens_vs_direct, c.full_vs_fast]);
    let worst = largest(entries.chain(special_cases.iter().map(|c| c.discrepancy)).chain(other));
    let verdict = verdict(worst <= config.tolerance);
    Ok(Verification {
        config: config.clone(),
        kernels,
        special_cases,
        constructions,
        figure_7,
        worst,
        verdict,
    })
}

impl VerifyConfig {
    /// What prompts are drawn from.
    fn family(&self) -> Family {
        let &VerifyConfig { num_states, feature_dim, gamma, .. } = self;
        Family { num_states, feature_dim, gamma, representable: false, ..Family::paper() }
    }

    /// Bytes: contexts of all trials, and what one trial computes.
    fn memory(&self) -> f64 {
        let [n, d, m, layers] =
            [self.context_len, self.feature_dim, self.num_states, self.num_layers].map(|x| x as f64);
        let (columns, one_hot) = (n + 1.0, m + n + 1.0);
        let context = DOUBLE * columns * (d + 1.0);
        let gaps = DOUBLE * (layers + 1.0);
        // Token matrices of two blocks, values along four paths, two attention matrices.
        let tokens = (layers + 1.0) * columns * (2.0 * (d + 3.0) + 6.0) + 2.0 * columns * columns;
        let special = 3.0 * (layers + 1.0) * one_hot + 2.0 * one_hot * (one_hot + 2.0 * m);
        let drawn = memory::task(self.num_states, self.feature_dim);
        // The token matrix of the largest construction before and after a layer, and its attention.
        let longest = columns + layers.min(constructions::MOST_LAYERS as f64);
        let constructed = 4.0 * longest * (3.0 * d + 2.0 + longest);
        self.num_trials as f64 * (context + gaps + 300.0)
            + (DOUBLE * tokens.max(special).max(constructed)).max(drawn)
    }
}

pub(super) fn prompt(config: &VerifyConfig, trial: u64) -> Result<Context, LabError> {
    let task = config.family().draw(&mut Stream::new(config.seed, Purpose::Task, trial))?;
    Ok(task.sample_context(config.context_len, &mut Stream::new(config.seed, Purpose::Trajectory, trial)).0)
}

/// Updates the row of a kernel with one context; returns |v_l - y_l| at the query per layer.
fn compare(
    config: &VerifyConfig,
    kernel: KernelName,
    context: &Context,
    row: &mut KernelDiscrepancies,
) -> Result<Vec<f64>, LabError> {
    let attention = Attention::new(kernel.at(1.0)?, 0.0)?;
    let star = TransformerConfig::theta_star(attention.clone(), config.num_layers, config.gamma);
    let dual = TransformerConfig { block: Block::DualHead, ..star.clone() }.check()?;
    let tsm = TransformerConfig { block: Block::TemporalShift, ..star }.check()?;
    let z_dual = dual.tokens(context)?;
    let z_tsm = tsm.tokens(context)?;
    for (a, b) in z_dual.iter().zip(&z_tsm) {
        raise(&mut row.dual_vs_tsm, a.matrix().as_slice(), b.matrix().as_slice());
    }
    let td = WeightedSoftmaxTd { attention, gamma: config.gamma, step_sizes: vec![1.0; config.num_layers] };
    let direct = td.run(context)?;
    let columns = Evaluator::default().evaluate_along(Path::Columns, &tsm, context)?;
    let states = Evaluator::default().evaluate_along(Path::States, &tsm, context)?;
    let last = context.num_columns() - 1;
    let mut query = Vec::with_capacity(z_tsm.len());
    for (layer, z) in z_tsm.iter().enumerate() {
        raise(&mut row.tsm_vs_direct, z.values(), &direct[layer]);
        for fast in [&columns, &states] {
            raise(&mut row.full_vs_fast, z.values(), &fast.values(layer));
            raise(&mut row.full_vs_fast, z.targets(), &fast.targets(layer));
        }
        raise(&mut row.columns_vs_states, &columns.values(layer), &states.values(layer));
        query.push(gap(&z.values()[last..], &direct[layer][last..]));
    }
    Ok(query)
}

/// The kernels that make a layer another algorithm, and its operator form.
fn special_cases(
    config: &VerifyConfig,
    contexts: &[Context],
    progress: &Progress,
) -> Result<Vec<SpecialCase>, LabError> {
    let (gamma, step_sizes) = (config.gamma, vec![1.0; config.num_layers]);
    let transformer = |kernel| theta_star(kernel, config.num_layers, gamma);
    let kappa = |x: &[f64], y: &[f64]| {
        let d2: f64 = x.iter().zip(y).map(|(a, b)| (a - b) * (a - b)).sum();
        (-0.5 * d2).exp()
    };
    let linear = LinearTd { gamma, step_sizes: step_sizes.clone() };
    let tabular = TabularTd { gamma, step_sizes: step_sizes.clone() };
    let gaussian = NonParametricTd { kappa, gamma, step_sizes };
    let cases: [(&str, KernelName, &dyn Estimator, bool); SPECIAL_CASES - 1] = [
        ("linear kernel = batch linear TD", KernelName::Linear, &linear, false),
        ("tabular kernel = expected tabular TD", KernelName::Tabular, &tabular, false),
        ("softmax, one-hot features × 7 = tabular TD", KernelName::Softmax, &tabular, true),
        ("rbf kernel = normalised non-parametric TD", KernelName::Rbf, &gaussian, false),
    ];
    let case = |name: &str, discrepancy| SpecialCase { name: name.to_owned(), discrepancy };
    let mut found = Vec::new();
    for (name, kernel, td, is_one_hot) in cases {
        let (transformer, mut worst) = (transformer(kernel)?, 0.0);
        for (context, trial) in contexts.iter().zip(0..) {
            // Those are large and drawn one at a time.
            let drawn = is_one_hot.then(|| one_hot_context(config, trial)).transpose()?;
            let context = drawn.as_ref().unwrap_or(context);
            let (layers, direct) = (transformer.run(context)?, td.run(context)?);
            layers.iter().zip(&direct).for_each(|(v, y)| raise(&mut worst, v, y));
            progress.step(1)?;
        }
        found.push(case(name, worst));
    }
    let (transformer, mut operator) = (transformer(KernelName::Softmax)?, 0.0);
    for context in contexts {
        let map = StateOperator::empirical(context, &softmax()?, gamma)?;
        let mut v = vec![0.0; map.statistics().num_groups()];
        for layer in transformer.run(context)?.iter().skip(1) {
            v = map.apply(1.0, &v);
            let value = |j| map.statistics().group_of(j).map_or(0.0, |u| v[u]);
            let by_column: Vec<f64> = (0..context.num_columns()).map(value).collect();
            raise(&mut operator, layer, &by_column);
        }
        progress.step(1)?;
    }
    found.push(case("layer = operator form J v + M̂ r", operator));
    Ok(found)
}

/// A trajectory through every state once and then at random, with one-hot features scaled by 7: weights
/// of other states are then at most exp(-49) ≈ 5e-22.
fn one_hot_context(config: &VerifyConfig, trial: u64) -> Result<Context, LabError> {
    let m = config.num_states;
    let mut stream = Stream::new(config.seed, Purpose::Prompt, trial);
    let wander = (0..=config.context_len).map(|_| stream.below(m as u32) as usize).collect::<Vec<_>>();
    let features: Vec<Vec<f64>> =
        (0..m).chain(wander).map(|s| (0..m).map(|a| if a == s { 7.0 } else { 0.0 }).collect()).collect();
    let rewards = stream.uniform_vec(features.len() - 1, -1.0, 1.0);
    Ok(Context::builder().episode(&features, &rewards, End::Truncated).build()?)
}

/// The largest |a - b| over the size of the numbers, max(1, largest |b|): an absolute error for numbers
/// of order 1, as in the paper, a relative one where values grow. NaN when any number is.
pub(in crate::studies) fn gap(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "gap: lengths differ");
    let size = largest(b.iter().map(|x| x.abs()).chain([1.0]));
    largest(a.iter().zip(b).map(|(x, y)| (x - y).abs() / size))
}

/// Raises the largest discrepancy so far to that of two vectors; it stays NaN once it is, so that no NaN passes for a
/// small discrepancy.
pub(in crate::studies) fn raise(so_far: &mut f64, a: &[f64], b: &[f64]) {
    *so_far = largest([*so_far, gap(a, b)]);
}

fn median_of_sorted(x: &[f64]) -> f64 {
    let middle = x.len() / 2;
    if x.len() % 2 == 1 { x[middle] } else { 0.5 * (x[middle - 1] + x[middle]) }
}

impl Verification {
    /// Figure 7: discrepancy by layer, median with the range over trials, one panel per kernel.
    fn figure(&self) -> Scene {
        let highest = self.figure_7.iter().map(|r| r.max).fold(1e-14, f64::max);
        let panel = |(kernel, color): (&KernelName, Color)| {
            let rows = || self.figure_7.iter().filter(|r| r.kernel == kernel.as_str());
            let medians = rows().map(|r| (r.layer as f64, r.median.max(FLOOR))).collect();
            let band = rows().map(|r| (r.min.max(FLOOR), r.max.max(FLOOR))).collect();
            let y = Axis::log("|*v*_{*l*}(query) − TD|").over(FLOOR, highest);
            let line = Series::new(kernel.as_str(), color, medians).with_band(band);
            Chart::new(kernel.as_str(), Axis::linear("layer *l*"), y, vec![line])
        };
        let c = &self.config;
        let note = format!(
            "line: median, band: range over {} prompts; *d* = {}, *n* = {}, γ = {}, float64; an exact 0 is drawn at 10^{{−17}}",
            c.num_trials, c.feature_dim, c.context_len, c.gamma
        );
        let title = "Transformer against weighted softmax TD, layer by layer";
        Grid::new(title, 2, FIGURE_7.iter().zip(PALETTE).map(panel), note).scene()
    }
}

impl Report for Verification {
    fn text(&self, width: usize) -> String {
        let VerifyConfig { num_trials, num_layers, feature_dim: d, context_len: n, gamma, tolerance, .. } =
            self.config;
        let tables = self.shown(&["verification", "special_cases", "constructions"], width);
        let head = format!(
            "Largest discrepancy over {num_trials} prompts × {num_layers} layers, float64 (d = {d}, n = {n}, γ = {gamma}):\n\n"
        );
        let foot =
            format!("worst {:.1e}, rounding level is ≤ {tolerance:.0e}: {}\n", self.worst, self.verdict);
        wrapped(&head, width) + &tables + &wrapped(&foot, width)
    }

    fn figures(&self) -> Vec<(String, Scene)> {
        vec![("fig7".into(), self.figure())]
    }

    fn tables(&self) -> Result<Vec<Records>, LabError> {
        Ok(vec![
            Records::of("verification", &self.kernels)?,
            Records::of("special_cases", &self.special_cases)?,
            Records::of("constructions", &self.constructions)?,
            Records::of("fig7", &self.figure_7)?,
        ])
    }

    fn json_name(&self) -> Option<&str> {
        Some("verification")
    }

    fn holds(&self) -> bool {
        self.verdict == Verdict::Reproduced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_is_the_largest_discrepancy() {
        let mut worst = 0.0;
        for (a, b) in [(1.0, f64::NAN), (2.0, 0.0)] {
            raise(&mut worst, &[a], &[b]);
            assert!(worst.is_nan());
        }
        assert!(gap(&[f64::NAN], &[0.0]).is_nan());
    }
}
