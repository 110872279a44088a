//! How much of its attention a state pays to its own visits.

use crate::context::ContextStatistics;
use crate::kernel::{Attention, AttentionError, Scores};
use crate::matrix::Matrix;
use crate::task::FiniteTask;

/// M_π(s, s) of every state (paper, eq:Mpi) for scores ⟨x_i, B x_j⟩ instead of ⟨x_i, x_j⟩: what Assumption 5.1 is
/// about, with a score block B that was learned.
pub fn self_weights(
    task: &FiniteTask,
    attention: &Attention,
    score_block: &Matrix,
) -> Result<Vec<f64>, AttentionError> {
    let statistics = ContextStatistics::expected(task);
    let scores = Scores { attention, block: Some(score_block), statistics: &statistics };
    let own = |s: usize| Ok(scores.column(s)?[s] * statistics.visits()[s]);
    (0..statistics.num_source_groups()).map(own).collect()
}
