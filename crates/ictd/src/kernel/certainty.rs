//! What errors of weights may do to values.

use super::gaussian::Embedding;
use crate::context::ContextStatistics;
use crate::statistics::largest;

/// Columns of weights that are off by little, and the norm in which a layer does not enlarge that much.
///
/// With D(s) = c(s)·a(s)·Z(s), where the weight of source s in column u is a(s)·κ(s, u)/Z(u) and Z(u) = Σ_s c(s)·a(s)·κ(s, u), the matrix M
/// of the weights is symmetric in the inner product ⟨x, D y⟩ and its eigenvalues lie in [0, 1], as κ is positive definite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Certainty {
    /// Σ_s |error| of the worst column ε(u), where weights sum to 1.
    pub column_error: f64,
    /// √(Σ_s D(s)·ε(s)²).
    pub spread_error: f64,
    /// |M x|(u) ≤ gain·√(Σ_s D(s)·x(s)²) for every state u: 1/Z(u) with the smallest Z. With mixing M is (1-ρ)M + ρI, and the gain
    /// (1-ρ)/Z(u) + ρ/√D(s) with the smallest D too.
    pub gain: f64,
    /// How much following a transition enlarges that norm, among states that were left ...
    pub stretch: f64,
    /// ... and √(Σ_s D(s)·(Σ_u P(s, u))²) over the states u that were not: |Σ_u P(s, u)·x(u)| is at most max |x| times the sum, not
    /// times its root mean square.
    pub leak: f64,
}

/// Errors of columns.
pub(crate) enum ColumnErrors<'a> {
    /// No more than this in any.
    Uniform(f64),
    /// Column by column.
    Each(&'a [f64]),
}

impl Certainty {
    /// From raw masses Σ_s c(s)·b(s)·2^⟨y_s, y_u⟩.
    pub fn new(
        embedding: &Embedding,
        statistics: &ContextStatistics,
        masses: &[f64],
        errors: ColumnErrors<'_>,
        rho: f64,
    ) -> Self {
        let sources = statistics.num_source_groups();
        let (visits, factors) = (statistics.visits(), embedding.factors());
        let error = |u: usize| match errors {
            ColumnErrors::Uniform(error) => error,
            ColumnErrors::Each(list) => list[u],
        };
        let column_error = largest((0..masses.len()).map(error));
        // Masses are off as columns are.
        let slack = 1.0 / (1.0 - column_error).max(0.0);
        let norms: Vec<f64> = (0..sources).map(|s| visits[s] * factors[s] * masses[s] * slack).collect();
        let smallest = (0..masses.len())
            .map(|u| masses[u] * (-0.5 * embedding.square(u)).exp2())
            .fold(f64::INFINITY, f64::min);
        let smallest_norm = norms.iter().copied().fold(f64::INFINITY, f64::min);
        // Norms are already as large as they may be: slack twice makes them as small.
        let own = if rho > 0.0 { rho * slack / smallest_norm.sqrt() } else { 0.0 };
        let mut followed = vec![0.0; sources];
        let mut leak = 0.0;
        for s in 0..sources {
            let mut escaping = 0.0;
            for (next, count) in statistics.successors(s) {
                let share = count / visits[s];
                match followed.get_mut(next) {
                    Some(sum) => *sum += norms[s] * share,
                    None => escaping += share,
                }
            }
            leak += norms[s] * escaping * escaping;
        }
        // What nothing leads to does not count, whatever its own norm.
        let stretch = |(sum, norm): (&f64, &f64)| if *sum > 0.0 { sum / norm } else { 0.0 };
        let stretch = largest(followed.iter().zip(&norms).map(stretch));
        Self {
            column_error,
            spread_error: norms
                .iter()
                .enumerate()
                .map(|(s, norm)| norm * error(s) * error(s))
                .sum::<f64>()
                .sqrt(),
            gain: (1.0 - rho) * slack / smallest + own,
            stretch: slack * stretch.sqrt(),
            leak: leak.sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Context, End};
    use crate::kernel::{Attention, KernelName, Scores};
    use crate::matrix::Matrix;

    /// A state from which every visit goes to another that is never left, beside a walk: D and P written out.
    #[test]
    fn what_leaks_is_bounded_in_the_largest_value() {
        let hub = [0.3, -0.2];
        let mut builder = Context::builder();
        for k in 0..12 {
            builder = builder.episode(&[hub, [0.1 * f64::from(k), 1.0]], &[1.0], End::Truncated);
        }
        let walk: Vec<[f64; 2]> = (0..30).map(f64::from).map(|k| [k.sin(), (1.7 * k).cos()]).collect();
        let context = builder.episode(&walk, &[0.5; 29], End::Truncated).build().unwrap();
        let statistics = ContextStatistics::per_state(&context);
        let attention = Attention::new(KernelName::Rbf.at(0.5).unwrap(), 0.0).unwrap();
        let scores = Scores { attention: &attention, block: None, statistics: &statistics };
        let embedding = Embedding::of(scores).unwrap();
        let (sources, groups) = (statistics.num_source_groups(), statistics.num_groups());
        let (visits, factors) = (statistics.visits(), embedding.factors());
        let power = |s: usize, u: usize| {
            let exponent: f64 = embedding.point(s).iter().zip(embedding.point(u)).map(|(x, y)| x * y).sum();
            factors[s] * exponent.exp2()
        };
        let masses: Vec<f64> =
            (0..groups).map(|u| (0..sources).map(|s| visits[s] * power(s, u)).sum()).collect();
        let found = Certainty::new(&embedding, &statistics, &masses, ColumnErrors::Uniform(0.0), 0.0);
        let mut p = Matrix::zeros(sources, groups);
        for s in 0..sources {
            for (next, count) in statistics.successors(s) {
                p[(s, next)] += count / visits[s];
            }
        }
        let norm = |x: &[f64]| -> f64 {
            let kappa =
                |x: &[f64], y: &[f64]| (-x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum::<f64>()).exp();
            let of = |s: usize| {
                let mass: f64 = (0..sources)
                    .map(|t| visits[t] * kappa(statistics.features(s), statistics.features(t)))
                    .sum();
                let followed: f64 = (0..groups).map(|u| p[(s, u)] * x[u]).sum();
                visits[s] * mass * followed * followed
            };
            (0..sources).map(of).sum::<f64>().sqrt()
        };
        // The worst values of the states that were never left, and 0 on all others. D is known up to a factor, as norms are: that of the
        // largest b.
        let values: Vec<f64> = (0..groups).map(|u| if u < sources { 0.0 } else { 1.0 }).collect();
        let top = (0..sources).map(|s| embedding.square(s)).fold(f64::INFINITY, f64::min);
        let plain = norm(&values) * (0.5 * top).exp2();
        assert!((found.leak - plain).abs() < 1e-12 * plain, "{} {plain}", found.leak);
        assert!(groups - sources >= 12 && plain > 0.0);
    }
}
