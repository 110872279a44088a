//! Transition matrices of finite ergodic Markov chains.

use crate::linalg::{self, Eigenvalue, LinalgError};
use crate::matrix::Matrix;
use crate::random::Stream;

/// A row may miss 1 by this much: ten-digit decimals pass, a forgotten entry does not.
const ROW_SUM_TOLERANCE: f64 = 1e-9;

/// The transition matrix P of a finite ergodic chain: entry (s, s') is p(s' | s).
#[derive(Clone, Debug, PartialEq)]
pub struct TransitionKernel {
    matrix: Matrix,
    cumulative: Matrix,
}

/// Why a matrix is not the transition matrix of an ergodic chain.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant says what its fields are, and so does its message")]
pub enum TransitionError {
    /// The matrix must be square and not empty.
    #[error("transition matrix is {rows}×{cols}, expected square with at least one state")]
    NotSquare { rows: usize, cols: usize },
    /// Every entry must be a probability: that at (`row`, `col`) is `value`.
    #[error("transition matrix: entry ({row}, {col}) is {value}, expected a probability")]
    NotAProbability { row: usize, col: usize, value: f64 },
    /// Every row must sum to 1.
    #[error("transition matrix: row {row} sums to {sum}, expected 1")]
    RowSum { row: usize, sum: f64 },
    /// Every state must be reachable from every other; a walk from `from` never meets `to`.
    #[error("transition matrix is not ergodic: state {to} cannot be reached from state {from}")]
    Reducible { from: usize, to: usize },
    /// The chain must be aperiodic; its period is 2 at least.
    #[error("transition matrix is not ergodic: the chain returns to state 0 only every {period} steps")]
    Periodic { period: usize },
}

impl TransitionKernel {
    /// Checks that `matrix` is the transition matrix of an ergodic chain.
    pub fn new(matrix: Matrix) -> Result<Self, TransitionError> {
        let (rows, cols) = (matrix.num_rows(), matrix.num_cols());
        if rows != cols || rows == 0 {
            return Err(TransitionError::NotSquare { rows, cols });
        }
        let mut cumulative = matrix.clone();
        for row in 0..rows {
            let mut sum = 0.0;
            for col in 0..cols {
                let value = matrix[(row, col)];
                // A range test, so that NaN is refused.
                if !(0.0..=1.0 + ROW_SUM_TOLERANCE).contains(&value) {
                    return Err(TransitionError::NotAProbability { row, col, value });
                }
                sum += value;
                cumulative[(row, col)] = sum;
            }
            if (sum - 1.0).abs() > ROW_SUM_TOLERANCE {
                return Err(TransitionError::RowSum { row, sum });
            }
        }
        let kernel = Self { matrix, cumulative };
        kernel.check_ergodic()?;
        Ok(kernel)
    }

    /// Irreducible when state 0 reaches every state along edges and against them; the period is then
    /// the greatest common divisor of level(s) + 1 - level(s') over all edges s → s', where level is
    /// the distance from state 0.
    fn check_ergodic(&self) -> Result<(), TransitionError> {
        let m = self.num_states();
        let levels = |edge: &dyn Fn(usize, usize) -> bool| {
            let mut level = vec![usize::MAX; m];
            level[0] = 0;
            let mut queue = std::collections::VecDeque::from([0]);
            while let Some(s) = queue.pop_front() {
                for next in (0..m).filter(|&next| edge(s, next)) {
                    if level[next] == usize::MAX {
                        level[next] = level[s] + 1;
                        queue.push_back(next);
                    }
                }
            }
            level
        };
        let forward = levels(&|s, next| self.matrix[(s, next)] > 0.0);
        if let Some(to) = forward.iter().position(|&d| d == usize::MAX) {
            return Err(TransitionError::Reducible { from: 0, to });
        }
        let backward = levels(&|s, next| self.matrix[(next, s)] > 0.0);
        if let Some(from) = backward.iter().position(|&d| d == usize::MAX) {
            return Err(TransitionError::Reducible { from, to: 0 });
        }
        let mut period = 0;
        for s in 0..m {
            for next in 0..m {
                if self.matrix[(s, next)] > 0.0 {
                    period = gcd(period, (forward[s] + 1).abs_diff(forward[next]));
                }
            }
        }
        if period == 1 { Ok(()) } else { Err(TransitionError::Periodic { period }) }
    }

    /// Number of states m.
    pub fn num_states(&self) -> usize {
        self.matrix.num_rows()
    }

    /// The matrix P.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// A successor of `state`.
    pub fn sample(&self, state: usize, stream: &mut Stream) -> usize {
        stream.categorical(self.cumulative.row(state))
    }

    /// The stationary distribution μ, with μ P = μ.
    ///
    /// # Numerics
    /// State reduction after Grassmann, Taksar and Heyman (1985): it subtracts nothing, so every
    /// entry has a small relative error however small it is.
    pub fn stationary_distribution(&self) -> Vec<f64> {
        let m = self.num_states();
        let mut p = self.matrix.clone();
        for last in (1..m).rev() {
            let outflow: f64 = p.row(last)[..last].iter().sum();
            for i in 0..last {
                p[(i, last)] /= outflow;
            }
            let from_last = p.row(last)[..last].to_vec();
            for i in 0..last {
                let weight = p[(i, last)];
                if weight > 0.0 {
                    for (entry, x) in p.row_mut(i).iter_mut().zip(&from_last) {
                        *entry += weight * x;
                    }
                }
            }
        }
        let mut mu = vec![0.0; m];
        mu[0] = 1.0;
        for s in 1..m {
            mu[s] = (0..s).map(|i| mu[i] * p[(i, s)]).sum();
        }
        let total: f64 = mu.iter().sum();
        mu.iter_mut().for_each(|x| *x /= total);
        mu
    }

    /// The eigenvalues of P, by decreasing modulus; the first is 1.
    pub fn eigenvalues(&self) -> Result<Vec<Eigenvalue>, LinalgError> {
        let mut values = linalg::eigenvalues(&self.matrix)?;
        values.sort_by(|a, b| b.modulus().total_cmp(&a.modulus()));
        Ok(values)
    }

    /// The eigenvalues of the additive reversibilisation (P + P*)/2, by decreasing value.
    ///
    /// P* = diag(μ)⁻¹ Pᵀ diag(μ) is the time reversal (appendix, Lemma "Theorem 12 of Fan et al.").
    /// The second entry is λ_r, and 1 - λ_r is the right spectral gap.
    pub fn reversibilisation_spectrum(&self) -> Result<Vec<f64>, LinalgError> {
        let root: Vec<f64> = self.stationary_distribution().into_iter().map(f64::sqrt).collect();
        // diag(√μ) (P + P*)/2 diag(√μ)⁻¹ is symmetric and similar to it.
        let m = self.num_states();
        let symmetric = Matrix::from_fn(m, m, |i, j| {
            0.5 * (root[i] * self.matrix[(i, j)] / root[j] + root[j] * self.matrix[(j, i)] / root[i])
        });
        let mut values = linalg::symmetric_eigenvalues(&symmetric)?;
        values.reverse();
        Ok(values)
    }

    /// λ_r of the chain of pairs (S_k, S_{k+1}), or 0 when it is negative, without forming that chain. A pair is a state when
    /// p(s' | s) > 0; (s, s') moves to (s', s'') with probability p(s'' | s').
    ///
    /// One step of the pair chain forgets the first entry, one step of its reversal the second. An eigenfunction of
    /// (P̃ + P̃*)/2 with λ ≠ 0 is therefore g(second) + h(first), and 2λ(g, h) = (P g + h, g + P* h): a matrix of size 2m
    /// instead of the number of pairs.
    pub fn pair_lambda_r(&self) -> Result<f64, LinalgError> {
        let m = self.num_states();
        let mu = self.stationary_distribution();
        let half = Matrix::from_fn(2 * m, 2 * m, |i, j| {
            0.5 * match (i < m, j < m) {
                (true, true) => self.matrix[(i, j)],
                (false, false) => mu[j - m] * self.matrix[(j - m, i - m)] / mu[i - m],
                _ => f64::from(u8::from(i % m == j % m)),
            }
        });
        // Self-adjoint in disguise: eigenvalues are real.
        let mut values: Vec<f64> = linalg::eigenvalues(&half)?.into_iter().map(|z| z.re).collect();
        values.sort_by(|a, b| b.total_cmp(a));
        Ok(values[1].max(0.0))
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
