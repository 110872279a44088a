//! How the sizes of numbers are told in a judgement.

use crate::statistics::largest;

/// Differences below this share of the numbers that they are taken of are rounding.
pub(super) const ROUNDING: f64 = 1e-12;

/// How sizes are told: over the spread of values, or over their size where they are all alike.
pub(super) struct Unit {
    pub size: f64,
    pub name: &'static str,
}

impl Unit {
    pub fn of(values: &[f64]) -> Self {
        let size = root_mean_square(values);
        let mean = values.iter().map(|v| v / values.len() as f64).sum::<f64>();
        let spread = root_mean_square(&values.iter().map(|v| v - mean).collect::<Vec<_>>());
        if spread > ROUNDING * size {
            Self { size: spread, name: "their spread" }
        } else {
            Self { size, name: "their size" }
        }
    }

    /// How far values are from others; `None` where there is nothing to measure it with.
    pub fn apart(&self, a: &[f64], b: &[f64]) -> Option<f64> {
        let distance = root_mean_square(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>());
        let share = if distance == 0.0 { 0.0 } else { distance / self.size };
        share.is_finite().then_some(share)
    }
}

/// √(Σ x²/n), also where squares overflow.
fn root_mean_square(x: &[f64]) -> f64 {
    let top = largest(x.iter().map(|x| x.abs()));
    if !(top > 0.0 && top.is_finite()) {
        return top;
    }
    top * (x.iter().map(|x| (x / top) * (x / top)).sum::<f64>() / x.len() as f64).sqrt()
}

/// `42 %`, `4.2 %`, `0.0042 %`.
pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        0.0 => "0 %".into(),
        p if p < 1e-6 => "less than 0.000001 %".into(),
        p if p > 1e6 => format!("{p:.0e} %"),
        p => {
            let decimals = (1 - p.log10().floor() as i32).max(0) as usize;
            format!("{p:.decimals$} %")
        }
    }
}

/// Four decimals for ordinary numbers, powers of ten for very large and very small ones.
pub(super) fn plain(x: f64) -> String {
    if x == 0.0 || (1e-3..1e6).contains(&x.abs()) { format!("{x:.4}") } else { format!("{x:.4e}") }
}

/// A factor; near 1 its distance from it, which is what counts.
pub(super) fn factor(factor: f64) -> String {
    if factor < 1.0001 { format!("1 + {:.1e}", factor - 1.0) } else { format!("{factor:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_told_with_two_digits() {
        for (share, text) in [(0.0, "0 %"), (0.421, "42 %"), (0.0421, "4.2 %"), (4.2e-5, "0.0042 %")] {
            assert_eq!(percent(share), text);
        }
        assert_eq!((percent(1e-12), percent(1e9)), ("less than 0.000001 %".into(), "1e11 %".into()));
        // Squares of these overflow, or vanish.
        assert_eq!((root_mean_square(&[3e200, -3e200]), root_mean_square(&[5e-324])), (3e200, 5e-324));
    }
}
