//! Straight lines through points, with intervals.

use serde::Serialize;

use super::MeanSem;

/// A fitted slope.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slope {
    /// The slope.
    pub slope: f64,
    /// Half the width of its 95 % interval.
    pub half_width: f64,
    /// Height of the line at x = 0.
    pub intercept: f64,
    /// Points.
    pub points: usize,
}

/// Quantiles of Student's t at 97.5 % for 1 to 10 degrees of freedom; beyond, within 7 % of the normal's.
const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/// Quantile of Student's t at 97.5 %, rounded up beyond ten degrees of freedom.
pub(crate) fn student(degrees: usize) -> f64 {
    STUDENT.get(degrees.wrapping_sub(1)).copied().unwrap_or(2.1)
}

/// Mean of independent numbers and half the width of its 95 % interval; `None` for fewer than two.
pub fn mean(values: &[f64]) -> Option<(f64, f64)> {
    let found = MeanSem::of(values).filter(|m| m.count >= 2)?;
    Some((found.mean, student(found.count - 1) * found.sem))
}

/// Least squares with an interval from the residuals; `None` for fewer than three points, one x or points that are no numbers.
pub fn line(points: &[(f64, f64)]) -> Option<Slope> {
    let n = points.len() as f64;
    let (mean_x, mean_y) =
        (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let spread: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    if points.len() < 3 || !(spread > 0.0) {
        return None;
    }
    let slope = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum::<f64>() / spread;
    // Through what is no number there is no line.
    if !slope.is_finite() {
        return None;
    }
    let intercept = mean_y - slope * mean_x;
    let residual: f64 = points.iter().map(|p| (p.1 - intercept - slope * p.0).powi(2)).sum();
    let t = student(points.len() - 2);
    Some(Slope {
        slope,
        half_width: t * (residual / (n - 2.0) / spread).sqrt(),
        intercept,
        points: points.len(),
    })
}

/// The slope of log y against log x.
pub fn power(points: &[(f64, f64)]) -> Option<Slope> {
    line(&points.iter().map(|p| (p.0.ln(), p.1.ln())).collect::<Vec<_>>())
}
