//! What every construction says of itself, and the fast path that they share.

use crate::context::Context;
use crate::matrix::Matrix;
use crate::vector::{axpy, dot};
use crate::watch::{Stopped, Watch};

/// Transitions that are summed up before anybody is told of them.
const PART: usize = 4096;

/// What a layer is given beside its tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'a> {
    /// Step size α.
    pub size: f64,
    /// Number of transitions n.
    pub num_transitions: usize,
    /// Preconditioner C, d × d.
    pub preconditioner: &'a Matrix,
}

impl Step<'_> {
    /// α/n.
    pub fn share(&self) -> f64 {
        self.size / self.num_transitions as f64
    }
}

/// A construction on one trajectory: states in columns 0..n are left, column n is the query.
pub(super) trait Form {
    /// What the rows of its tokens are called, for d features.
    fn row_names(&self, d: usize) -> Vec<String>;

    /// The token matrix before the first layer.
    fn prompt(&self, context: &Context) -> Matrix;

    /// The token matrix after a layer, as the formula is written.
    fn layer(&self, z: &Matrix, step: Step<'_>) -> Matrix;

    /// The value of the query, read off a token matrix.
    fn value(&self, z: &Matrix, query: &[f64]) -> f64;

    /// What the fast path needs of the trajectory.
    fn factors(&self, context: &Context) -> Factors;
}

/// `x0`, …, `next0`, …: rows of features and of discounted features of the successor.
pub(super) fn feature_names(d: usize) -> Vec<String> {
    let names = |what: &'static str| (0..d).map(move |a| format!("{what}{a}"));
    names("x").chain(names("next")).collect()
}

/// A layer of every construction moves weights by (α/n)·C Σ_i δ_i e_i, which are d numbers, and TD errors by the inner
/// products of these with γφ'_i − φ_i: no matrix of n × n is needed.
#[derive(Clone, Debug)]
pub(super) struct Factors {
    /// Row i: e_i, what the TD error of transition i is multiplied by.
    pub eligibility: Matrix,
    /// Row i: γφ'_i − φ_i, by which the TD error changes with the weights.
    pub difference: Matrix,
    /// δ_i at w = 0.
    pub rewards: Vec<f64>,
}

impl Factors {
    /// Those of TD(0): e_i = φ_i.
    pub fn td(context: &Context, gamma: f64) -> Self {
        let (n, d) = (context.num_transitions(), context.feature_dim());
        let x = |i: usize, a: usize| context.features_of(i)[a];
        Self {
            eligibility: Matrix::from_fn(n, d, x),
            difference: Matrix::from_fn(n, d, |i, a| gamma * x(i + 1, a) - x(i, a)),
            rewards: context.rewards()[..n].to_vec(),
        }
    }

    /// Σ_i δ_i e_i.
    pub fn sum(&self, delta: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.eligibility.num_cols()];
        for (delta, e) in delta.iter().zip(self.eligibility.rows()) {
            axpy(*delta, e, &mut sum);
        }
        sum
    }

    /// One layer: changes TD errors to those after it and returns the change of the weights.
    pub fn layer(&self, delta: &mut [f64], step: Step<'_>) -> Vec<f64> {
        let share = step.share();
        let moved = step.preconditioner.mul_vec(&self.sum(delta));
        let change: Vec<f64> = moved.into_iter().map(|moved| share * moved).collect();
        for (delta, difference) in delta.iter_mut().zip(self.difference.rows()) {
            *delta += dot(difference, &change);
        }
        change
    }

    /// C Σ_i e_i (φ_i − γφ'_i)ᵀ and C Σ_i e_i δ_i at w = 0: layers rest where the first times the weights is the second. `watch` is told of
    /// every transition.
    pub fn equations(
        &self,
        preconditioner: &Matrix,
        watch: &dyn Watch,
    ) -> Result<(Matrix, Vec<f64>), Stopped> {
        let (n, d) = (self.rewards.len(), self.eligibility.num_cols());
        let (mut matrix, mut right) = (Matrix::zeros(d, d), vec![0.0; d]);
        watch.begin("where layers rest", "transitions", n as u64)?;
        for first in (0..n).step_by(PART) {
            let rows = PART.min(n - first);
            let part = |of: &Matrix| Matrix::from_fn(rows, d, |i, j| of[(first + i, j)]);
            let by_eligibility = preconditioner.matmul(&part(&self.eligibility).transpose());
            let moved = by_eligibility.matmul(&part(&self.difference));
            for i in 0..d {
                axpy(-1.0, moved.row(i), matrix.row_mut(i));
            }
            axpy(1.0, &by_eligibility.mul_vec(&self.rewards[first..first + rows]), &mut right);
            watch.advance(rows as u64)?;
        }
        Ok((matrix, right))
    }
}
