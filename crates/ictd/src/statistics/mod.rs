//! Statistics of samples: means and their errors, shares, ranks, straight lines; and the paper's error of value estimates.

pub mod fit;
mod rank;
mod share;

pub use rank::{quantile, spearman};
pub use share::wilson;

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
