//! How much of its attention a state pays to its own visits.

use crate::context::ContextStatistics;
use crate::kernel::{Attention, AttentionError, GroupWeights};
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
    let own = |s: usize| {
        Ok(GroupWeights::column_of(attention, score_block, &statistics, s)?[s] * statistics.visits()[s])
    };
    (0..statistics.num_source_groups()).map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::KernelName;
    use crate::operator::StateOperator;
    use crate::random::{Purpose, Stream};
    use crate::task::Boyan;

    /// At B = I they are the operator's, which has no score block; for another B they are the paper's formula.
    #[test]
    fn weights_are_the_formula() {
        let task = Boyan::paper().generate(&mut Stream::new(3, Purpose::Task, 0)).unwrap();
        let attention = Attention::new(KernelName::Softmax.at(1.2).unwrap(), 0.0).unwrap();
        let expected = StateOperator::population(&task, &attention).unwrap().self_weights();
        assert_eq!(self_weights(&task, &attention, &Matrix::identity(4)).unwrap(), expected);

        let block = Matrix::from_fn(4, 4, |i, j| 0.3 * i as f64 - 0.5 * j as f64);
        let found = self_weights(&task, &attention, &block).unwrap();
        let (x, mu) = (task.features(), task.stationary_distribution());
        let weight = |u: usize, s: usize| {
            let keys = block.mul_vec(x.row(s));
            mu[u] * (x.row(u).iter().zip(keys).map(|(a, b)| a * b).sum::<f64>() / 1.2).exp()
        };
        for s in 0..64 {
            let formula = weight(s, s) / (0..64).map(|u| weight(u, s)).sum::<f64>();
            // A sum of 64 positive terms.
            assert!((found[s] - formula).abs() <= 1e-13 * formula, "{s}");
        }
    }
}
