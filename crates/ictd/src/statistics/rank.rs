//! Ranks and quantiles.

/// Spearman's rank correlation: Pearson's, of ranks, where ties share their mean rank; 0 when one list is
/// constant.
pub fn spearman(x: &[f64], y: &[f64]) -> f64 {
    let centred_ranks = |values: &[f64]| -> Vec<f64> {
        let below = |v: f64| values.iter().filter(|w| **w < v).count() as f64;
        let equal = |v: f64| values.iter().filter(|w| **w == v).count() as f64;
        values.iter().map(|&v| below(v) + 0.5 * (equal(v) - values.len() as f64)).collect()
    };
    let (a, b) = (centred_ranks(x), centred_ranks(y));
    let product = |u: &[f64], v: &[f64]| u.iter().zip(v).map(|(p, q)| p * q).sum::<f64>();
    let size = (product(&a, &a) * product(&b, &b)).sqrt();
    if size == 0.0 { 0.0 } else { product(&a, &b) / size }
}

/// The quantile of sorted numbers, interpolated linearly between them; 0 of none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let at = q * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (at - below as f64) * (sorted[above] - sorted[below])
}
