//! The remark after Theorem 1: V_l replaced by α_l·V_l makes α_l the step size of layer l.

use ictd::random::{Purpose, Stream};
use ictd::td::{Estimator, WeightedSoftmaxTd};
use ictd::transformer::{AttentionParams, Block, Parameters, TransformerConfig};
use serde::Serialize;

use super::verify::{VerifyConfig, prompt, raise};
use crate::LabError;
use crate::studies::softmax;

/// The largest discrepancy of a construction.
#[derive(Clone, Debug, Serialize)]
pub struct StepSizeRow {
    pub block: Block,
    /// Prompts, each with step sizes of its own.
    pub trials: u64,
    pub layers: usize,
    /// Values of all columns and layers: scaled V against direct weighted softmax TD with these step sizes.
    pub discrepancy: f64,
}

/// Compares, with one step size U(0, 1.5) per layer, for every construction.
pub fn run(config: &VerifyConfig) -> Result<Vec<StepSizeRow>, LabError> {
    let (d, layers, gamma) = (config.feature_dim, config.num_layers, config.gamma);
    let attention = softmax()?;
    let star = AttentionParams::theta_star(d);
    let mut rows =
        Block::ALL.map(|block| StepSizeRow { block, trials: config.num_trials, layers, discrepancy: 0.0 });
    for trial in 0..config.num_trials {
        let context = prompt(config, trial)?;
        let step_sizes = Stream::new(config.seed, Purpose::Init, trial).uniform_vec(layers, 0.0, 1.5);
        let scaled = step_sizes.iter().map(|alpha| {
            AttentionParams::new(star.value_matrix().map(|v| alpha * v), star.score_matrix().clone())
        });
        let scaled = scaled.collect::<Result<Vec<_>, _>>()?;
        let td = WeightedSoftmaxTd { attention: attention.clone(), gamma, step_sizes };
        let direct = td.run(&context)?;
        for row in &mut rows {
            let parameters = Parameters::PerLayer(scaled.clone());
            let star = TransformerConfig::theta_star(attention.clone(), layers, gamma);
            let transformer = TransformerConfig { block: row.block, parameters, ..star };
            let tokens = transformer.check()?.tokens(&context)?;
            for (z, v) in tokens.iter().zip(&direct) {
                raise(&mut row.discrepancy, z.values(), v);
            }
        }
    }
    Ok(rows.to_vec())
}
