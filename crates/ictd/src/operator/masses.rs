//! What normalising divides by.

use crate::context::ContextStatistics;
use crate::kernel::Attention;

/// Whether no two source states have the same features: kernels are strictly positive definite on distinct features only.
pub(super) fn are_distinct(statistics: &ContextStatistics) -> bool {
    let mut rows: Vec<&[f64]> = (0..statistics.num_source_groups()).map(|s| statistics.features(s)).collect();
    rows.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    rows.windows(2).all(|pair| pair[0] != pair[1])
}

/// log w(u) from the largest of the weights k(s, u)/w(u), which no sharpness makes vanish.
pub(super) fn log_mass(
    attention: &Attention,
    statistics: &ContextStatistics,
    weights: &[f64],
    u: usize,
) -> Option<f64> {
    let (s, weight) = weights.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let similarity = attention.kernel().similarity().of(statistics.features(s), statistics.features(u));
    Some(attention.kernel().log_weight(similarity)? - weight.ln())
}
