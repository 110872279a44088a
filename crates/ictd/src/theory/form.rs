//! The form condition on many states: a proved bound instead of eigenvalues.

use crate::context::ContextStatistics;

/// Steps of the power iteration that improves the bound.
const STEPS: usize = 300;
/// Entries are kept above this share of the largest: any positive vector gives a bound.
const FLOOR: f64 = 1e-200;

/// A number that γ·λ_max of the symmetric part of D^½ P D^-½, D = diag(visits·w), does not exceed, rounding included, where logarithms
/// of the masses w are off by at most `rounding`. `None` where masses are too far apart.
///
/// For a symmetric matrix S of entries ≥ 0 and any x > 0, λ_max ≤ max (S x)_i / x_i (Collatz, 1942; Wielandt, 1950). A power
/// iteration brings x near the vector for which this is sharp, and lowers the bound in every step.
pub(super) fn form_bound(
    statistics: &ContextStatistics,
    gamma: f64,
    log_masses: &[f64],
    rounding: f64,
) -> Option<f64> {
    // Without a future there is nothing to bound.
    if gamma == 0.0 {
        return Some(0.0);
    }
    let visits = statistics.visits();
    let log_weight = |s: usize| visits[s].ln() + log_masses[s];
    let mut entries = Vec::new();
    for s in 0..log_masses.len() {
        for (next, count) in statistics.successors(s) {
            let entry = count / visits[s] * (0.5 * (log_weight(s) - log_weight(next))).exp();
            entries.push((s, next, 0.5 * gamma * entry));
        }
    }
    let product = |x: &[f64]| {
        let mut out = vec![0.0; x.len()];
        for &(s, next, entry) in &entries {
            out[s] += entry * x[next];
            out[next] += entry * x[s];
        }
        out
    };
    let mut x = vec![1.0; log_masses.len()];
    let mut bound = f64::INFINITY;
    for _ in 0..STEPS {
        let next = product(&x);
        // Negated, so that no number is lost.
        let ratio =
            next.iter().zip(&x).map(|(y, x)| y / x).fold(0.0, |m: f64, r| if !(r <= m) { r } else { m });
        if !ratio.is_finite() {
            return None;
        }
        bound = bound.min(ratio);
        // Every transition ends an episode.
        if bound == 0.0 {
            return Some(0.0);
        }
        // Shifted: a chain has eigenvalues of both signs, and signs alternate without.
        x.iter_mut().zip(next).for_each(|(x, y)| *x = y + 0.5 * bound * *x);
        let top = x.iter().copied().fold(0.0, f64::max);
        x.iter_mut().for_each(|x| *x = (*x / top).max(FLOOR));
    }
    // Terms of a row, and what they are made of.
    let terms = (0..log_masses.len()).map(|s| statistics.successors(s).count()).max().unwrap_or(0);
    let mut arrivals = vec![0_usize; log_masses.len()];
    entries.iter().for_each(|&(_, next, _)| arrivals[next] += 1);
    let terms = terms + arrivals.into_iter().max().unwrap_or(0);
    let logs = log_masses.iter().fold(0.0, |m: f64, x| m.max(x.abs())) + 40.0;
    let slack = f64::EPSILON * (terms as f64 + 16.0 + 2.0 * logs) + 2.0 * rounding;
    let proved = bound * (1.0 + 2.0 * slack);
    // A first-order slack speaks about small ones only.
    (slack < 1e-3 && proved.is_finite()).then_some(proved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};
    use crate::theory::Stability;
    use crate::{Attention, Context, End, KernelName, StateOperator};

    /// Never below the eigenvalue, and near it: states that come back, and states that do not.
    #[test]
    fn the_bound_is_above_the_eigenvalue_and_near_it() {
        let mut stream = Stream::new(9, Purpose::Prompt, 0);
        for (temperature, returning) in [(1.0, false), (0.3, false), (1.0, true), (0.05, true)] {
            let rows: Vec<Vec<f64>> = (0..60).map(|_| stream.uniform_vec(2, -1.0, 1.0)).collect();
            let visited: Vec<&[f64]> = (0..150)
                .map(|t| rows[if returning { stream.below(60) } else { t % 60 } as usize].as_slice())
                .collect();
            let length = if returning { 149 } else { 59 };
            let builder =
                Context::builder().episode(&visited[..=length], &vec![1.0; length], End::Terminated);
            let context = builder.build().unwrap();
            let attention = Attention::new(KernelName::Softmax.at(temperature).unwrap(), 0.0).unwrap();
            let operator = StateOperator::empirical(&context, &attention, 0.9).unwrap();
            let exact = 1.0 - Stability::of(&operator).unwrap().form_margin.unwrap();
            let masses = operator.log_masses().unwrap();
            let bound = form_bound(operator.statistics(), 0.9, masses, 0.0).unwrap();
            // The power iteration gains a digit in some ten steps where eigenvalues are a fifth apart.
            assert!(bound >= exact && bound < 1.02 * exact, "{temperature}, {returning}: {bound} {exact}");
            // Masses that may be off count.
            assert!(form_bound(operator.statistics(), 0.9, masses, 1e-5).unwrap() > bound);
            assert_eq!(form_bound(operator.statistics(), 0.9, masses, 1.0), None);
        }
    }

    #[test]
    fn without_a_future_there_is_nothing_to_bound() {
        let builder = Context::builder().episode(&[[1.0], [2.0]], &[1.0], End::Terminated);
        let statistics = ContextStatistics::per_state(&builder.build().unwrap());
        assert_eq!(form_bound(&statistics, 0.9, &[0.0], 0.0), Some(0.0));
        assert_eq!(form_bound(&statistics, 0.0, &[0.0], 0.0), Some(0.0));
    }
}
