//! Intervals of shares.

/// Wilson's 95 % interval of a share.
pub fn wilson(successes: u64, total: u64) -> (f64, f64) {
    let (z, n) = (1.959_963_984_540_054, total as f64);
    let p = successes as f64 / n;
    let centre = p + z * z / (2.0 * n);
    let spread = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    (((centre - spread) / scale).max(0.0), ((centre + spread) / scale).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known values: 0 of 100 gives (0, 0.0370), 50 of 100 gives (0.4038, 0.5962).
    #[test]
    fn wilson_intervals_are_the_textbook_s() {
        let (low, high) = wilson(0, 100);
        // Centre and spread are equal for no successes, up to rounding.
        assert!(low < 1e-15 && (high - 0.0370).abs() < 1e-4);
        let (low, high) = wilson(50, 100);
        assert!((low - 0.4038).abs() < 1e-4 && (high - 0.5962).abs() < 1e-4);
    }
}
