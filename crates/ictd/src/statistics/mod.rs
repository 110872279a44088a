//! Statistics of samples: means and their errors, centres, shares, ranks, straight lines; and the paper's error of value estimates.

mod centre;
pub mod fit;

pub use centre::{Bootstrap, Centre};

/// The mean square value error Σ_s μ(s)·(v̂(s) - v(s))² (paper, caption of Figure 1).
///
/// # Panics
/// When lengths differ.
pub fn msve(estimates: &[f64], values: &[f64], stationary: &[f64]) -> f64 {
    assert!(estimates.len() == values.len() && values.len() == stationary.len(), "msve: lengths differ");
    let squares = estimates.iter().zip(values).map(|(a, b)| (a - b) * (a - b));
    squares.zip(stationary).map(|(e, mu)| mu * e).sum()
}

/// The largest of sizes, 0 of none; NaN when one is NaN, so that no NaN is lost among numbers.
pub fn largest(sizes: impl IntoIterator<Item = f64>) -> f64 {
    sizes.into_iter().fold(0.0, |m: f64, x| if m.is_nan() || x.is_nan() { f64::NAN } else { m.max(x) })
}

/// A mean with its standard error.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct MeanSem {
    /// Sample mean.
    pub mean: f64,
    /// Standard error of the mean, from the sample variance with n - 1; NaN-free: 0 for one sample.
    pub sem: f64,
    /// Number of samples n.
    pub count: usize,
}

impl MeanSem {
    /// Mean and standard error of samples; `None` when there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let count = samples.len();
        if count == 0 {
            return None;
        }
        let n = count as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
        let sem = if count == 1 { 0.0 } else { (squares / (n - 1.0) / n).sqrt() };
        Some(Self { mean, sem, count })
    }
}

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

/// Wilson's 95 % interval of a share.
pub fn wilson(successes: u64, total: u64) -> (f64, f64) {
    let (z, n) = (1.959_963_984_540_054, total as f64);
    let p = successes as f64 / n;
    let centre = p + z * z / (2.0 * n);
    let spread = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    // At the ends the two are equal but for rounding.
    let low = if successes == 0 { 0.0 } else { (centre - spread) / scale };
    let high = if successes == total { 1.0 } else { (centre + spread) / scale };
    (low.max(0.0), high.min(1.0))
}
