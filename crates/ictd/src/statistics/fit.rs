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

/// Quantiles of Student's t at 97.5 % for 1 to 10 degrees of freedom.
const STUDENT: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/// Quantile of Student's t at 97.5 %: beyond ten degrees of freedom by its expansion about the normal's (Abramowitz and Stegun,
/// 26.7.5), which is then good to 1e-5. Infinite without a degree.
pub(crate) fn student(degrees: usize) -> f64 {
    if degrees <= STUDENT.len() {
        return STUDENT.get(degrees.wrapping_sub(1)).copied().unwrap_or(f64::INFINITY);
    }
    let (z, n) = (1.959_963_984_540_054_f64, degrees as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    let fourth = (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5) - 1920.0 * z.powi(3) - 945.0 * z)
        / 92_160.0;
    z + (first + (second + (third + fourth / n) / n) / n) / n
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Values by SciPy's `t.ppf`.
    #[test]
    fn quantiles_of_student_are_those_of_tables() {
        for (degrees, expected) in [(4, 2.776_445), (11, 2.200_985), (30, 2.042_272), (255, 1.969_311)] {
            // Three digits are in the table, five in the expansion.
            let tolerance = if degrees <= 10 { 5e-4 } else { 2e-5 };
            assert!((student(degrees) - expected).abs() < tolerance, "{degrees}");
        }
    }
}
