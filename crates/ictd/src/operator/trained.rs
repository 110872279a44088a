//! The operator of a trained layer: TD with scores, rewards and a discount of its own.

use super::{OperatorError, StateOperator};
use crate::context::ContextStatistics;
use crate::kernel::Attention;
use crate::transformer::{AttentionParams, Block, ValueRow};

/// A trained layer as a step of TD, so that what is known of TD says what its depth does.
///
/// With V's last row (a, p_r, p_t, p_v), a layer with step size α adds α times weighted messages
/// p_r·r + p_t·γ·v' + p_v·v + ⟨a, x⟩. Where p_v < 0 ≤ p_t these are |p_v| times the TD errors of another problem: discount
/// γ·p_t/|p_v|, rewards (p_r·r + ⟨a, x⟩)/|p_v|, and step size α·|p_v|. With a linear kernel (−V, −A) is the same layer as (V, A), so that
/// either may have these signs.
#[derive(Clone, Debug)]
pub struct TrainedLayer {
    /// The layer on the states, with the scores of A's feature block, and with that discount and those rewards.
    pub operator: StateOperator,
    /// |p_v|: what a step size is multiplied by.
    pub step_factor: f64,
}

impl TrainedLayer {
    /// The layer of parameters that all layers share, on given statistics. Refuses what is no step of TD, or not on states.
    pub fn of(
        mut statistics: ContextStatistics,
        attention: &Attention,
        gamma: f64,
        params: &AttentionParams,
        block: Block,
    ) -> Result<Self, OperatorError> {
        let (expected, found) = (params.feature_dim(), statistics.feature_dim());
        if expected != found {
            return Err(OperatorError::FeatureDim { expected, found });
        }
        if params.needs_tokens(block) {
            return Err(OperatorError::NeedsTokens);
        }
        let is_mirrored =
            attention.kernel().linear_scale().is_some() && ValueRow::new(params.value_row()).value > 0.0;
        let sign = if is_mirrored { -1.0 } else { 1.0 };
        let numbers: Vec<f64> = params.value_row().iter().map(|x| sign * x).collect();
        let row = ValueRow::new(&numbers);
        // Negated, so that NaN is refused.
        if !(row.value < 0.0 && row.target >= 0.0) {
            return Err(OperatorError::NotTd { target: row.target, value: row.value });
        }
        let step_factor = -row.value;
        let sums = (0..statistics.num_source_groups()).map(|s| {
            let of_features: f64 = row.features.iter().zip(statistics.features(s)).map(|(a, x)| a * x).sum();
            (row.reward * statistics.reward_sums()[s] + statistics.visits()[s] * of_features) / step_factor
        });
        let sums = sums.collect();
        statistics.set_reward_sums(sums);
        let gamma = gamma * row.target / step_factor;
        let block = params.score_block().map(|x| sign * x);
        let operator = StateOperator::with_block(statistics, attention, gamma, Some(block))?;
        Ok(Self { operator, step_factor })
    }
}
