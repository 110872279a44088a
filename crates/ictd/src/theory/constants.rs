//! Every constant of the paper's lemmas and Theorems 2 and 3, for a task at hand.
//!
//! The kernel is softmax at temperature 1 on the task's features. Names follow the appendix. Its slips are repaired
//! as follows: the threshold of the contraction lemma is n ≥ (2·C₁/C)²·log(2·C₂/δ), and constants that
//! the appendix leaves undefined are the smallest that its own steps give (said at each of them).

use serde::Serialize;

use crate::linalg::LinalgError;
use crate::task::FiniteTask;

use super::stability::Stability;

/// The constants of a task for Lemmas 4 to 6 and Theorem 2.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Constants {
    /// Number of states |S|.
    #[serde(rename = "states")]
    pub num_states: f64,
    /// Discount γ.
    pub gamma: f64,
    /// The smallest stationary probability.
    pub mu_min: f64,
    /// The second-largest eigenvalue of the chain's additive reversibilisation; 1 - λ_r is the right
    /// spectral gap.
    pub lambda_r: f64,
    /// The smallest stationary probability of a pair (s, s') with p(s'|s) > 0.
    pub pair_mu_min: f64,
    /// λ_r of the chain of pairs.
    pub pair_lambda_r: f64,
    /// Feature dimension d.
    #[serde(skip)]
    pub feature_dim: usize,
    /// C_x, the largest ‖x(s)‖₂.
    pub feature_bound: f64,
    /// C_R, the largest |r(s)|.
    pub reward_bound: f64,
    /// ‖v_π‖∞.
    pub value_bound: f64,
    /// C of Assumption 5.1: min M_π(s, s) - (1+γ)/2. The theorems need it positive.
    pub margin: f64,
}

/// What concerns a Markov chain in its concentration (paper, eq:concentration): (1 + max(λ, 0))/(1 - max(λ, 0)).
fn mixing(lambda: f64) -> f64 {
    let lambda = lambda.max(0.0);
    (1.0 + lambda) / (1.0 - lambda)
}

impl Constants {
    /// The constants of a task, whose population operator has this stability.
    pub fn of(task: &FiniteTask, stability: &Stability) -> Result<Self, LinalgError> {
        let mu = task.stationary_distribution();
        let chain = task.mrp().transitions();
        let p = chain.matrix();
        let m = mu.len();
        let pairs = (0..m).flat_map(|s| p.row(s).iter().filter(|&&x| x > 0.0).map(move |x| (s, x)));
        let largest = |x: &[f64]| x.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        let norm = |x: &[f64]| x.iter().map(|v| v * v).sum::<f64>().sqrt();
        Ok(Self {
            num_states: m as f64,
            gamma: task.mrp().gamma(),
            mu_min: mu.iter().copied().fold(f64::INFINITY, f64::min),
            // A single state has no second eigenvalue and mixes at once.
            lambda_r: chain.reversibilisation_spectrum()?.get(1).copied().unwrap_or(0.0),
            pair_mu_min: pairs.map(|(s, x)| mu[s] * x).fold(f64::INFINITY, f64::min),
            pair_lambda_r: chain.pair_lambda_r()?,
            feature_dim: task.features().num_cols(),
            feature_bound: task.features().rows().map(norm).fold(0.0, f64::max),
            reward_bound: largest(task.mrp().rewards()),
            value_bound: largest(task.values()),
            margin: stability.margin,
        })
    }

    /// Lemma 4 (paper, lem:concentration-Mn): ‖M̂ - M_π‖∞ is at most this with probability 1 - δ. C₁ = |S|·C₃·C₅ with C₃ = √(mixing/2),
    /// C₅ = 2·exp(4·C_x²); C₂ = 2|S|/μ_min.
    pub fn concentration(&self, n: f64, delta: f64) -> f64 {
        self.concentration_factor() * ((self.concentration_log() / delta).ln() / n).sqrt()
    }

    fn concentration_factor(&self) -> f64 {
        let c3 = (0.5 * mixing(self.lambda_r)).sqrt();
        let c5 = 2.0 * (4.0 * self.feature_bound * self.feature_bound).exp();
        self.num_states * c3 * c5
    }

    fn concentration_log(&self) -> f64 {
        2.0 * self.num_states / self.mu_min
    }

    /// Lemma 5 (paper, lem:contraction): from this n on ‖J‖∞ ≤ 1 - C with probability 1 - δ/2. `None` when Assumption 5.1 fails.
    pub fn contraction_threshold(&self, delta: f64) -> Option<f64> {
        (self.margin > 0.0).then(|| {
            let factor = 2.0 * self.concentration_factor() / self.margin;
            factor * factor * (2.0 * self.concentration_log() / delta).ln()
        })
    }

    /// Lemma 6 (paper, lem:bias): the bias ‖T̂(v_π) - v_π‖∞ is at most this with probability 1 - δ/2.
    pub fn bias(&self, n: f64, delta: f64) -> f64 {
        self.bias_factor() * ((self.bias_log() / delta).ln() / n).sqrt()
    }

    fn bias_factor(&self) -> f64 {
        // 0 however large the rest is, and also where that overflows: without a future or values there is no bias.
        if self.gamma * self.value_bound == 0.0 {
            return 0.0;
        }
        let c3 = self.num_states * (2.0 * self.feature_bound * self.feature_bound).exp();
        2.0 * self.gamma * self.value_bound * (2.0 * mixing(self.pair_lambda_r)).sqrt() * c3
    }

    fn bias_log(&self) -> f64 {
        4.0 * self.num_states / self.pair_mu_min
    }

    /// Theorem 2's second term, which does not fall with depth. Infinite when Assumption 5.1 fails.
    pub fn floor(&self, n: f64, delta: f64) -> f64 {
        if self.margin > 0.0 { self.bias(n, delta) / self.margin } else { f64::INFINITY }
    }

    /// Theorem 2 (paper, eq:conv): ‖v_L - v_π‖∞ is at most this for all L with probability 1 - δ, from
    /// [`contraction_threshold`](Self::contraction_threshold) on.
    pub fn theorem_2(&self, num_layers: f64, n: f64, delta: f64) -> f64 {
        if !(self.margin > 0.0) {
            return f64::INFINITY;
        }
        (1.0 - self.margin).powf(num_layers) * self.value_bound + self.floor(n, delta)
    }

    /// C of the kernel-bound lemma (paper, lemma:kernel_bound), 2·((d+3)·max(C_x, C_R))².
    pub fn kernel_bound(&self) -> f64 {
        let columns = (self.feature_dim + 3) as f64 * self.feature_bound.max(self.reward_bound);
        2.0 * columns * columns
    }

    /// The gradient-bound lemma (paper, eq:grad_bound): ‖∇v_L‖∞ is at most this with probability 1 - δ from the contraction threshold on.
    ///
    /// The appendix leaves C₅ to C₇ undefined; from C_R ≤ (1+γ)‖v_π‖ they are C₅ = 2(1+γ)·max(1, C_kernel),
    /// C₆ = 2·C₅·‖v_π‖ and C₇ = C₅ times Theorem 2's factor.
    pub fn gradient_bound(&self, n: f64, delta: f64) -> f64 {
        let c5 = 2.0 * (1.0 + self.gamma) * self.kernel_bound().max(1.0);
        (2.0 * c5 * self.value_bound + c5 * self.floor(n, delta)) / self.margin
    }

    /// Constants that hold for both: the worse of each.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        Self {
            num_states: self.num_states.max(other.num_states),
            gamma: self.gamma.max(other.gamma),
            mu_min: self.mu_min.min(other.mu_min),
            lambda_r: self.lambda_r.max(other.lambda_r),
            pair_mu_min: self.pair_mu_min.min(other.pair_mu_min),
            pair_lambda_r: self.pair_lambda_r.max(other.pair_lambda_r),
            feature_dim: self.feature_dim.max(other.feature_dim),
            feature_bound: self.feature_bound.max(other.feature_bound),
            reward_bound: self.reward_bound.max(other.reward_bound),
            value_bound: self.value_bound.max(other.value_bound),
            margin: self.margin.min(other.margin),
        }
    }
}

/// Theorem 3's three terms (paper, eq:emer) for a family of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Theorem3 {
    /// C of Assumption 5.1, uniform over the family.
    margin: f64,
    gamma: f64,
    /// C₂ and C₃ of the theorem.
    pub depth_factor: f64,
    /// C₃ of the theorem.
    pub context_factor: f64,
    concentration_factor: f64,
    concentration_log: f64,
    log_constant: f64,
}

impl Theorem3 {
    /// From constants that hold for every task of the family. `None` when Assumption 5.1 does not hold uniformly.
    pub fn of(constants: &Constants) -> Option<Self> {
        let c = constants;
        if !(c.margin > 0.0) {
            return None;
        }
        let free = (c.feature_dim * c.feature_dim + 3) as f64;
        let kernel = c.kernel_bound().max(1.0);
        let floor_factor = c.bias_factor() / c.margin;
        let log_constant = 2.0 * std::f64::consts::E.max(c.bias_log());
        let c6 = (1.0 + c.gamma) * c.value_bound.max(floor_factor);
        let gradient = 2.0 * (1.0 + c.gamma) * kernel;
        let c7 = (2.0 * gradient * c.value_bound).max(gradient * floor_factor) / c.margin;
        let c11 = 1.0 + log_constant.ln() / std::f64::consts::LN_2;
        Some(Self {
            margin: c.margin,
            gamma: c.gamma,
            depth_factor: free * c6 * c7 * (3.0 * c11.sqrt()).max(1.0),
            context_factor: free * kernel * c.reward_bound * c.reward_bound,
            concentration_factor: 2.0 * c.concentration_factor() / c.margin,
            concentration_log: c.concentration_log(),
            log_constant,
        })
    }

    /// The three terms at depth L and context length n: depth, sampling, bad events.
    pub fn terms(&self, num_layers: f64, n: f64) -> [f64; 3] {
        [
            self.depth_factor * (1.0 - self.margin).powf(num_layers),
            self.depth_factor * (n.ln() / n).sqrt(),
            self.everywhere(num_layers) / n,
        ]
    }

    /// What the proof knows of every trajectory, without Assumption 5.1: ‖δ̄∇v‖₁ ≤ C₃·L·(2+γ)^{2L}. Terms that add up
    /// to more say nothing.
    pub fn everywhere(&self, num_layers: f64) -> f64 {
        self.context_factor * num_layers * (2.0 + self.gamma).powf(2.0 * num_layers)
    }

    /// n₀: the theorem speaks about n from here on. With η = 1/n both lemmas run at δ = 1/(2n), so the repaired
    /// threshold is n ≥ (2·C₁/C)²·log(4·C₂·n); also log(C₅·n) ≤ n.
    pub fn threshold(&self) -> f64 {
        let holds = |n: f64| {
            let contraction = self.concentration_factor.powi(2) * (4.0 * self.concentration_log * n).ln();
            n >= contraction && n >= (self.log_constant * n).ln()
        };
        let mut high = 2.0;
        while !holds(high) && high.is_finite() {
            high *= 2.0;
        }
        let mut low = 0.5 * high;
        // To a thousandth: the constant itself is of no more use than its order.
        while high - low > 1e-3 * high {
            let middle = 0.5 * (low + high);
            if holds(middle) { high = middle } else { low = middle }
        }
        high
    }
}
