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

/// Quantile of Student's t at 97.5 %.
fn student(degrees: usize) -> f64 {
    STUDENT.get(degrees.wrapping_sub(1)).copied().unwrap_or(2.1)
}

/// Mean of independent numbers and half the width of its 95 % interval; `None` for fewer than two.
pub fn mean(values: &[f64]) -> Option<(f64, f64)> {
    let found = MeanSem::of(values).filter(|m| m.count >= 2)?;
    Some((found.mean, student(found.count - 1) * found.sem))
}

/// Least squares with an interval from the residuals; `None` for fewer than three points or one x.
pub fn line(points: &[(f64, f64)]) -> Option<Slope> {
    let n = points.len() as f64;
    let (mean_x, mean_y) =
        (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let spread: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    if points.len() < 3 || !(spread > 0.0) {
        return None;
    }
    let slope = points.iter().map(|p| (p.0 - mean_x) * (p.1 - mean_y)).sum::<f64>() / spread;
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

    /// R's lm(y ~ x) on (1,1), (2,3), (3,2), (4,5): slope 1.1, standard error 0.5196, t(2) = 4.303.
    #[test]
    fn slopes_and_intervals_are_those_of_least_squares() {
        let fit = line(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 5.0)]).unwrap();
        assert!((fit.slope - 1.1).abs() < 1e-12 && (fit.intercept - 0.0).abs() < 1e-12);
        assert!((fit.half_width - 4.303 * 0.519_615).abs() < 1e-3);
        let fit = power(&[(1.0, 2.0), (10.0, 0.2), (100.0, 0.02)]).unwrap();
        assert!((fit.slope + 1.0).abs() < 1e-12);
        assert_eq!(line(&[(1.0, 1.0), (2.0, 2.0)]), None);
        // Variance 1 of three numbers, t(2) = 4.303.
        let (middle, half) = mean(&[1.0, 2.0, 3.0]).unwrap();
        assert!(middle == 2.0 && (half - 4.303 / 3f64.sqrt()).abs() < 1e-12);
        assert_eq!(mean(&[1.0]), None);
    }
}
