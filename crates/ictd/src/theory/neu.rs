//! The norm of the expected update, NEU (paper, eq:NEU).

use std::ops::Range;

use serde::Serialize;

use crate::context::{ContextStatistics, Tally};
use crate::kernel::Attention;
use crate::parallel;
use crate::random::{Purpose, Stream, running_sums};
use crate::statistics::MeanSem;
use crate::task::{FiniteTask, TaskError};
use crate::transformer::{
    Adjoint, AdjointError, AttentionParams, ForwardError, Parameters, TransformerConfig, TransformerError,
};

/// Samples per unit of parallel work; fixed, so that sums have one order for any number of threads.
const CHUNK: u64 = 64;

/// An estimate of J_{L,n}(θ) = ‖E[δ_L ∇v_L(S_n)]‖₁ over the parameters of Θ^Looped (paper, eq:NEU, eq:emerdelta and
/// eq:parameterization_set).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Neu {
    /// Depth L.
    #[serde(rename = "layers")]
    pub num_layers: usize,
    /// The mean of δ_L ∇v_L by entry: u₁, u₂, u₃, then B row by row.
    pub mean: Vec<f64>,
    /// The standard error of every entry.
    pub sem: Vec<f64>,
    /// J: the sum of the absolute means. Too large by up to `noise`, because noise has an absolute value too.
    pub norm: f64,
    /// Its standard error, to first order: that of the mean along the signs of the entries.
    pub norm_sem: f64,
    /// What J would be expected to show if every expectation were 0: the mean absolute value of the noise,
    /// Σ sem·√(2/π). An estimate of this size says nothing.
    pub noise: f64,
    /// J without the noise: means of one half of the samples along the signs of the other half's, averaged over both
    /// ways. The halves are independent, so with m the true means and p the probability that a half gets a sign right its
    /// expectation is Σ (2p - 1)·|m|: 0 where m is 0, |m| where the sign is certain, never above J.
    pub split: f64,
    /// An upper bound of its standard error: half the sum of those of the two ways, by Cauchy and Schwarz, because the ways
    /// share their halves.
    pub split_sem: f64,
    /// J with v_L(S_{n+1}) read off the same prompt, as the proof of the decay lemma does, instead of the
    /// shifted prompt that defines δ_L.
    pub norm_same_prompt: f64,
    /// The mean of |E[δ_L | prompt]|.
    pub error: MeanSem,
    /// The mean of |E[δ_L | prompt] - its value on the same prompt|.
    pub prompt_gap: MeanSem,
    /// Number of samples.
    pub samples: u64,
}

/// Why NEU could not be estimated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum NeuError {
    /// A task could not be drawn.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Mixing makes values depend on columns, not only on states.
    #[error("diagonal mix is {0}, expected 0: with mixing values are no function of states")]
    DiagonalMix(f64),
    /// The parameters must be finite.
    #[error(transparent)]
    Transformer(#[from] TransformerError),
    /// There must be a gradient.
    #[error(transparent)]
    Adjoint(#[from] AdjointError),
    /// Values must stay finite.
    #[error("the values are not finite at L = {num_layers}: layers diverge at these parameters")]
    Diverged { num_layers: usize },
}

/// What is sampled: fresh tasks, one trajectory from the stationary law each.
#[derive(Clone, Debug)]
pub struct NeuSampler<F> {
    /// Task number i of the family.
    pub task: F,
    /// The kernel, without diagonal mixing.
    pub attention: Attention,
    /// Context length n.
    pub context_len: usize,
    /// Depths L, from the same tasks and trajectories.
    pub depths: Vec<usize>,
    /// Number of tasks and trajectories, at least 4.
    pub samples: u64,
    /// Seed.
    pub seed: u64,
}

/// What a chunk of samples shows at one depth.
#[derive(Clone, Debug, Default)]
struct Updates {
    /// E[δ_L | prompt]·∇v_L, one after the other.
    updates: Vec<f64>,
    /// The same with δ_L from the same prompt, summed.
    same_prompt: Vec<f64>,
    /// |E[δ_L | prompt]|, and by how much the same prompt differs.
    errors: Vec<f64>,
    gaps: Vec<f64>,
}

impl<F: Fn(u64) -> Result<FiniteTask, TaskError> + Sync> NeuSampler<F> {
    /// The estimates at parameters shared by all layers, one for every depth; derivatives are those by u and B. The expectation
    /// over S_{n+1} is exact: every successor of S_n gets the shifted prompt that ends in it. The same seed uses the same
    /// tasks and trajectories at every point.
    pub fn estimate(&self, params: &AttentionParams) -> Result<Vec<Neu>, NeuError> {
        if self.attention.diagonal_mix() != 0.0 {
            return Err(NeuError::DiagonalMix(self.attention.diagonal_mix()));
        }
        let chunks = parallel::try_map(self.samples.div_ceil(CHUNK) as usize, |chunk| {
            let chunk = chunk as u64;
            let range = chunk * CHUNK..self.samples.min((chunk + 1) * CHUNK);
            self.chunk(params, range)
        })?;
        let size = 3 + params.feature_dim() * params.feature_dim();
        let of_depth = |k: usize| {
            let own: Vec<&Updates> = chunks.iter().map(|depths| &depths[k]).collect();
            summarise(self.depths[k], size, &own, self.samples)
        };
        (0..self.depths.len()).map(of_depth).collect()
    }

    /// Some samples at every depth, with the shifted prompt and with the same one.
    fn chunk(&self, params: &AttentionParams, samples: Range<u64>) -> Result<Vec<Updates>, NeuError> {
        let d = params.feature_dim();
        let n = self.context_len;
        let deepest = self.depths.iter().copied().max().unwrap_or(0);
        let mut config = TransformerConfig::theta_star(self.attention.clone(), deepest, 0.0);
        config.parameters = Parameters::Tied(params.clone());
        let fresh = Updates { same_prompt: vec![0.0; 3 + d * d], ..Updates::default() };
        let mut found = vec![fresh; self.depths.len()];
        let (mut prompt, mut shifted) = (Prompt::default(), Prompt::default());
        let mut states = Vec::new();
        // By depth: E[v(S_{n+1})] from the shifted prompts, and from the same one.
        let mut expected = vec![[0.0; 2]; self.depths.len()];
        for index in samples {
            let task = (self.task)(index)?;
            let mrp = task.mrp();
            let gamma = mrp.gamma();
            config.gamma = gamma;
            let transformer = config.clone().check()?;
            let mut stream = Stream::new(self.seed, Purpose::Trajectory, index);
            states.clear();
            states.push(stream.categorical(&running_sums(task.stationary_distribution())));
            for k in 0..n {
                states.push(mrp.transitions().sample(states[k], &mut stream));
            }
            let query = states[n];
            let row = mrp.transitions().matrix().row(query);
            let successors = || row.iter().copied().enumerate().filter(|(_, p)| *p > 0.0);
            let queries: Vec<usize> = [query].into_iter().chain(successors().map(|(next, _)| next)).collect();
            let run = |prompt: &mut Prompt, queries: &[usize]| {
                prompt.tally.fill(&task, queries, &mut prompt.statistics);
                let run = prompt.pass.forward(&transformer, &prompt.statistics);
                run.map_err(|error| self.diverged(error))
            };
            prompt.tally.load(mrp.num_states(), &states);
            run(&mut prompt, &queries)?;
            expected.fill([0.0; 2]);
            for (next, p) in successors() {
                shifted.tally.load_shifted(&prompt.tally, (states[0], states[1]), (query, next));
                run(&mut shifted, &[next])?;
                for (sums, &depth) in expected.iter_mut().zip(&self.depths) {
                    sums[0] += p * shifted.value(depth, next);
                    sums[1] += p * prompt.value(depth, next);
                }
            }
            let mut direction = vec![0.0; prompt.statistics.num_groups()];
            direction[prompt.group(query)] = 1.0;
            for ((own, sums), &depth) in found.iter_mut().zip(&expected).zip(&self.depths) {
                let gradient = prompt.pass.backward(&transformer, &prompt.statistics, depth, &direction)?;
                let by_u = &gradient.value_rows.row(0)[d..];
                let gradient = || by_u.iter().chain(gradient.score_blocks[0].as_slice());
                let rest = mrp.rewards()[query] - prompt.value(depth, query);
                let [shifted, same] = sums.map(|v| rest + gamma * v);
                own.updates.extend(gradient().map(|g| shifted * g));
                own.same_prompt.iter_mut().zip(gradient()).for_each(|(sum, g)| *sum += same * g);
                own.errors.push(shifted.abs());
                own.gaps.push((shifted - same).abs());
            }
        }
        Ok(found)
    }

    /// Divergence as the first depth that shows it.
    fn diverged(&self, error: AdjointError) -> NeuError {
        match error {
            AdjointError::Forward(ForwardError::Diverged { layer }) => {
                let shown = self.depths.iter().copied().find(|&depth| depth >= layer);
                NeuError::Diverged { num_layers: shown.unwrap_or(layer) }
            }
            other => other.into(),
        }
    }
}

/// What the updates of all chunks say at one depth.
fn summarise(num_layers: usize, size: usize, chunks: &[&Updates], samples: u64) -> Result<Neu, NeuError> {
    let n = samples as f64;
    let updates = || chunks.iter().flat_map(|c| c.updates.chunks_exact(size));
    let mean = mean_of(updates(), size);
    let halves = [0, 1].map(|half| mean_of(updates().skip(half).step_by(2), size));
    let mut same_prompt = vec![0.0; size];
    for sums in chunks.iter().map(|c| &c.same_prompt) {
        same_prompt.iter_mut().zip(sums).for_each(|(m, x)| *m += x / n);
    }
    let norm: f64 = mean.iter().map(|m| m.abs()).sum();
    if !norm.is_finite() {
        return Err(NeuError::Diverged { num_layers });
    }
    let mut squares = vec![0.0; size];
    for update in updates() {
        for ((square, x), m) in squares.iter_mut().zip(update).zip(&mean) {
            *square += (x - m) * (x - m);
        }
    }
    let sem: Vec<f64> = squares.into_iter().map(|sum| (sum / (n - 1.0) / n).sqrt()).collect();
    // Squares overflow long before their roots would.
    if !sem.iter().all(|x| x.is_finite()) {
        return Err(NeuError::Diverged { num_layers });
    }
    let along = |signs: &[f64], updates: &mut dyn Iterator<Item = &[f64]>| {
        let projections: Vec<f64> =
            updates.map(|x| x.iter().zip(signs).map(|(x, m)| m.signum() * x).sum()).collect();
        mean_sem(&projections)
    };
    let first = along(&halves[1], &mut updates().step_by(2));
    let second = along(&halves[0], &mut updates().skip(1).step_by(2));
    let gathered = |of: fn(&Updates) -> &Vec<f64>| -> Vec<f64> {
        chunks.iter().flat_map(|c| of(c).iter().copied()).collect()
    };
    Ok(Neu {
        num_layers,
        norm,
        norm_sem: along(&mean, &mut updates()).sem,
        noise: sem.iter().sum::<f64>() * (2.0 / std::f64::consts::PI).sqrt(),
        split: 0.5 * (first.mean + second.mean),
        split_sem: 0.5 * (first.sem + second.sem),
        norm_same_prompt: same_prompt.iter().map(|m| m.abs()).sum(),
        error: mean_sem(&gathered(|c| &c.errors)),
        prompt_gap: mean_sem(&gathered(|c| &c.gaps)),
        mean,
        sem,
        samples,
    })
}

/// A trajectory through the states of a task, and the layers on it.
#[derive(Default)]
struct Prompt {
    tally: Tally,
    statistics: ContextStatistics,
    pass: Adjoint,
}

impl Prompt {
    /// The group of a state that has one.
    fn group(&self, state: usize) -> usize {
        self.statistics.groups()[state] as usize
    }

    fn value(&self, num_layers: usize, state: usize) -> f64 {
        self.pass.values(num_layers)[self.group(state)]
    }
}

fn mean_of<'a>(samples: impl Iterator<Item = &'a [f64]> + Clone, size: usize) -> Vec<f64> {
    let n = samples.clone().count() as f64;
    let mut mean = vec![0.0; size];
    for sample in samples {
        mean.iter_mut().zip(sample).for_each(|(m, x)| *m += x / n);
    }
    mean
}

/// Of at least one sample: there are at least two in every half.
fn mean_sem(samples: &[f64]) -> MeanSem {
    MeanSem::of(samples).unwrap_or(MeanSem { mean: f64::NAN, sem: f64::NAN, count: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise around means that are 0: the direct estimate shows its noise, the split one scatters around 0 by at most its
    /// standard error. Around means that are far from 0 both are right.
    #[test]
    fn the_split_estimate_has_no_noise_floor() {
        let (size, repetitions) = (10, 400);
        let mut stream = Stream::new(2, Purpose::Prompt, 0);
        let mut at = |mean: f64| -> Vec<Neu> {
            let draw = |_| {
                let updates = (0..64 * size).map(|_| mean + stream.normal()).collect();
                let (errors, gaps) = (vec![0.0; 64], vec![0.0; 64]);
                let chunk = Updates { updates, same_prompt: vec![0.0; size], errors, gaps };
                summarise(1, size, &[&chunk], 64).unwrap()
            };
            (0..repetitions).map(draw).collect()
        };
        let average =
            |found: &[Neu], of: fn(&Neu) -> f64| found.iter().map(of).sum::<f64>() / f64::from(repetitions);
        let none = at(0.0);
        let scatter = average(&none, |e| e.split * e.split).sqrt();
        // Three standard errors of a mean of 400.
        assert!(average(&none, |e| e.split).abs() < 3.0 * scatter / 20.0);
        assert!((average(&none, |e| e.norm / e.noise) - 1.0).abs() < 0.05);
        assert!(scatter < average(&none, |e| e.split_sem));
        let far = at(1.0);
        for of in [|e: &Neu| e.split, |e: &Neu| e.norm] {
            // Ten entries of mean 1; three standard errors of √10/8 over 400 repetitions.
            assert!((average(&far, of) - 10.0).abs() < 0.06);
        }
    }
}
