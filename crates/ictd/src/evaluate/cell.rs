//! What is kept of the transitions between two states, and of the returns from a state.

use super::sum::Sum;
use super::table::Merge;

/// Transitions from one state to another: how many, and their rewards.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardCell {
    /// Number of transitions.
    pub count: f64,
    /// Σ r.
    pub sum: f64,
    /// Σ (r - mean r)².
    pub spread: f64,
}

impl RewardCell {
    /// Σ (r + x)², from which Σ δ² follows with x = γ·v(s') - v(s).
    pub fn squares(&self, x: f64) -> f64 {
        let mean = self.sum / self.count + x;
        self.count * mean * mean + self.spread
    }
}

/// Returns from a state in episodes that end in the same last state, or none: with g the discounted sum of rewards to the
/// end of the episode and d = γ^(steps to the end) where the episode was truncated, else 0, the return is g + d·v(last).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReturnCell {
    /// Number of visits.
    pub count: f64,
    /// Σ g.
    pub sum: f64,
    /// Σ d.
    pub discount: f64,
    /// Σ (g - mean g)².
    pub spread: f64,
    /// Σ (d - mean d)².
    pub discount_spread: f64,
    /// Σ (g - mean g)(d - mean d).
    pub joint_spread: f64,
}

impl ReturnCell {
    /// Σ (v - g - d·v_last)² over the visits, without cancellation: what is left of the means, and the spread about them.
    pub fn squares(&self, v: f64, v_last: f64) -> f64 {
        let mean = v - (self.sum + self.discount * v_last) / self.count;
        let spread = self.spread + v_last * (2.0 * self.joint_spread + v_last * self.discount_spread);
        self.count * mean * mean + spread
    }
}

/// What centring adds to a sum of centred products when two tallies become one (Chan, Golub and LeVeque 1979).
fn between(n: f64, m: f64, x: (f64, f64), y: (f64, f64)) -> f64 {
    (x.0 / n - x.1 / m) * (y.0 / n - y.1 / m) * (n * m / (n + m))
}

impl Merge for RewardCell {
    fn merge(&mut self, other: &Self) {
        let sums = (self.sum, other.sum);
        self.spread += other.spread + between(self.count, other.count, sums, sums);
        self.sum += other.sum;
        self.count += other.count;
    }

    fn is_empty(&self) -> bool {
        self.count == 0.0
    }
}

impl Merge for ReturnCell {
    fn merge(&mut self, other: &Self) {
        let (n, m) = (self.count, other.count);
        let (g, d) = ((self.sum, other.sum), (self.discount, other.discount));
        self.spread += other.spread + between(n, m, g, g);
        self.discount_spread += other.discount_spread + between(n, m, d, d);
        self.joint_spread += other.joint_spread + between(n, m, g, d);
        self.sum += other.sum;
        self.discount += other.discount;
        self.count += m;
    }

    fn is_empty(&self) -> bool {
        self.count == 0.0
    }
}

/// A reward cell while it is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RewardTally {
    count: f64,
    sum: Sum,
    squares: Sum,
}

impl RewardTally {
    #[inline(always)]
    pub fn add(&mut self, r: f64) {
        self.count += 1.0;
        self.sum.add(r);
        self.squares.add(r * r);
    }

    pub fn finish(self) -> RewardCell {
        // One number has no spread; that of more is known to a rounding of the squares.
        let centred = self.squares.centred(self.sum, self.sum, self.count).max(0.0);
        let spread = if self.count > 1.0 { centred } else { 0.0 };
        RewardCell { count: self.count, sum: self.sum.value(), spread }
    }
}

impl Merge for RewardTally {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum.merge(&other.sum);
        self.squares.merge(&other.squares);
    }

    fn is_empty(&self) -> bool {
        self.count == 0.0
    }
}

/// The part of a return cell that truncation adds, while it is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReturnTally {
    returns: RewardTally,
    discount: Sum,
    squares: Sum,
    products: Sum,
}

impl ReturnTally {
    #[inline(always)]
    pub fn add(&mut self, g: f64, d: f64) {
        self.returns.add(g);
        self.discount.add(d);
        self.squares.add(d * d);
        self.products.add(d * g);
    }

    pub fn finish(self) -> ReturnCell {
        let RewardTally { count, sum, .. } = self.returns;
        let returns = self.returns.finish();
        if count <= 1.0 {
            return ReturnCell {
                count,
                sum: returns.sum,
                discount: self.discount.value(),
                ..ReturnCell::default()
            };
        }
        ReturnCell {
            count,
            sum: returns.sum,
            discount: self.discount.value(),
            spread: returns.spread,
            discount_spread: self.squares.centred(self.discount, self.discount, count).max(0.0),
            joint_spread: self.products.centred(sum, self.discount, count),
        }
    }

    /// Returns of episodes that terminated, where nothing is discounted.
    pub fn terminated(returns: RewardTally) -> Self {
        Self { returns, ..Self::default() }
    }
}

impl Merge for ReturnTally {
    fn merge(&mut self, other: &Self) {
        self.returns.merge(&other.returns);
        self.discount.merge(&other.discount);
        self.squares.merge(&other.squares);
        self.products.merge(&other.products);
    }

    fn is_empty(&self) -> bool {
        self.returns.count == 0.0
    }
}
