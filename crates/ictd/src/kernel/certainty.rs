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
    /// |M x|(u) ≤ gain·√(Σ_s D(s)·x(s)²) for every state u: 1/Z(u) with the smallest Z.
    pub gain: f64,
    /// How much following a transition enlarges that norm, among states that were left ...
    pub stretch: f64,
    /// ... and √(Σ_s D(s)·P(s, u)²) over the states u that were not.
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
        let mut followed = vec![0.0; sources];
        let mut leak = 0.0;
        for s in 0..sources {
            for (next, count) in statistics.successors(s) {
                let share = count / visits[s];
                match followed.get_mut(next) {
                    Some(sum) => *sum += norms[s] * share,
                    None => leak += norms[s] * share * share,
                }
            }
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
            gain: slack / smallest,
            stretch: slack * stretch.sqrt(),
            leak: leak.sqrt(),
        }
    }
}
