//! The parameters that training starts from.

use super::config::{PretrainConfig, Sign};
use crate::random::{Purpose, Stream};

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
