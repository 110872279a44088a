//! The Boltzmann operator: a mean of values weighted by their own softmax, and how much it can enlarge differences.

/// p_b ∝ exp(β·q_b).
pub fn boltzmann_weights(beta: f64, q: &[f64]) -> Vec<f64> {
    let largest = q.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = q.iter().map(|q| (beta * (q - largest)).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= total);
    weights
}

/// B(q) = Σ_b p_b·q_b with p ∝ exp(β·q): between the mean of q (β = 0) and its maximum, from which it is at most log|A|/β away.
pub fn boltzmann_value(beta: f64, q: &[f64]) -> f64 {
    boltzmann_weights(beta, q).iter().zip(q).map(|(p, q)| p * q).sum()
}

/// The Lipschitz constant Λ of the Boltzmann operator in the maximum norm over all values of `num_actions` actions; it is the same for every β > 0.
///
/// It is the solution Λ > 1 of (|A| - 1)·(Λ + 1) = (Λ - 1)·exp(2Λ), rounded up, and 1 for one action; 1.1997 for two (Λ·tanh Λ = 1),
/// 1.4224 for four. Above 1: the operator is no non-expansion.
pub fn boltzmann_lipschitz(num_actions: usize) -> f64 {
    if num_actions <= 1 {
        return 1.0;
    }
    let others = (num_actions - 1) as f64;
    let exceeds = |x: f64| (x - 1.0) * (2.0 * x).exp() > others * (x + 1.0);
    let (mut low, mut high) = (1.0, 2.0);
    while !exceeds(high) {
        high *= 2.0;
    }
    // Bisection to neighbouring numbers; the upper end is returned.
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            // Rounding of the condition itself.
            return high * (1.0 + 1e-14);
        }
        if exceeds(middle) { high = middle } else { low = middle }
    }
}

/// A bound on the Lipschitz constant over values whose range within a state is at most `range`.
///
/// With ρ = β·range it is 1 where ρ ≤ 1, Λ ([`boltzmann_lipschitz`]) where ρ ≥ 2Λ, and between them 1 + 2w((1 - w)ρ - 1) with w
/// the smaller of (1 - 1/ρ)/2 and k/(k + exp(ρ)), k = |A| - 1.
pub fn boltzmann_lipschitz_within(num_actions: usize, beta: f64, range: f64) -> f64 {
    let any = boltzmann_lipschitz(num_actions);
    let spread = beta * range;
    // Negated, so that a range that is no number has the constant of all values.
    if !(spread < 2.0 * any) {
        return any;
    }
    if spread <= 1.0 {
        return 1.0;
    }
    let others = (num_actions - 1) as f64;
    let share = (0.5 * (1.0 - 1.0 / spread)).min(others / (others + spread.exp()));
    let bound = 1.0 + 2.0 * share * ((1.0 - share) * spread - 1.0);
    (bound * (1.0 + 1e-14)).min(any)
}
