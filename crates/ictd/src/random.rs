//! Named streams of random numbers: same seed, same numbers, on every machine.
//!
//! The generator is ChaCha with 8 rounds. A [`Stream`] is addressed by a seed, a [`Purpose`] and an
//! index, so what one part of an experiment draws never depends on what another part drew, on
//! thread counts, or on which other seeds ran.
//!
//! # Numerics
//! Uniforms are exact dyadic rationals and normals use `libm`'s software logarithm, not the
//! platform's, so every draw is bit-identical on all platforms.

use std::convert::Infallible;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng, TryRng};

/// Streams of [`Purpose::Evaluation`] that a measurement draws from: its task, its trajectory, its queries.
pub(crate) const EVALUATION_STREAMS: u64 = 3;

/// What the numbers of a stream are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// Drawing a task: transition matrix, rewards, features, initial law.
    Task,
    /// Sampling a trajectory of a task.
    Trajectory,
    /// Drawing prompts that belong to no task.
    Prompt,
    /// Monte-Carlo estimates of values.
    MonteCarlo,
    /// Initial parameters of a training run.
    Init,
    /// Queries that do not come from the trajectory.
    Query,
    /// Tasks and trajectories that measure a training run.
    Evaluation,
    /// Folds, landmarks and resampled episodes in the evaluation of a log.
    Resampling,
    /// A purpose of one's own; no other part of this crate draws from its streams.
    User(u8),
}

impl Purpose {
    /// The number of the purpose in a stream's address. Numbers are part of the file format of an
    /// experiment: never change them.
    fn number(self) -> u64 {
        match self {
            Self::Task => 1,
            Self::Trajectory => 2,
            Self::Prompt => 3,
            Self::MonteCarlo => 4,
            Self::Init => 5,
            Self::Query => 6,
            Self::Evaluation => 7,
            Self::Resampling => 8,
            Self::User(k) => 256 + u64::from(k),
        }
    }
}

/// An independent stream of random numbers. It is a generator in the sense of the crate `rand`, whose
/// distributions can draw from it.
///
/// ```
/// use ictd::random::{Purpose, Stream};
/// let mut a = Stream::new(7, Purpose::Task, 0);
/// let mut b = Stream::new(7, Purpose::Task, 0);
/// assert_eq!(a.uniform(), b.uniform());
/// ```
#[derive(Debug)]
pub struct Stream {
    rng: ChaCha8Rng,
    address: (u64, Purpose, u64),
}

impl Stream {
    /// Opens the stream `(seed, purpose, index)`. Indices from 2⁴⁸ on wrap around.
    pub fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream((purpose.number() << 48) | (index & ((1 << 48) - 1)));
        Self { rng, address: (seed, purpose, index) }
    }

    /// What it was opened as, for sources that number what they draw instead of drawing it from the stream.
    pub fn address(&self) -> (u64, Purpose, u64) {
        self.address
    }

    /// A uniform draw from the open interval (0, 1): (k + ½)·2⁻⁵² with k uniform in 0..2⁵².
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        ((self.rng.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }

    /// A uniform draw between `low` and `high`.
    #[inline]
    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// `len` uniform draws between `low` and `high`.
    pub fn uniform_vec(&mut self, len: usize, low: f64, high: f64) -> Vec<f64> {
        (0..len).map(|_| self.uniform_in(low, high)).collect()
    }

    /// A uniform integer in `0..bound`, without bias (multiply-shift with rejection: D. Lemire,
    /// "Fast random integer generation in an interval", 2019).
    ///
    /// # Panics
    /// When `bound` is 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        assert!(bound > 0, "below: the bound must be positive");
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from(self.rng.next_u32()) * u64::from(bound);
            if product as u32 >= threshold {
                return (product >> 32) as u32;
            }
        }
    }

    /// A standard normal draw, by Marsaglia's polar method (one of the pair is dropped, so that the
    /// stream carries no hidden state).
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (self.uniform_in(-1.0, 1.0), self.uniform_in(-1.0, 1.0));
            let s = x * x + y * y;
            if s < 1.0 && s > 0.0 {
                return x * (-2.0 * libm::log(s) / s).sqrt();
            }
        }
    }

    /// An exponential draw of mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// `len` probabilities that sum to 1, all such vectors being equally likely: Dirichlet(1, …, 1), drawn as exponentials
    /// divided by their sum.
    ///
    /// ```
    /// use ictd::random::{Purpose, Stream};
    /// let p = Stream::new(7, Purpose::Task, 0).dirichlet(4);
    /// assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-15 && p.iter().all(|p| *p > 0.0));
    /// ```
    pub fn dirichlet(&mut self, len: usize) -> Vec<f64> {
        let draws: Vec<f64> = (0..len).map(|_| self.exponential()).collect();
        let total: f64 = draws.iter().sum();
        draws.into_iter().map(|x| x / total).collect()
    }

    /// An index drawn with the probabilities whose running sums are `cumulative`.
    ///
    /// The draw is scaled by the last running sum, so rounding in the sums never selects an index
    /// past the end, and an index of probability 0 is never selected.
    #[inline]
    pub fn categorical(&mut self, cumulative: &[f64]) -> usize {
        let total = cumulative[cumulative.len() - 1];
        let u = self.uniform() * total;
        cumulative.partition_point(|&c| c <= u).min(cumulative.len() - 1)
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.rng.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.rng.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.rng.try_fill_bytes(bytes)
    }
}

/// Running sums of weights, for [`Stream::categorical`].
pub(crate) fn running_sums(weights: &[f64]) -> Vec<f64> {
    let mut total = 0.0;
    let add = |w: &f64| {
        total += w;
        total
    };
    weights.iter().map(add).collect()
}
