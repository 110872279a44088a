//! The operator of a layer on states.

use crate::context::{Context, ContextStatistics};
use crate::kernel::{Attention, AttentionError, ProductError, Scores};
use crate::linalg::{self, Eigenvalue, LinalgError};
use crate::matrix::Matrix;
use crate::random::{Purpose, Stream};
use crate::statistics::largest;
use crate::task::FiniteTask;
use crate::transformer::ValueRow;
use crate::watch::Stopped;

use super::masses::{are_distinct, log_mass};
use super::span::Directions;

/// The operator T(v) = (I - M + γP) v + M r of a layer at theta_* (paper, eq:operator-compact).
///
/// [`empirical`](Self::empirical) is T̂ of a context with M̂ and P̂, on its distinct states: all that occur
/// in a column, sources first (see [`ContextStatistics`]); rows exist for queries too, which no other row
/// refers to. [`population`](Self::population) is its limit for long contexts, with M_π and M_π P_π. M r is
/// formed from the rewards received, so rewards need not be a function of the state.
#[derive(Clone, Debug)]
pub struct StateOperator {
    pub(super) statistics: ContextStatistics,
    pub(super) gamma: f64,
    pub(super) attention: Attention,
    /// The score block B, where it is not the identity.
    pub(super) block: Option<Matrix>,
    /// Entry (u, s) = W(s, u), the weight of one visit to source state s for state u.
    pub(super) weights: Matrix,
    /// log w(s) of every source state, where W(s, u) = k(s, u)/w(u), for positive definite kernels k.
    log_masses: Option<Vec<f64>>,
    /// Factors that the rows of the weights were multiplied by, where they were.
    pub(super) row_steps: Option<Vec<f64>>,
}

/// Values, where none of them overflows.
fn finite(values: Vec<f64>) -> Result<Vec<f64>, OperatorError> {
    let size = values.len();
    if values.iter().all(|v| v.is_finite()) { Ok(values) } else { Err(LinalgError::Overflow { size }.into()) }
}

/// The states that were reached but never left, in order.
pub(super) fn never_left(statistics: &ContextStatistics) -> Vec<usize> {
    let sources = statistics.num_source_groups();
    let mut reached = vec![false; statistics.num_groups()];
    for s in 0..sources {
        statistics.successors(s).for_each(|(next, _)| reached[next] = true);
    }
    (sources..reached.len()).filter(|&u| reached[u]).collect()
}

/// Why an operator has no usable answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// Diagonal mixing makes values depend on columns, not only on states.
    #[error("diagonal mix is {0}, expected 0: with mixing a layer is no operator on states")]
    DiagonalMix(f64),
    /// A step size must be positive and finite.
    #[error("step size is {0}, expected a finite number > 0")]
    StepSize(f64),
    /// A tolerance must be positive and finite.
    #[error("tolerance is {0}, expected a finite number > 0")]
    Tolerance(f64),
    /// Weights could not be computed.
    #[error(transparent)]
    Attention(#[from] AttentionError),
    /// Parameters and states must have the same feature dimension.
    #[error("params: made for {expected} features, but the states have {found}")]
    #[allow(missing_docs, reason = "the message says what they are")]
    FeatureDim { expected: usize, found: usize },
    /// Scores must see features alone, and layers write memories alone.
    #[error(
        "params: scores depend on rewards or memory, or inputs are overwritten; expected a layer on states"
    )]
    NeedsTokens,
    /// Messages must be positive multiples of TD errors of some discount.
    #[error(
        "params: V's last row has {target} on the target and {value} on the value, expected at least 0 and below 0: such layers are no steps of TD"
    )]
    #[allow(missing_docs, reason = "the message says what they are")]
    NotTd { target: f64, value: f64 },
    /// A linear system or eigenvalue problem could not be solved.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// It was told to stop.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl From<ProductError> for OperatorError {
    fn from(error: ProductError) -> Self {
        match error {
            ProductError::Attention(error) => error.into(),
            ProductError::Stopped(error) => error.into(),
        }
    }
}

impl StateOperator {
    /// The operator of a context.
    pub fn empirical(context: &Context, attention: &Attention, gamma: f64) -> Result<Self, OperatorError> {
        Self::of(ContextStatistics::per_state(context), attention, gamma)
    }

    /// The operator of a task: visits are the stationary law, transitions those of the model.
    pub fn population(task: &FiniteTask, attention: &Attention) -> Result<Self, OperatorError> {
        Self::of(ContextStatistics::expected(task), attention, task.mrp().gamma())
    }

    /// The operator of given statistics.
    pub fn of(
        statistics: ContextStatistics,
        attention: &Attention,
        gamma: f64,
    ) -> Result<Self, OperatorError> {
        Self::with_block(statistics, attention, gamma, None)
    }

    /// As [`of`](Self::of), with scores of a block B in place of the identity.
    pub(super) fn with_block(
        statistics: ContextStatistics,
        attention: &Attention,
        gamma: f64,
        block: Option<Matrix>,
    ) -> Result<Self, OperatorError> {
        if attention.diagonal_mix() != 0.0 {
            return Err(OperatorError::DiagonalMix(attention.diagonal_mix()));
        }
        let mut weights = Matrix::zeros(statistics.num_groups(), statistics.num_source_groups());
        for u in 0..statistics.num_groups() {
            let scores = Scores { attention, block: block.as_ref(), statistics: &statistics };
            weights.row_mut(u).copy_from_slice(&scores.column(u)?);
        }
        let mass = |u| log_mass(attention, &statistics, weights.row(u), u);
        let sources = 0..statistics.num_source_groups();
        // Of a learned block it is not known that the kernel is positive definite.
        let known = block.is_none() && are_distinct(&statistics);
        let log_masses = if known { sources.map(mass).collect() } else { None };
        let attention = attention.clone();
        Ok(Self { statistics, gamma, attention, block, weights, log_masses, row_steps: None })
    }

    /// The same layer with a step size of its own for every state, proportional to the mass w(s) that
    /// normalisation divides by and at most 1 on states that were left: the unnormalised kernel. `None` where w
    /// is not known (kernels that are not positive definite) or a state was reached and never left.
    pub fn with_steps_by_mass(&self) -> Option<Self> {
        let masses = self.log_masses.as_ref().filter(|_| self.never_left().is_empty())?;
        let largest = masses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut scaled = self.clone();
        let mut steps = Vec::with_capacity(self.statistics.num_groups());
        for u in 0..self.statistics.num_groups() {
            // A query that nothing looks like has no weights to multiply.
            let mass = log_mass(&self.attention, &self.statistics, self.weights.row(u), u);
            let step = mass.map(|m| (m - largest).exp()).filter(|s| s.is_finite()).unwrap_or(1.0);
            scaled.weights.row_mut(u).iter_mut().for_each(|w| *w *= step);
            steps.push(step);
        }
        scaled.log_masses = Some(vec![largest; masses.len()]);
        scaled.row_steps = Some(steps);
        Some(scaled)
    }

    /// The states that were reached but never left, in order. Queries that no transition leads to are not among
    /// them: no other row refers to theirs.
    pub fn never_left(&self) -> Vec<usize> {
        never_left(&self.statistics)
    }

    /// The discount γ.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// log w(s) of every source state, where M(u, s) = μ(s)·k(s, u)/w(u); for positive definite kernels on
    /// distinct features.
    pub(crate) fn log_masses(&self) -> Option<&[f64]> {
        self.log_masses.as_deref()
    }

    /// The states and their statistics.
    pub fn statistics(&self) -> &ContextStatistics {
        &self.statistics
    }

    /// M̂(u, s) = Σ_k K(S_{k-1}, u)·[S_{k-1} = s]: weights by predecessor (paper, eq:Mn; eq:Mpi for a population).
    pub fn predecessor_matrix(&self) -> Matrix {
        let m = self.statistics.num_groups();
        let sources = self.statistics.num_source_groups();
        Matrix::from_fn(m, m, |u, s| {
            if s < sources { self.weights[(u, s)] * self.statistics.visits()[s] } else { 0.0 }
        })
    }

    /// M̂(s, s) of every source state.
    pub fn self_weights(&self) -> Vec<f64> {
        self.statistics.visits().iter().enumerate().map(|(s, c)| c * self.weights[(s, s)]).collect()
    }

    /// P̂(u, s) = Σ_k K(S_{k-1}, u)·[S_k = s]: weights by successor (paper, eq:Mn).
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

    /// M̂(u, s) over source states s.
    pub fn predecessor_weights(&self, u: usize) -> impl Iterator<Item = f64> {
        self.weights.row(u).iter().zip(self.statistics.visits()).map(|(w, c)| w * c)
    }

    /// How many transitions the value of state `u` rests on, 1/Σ K² for weights K of transitions.
    pub fn effective_transitions(&self, u: usize) -> f64 {
        let weights = self.predecessor_weights(u).zip(self.statistics.visits());
        1.0 / weights.map(|(w, c)| w * w / c).sum::<f64>()
    }

    /// X = M̂ - γP̂: a layer with step size α is v ↦ v + α(M̂r - X v).
    pub fn difference_matrix(&self) -> Matrix {
        let m = self.statistics.num_groups();
        let mut x = Matrix::zeros(m, m);
        for u in 0..m {
            let weights = self.weights.row(u);
            let row = x.row_mut(u);
            for (s, &weight) in weights.iter().enumerate() {
                row[s] += weight * self.statistics.visits()[s];
                for (next, count) in self.statistics.successors(s) {
                    row[next] -= self.gamma * weight * count;
                }
            }
        }
        x
    }

    /// J = I - α(M̂ - γP̂), the linear part of a layer with step size α (paper, eq:def_J).
    pub fn jacobian(&self, step_size: f64) -> Matrix {
        let x = self.difference_matrix();
        &Matrix::identity(x.num_rows()) - &x.map(|x| step_size * x)
    }

    /// ‖J‖∞ over the rows of the states that other rows refer to: all but queries that no transition leads to.
    /// Rounded up, so that it is never below the true norm ([`weight_errors`](Self::weight_errors)).
    pub fn jacobian_norm(&self, step_size: f64) -> f64 {
        let x = self.difference_matrix();
        let errors = self.weight_errors();
        let steps = 8.0 + self.num_terms() as f64;
        let row_sum = |u: usize| -> f64 {
            let entry = |(s, x): (usize, &f64)| (f64::from(u8::from(u == s)) - step_size * x).abs();
            let sum: f64 = x.row(u).iter().enumerate().map(entry).sum();
            let weight: f64 = self.predecessor_weights(u).map(f64::abs).sum();
            let rounded = f64::EPSILON * steps * (1.0 + step_size * (1.0 + self.gamma) * weight);
            sum + rounded + step_size * (1.0 + self.gamma) * errors[u]
        };
        let rows = (0..self.statistics.num_source_groups()).chain(self.never_left());
        largest(rows.map(row_sum))
    }

    /// One layer with step size α, v + α·M(r + γP v - v) (paper, eq:recur), without forming a matrix: TD errors summed by
    /// source state, then weighted. Costs O(states·sources + transitions).
    pub fn apply(&self, step_size: f64, v: &[f64]) -> Vec<f64> {
        self.apply_errors(step_size, v, &self.summed_errors(v))
    }

    /// One layer with step size α, given the summed TD errors at `v`.
    pub(crate) fn apply_errors(&self, step_size: f64, v: &[f64], errors: &[f64]) -> Vec<f64> {
        let change = self.weights.mul_vec(errors);
        v.iter().zip(change).map(|(v, d)| v + step_size * d).collect()
    }

    /// The values after `num_layers` layers with step size α from v = 0. Many layers are taken by squaring the map on
    /// coordinates y (v = Σ_s W(s, ·)·y(s)), which costs the cube of the sources but only the logarithm of the depth.
    pub fn values_after(&self, step_size: f64, num_layers: usize) -> Vec<f64> {
        let sources = self.statistics.num_source_groups();
        let squarings = num_layers.max(1).ilog2() as usize + 1;
        if num_layers <= 2 * squarings * sources {
            let start = vec![0.0; self.statistics.num_groups()];
            return (0..num_layers).fold(start, |v, _| self.apply(step_size, &v));
        }
        // y ↦ T y + b, squared once per bit of the depth.
        let mut power = &Matrix::identity(sources) - &self.residual_map().map(|x| step_size * x);
        let mut shift: Vec<f64> = self.statistics.reward_sums().iter().map(|r| step_size * r).collect();
        let mut y = vec![0.0; sources];
        let plus = |x: Vec<f64>, b: &[f64]| -> Vec<f64> { x.iter().zip(b).map(|(x, b)| x + b).collect() };
        for bit in 0..squarings {
            if num_layers >> bit & 1 == 1 {
                y = plus(power.mul_vec(&y), &shift);
            }
            shift = plus(power.mul_vec(&shift), &shift);
            power = power.matmul(&power);
        }
        self.weights.mul_vec(&y)
    }

    /// The TD errors of all transitions at the values `v`, summed by source state.
    pub(crate) fn summed_errors(&self, v: &[f64]) -> Vec<f64> {
        self.messages(ValueRow::TD, v)
    }

    /// What every source state sends when V's last row is `row`.
    pub(super) fn messages(&self, row: ValueRow<'_>, v: &[f64]) -> Vec<f64> {
        let message = |s| row.message(&self.statistics, self.gamma, v, s);
        (0..self.statistics.num_source_groups()).map(message).collect()
    }

    /// The matrix F Wᵀ on source states, where F v = diag(c)·v - γ N v. A layer with step size α
    /// multiplies the summed TD errors of the source states by I - α F Wᵀ, and F Wᵀ has the non-zero
    /// spectrum of M̂ - γP̂ without the zeros that states never left add to it.
    pub(super) fn residual_map(&self) -> Matrix {
        let sources = self.statistics.num_source_groups();
        let mut map = Matrix::zeros(sources, sources);
        for s in 0..sources {
            let visits = self.statistics.visits()[s];
            let row = map.row_mut(s);
            row.iter_mut().zip(self.weights.row(s)).for_each(|(x, w)| *x = visits * w);
            for (next, count) in self.statistics.successors(s) {
                let factor = self.gamma * count;
                row.iter_mut().zip(self.weights.row(next)).for_each(|(x, w)| *x -= factor * w);
            }
        }
        map
    }

    /// The eigenvalues λ that decide what depth does: a layer with step size α multiplies TD errors by
    /// factors 1 - αλ.
    ///
    /// They are those of F Wᵀ. With the linear kernel only d directions of the errors ever change, or fewer where
    /// features span fewer; they are then those of the map on the weight vector within that span.
    pub fn eigenvalues(&self) -> Result<Vec<Eigenvalue>, OperatorError> {
        Ok(linalg::eigenvalues(&self.error_map())?)
    }

    /// The eigenvalues after changing every entry of their matrix by up to `size` times its norm: where they
    /// move, rounding moved [`eigenvalues`](Self::eigenvalues) too.
    pub(crate) fn perturbed_eigenvalues(&self, size: f64) -> Result<Vec<Eigenvalue>, OperatorError> {
        let map = self.error_map();
        let change = size * map.norm_inf() / map.num_rows() as f64;
        // Any fixed stream will do.
        let mut stream = Stream::new(0, Purpose::Evaluation, 0);
        let moved = Matrix::from_fn(map.num_rows(), map.num_rows(), |i, j| {
            map[(i, j)] + change * stream.uniform_in(-1.0, 1.0)
        });
        Ok(linalg::eigenvalues(&moved)?)
    }

    /// The matrix that a layer with step size 1 subtracts from the identity on TD errors.
    fn error_map(&self) -> Matrix {
        let Some(scale) = self.attention.kernel().linear_scale() else { return self.residual_map() };
        let (a, _) = self.normal_equations(&self.directions());
        let factor = scale / self.statistics.num_transitions() as f64;
        a.map(|x| factor * x)
    }

    /// The rate at which TD errors shrink per layer: the largest |1 - αλ|. Below 1 the iteration converges
    /// from every start.
    pub fn spectral_radius(&self, step_size: f64) -> Result<f64, OperatorError> {
        let factor = |z: Eigenvalue| (1.0 - step_size * z.re).hypot(step_size * z.im);
        Ok(largest(self.eigenvalues()?.into_iter().map(factor)))
    }

    /// The value of every state after infinitely many layers from v = 0, in closed form; the step
    /// size does not matter.
    ///
    /// Every iterate is v(u) = Σ_s W(s, u)·y(s), and y converges to the solution of F Wᵀ y = R, with
    /// R the reward sums. On states that were left this solves (M̂ - γP̂) v = M̂r, and it covers query
    /// states too, for which that equation alone says nothing. It is the limit of the iteration when
    /// [`spectral_radius`](Self::spectral_radius) is below 1.
    ///
    /// With the linear kernel F Wᵀ has rank d; the same limit is then found in weight space
    /// (least-squares TD).
    pub fn infinite_depth(&self) -> Result<Vec<f64>, OperatorError> {
        if self.attention.kernel().linear_scale().is_some() {
            let directions = self.directions();
            let (a, b) = self.normal_equations(&directions);
            return finite(directions.seen.mul_vec(&linalg::solve(&a, &b)?));
        }
        let y = linalg::solve(&self.residual_map(), self.statistics.reward_sums())?;
        finite(self.weights.mul_vec(&y))
    }

    /// The directions in which linear attention moves values.
    fn directions(&self) -> Directions {
        Directions::reduced(&self.statistics, self.block.as_ref())
    }

    /// Least-squares TD: Σ_s x_s (c(s)·B x_s - γ Σ N(s, s')·B x_{s'})ᵀ w = Σ_s R(s)·x_s, in the coordinates of some directions.
    pub(super) fn normal_equations(&self, Directions { moved, seen }: &Directions) -> (Matrix, Vec<f64>) {
        let d = moved.num_cols();
        let (mut a, mut b) = (Matrix::zeros(d, d), vec![0.0; d]);
        for s in 0..self.statistics.num_source_groups() {
            let x = moved.row(s);
            let mut difference: Vec<f64> =
                seen.row(s).iter().map(|x| self.statistics.visits()[s] * x).collect();
            for (next, count) in self.statistics.successors(s) {
                for (f, x) in difference.iter_mut().zip(seen.row(next)) {
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
