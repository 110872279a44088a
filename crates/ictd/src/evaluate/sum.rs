//! Sums whose order does not show.

/// A running sum with the rounding errors of its additions (Neumaier's compensated sum, branch-free): the result carries
/// about twice the digits of an `f64` until it is rounded once at the end, so that the order of the terms shows in no more than
/// one rounding of 10¹⁰ or so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    /// Adds a term.
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        let sum = self.high + x;
        let back = sum - self.high;
        self.low += (self.high - (sum - back)) + (x - back);
        self.high = sum;
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        self.add(other.high);
        self.low += other.low;
    }

    /// The sum, rounded.
    pub fn value(self) -> f64 {
        self.high + self.low
    }

    /// Σx² - (Σx)(Σy)/n of this sum of products and two sums, in twice the digits: what is left after centring.
    pub fn centred(self, x: Self, y: Self, n: f64) -> f64 {
        // (Σx)(Σy)/n as mean of x times Σy, each product with its rounding error.
        let mean = x.value() / n;
        let mean_rest = (libm::fma(-mean, n, x.high) + x.low) / n;
        let product = mean * y.high;
        let rest = libm::fma(mean, y.high, -product) + mean * y.low + mean_rest * y.value();
        (self.high - product) + (self.low - rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cancels_is_not_lost() {
        let mut sum = Sum::default();
        [1e16, 1.0, -1e16, 1e-3].into_iter().for_each(|x| sum.add(x));
        assert_eq!(sum.value(), 1.001);
    }

    #[test]
    fn centring_keeps_the_spread_of_numbers_far_from_zero() {
        let (mut x, mut q) = (Sum::default(), Sum::default());
        for k in 0..1000 {
            let value = 1e6 + f64::from(k % 2);
            x.add(value);
            q.add(value * value);
        }
        // The squares are integers below 2⁵³, so that only centring rounds: 250 out of 10¹⁵.
        assert!((q.centred(x, x, 1000.0) - 250.0).abs() < 1e-9);
    }
}
