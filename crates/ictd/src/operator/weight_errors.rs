//! How far rounding may have moved attention weights.

use super::StateOperator;
use crate::kernel::{Normalization, Sensitivity, Similarity};

impl StateOperator {
    /// For every state u a bound on Σ_s c(s)·|Ŵ(s, u) - W(s, u)|: the weights as computed against those that the
    /// features define in exact arithmetic. Infinite where rounding decides what a state attends to; 0 for a kernel
    /// that does not say how similarities move its weights ([`Kernel::sensitivity`](crate::kernel::Kernel)), whose
    /// weights are taken as they are.
    ///
    /// # Numerics
    /// ε is twice the unit roundoff, which pays for rounding in the bounds themselves. An inner product of d terms is
    /// off by at most d·ε/2·Σ|x_a y_a|, a squared distance by (d+3)·ε/2 of itself; subtracting the pivot and dividing
    /// by τ add three roundings of what remains, an exponential six. Normalising doubles the sum of all that, since
    /// the divisor is a sum of the same weights.
    pub fn weight_errors(&self) -> Vec<f64> {
        let mut errors: Vec<f64> = (0..self.statistics.num_groups()).map(|u| self.weight_error(u)).collect();
        for (error, step) in errors.iter_mut().zip(self.row_steps.iter().flatten()) {
            // The step is a number that was chosen; multiplying by it rounds once more.
            *error = step * (*error + f64::EPSILON);
        }
        // Anything that is no number decides nothing.
        errors.iter_mut().filter(|e| e.is_nan()).for_each(|e| *e = f64::INFINITY);
        errors
    }

    fn weight_error(&self, u: usize) -> f64 {
        let (kernel, statistics) = (self.attention.kernel(), &self.statistics);
        let Some(sensitivity) = kernel.sensitivity() else { return 0.0 };
        let step = self.row_steps.as_ref().map_or(1.0, |steps| steps[u]);
        let (x, visits) = (statistics.features(u), statistics.visits());
        let terms = x.len() as f64 + 4.0;
        // What the rounding of a similarity is relative to.
        let magnitude = |s: usize| -> f64 {
            let pairs = x.iter().zip(statistics.features(s));
            match kernel.similarity() {
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
                let weight = |s: usize| self.weights[(u, s)] / step;
                let pivot = sources.clone().max_by(|&a, &b| weight(a).total_cmp(&weight(b)));
                let top = 2.0 * pivot.map_or(0.0, magnitude);
                let moved = |s: usize| -> f64 {
                    let log = f64::EPSILON * (4.0 + slope * (terms * magnitude(s) + top));
                    visits[s] * weight(s) * log.exp_m1()
                };
                relative(sources.map(moved).sum())
            }
            Sensitivity::Weight(slope) => {
                let rounding = |s: usize| visits[s] * f64::EPSILON * terms * slope * magnitude(s);
                let rounding: f64 = sources.clone().map(rounding).sum();
                if kernel.normalization() == Normalization::ByCount {
                    return rounding / statistics.num_transitions() as f64;
                }
                let mut column: Vec<f64> =
                    sources.map(|s| kernel.similarity().of(x, statistics.features(s))).collect();
                kernel.weigh(&mut column);
                let sum: f64 = column.iter().zip(visits).map(|(w, c)| w * c).sum();
                // Without any similarity there is nothing to round either.
                if rounding == 0.0 { sums } else { relative(rounding / sum) }
            }
        }
    }
}
