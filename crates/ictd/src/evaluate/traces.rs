//! What LSTD(λ) needs of an episode, by pair of states.

use super::table::NONE;

/// Episodes of at most this many distinct states are summed in a square table before they are handed on.
const MAX_DENSE: usize = 256;
/// Weights below this share of the first are left out: their sum is below a rounding of it unless λγ is within 10⁻⁶ of 1.
const NEGLIGIBLE: f64 = 1e-24;

/// Traces of discount γ and decay λ.
///
/// LSTD(λ) asks for Σ_k x_k Σ_{t ≥ k} (γλ)^(t-k) (r_t + γ·w·x_{t+1} - w·x_t) = 0. Summed by parts the inner sum is
/// ρ_k + Σ_s c_k(s) w·x_s - w·x_k with ρ_k = Σ_{t ≥ k} (γλ)^(t-k) r_t and weights c_k of later states:
/// γ(1-λ)(γλ)^(t-k-1) for the state at t > k, but γ(γλ)^(T-k-1) for the last state of a truncated episode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traces {
    pub gamma: f64,
    pub lambda: f64,
}

impl Traces {
    /// Hands on ρ_k of every step k, last step first.
    pub fn rewards(self, rewards: &[f64], mut add: impl FnMut(usize, f64)) {
        let mut sum = 0.0;
        for (t, &reward) in rewards.iter().enumerate().rev() {
            sum = reward + self.gamma * self.lambda * sum;
            add(t, sum);
        }
    }

    /// Hands on the weights c of all pairs of states of an episode with so many `steps`; a pair may come more than once.
    pub fn pairs(self, states: &[u32], steps: usize, mut add: impl FnMut(u32, u32, f64)) {
        let mut distinct = states.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let last = states.get(steps).copied().unwrap_or(NONE);
        if distinct.len() > MAX_DENSE {
            return self.pairs_one_by_one(states, steps, last, add);
        }
        let m = distinct.len();
        let place = |s: &u32| distinct.partition_point(|x| x < s);
        let places: Vec<usize> = states.iter().map(place).collect();
        let (mut sums, mut weights) = (vec![0.0; m * m], vec![0.0; m]);
        let decay = self.gamma * self.lambda;
        for k in (0..steps).rev() {
            weights.iter_mut().for_each(|w| *w *= decay);
            if k + 1 < steps {
                weights[places[k + 1]] += self.gamma * (1.0 - self.lambda);
            } else if last != NONE {
                weights[places[steps]] = self.gamma;
            }
            let row = &mut sums[places[k] * m..(places[k] + 1) * m];
            row.iter_mut().zip(&weights).for_each(|(sum, w)| *sum += w);
        }
        for (at, &sum) in sums.iter().enumerate().filter(|(_, sum)| **sum != 0.0) {
            add(distinct[at / m], distinct[at % m], sum);
        }
    }

    /// As [`pairs`](Self::pairs), as defined, but for weights that do not count.
    fn pairs_one_by_one(self, states: &[u32], steps: usize, last: u32, mut add: impl FnMut(u32, u32, f64)) {
        let decay = self.gamma * self.lambda;
        for k in 0..steps {
            let (mut weight, mut t) = (1.0, k + 1);
            while t < steps && weight >= NEGLIGIBLE {
                if self.lambda < 1.0 {
                    add(states[k], states[t], self.gamma * (1.0 - self.lambda) * weight);
                }
                weight *= decay;
                t += 1;
            }
            if last != NONE && weight >= NEGLIGIBLE {
                add(states[k], last, self.gamma * weight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_square_table_and_the_definition_agree() {
        let states = [0, 3, 1, 3, 3, 2, 0, 1, 1];
        for (lambda, steps) in [(0.0, 8), (0.4, 8), (0.4, 9), (1.0, 8), (1.0, 9)] {
            let traces = Traces { gamma: 0.9, lambda };
            let last = if steps == 8 { states[8] } else { NONE };
            let mut found = [[[0.0; 4]; 4]; 2];
            traces.pairs(&states, steps, |s, t, w| found[0][s as usize][t as usize] += w);
            traces.pairs_one_by_one(&states, steps, last, |s, t, w| found[1][s as usize][t as usize] += w);
            let gaps = found[0].iter().flatten().zip(found[1].iter().flatten()).map(|(a, b)| (a - b).abs());
            // Sums of at most nine weights below 1.
            assert!(gaps.fold(0.0, f64::max) < 1e-15);
        }
    }
}
