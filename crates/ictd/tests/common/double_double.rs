//! Numbers of twice the precision: unevaluated sums of two doubles, about 31 decimal digits. For checking what is
//! claimed about doubles.
#![allow(dead_code, missing_docs)]

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dd {
    pub high: f64,
    pub low: f64,
}

/// a + b as a rounded sum and its exact error (Knuth).
fn two_sum(a: f64, b: f64) -> Dd {
    let high = a + b;
    let part = high - a;
    Dd { high, low: (a - (high - part)) + (b - part) }
}

/// The same for |a| ≥ |b| (Dekker).
fn quick_two_sum(a: f64, b: f64) -> Dd {
    let high = a + b;
    Dd { high, low: b - (high - a) }
}

fn two_product(a: f64, b: f64) -> Dd {
    let high = a * b;
    Dd { high, low: a.mul_add(b, -high) }
}

impl Dd {
    pub const ZERO: Self = Self { high: 0.0, low: 0.0 };
    pub const ONE: Self = Self { high: 1.0, low: 0.0 };

    pub fn abs(self) -> Self {
        if self.high < 0.0 { -self } else { self }
    }

    pub fn max(self, other: Self) -> Self {
        if other > self { other } else { self }
    }

    pub fn is_finite(self) -> bool {
        self.high.is_finite() && self.low.is_finite()
    }

    /// e^x: x = k·ln 2 + r, Taylor's series at r/512, squared nine times.
    pub fn exp(self) -> Self {
        const LN_2: Dd = Dd { high: std::f64::consts::LN_2, low: 2.319_046_813_846_299_6e-17 };
        if self.high < -740.0 {
            return Self::ZERO;
        }
        let k = (self.high / LN_2.high).round();
        let r = (self - LN_2 * Dd::from(k)) * Dd::from(1.0 / 512.0);
        // e^r - 1, so that squaring does not lose what is small beside 1; |r| < 7e-4, so 12 terms reach 1e-43.
        let mut term = r;
        let mut sum = r;
        for n in 2..=12 {
            term = term * r / Dd::from(f64::from(n));
            sum += term;
        }
        for _ in 0..9 {
            sum = sum * Dd::from(2.0) + sum * sum;
        }
        let value = sum + Self::ONE;
        // In two steps, so that neither factor leaves the doubles.
        let half = (k / 2.0).trunc();
        let (a, b) = (half.exp2(), (k - half).exp2());
        Self { high: value.high * a * b, low: value.low * a * b }
    }
}

impl From<f64> for Dd {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl PartialOrd for Dd {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self.high, self.low).partial_cmp(&(other.high, other.low))
    }
}

impl Neg for Dd {
    type Output = Self;
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Add for Dd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (s, t) = (two_sum(self.high, other.high), two_sum(self.low, other.low));
        let s = quick_two_sum(s.high, s.low + t.high);
        quick_two_sum(s.high, s.low + t.low)
    }
}

impl Sub for Dd {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Dd {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let p = two_product(self.high, other.high);
        quick_two_sum(p.high, p.low + (self.high * other.low + self.low * other.high))
    }
}

impl Div for Dd {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let first = self.high / other.high;
        let rest = self - other * Dd::from(first);
        let second = rest.high / other.high;
        let rest = rest - other * Dd::from(second);
        quick_two_sum(first, second) + Dd::from(rest.high / other.high)
    }
}

impl AddAssign for Dd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Dd {
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.fold(Self::ZERO, Add::add)
    }
}

/// The solution of a·x = b by Gaussian elimination with partial pivoting on rows divided by their largest entry;
/// `None` when a pivot is below 1e-26 of it, where fewer than five digits would be left.
pub fn solve(mut a: Vec<Vec<Dd>>, mut b: Vec<Dd>) -> Option<Vec<Dd>> {
    let n = b.len();
    for i in 0..n {
        let largest = a[i].iter().fold(Dd::ZERO, |m, x| m.max(x.abs()));
        if !(largest.high > 0.0 && largest.is_finite()) {
            return None;
        }
        a[i].iter_mut().for_each(|x| *x = *x / largest);
        b[i] = b[i] / largest;
    }
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i][k].abs().high.total_cmp(&a[j][k].abs().high))?;
        a.swap(k, pivot);
        b.swap(k, pivot);
        if !(a[k][k].abs().high > 1e-26) {
            return None;
        }
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                let change = factor * a[k][j];
                a[i][j] = a[i][j] - change;
            }
            let change = factor * b[k];
            b[i] = b[i] - change;
        }
    }
    for k in (0..n).rev() {
        let known: Dd = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - known) / a[k][k];
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_has_thirty_digits() {
        let third = Dd::ONE / Dd::from(3.0);
        assert!((third * Dd::from(3.0) - Dd::ONE).abs().high < 1e-31);
        // e and e^-50 to 32 digits: 2.7182818284590452353602874713526625, 1.9287498479639177830173428165270125e-22.
        let e = Dd { high: std::f64::consts::E, low: 1.445_646_891_729_250_2e-16 };
        assert!((Dd::ONE.exp() - e).abs().high < 1e-30);
        assert!((Dd::from(-50.0).exp() * Dd::from(50.0).exp() - Dd::ONE).abs().high < 1e-29);
        // The Hilbert matrix of size 8 has condition number 1.5e10.
        let a: Vec<Vec<Dd>> =
            (0..8).map(|i| (0..8).map(|j| Dd::ONE / Dd::from((i + j + 1) as f64)).collect()).collect();
        let b: Vec<Dd> = a.iter().map(|row| row.iter().copied().sum()).collect();
        assert!(solve(a, b).unwrap().iter().all(|x| (*x - Dd::ONE).abs().high < 1e-19));
    }
}
