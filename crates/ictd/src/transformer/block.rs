//! Layers on full token matrices, in both constructions of the paper: the plain path.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::params::AttentionParams;
use super::{ForwardError, Transformer};
use crate::context::{Context, Role};
use crate::kernel::KernelWeights;
use crate::matrix::Matrix;
use crate::prompt::{TokenMatrix, shift};

/// How a layer writes its two memory rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Block {
    /// Two heads (paper, eq:tfupdate, eq:tfupdate-prev, eq:dualhead-out): the aggregate (V Z K~)[d+2, :] is added to the current memory,
    /// and γ times its shift to the target memory.
    #[serde(rename = "dual")]
    DualHead,
    /// One head and the temporal shift module (paper, eq:tsm-forward): Z' = Z + V Z K~ on all rows, then the
    /// target memory is replaced by γ times the shifted current memory.
    #[serde(rename = "tsm")]
    TemporalShift,
}

/// The name must be `dual` or `tsm`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("block is '{0}', expected dual or tsm")]
pub struct BlockError(String);

impl Block {
    /// Both constructions.
    pub const ALL: [Block; 2] = [Block::DualHead, Block::TemporalShift];

    /// The name as typed and printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Block::DualHead => "dual",
            Block::TemporalShift => "tsm",
        }
    }

    /// The layer Z ↦ Z' with step size α multiplying V.
    pub(super) fn layer(
        self,
        params: &AttentionParams,
        weights: &KernelWeights,
        step_size: f64,
        gamma: f64,
        tokens: &TokenMatrix,
        roles: &[Role],
    ) -> TokenMatrix {
        if self == Block::TemporalShift {
            return temporal_shift(attend(params, weights, step_size, tokens), gamma, roles);
        }
        let d = tokens.feature_dim();
        let messages = params.value_matrix().matmul(tokens.matrix());
        let aggregate = Matrix::from_fn(1, roles.len(), |_, j| messages[(d + 2, j)]).matmul(weights.matrix());
        let mut next = tokens.clone();
        let add = |row: &mut [f64], update: &[f64], factor: f64| {
            row.iter_mut().zip(update).for_each(|(z, u)| *z += factor * u);
        };
        add(next.matrix_mut().row_mut(d + 2), aggregate.row(0), step_size);
        add(next.matrix_mut().row_mut(d + 1), &shift(aggregate.row(0), roles), step_size * gamma);
        next
    }
}

/// Z_{l+½} = Z + α V Z K~ (paper, eq:zhalf): the attention half of the single-head layer.
pub fn attend(
    params: &AttentionParams,
    weights: &KernelWeights,
    step_size: f64,
    tokens: &TokenMatrix,
) -> TokenMatrix {
    let update = params.value_matrix().matmul(tokens.matrix()).matmul(weights.matrix());
    let z = tokens.matrix();
    TokenMatrix::from_matrix(Matrix::from_fn(z.num_rows(), z.num_cols(), |i, j| {
        z[(i, j)] + step_size * update[(i, j)]
    }))
}

/// The temporal shift module: U Z + W Z Π, which clears the target memory and fills it with γ times
/// the current memory moved to the predecessor columns (paper, eq:tsm and eq:tsm-forward).
pub fn temporal_shift(mut tokens: TokenMatrix, gamma: f64, roles: &[Role]) -> TokenMatrix {
    let d = tokens.feature_dim();
    let targets = shift(tokens.values(), roles);
    for (z, target) in tokens.matrix_mut().row_mut(d + 1).iter_mut().zip(targets) {
        *z = gamma * target;
    }
    tokens
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Block {
    type Err = BlockError;
    fn from_str(name: &str) -> Result<Self, BlockError> {
        Self::ALL.into_iter().find(|b| b.as_str() == name).ok_or_else(|| BlockError(name.to_owned()))
    }
}

impl Transformer {
    /// The token matrices Z_0, …, Z_L: the reference path, exactly as the paper writes it (eq:tfupdate,
    /// eq:tfupdate-prev; eq:tsm-forward with the temporal shift).
    ///
    /// Attention is computed once when it does not depend on the layer.
    pub fn tokens(&self, context: &Context) -> Result<Vec<TokenMatrix>, ForwardError> {
        Ok(self.trace(context)?.0)
    }

    /// The token matrices Z_0, …, Z_L and the attention matrices of the layers; a single one stands
    /// for all layers when attention does not depend on the layer.
    pub fn trace(&self, context: &Context) -> Result<(Vec<TokenMatrix>, Vec<KernelWeights>), ForwardError> {
        self.check_dim(context.feature_dim())?;
        let (roles, d, config) = (context.roles(), context.feature_dim(), &self.config);
        let mut tokens = vec![TokenMatrix::prompt(context)];
        let mut attention: Vec<KernelWeights> = Vec::new();
        for layer in 0..config.num_layers {
            let params = self.params(layer, d);
            // Dual heads write memory rows only, whatever V says.
            let inputs_change = config.block == Block::TemporalShift && params.overwrites_inputs();
            let reusable = self.is_tied() && !inputs_change && !params.scores_memory();
            let z = &tokens[layer];
            if layer == 0 || !reusable {
                attention.push(KernelWeights::new(&config.attention, params.score_matrix(), z, roles)?);
            }
            let weights = &attention[attention.len() - 1];
            let next = config.block.layer(&params, weights, self.step_size(layer), config.gamma, z, roles);
            if next.matrix().as_slice().iter().any(|x| !x.is_finite()) {
                return Err(ForwardError::Diverged { layer: layer + 1 });
            }
            tokens.push(next);
        }
        Ok((tokens, attention))
    }
}
