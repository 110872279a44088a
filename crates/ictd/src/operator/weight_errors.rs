//! How far rounding may have moved attention weights.

use super::StateOperator;
use crate::context::ContextStatistics;
use crate::kernel::{Attention, Normalization, Sensitivity, Similarity};
use crate::matrix::Matrix;

impl StateOperator {
    /// For every state u a bound on Σ_s c(s)·|Ŵ(s, u) - W(s, u)|: the weights as computed against those that the
    /// features define in exact arithmetic. Infinite where rounding decides what a state attends to; 0 for a kernel
    /// that does not say how similarities move its weights ([`Kernel::sensitivity`](crate::kernel::Kernel)), whose
    /// weights are taken as they are.
    ///
    /// # Numerics
    /// ε is twice the unit roundoff, which pays for rounding in the bounds themselves. An inner product of d terms is
    /// off by at most d·ε/2·Σ|x_a y_a|, a squared distance by (d+3)·ε/2 of itself; subtracting the pivot and dividing
    /// by τ add three roundings of what remains, an exponential six. With a block B keys B x are rounded first, d more times,
    /// and everything is relative to products of absolute values. Normalising doubles the sum of all that, since
    /// the divisor is a sum of the same weights.
    pub fn weight_errors(&self) -> Vec<f64> {
        let error = |u: usize| {
            let step = self.row_steps.as_ref().map_or(1.0, |steps| steps[u]);
            let block = self.block.as_ref();
            weight_error(&self.attention, block, &self.statistics, self.weights.row(u), step, u)
        };
        let mut errors: Vec<f64> = (0..self.statistics.num_groups()).map(error).collect();
        for (error, step) in errors.iter_mut().zip(self.row_steps.iter().flatten()) {
            // The step is a number that was chosen; multiplying by it rounds once more.
            *error = step * (*error + f64::EPSILON);
        }
        // Anything that is no number decides nothing.
        errors.iter_mut().filter(|e| e.is_nan()).for_each(|e| *e = f64::INFINITY);
        errors
    }
}

/// As [`StateOperator::weight_errors`] for one state, given its weights times a step.
pub(super) fn weight_error(
    attention: &Attention,
    block: Option<&Matrix>,
    statistics: &ContextStatistics,
    weights: &[f64],
    step: f64,
    u: usize,
) -> f64 {
    let kernel = attention.kernel();
    let Some(sensitivity) = kernel.sensitivity() else { return 0.0 };
    let (x, visits) = (statistics.features(u), statistics.visits());
    let d = x.len();
    let terms = if block.is_some() { (d * d + d + 5) as f64 } else { d as f64 + 4.0 };
    // What all sources have in common is taken off their features before they are multiplied.
    let is_centred = kernel.exponent().is_some() && kernel.normalization() == Normalization::ByColumn;
    // What the rounding of a similarity is relative to.
    let magnitude = |s: usize| -> f64 {
        let y = statistics.features(s);
        if let Some(block) = block {
            let (left, right): (Vec<f64>, Vec<f64>) = match kernel.similarity() {
                Similarity::SquaredDistance => x.iter().zip(y).map(|(a, b)| (a - b, a - b)).unzip(),
                _ if is_centred => (0..d).map(|k| (y[k] - statistics.centre(k), x[k])).unzip(),
                _ => (y.to_vec(), x.to_vec()),
            };
            let entries = (0..d * d).map(|k| (left[k / d] * block[(k / d, k % d)] * right[k % d]).abs());
            return entries.sum();
        }
        let pairs = x.iter().zip(y);
        match kernel.similarity() {
            Similarity::InnerProduct if is_centred => {
                pairs.enumerate().map(|(k, (a, b))| (a * (b - statistics.centre(k))).abs()).sum()
            }
            Similarity::InnerProduct => pairs.map(|(a, b)| (a * b).abs()).sum(),
            Similarity::SquaredDistance => pairs.map(|(a, b)| (a - b) * (a - b)).sum(),
            Similarity::SameState => 0.0,
        }
    };
    let sources = 0..visits.len();
    let sums = f64::EPSILON * (8.0 + visits.len() as f64);
    let relative = |moved: f64| if moved < 0.5 { 2.0 * moved / (1.0 - moved) + sums } else { f64::INFINITY };
    match sensitivity {
        Sensitivity::Logarithm(slope) => {
            let weight = |s: usize| weights[s] / step;
            let pivot = sources.clone().max_by(|&a, &b| weight(a).total_cmp(&weight(b)));
            let top = (terms + 2.0) * pivot.map_or(0.0, magnitude);
            // Normalised weights depend on their ratios to the largest alone.
            let moved = |s: usize| -> f64 {
                let log = f64::EPSILON * (8.0 + slope * (terms * magnitude(s) + top));
                visits[s] * weight(s) * log.exp_m1()
            };
            relative(sources.filter(|&s| Some(s) != pivot).map(moved).sum())
        }
        Sensitivity::Weight(slope) => {
            let moved = |s: usize| f64::EPSILON * terms * magnitude(s);
            let weigh = |shift: &dyn Fn(usize) -> f64| -> Vec<f64> {
                let similarity = |s: usize| similarity(kernel.similarity(), block, statistics.features(s), x);
                let mut column: Vec<f64> = sources.clone().map(|s| similarity(s) + shift(s)).collect();
                kernel.weigh(&mut column);
                column
            };
            // A weight of 0 that stays 0 when similarities are rounded up is exact.
            let (weights, up) = (weigh(&|_| 0.0), weigh(&moved));
            let rounding = |s: usize| if weights[s] == 0.0 && up[s] == 0.0 { 0.0 } else { slope * moved(s) };
            let rounding: f64 = sources.clone().map(|s| visits[s] * rounding(s)).sum();
            if kernel.normalization() == Normalization::ByCount {
                return rounding / statistics.num_transitions() as f64;
            }
            let sum: f64 = weights.iter().zip(visits).map(|(w, c)| w * c).sum();
            // Without any similarity there is nothing to round either.
            if rounding == 0.0 { sums } else { relative(rounding / sum) }
        }
    }
}

/// The similarity of a source's features and a column's, with a block B if there is one.
fn similarity(kind: Similarity, block: Option<&Matrix>, source: &[f64], column: &[f64]) -> f64 {
    let dot = |left: &[f64], right: Vec<f64>| -> f64 { left.iter().zip(right).map(|(l, r)| l * r).sum() };
    match (kind, block) {
        (Similarity::InnerProduct, Some(block)) => dot(source, block.mul_vec(column)),
        (Similarity::SquaredDistance, Some(block)) => {
            let apart: Vec<f64> = source.iter().zip(column).map(|(a, b)| a - b).collect();
            dot(&apart, block.mul_vec(&apart))
        }
        _ => kind.of(column, source),
    }
}
