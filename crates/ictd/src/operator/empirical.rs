//! The empirical operator of a context on its states.

use crate::context::{Context, ContextStatistics};
use crate::kernel::{Attention, AttentionError, GroupWeights};
use crate::linalg::{self, LinalgError};
use crate::matrix::Matrix;

/// The operator T̂(v) = (I - M̂ + γP̂) v + M̂r of a context at theta_*, on its distinct states (paper,
/// Section 5).
///
/// States are all that occur in a column, sources first (see [`ContextStatistics`]); rows exist for
/// queries too, which no other row refers to. M̂r is formed from the rewards received, so rewards
/// need not be a function of the state.
#[derive(Clone, Debug)]
pub struct EmpiricalOperator {
    statistics: ContextStatistics,
    gamma: f64,
    /// Entry (u, s) = W(s, u), the weight of one visit to source state s for state u.
    weights: Matrix,
    /// c when the weight is c·⟨x, y⟩/n.
    linear: Option<f64>,
}

/// Why an operator has no usable answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OperatorError {
    /// Diagonal mixing makes values depend on columns, not only on states.
    #[error("diagonal mix is {0}, expected 0: with mixing a layer is no operator on states")]
    DiagonalMix(f64),
    /// Weights could not be computed.
    #[error(transparent)]
    Attention(#[from] AttentionError),
    /// A linear system or eigenvalue problem could not be solved.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
}

impl EmpiricalOperator {
    /// The operator of a context.
    pub fn new(context: &Context, attention: &Attention, gamma: f64) -> Result<Self, OperatorError> {
        if attention.diagonal_mix() != 0.0 {
            return Err(OperatorError::DiagonalMix(attention.diagonal_mix()));
        }
        let statistics = ContextStatistics::per_state(context);
        let block = Matrix::identity(context.feature_dim());
        let mut weights = Matrix::zeros(statistics.num_groups(), statistics.num_source_groups());
        for u in 0..statistics.num_groups() {
            let column = GroupWeights::column_of(attention, &block, &statistics, u)?;
            weights.row_mut(u).copy_from_slice(&column);
        }
        Ok(Self { statistics, gamma, weights, linear: attention.kernel().linear_scale() })
    }

    /// The states and their statistics.
    pub fn statistics(&self) -> &ContextStatistics {
        &self.statistics
    }

    /// M̂(u, s) = Σ_k K(S_{k-1}, u)·[S_{k-1} = s]: weights by predecessor.
    pub fn predecessor_matrix(&self) -> Matrix {
        let m = self.statistics.num_groups();
        let sources = self.statistics.num_source_groups();
        Matrix::from_fn(m, m, |u, s| {
            if s < sources { self.weights[(u, s)] * self.statistics.visits()[s] } else { 0.0 }
        })
    }

    /// P̂(u, s) = Σ_k K(S_{k-1}, u)·[S_k = s]: weights by successor.
    pub fn successor_matrix(&self) -> Matrix {
        let m = self.statistics.num_groups();
        let mut p = Matrix::zeros(m, m);
        for u in 0..m {
            for s in 0..self.statistics.num_source_groups() {
                for (next, count) in self.statistics.successors(s) {
                    p[(u, next)] += self.weights[(u, s)] * count;
                }
            }
        }
        p
    }

    /// J = I - α(M̂ - γP̂), the linear part of a layer with step size α.
    pub fn jacobian(&self, alpha: f64) -> Matrix {
        let (m, p) = (self.predecessor_matrix(), self.successor_matrix());
        Matrix::from_fn(m.num_rows(), m.num_rows(), |i, j| {
            f64::from(u8::from(i == j)) - alpha * (m[(i, j)] - self.gamma * p[(i, j)])
        })
    }

    /// M̂r: the expected reward under the weights of each state.
    pub fn reward_term(&self) -> Vec<f64> {
        self.weights.mul_vec(self.statistics.reward_sums())
    }

    /// One layer with step size α: J v + α·M̂r.
    pub fn apply(&self, alpha: f64, v: &[f64]) -> Vec<f64> {
        let moved = self.jacobian(alpha).mul_vec(v);
        moved.iter().zip(self.reward_term()).map(|(x, r)| x + alpha * r).collect()
    }

    /// The matrix F Wᵀ on source states, where F v = diag(c)·v - γ N v. A layer with step size α
    /// multiplies the summed TD errors of the source states by I - α F Wᵀ, and F Wᵀ has the non-zero
    /// spectrum of M̂ - γP̂ without the zeros that states never left add to it.
    fn residual_map(&self) -> Matrix {
        let sources = self.statistics.num_source_groups();
        Matrix::from_fn(sources, sources, |s, t| {
            let bootstrap: f64 =
                self.statistics.successors(s).map(|(next, count)| count * self.weights[(next, t)]).sum();
            self.statistics.visits()[s] * self.weights[(s, t)] - self.gamma * bootstrap
        })
    }

    /// The rate at which TD errors shrink per layer: the spectral radius of I - α F Wᵀ. Below 1 the
    /// iteration converges from every start.
    ///
    /// With the linear kernel only d directions of the errors ever change; the rate is then that of the
    /// weight vector.
    pub fn spectral_radius(&self, alpha: f64) -> Result<f64, OperatorError> {
        let map = match self.linear {
            Some(scale) => {
                let (a, _) = self.normal_equations();
                let factor = scale / self.statistics.num_transitions() as f64;
                Matrix::from_fn(a.num_rows(), a.num_rows(), |i, j| factor * a[(i, j)])
            }
            None => self.residual_map(),
        };
        let step = Matrix::from_fn(map.num_rows(), map.num_rows(), |i, j| {
            f64::from(u8::from(i == j)) - alpha * map[(i, j)]
        });
        Ok(linalg::spectral_radius(&step)?)
    }

    /// The value of every state after infinitely many layers from v = 0, in closed form; the step
    /// size does not matter.
    ///
    /// Every iterate is v(u) = Σ_s W(s, u)·y(s), and y converges to the solution of F Wᵀ y = ρ, with
    /// ρ the reward sums. On states that were left this solves (M̂ - γP̂) v = M̂r, and it covers query
    /// states too, for which that equation alone says nothing. It is the limit of the iteration when
    /// [`spectral_radius`](Self::spectral_radius) is below 1.
    ///
    /// With the linear kernel F Wᵀ has rank d; the same limit is then found in weight space
    /// (least-squares TD).
    pub fn infinite_depth(&self) -> Result<Vec<f64>, OperatorError> {
        if self.linear.is_some() {
            let (a, b) = self.normal_equations();
            let w = linalg::solve(&a, &b)?;
            let value = |u| self.statistics.features(u).iter().zip(&w).map(|(x, w)| x * w).sum();
            return Ok((0..self.statistics.num_groups()).map(value).collect());
        }
        let y = linalg::solve(&self.residual_map(), self.statistics.reward_sums())?;
        Ok(self.weights.mul_vec(&y))
    }

    /// Least-squares TD: Σ_s x_s (c(s)·x_s - γ Σ N(s, s')·x_{s'})ᵀ w = Σ_s ρ(s)·x_s.
    fn normal_equations(&self) -> (Matrix, Vec<f64>) {
        let d = self.statistics.feature_dim();
        let (mut a, mut b) = (Matrix::zeros(d, d), vec![0.0; d]);
        for s in 0..self.statistics.num_source_groups() {
            let x = self.statistics.features(s);
            let mut difference: Vec<f64> = x.iter().map(|x| self.statistics.visits()[s] * x).collect();
            for (next, count) in self.statistics.successors(s) {
                for (f, x) in difference.iter_mut().zip(self.statistics.features(next)) {
                    *f -= self.gamma * count * x;
                }
            }
            for i in 0..d {
                b[i] += self.statistics.reward_sums()[s] * x[i];
                a.row_mut(i).iter_mut().zip(&difference).for_each(|(a, f)| *a += x[i] * f);
            }
        }
        (a, b)
    }
}
