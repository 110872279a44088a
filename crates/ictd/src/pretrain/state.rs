//! What a training run carries along, and what it starts from.

use super::config::{PretrainConfig, Sign};
use super::metric::History;
use super::optimizer::Moments;
use crate::random::{Purpose, Stream};

/// Everything a run carries from one epoch to the next: with the config and the seed it determines the
/// rest of the run, to the last bit.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainState<E> {
    /// Epochs done.
    pub epoch: u64,
    /// Parameters, per pair V row by row, then A row by row.
    pub params: Vec<E>,
    /// The optimiser's moments.
    pub moments: Moments<E>,
    /// What was measured so far.
    pub history: History,
    /// The best step so far and its parameters.
    pub best: Best<E>,
}

/// The step with the largest min(V_em, A_em); ties go to the largest sign-aware joint score.
#[derive(Clone, Debug, PartialEq)]
pub struct Best<E> {
    /// The step (0 is the initial point).
    pub step: u64,
    /// min(V_em, A_em) there, and the sign-aware version.
    pub joint: [f64; 2],
    /// Parameters there.
    pub params: Vec<E>,
}

impl<E> TrainState<E> {
    /// Gradient steps done.
    pub fn steps(&self) -> u64 {
        self.history.steps()
    }
}

/// Xavier normal values on the trained entries, in the order of the layout.
pub(super) fn initial_params(config: &PretrainConfig, seed: u64) -> Vec<f64> {
    let shape = config.shape();
    let mut stream = Stream::new(seed, Purpose::Init, 0);
    let std = config.init.gain / (shape.num_rows() as f64).sqrt();
    let trained = shape.trained();
    let mut params: Vec<f64> = trained.iter().map(|&t| if t { std * stream.normal() } else { 0.0 }).collect();
    let d = shape.feature_dim;
    for pair in 0..shape.num_pairs() {
        for i in 0..d {
            impose(config.init.score_sign, 1.0, &mut params[shape.score_index(pair, i, i)]);
        }
        // The TD block's signs: (+, +, -) on reward, target and value.
        for (k, sign) in [1.0, 1.0, -1.0].into_iter().enumerate() {
            impose(config.init.value_sign, sign, &mut params[shape.value_index(pair, d + 2, d + k)]);
        }
    }
    params
}

/// Gives an entry the sign asked for, where that of the TD block is `td`.
fn impose(sign: Sign, td: f64, entry: &mut f64) {
    match sign {
        Sign::Random => {}
        Sign::Td => *entry = td * entry.abs(),
        Sign::Mirror => *entry = -td * entry.abs(),
    }
}
