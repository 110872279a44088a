//! The norm of the expected update, NEU (paper, Section 6).

use rayon::prelude::*;

use crate::random::{Purpose, Stream, running_sums};
use crate::task::{FiniteTask, TaskError};

use super::state_pass::{LoopedParams, StatePass};

/// Samples per unit of parallel work; fixed, so that sums have one order for any number of threads.
const CHUNK: u64 = 64;

/// An estimate of J_{L,n}(θ) = ‖E[δ_L ∇v_L(S_n)]‖₁ over the parameters of Θ^Looped.
#[derive(Clone, Debug, PartialEq)]
pub struct Neu {
    /// The mean of δ_L ∇v_L by entry: u₁, u₂, u₃, then B row by row.
    pub mean: Vec<f64>,
    /// The standard error of every entry.
    pub sem: Vec<f64>,
    /// J: the sum of the absolute means.
    pub norm: f64,
    /// Its standard error, to first order: that of the mean along the signs of the entries.
    pub norm_sem: f64,
    /// What J would be expected to show if every expectation were 0: the mean absolute value of the noise,
    /// Σ sem·√(2/π). An estimate of this size says nothing.
    pub noise: f64,
    /// J with v_L(S_{n+1}) read off the same prompt, as the proof of the decay lemma does, instead of the
    /// shifted prompt that defines δ_L.
    pub norm_same_prompt: f64,
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
#[derive(Clone, Copy, Debug)]
pub struct NeuSampler<F> {
    /// Task number i of the family.
    pub task: F,
    /// Context length n.
    pub context_len: usize,
    /// Depth L.
    pub num_layers: usize,
    /// Number of tasks and trajectories, at least 2.
    pub samples: u64,
    /// Seed.
    pub seed: u64,
}

impl<F: Fn(u64) -> Result<FiniteTask, TaskError> + Sync> NeuSampler<F> {
    /// The estimate at a point of Θ^Looped. The expectation over S_{n+1} is exact: every successor of S_n gets
    /// the shifted prompt that ends in it. The same seed uses the same tasks and trajectories at every point.
    pub fn estimate(&self, params: &LoopedParams) -> Result<Neu, NeuError> {
        let size = params.num_free();
        let chunks: Vec<(Vec<f64>, Vec<f64>)> = (0..self.samples.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let range = chunk * CHUNK..self.samples.min((chunk + 1) * CHUNK);
                self.chunk(params, range)
            })
            .collect::<Result<_, NeuError>>()?;
        let n = self.samples as f64;
        let mut mean = vec![0.0; size];
        let mut same_prompt = vec![0.0; size];
        for (shifted, same) in &chunks {
            for update in shifted.chunks_exact(size) {
                mean.iter_mut().zip(update).for_each(|(m, x)| *m += x / n);
            }
            for update in same.chunks_exact(size) {
                same_prompt.iter_mut().zip(update).for_each(|(m, x)| *m += x / n);
            }
        }
        let mut squares = vec![0.0; size];
        let mut along = 0.0;
        let norm: f64 = mean.iter().map(|m| m.abs()).sum();
        for update in chunks.iter().flat_map(|(shifted, _)| shifted.chunks_exact(size)) {
            let mut projection = -norm;
            for ((square, x), m) in squares.iter_mut().zip(update).zip(&mean) {
                *square += (x - m) * (x - m);
                projection += m.signum() * x;
            }
            along += projection * projection;
        }
        let error = |sum: f64| (sum / (n - 1.0) / n).sqrt();
        let sem: Vec<f64> = squares.into_iter().map(error).collect();
        let noise = sem.iter().sum::<f64>() * (2.0 / std::f64::consts::PI).sqrt();
        if !norm.is_finite() {
            return Err(NeuError::Diverged { num_layers: self.num_layers });
        }
        Ok(Neu {
            norm,
            norm_sem: error(along),
            noise,
            norm_same_prompt: same_prompt.iter().map(|m| m.abs()).sum(),
            mean,
            sem,
            samples: self.samples,
        })
    }

    /// δ̄ ∇v of some samples, with the shifted prompt and with the same one.
    fn chunk(
        &self,
        params: &LoopedParams,
        samples: std::ops::Range<u64>,
    ) -> Result<(Vec<f64>, Vec<f64>), NeuError> {
        let size = params.num_free();
        let (mut shifted, mut same) = (Vec::new(), Vec::new());
        let (mut pass, mut successor) = (StatePass::default(), StatePass::default());
        let mut gradient = vec![0.0; size];
        let mut states = Vec::new();
        let n = self.context_len;
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
            let value = pass.forward(params, features, mrp.rewards(), gamma, self.num_layers, query);
            pass.backward(params, features, mrp.rewards(), gamma, query, &mut gradient);
            let (mut expected, mut expected_same) = (0.0, 0.0);
            let row = mrp.transitions().matrix().row(query);
            for (next, &p) in row.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                states.push(next);
                successor.load(m, &states[1..]);
                expected +=
                    p * successor.forward(params, features, mrp.rewards(), gamma, self.num_layers, next);
                states.pop();
                expected_same += p * pass.value_of(params, features, next);
            }
            let own = mrp.rewards()[query] - value;
            shifted.extend(gradient.iter().map(|g| (own + gamma * expected) * g));
            same.extend(gradient.iter().map(|g| (own + gamma * expected_same) * g));
        }
        Ok((shifted, same))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use crate::task::Mrp;

    fn sampler(
        context_len: usize,
        num_layers: usize,
        samples: u64,
    ) -> NeuSampler<impl Fn(u64) -> Result<FiniteTask, TaskError> + Sync> {
        let task = |_| {
            let p = Matrix::from_rows(&[vec![0.3, 0.7], vec![0.6, 0.4]]).expect("square");
            let mrp = Mrp::new(p, vec![1.0, -0.5], 0.5, vec![0.5, 0.5])?;
            FiniteTask::new(mrp, Matrix::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 0.0 }))
        };
        NeuSampler { task, context_len, num_layers, samples, seed: 1 }
    }

    /// With exact values there is nothing to update: at large n and L the estimate is far below that of a
    /// shallow network. What is left are the 1/n of sampling and noise.
    #[test]
    fn vanishes_in_the_double_limit() {
        let star = LoopedParams::theta_star(2);
        let shallow = sampler(400, 1, 2000).estimate(&star).unwrap();
        let deep = sampler(400, 40, 2000).estimate(&star).unwrap();
        assert!(deep.norm < 0.1 * shallow.norm, "{} {}", deep.norm, shallow.norm);
        assert!(shallow.norm > 10.0 * shallow.noise);
    }

    /// Ten independent estimates scatter by about their standard error: a factor of two is 3.5 standard deviations
    /// of a scatter from ten.
    #[test]
    fn standard_errors_are_those_of_repetitions() {
        let star = LoopedParams::theta_star(2);
        let estimates: Vec<Neu> =
            (0..10).map(|seed| NeuSampler { seed, ..sampler(20, 2, 500) }.estimate(&star).unwrap()).collect();
        let mean = estimates.iter().map(|e| e.norm).sum::<f64>() / 10.0;
        let scatter = (estimates.iter().map(|e| (e.norm - mean).powi(2)).sum::<f64>() / 9.0).sqrt();
        let claimed = estimates.iter().map(|e| e.norm_sem).sum::<f64>() / 10.0;
        assert!((0.5..2.0).contains(&(scatter / claimed)), "{scatter} {claimed}");
    }

    #[test]
    fn divergence_is_an_error() {
        let mut wild = LoopedParams::theta_star(2);
        wild.value_row = [1.0, 1.0, 500.0];
        let error = sampler(10, 200, 10).estimate(&wild).unwrap_err();
        assert_eq!(error, NeuError::Diverged { num_layers: 200 });
    }
}
