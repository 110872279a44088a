//! What the best policy of a decision process is worth, and what a given one is.

use super::mdp::{Mdp, MdpError};
use crate::linalg;
use crate::matrix::Matrix;
use crate::statistics::largest;

/// Changes below this share of the largest value are rounding: sums of a few dozen terms.
const SETTLED: f64 = 16.0 * f64::EPSILON;
/// Sweeps after which values that still move are given up: enough for γ = 0.9999.
const MOST_SWEEPS: usize = 500_000;

impl Mdp {
    /// Q*(s, a) = r(s, a) + γ Σ p(s'|s, a) max_b Q*(s', b) in entry (s, a), by value iteration until only rounding moves it.
    pub fn optimal_action_values(&self) -> Result<Matrix, MdpError> {
        self.check()?;
        let (m, actions) = (self.num_states(), self.num_actions());
        let mut q = Matrix::zeros(m, actions);
        let mut moved = f64::INFINITY;
        for _ in 0..MOST_SWEEPS {
            let best: Vec<f64> =
                q.rows().map(|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max)).collect();
            let expected: Vec<Vec<f64>> = self.transitions.iter().map(|p| p.mul_vec(&best)).collect();
            let next = Matrix::from_fn(m, actions, |s, a| self.rewards[(s, a)] + self.gamma * expected[a][s]);
            moved = largest((&next - &q).as_slice().iter().map(|x| x.abs()));
            q = next;
            if moved <= SETTLED * largest(q.as_slice().iter().map(|x| x.abs())) {
                return Ok(q);
            }
        }
        Err(MdpError::NotSettled { sweeps: MOST_SWEEPS, moved })
    }

    /// The value of every state under a policy with π(a | s) in entry (s, a), which need not make the chain ergodic.
    pub fn policy_values(&self, policy: &Matrix) -> Result<Vec<f64>, MdpError> {
        let (p, rewards) = self.averaged(policy)?;
        let bellman = &Matrix::identity(p.num_rows()) - &p.map(|x| self.gamma * x);
        Ok(linalg::solve(&bellman, &rewards)?)
    }

    /// What a policy earns per step: (1-γ) Σ_s p₀(s)·v_π(s), the discounted sum of rewards divided by that of the weights γᵗ, so that
    /// it is on the scale of one reward.
    pub fn policy_return(&self, policy: &Matrix) -> Result<f64, MdpError> {
        let values = self.policy_values(policy)?;
        let expected: f64 = self.initial_distribution.iter().zip(values).map(|(p, v)| p * v).sum();
        Ok((1.0 - self.gamma) * expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    /// The greedy policy at Q* has the values max Q*, by a linear system instead of an iteration, and no other deterministic policy more.
    #[test]
    fn the_greedy_policy_at_the_optimum_earns_it() {
        for seed in 0..5 {
            let mdp = Mdp::dirichlet(4, 2, 0.9, &mut Stream::new(seed, Purpose::Task, 0)).unwrap();
            let q = mdp.optimal_action_values().unwrap();
            let policy_of =
                |choice: usize| Matrix::from_fn(4, 2, |s, a| f64::from(u8::from((choice >> s & 1) == a)));
            let best = (0..16).map(|choice| mdp.policy_values(&policy_of(choice)).unwrap());
            let best = best
                .fold(vec![f64::NEG_INFINITY; 4], |b, v| b.iter().zip(v).map(|(b, v)| b.max(v)).collect());
            for (row, best) in q.rows().zip(best) {
                // 16 ε of values below 10, divided by 1 - γ.
                assert!((row[0].max(row[1]) - best).abs() < 1e-12, "{row:?} {best}");
            }
        }
    }

    /// A cycle of two states with rewards 1 and 0: v = (1, γ)/(1 - γ²), and a chain that is not ergodic.
    #[test]
    fn a_return_by_hand() {
        let transitions = vec![Matrix::from_vec(2, 2, vec![0.0, 1.0, 1.0, 0.0])];
        let rewards = Matrix::from_vec(2, 1, vec![1.0, 0.0]);
        let mdp = Mdp { transitions, rewards, gamma: 0.5, initial_distribution: vec![1.0, 0.0] };
        let always = Matrix::from_vec(2, 1, vec![1.0, 1.0]);
        assert!((mdp.policy_return(&always).unwrap() - 0.5 / 0.75).abs() < 1e-15);
        let slow = Mdp { gamma: 1.0 - 1e-9, ..mdp.clone() };
        assert!(matches!(slow.optimal_action_values(), Err(MdpError::NotSettled { .. })));
        assert!(matches!(Mdp { gamma: f64::NAN, ..mdp }.policy_return(&always), Err(MdpError::Mrp(_))));
    }
}
