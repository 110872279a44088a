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
