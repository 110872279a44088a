//! Temperatures and depths worth trying.

use super::sample::Sample;
use crate::kernel::Similarity;

/// Distances are taken between at most this many states.
const MAX_STATES: usize = 1500;

/// Depths 0, 1, 2, 3, 4, 6, 8, 11, 16, … up to `deepest`, each about √2 times the one before.
pub fn depths(deepest: usize) -> Vec<usize> {
    let mut depths = vec![0];
    let powers = (0..).map(|k| libm::exp2(0.5 * f64::from(k)).round() as usize);
    depths.extend(powers.take_while(|&depth| depth <= deepest));
    depths.dedup();
    depths
}

/// Temperatures of the Gaussian kernel from so wide that all states look alike to so narrow that a state sees hardly any but
/// itself: τ = 2m, m, m/2, … with m the median squared distance of two visits to different states, at most eleven, and none
/// after the first at which visits give 95 % of the weight to their own state. Just 1 where all visited states are alike.
///
/// For the softmax kernel they are as good: exp(⟨x, y⟩/τ) is the Gaussian kernel times a factor of each state.
pub fn temperatures(sample: &Sample<'_>) -> Vec<f64> {
    let visited: Vec<usize> = (0..sample.num_states()).filter(|&s| sample.visits()[s] > 0.0).collect();
    let count = visited.len().min(MAX_STATES);
    let spread = |k: usize| visited[k * (visited.len() - 1) / (count - 1).max(1)];
    let states: Vec<usize> = (0..count).map(spread).collect();
    let squared = |i: usize, j: usize| {
        Similarity::SquaredDistance.of(sample.features().row(states[i]), sample.features().row(states[j]))
    };
    let weight = |i: usize| sample.visits()[states[i]];
    let mut pairs = Vec::with_capacity(count * count.saturating_sub(1) / 2);
    for i in 0..count {
        pairs.extend((0..i).map(|j| (squared(i, j), weight(i) * weight(j))));
    }
    let total: f64 = pairs.iter().map(|pair| pair.1).sum();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut below = 0.0;
    let median = pairs.iter().find(|pair| {
        below += pair.1;
        below >= 0.5 * total
    });
    let Some(median) = median.map(|pair| pair.0).filter(|d2| *d2 > 0.0 && d2.is_finite()) else {
        return vec![1.0];
    };
    let own_share = |temperature: f64| {
        let mut sums: Vec<f64> = (0..count).map(weight).collect();
        for i in 0..count {
            for j in 0..i {
                let k = (-0.5 * squared(i, j) / temperature).exp();
                sums[i] += k * weight(j);
                sums[j] += k * weight(i);
            }
        }
        let shares = (0..count).map(|i| weight(i) * weight(i) / sums[i]).sum::<f64>();
        shares / (0..count).map(weight).sum::<f64>()
    };
    let mut found = Vec::new();
    for k in 0..11 {
        let temperature = 2.0 * median * libm::exp2(-f64::from(k));
        found.push(temperature);
        if own_share(temperature) > 0.95 {
            break;
        }
    }
    found
}
