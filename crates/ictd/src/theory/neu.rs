//! The norm of the expected update, NEU (paper, Section 6).

use std::ops::Range;

use rayon::prelude::*;

use crate::random::{Purpose, Stream, running_sums};
use crate::statistics::MeanSem;
use crate::task::{FiniteTask, TaskError};

use super::state_pass::{LoopedParams, StatePass};

/// Samples per unit of parallel work; fixed, so that sums have one order for any number of threads.
const CHUNK: u64 = 64;

/// An estimate of J_{L,n}(θ) = ‖E[δ_L ∇v_L(S_n)]‖₁ over the parameters of Θ^Looped.
#[derive(Clone, Debug, PartialEq)]
pub struct Neu {
    /// Depth L.
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
pub enum NeuError {
    /// A task could not be drawn.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Values must stay finite.
    #[error("the values are not finite at L = {num_layers}: layers diverge at these parameters")]
    Diverged {
        /// The depth.
        num_layers: usize,
    },
}

/// What is sampled: fresh tasks, one trajectory from the stationary law each.
#[derive(Clone, Debug)]
pub struct NeuSampler<F> {
    /// Task number i of the family.
    pub task: F,
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
    /// The estimates at a point of Θ^Looped, one for every depth. The expectation over S_{n+1} is exact: every successor of
    /// S_n gets the shifted prompt that ends in it. The same seed uses the same tasks and trajectories at every point.
    pub fn estimate(&self, params: &LoopedParams) -> Result<Vec<Neu>, NeuError> {
        let chunks: Vec<Vec<Updates>> = (0..self.samples.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let range = chunk * CHUNK..self.samples.min((chunk + 1) * CHUNK);
                self.chunk(params, range)
            })
            .collect::<Result<_, NeuError>>()?;
        let of_depth = |k: usize| {
            let own: Vec<&Updates> = chunks.iter().map(|depths| &depths[k]).collect();
            self.summarise(self.depths[k], params.num_free(), &own)
        };
        (0..self.depths.len()).map(of_depth).collect()
    }

    fn summarise(&self, num_layers: usize, size: usize, chunks: &[&Updates]) -> Result<Neu, NeuError> {
        let n = self.samples as f64;
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
        let along = |signs: &[f64], samples: &mut dyn Iterator<Item = &[f64]>| {
            let projections: Vec<f64> =
                samples.map(|x| x.iter().zip(signs).map(|(x, m)| m.signum() * x).sum()).collect();
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
            samples: self.samples,
        })
    }

    /// Some samples at every depth, with the shifted prompt and with the same one.
    fn chunk(&self, params: &LoopedParams, samples: Range<u64>) -> Result<Vec<Updates>, NeuError> {
        let size = params.num_free();
        let n = self.context_len;
        let deepest = self.depths.iter().copied().max().unwrap_or(0);
        let mut found =
            vec![Updates { same_prompt: vec![0.0; size], ..Updates::default() }; self.depths.len()];
        let (mut pass, mut successor) = (StatePass::default(), StatePass::default());
        let mut gradient = vec![0.0; size];
        let mut states = Vec::new();
        // By depth: E[v(S_{n+1})] from the shifted prompts, and from the same one.
        let mut expected = vec![[0.0; 2]; self.depths.len()];
        for index in samples {
            let task = (self.task)(index)?;
            let (mrp, features) = (task.mrp(), task.features());
            let (gamma, m) = (mrp.gamma(), mrp.num_states());
            let mut stream = Stream::new(self.seed, Purpose::Trajectory, index);
            states.clear();
            states.push(stream.categorical(&running_sums(task.stationary_distribution())));
            for k in 0..n {
                states.push(mrp.transitions().sample(states[k], &mut stream));
            }
            let query = states[n];
            pass.load(m, &states);
            pass.forward(params, features, mrp.rewards(), gamma, deepest, query);
            expected.fill([0.0; 2]);
            let row = mrp.transitions().matrix().row(query);
            for (next, &p) in row.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                successor.load_shifted(&pass, (states[0], states[1]), (query, next));
                successor.forward(params, features, mrp.rewards(), gamma, deepest, next);
                for (sums, &depth) in expected.iter_mut().zip(&self.depths) {
                    sums[0] += p * successor.value_of(params, features, depth, next);
                    sums[1] += p * pass.value_of(params, features, depth, next);
                }
            }
            for ((own, sums), &depth) in found.iter_mut().zip(&expected).zip(&self.depths) {
                pass.backward(params, features, mrp.rewards(), gamma, depth, query, &mut gradient);
                let rest = mrp.rewards()[query] - pass.value_of(params, features, depth, query);
                let [shifted, same] = sums.map(|v| rest + gamma * v);
                own.updates.extend(gradient.iter().map(|g| shifted * g));
                own.same_prompt.iter_mut().zip(&gradient).for_each(|(sum, g)| *sum += same * g);
                own.errors.push(shifted.abs());
                own.gaps.push((shifted - same).abs());
            }
        }
        Ok(found)
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
    use crate::matrix::Matrix;
    use crate::task::Mrp;

    fn sampler(
        context_len: usize,
        depths: &[usize],
        samples: u64,
    ) -> NeuSampler<impl Fn(u64) -> Result<FiniteTask, TaskError> + Sync> {
        let task = |_| {
            let p = Matrix::from_rows(&[vec![0.3, 0.7], vec![0.6, 0.4]]).expect("square");
            let mrp = Mrp::new(p, vec![1.0, -0.5], 0.5, vec![0.5, 0.5])?;
            FiniteTask::new(mrp, Matrix::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 0.0 }))
        };
        NeuSampler { task, context_len, depths: depths.to_vec(), samples, seed: 1 }
    }

    /// With exact values there is nothing to update: at large n and L the estimate is far below that of a
    /// shallow network. What is left are the 1/n of sampling and noise.
    #[test]
    fn vanishes_in_the_double_limit() {
        let star = LoopedParams::theta_star(2);
        let found = sampler(400, &[1, 40], 2000).estimate(&star).unwrap();
        let (shallow, deep) = (&found[0], &found[1]);
        assert!(deep.norm < 0.1 * shallow.norm, "{} {}", deep.norm, shallow.norm);
        assert!(shallow.norm > 10.0 * shallow.noise);
    }

    /// Ten independent estimates scatter by about their standard error: a factor of two is 3.5 standard deviations
    /// of a scatter from ten.
    #[test]
    fn standard_errors_are_those_of_repetitions() {
        let star = LoopedParams::theta_star(2);
        let estimates: Vec<Neu> = (0..10)
            .map(|seed| NeuSampler { seed, ..sampler(20, &[2], 500) }.estimate(&star).unwrap().remove(0))
            .collect();
        let mean = estimates.iter().map(|e| e.norm).sum::<f64>() / 10.0;
        let scatter = (estimates.iter().map(|e| (e.norm - mean).powi(2)).sum::<f64>() / 9.0).sqrt();
        let claimed = estimates.iter().map(|e| e.norm_sem).sum::<f64>() / 10.0;
        assert!((0.5..2.0).contains(&(scatter / claimed)), "{scatter} {claimed}");
    }

    /// Noise around means that are 0: the plain estimate shows its noise, the split one scatters around 0 by at most its
    /// standard error. Around means that are far from 0 both are right.
    #[test]
    fn the_split_estimate_has_no_noise_floor() {
        let (size, repetitions) = (10, 400);
        let sampler = NeuSampler { samples: 64, ..sampler(1, &[1], 64) };
        let mut stream = Stream::new(2, Purpose::Prompt, 0);
        let mut at = |mean: f64| -> Vec<Neu> {
            let draw = |_| {
                let updates = (0..64 * size).map(|_| mean + stream.normal()).collect();
                let (errors, gaps) = (vec![0.0; 64], vec![0.0; 64]);
                let chunk = Updates { updates, same_prompt: vec![0.0; size], errors, gaps };
                sampler.summarise(1, size, &[&chunk]).unwrap()
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

    #[test]
    fn divergence_is_an_error() {
        let mut wild = LoopedParams::theta_star(2);
        wild.value_row = [1.0, 1.0, 500.0];
        let error = sampler(10, &[200], 10).estimate(&wild).unwrap_err();
        assert_eq!(error, NeuError::Diverged { num_layers: 200 });
    }
}
