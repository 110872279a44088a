//! The layer that a certificate of a context is about.

use ictd::context::{Context, ContextStatistics};
use ictd::operator::StateOperator;

use super::parts::unit_features;
use super::{LayerConfig, MAX_STATES, admit, check_discount, context_bytes};
use crate::error::{LabError, check_range};

/// The layer of a context as a linear map; refuses what has more states than matrices are formed for.
pub(crate) fn operator_of(
    context: &Context,
    gamma: f64,
    unit_norm: bool,
    config: &LayerConfig,
) -> Result<StateOperator, LabError> {
    check_discount(gamma)?;
    let attention = config.attention()?;
    let statistics = ContextStatistics::per_state(context);
    check_range("distinct states", statistics.num_groups(), 1..=MAX_STATES)?;
    let d = statistics.feature_dim();
    admit(statistics.num_groups(), d, context_bytes(context.num_columns(), d), false)?;
    let statistics = if unit_norm { unit_features(&statistics)? } else { statistics };
    Ok(StateOperator::of(statistics, &attention, gamma)?)
}
