//! Least-squares TD: on a table, on features, on a kernel; with traces; with a ridge.

use std::sync::Arc;

use super::linear::LinearFit;
use super::table::Table;
use super::{Fit, FitError, Method, SMALL, centre, check_dim};
use crate::evaluate::sample::Sample;
use crate::kernel::Kernel;
use crate::matrix::Matrix;
use crate::{linalg, parallel};

/// From this many states on a table is solved by sweeps first, which cost as much as the log has pairs of states.
const MIN_SWEEP: usize = 256;
/// Sweeps after which a table is solved by elimination.
const MAX_SWEEPS: usize = 2000;

/// What values are a combination of.
#[derive(Clone, Debug)]
pub enum Basis {
    /// One number per state that was left; others have the constant that fits best.
    Table,
    /// The features.
    Linear,
    /// A positive definite kernel at the states that were left: softmax, rbf, or linear, which is [`Basis::Linear`] again.
    Kernel(Arc<dyn Kernel>),
}

/// Least-squares TD, the fixed point that TD with this basis has if any: with v = c + u, c the constant that fits best,
/// Σ_s φ(s)·[Σr_s + γ Σ_s' N_ss' v(s') - n_s v(s)] = ridge · n · w, n the number of transitions and u = ⟨w, φ⟩. On a
/// kernel u = Σ_s β_s k(·, s) with ridge · n · β_s = [the bracket of s], the same in the kernel's features.
#[derive(Clone, Debug)]
pub struct Lstd {
    /// What values are a combination of.
    pub basis: Basis,
    /// Whether to use the traces that the log kept: LSTD(λ) with the log's λ. Brackets are then those of λ-returns.
    pub traces: bool,
    /// The ridge; 0 for none.
    pub ridge: f64,
}

/// Brackets as an affine function of values: Σ of rewards + Σ_s' M_ss' v(s') - n_s v(s).
struct Brackets<'a> {
    visits: &'a [f64],
    rewards: Vec<f64>,
    /// M, sparse.
    next: Vec<Vec<(usize, f64)>>,
}

impl<'a> Brackets<'a> {
    fn new(sample: &'a Sample<'_>, traces: bool) -> Result<Self, FitError> {
        let (log, states) = (sample.log(), 0..sample.num_states());
        if !traces {
            let next = |s: usize| sample.successors(s).map(|(to, n)| (to, sample.gamma() * n)).collect();
            let rewards = sample.reward_sums().to_vec();
            return Ok(Self { visits: sample.visits(), rewards, next: states.map(next).collect() });
        }
        if log.lambda.is_none() {
            return Err(FitError::NoTraces);
        }
        let weigh = |grid: &super::super::grid::Grid<f64>| grid.weigh(sample.weights(), |sum| *sum);
        let (rewards, pairs) = (log.trace_rewards.by_state(&weigh(&log.trace_rewards)), weigh(&log.traces));
        let next = |s: usize| {
            let pairs = log.traces.pairs_of(s).map(|p| (log.traces.to(p), pairs[p]));
            pairs.filter_map(|(to, sum)| Some((to?, sum))).collect()
        };
        Ok(Self { visits: sample.visits(), rewards, next: states.map(next).collect() })
    }

    /// The brackets of state s at these values.
    fn at(&self, s: usize, value: impl Fn(usize) -> f64) -> f64 {
        let next: f64 = self.next[s].iter().map(|&(to, weight)| weight * value(to)).sum();
        self.rewards[s] + next - self.visits[s] * value(s)
    }
}

#[derive(Debug)]
struct KernelFit {
    kernel: Arc<dyn Kernel>,
    sources: Matrix,
    constant: f64,
    weights: Vec<f64>,
    values: Vec<f64>,
}

/// k(x, y) for every row x of one matrix and y of another.
fn gram(kernel: &dyn Kernel, rows: &Matrix, cols: &Matrix) -> Result<Matrix, FitError> {
    let entry = |x: &[f64], y: &[f64]| {
        let similarity = kernel.similarity().of(x, y);
        let logarithm = kernel.log_weight(similarity).map(f64::exp);
        logarithm
            .or_else(|| kernel.linear_scale().map(|c| c * similarity))
            .ok_or(FitError::NotPositiveDefinite)
    };
    let row = |i: usize| cols.rows().map(|y| entry(rows.row(i), y)).collect::<Result<Vec<f64>, FitError>>();
    let is_small = rows.num_rows().saturating_mul(cols.num_rows()) <= SMALL;
    let entries: Vec<Vec<f64>> = match is_small {
        true => (0..rows.num_rows()).map(row).collect::<Result<_, _>>()?,
        false => parallel::try_map(rows.num_rows(), row)?,
    };
    Ok(Matrix::from_vec(rows.num_rows(), cols.num_rows(), entries.concat()))
}

impl Lstd {
    /// States that a dense system may have; larger ones take minutes.
    pub const MAX_STATES: usize = 4096;

    fn table(
        &self,
        sample: &Sample<'_>,
        constant: f64,
        brackets: &Brackets<'_>,
    ) -> Result<Vec<f64>, FitError> {
        let left: Vec<usize> = (0..sample.num_states()).filter(|&s| sample.visits()[s] > 0.0).collect();
        check_size(left.len())?;
        let ridge = self.ridge * sample.num_visits();
        let mut place = vec![usize::MAX; sample.num_states()];
        left.iter().enumerate().for_each(|(i, &s)| place[s] = i);
        let mut system = Matrix::zeros(left.len(), left.len());
        for (i, &s) in left.iter().enumerate() {
            system[(i, i)] += sample.visits()[s] + ridge;
            for &(to, weight) in brackets.next[s].iter().filter(|(to, _)| place[*to] != usize::MAX) {
                system[(i, place[to])] -= weight;
            }
        }
        let right: Vec<f64> = left.iter().map(|&s| brackets.at(s, |_| constant)).collect();
        let mut values = vec![constant; sample.num_states()];
        let solved = linalg::solve(&system, &right)?;
        left.iter().zip(solved).for_each(|(&s, u)| values[s] += u);
        Ok(values)
    }

    /// As [`table`](Self::table) by sweeps over the states, a Gauss–Seidel iteration that converges where the values exist;
    /// `None` where it takes too long.
    fn sweep(&self, sample: &Sample<'_>, constant: f64, brackets: &Brackets<'_>) -> Option<Vec<f64>> {
        let left: Vec<usize> = (0..sample.num_states()).filter(|&s| sample.visits()[s] > 0.0).collect();
        let ridge = self.ridge * sample.num_visits();
        // Of differences to the constant, which may be small against it.
        let right: Vec<f64> = left.iter().map(|&s| brackets.at(s, |_| constant)).collect();
        let mut values = vec![0.0; sample.num_states()];
        for _ in 0..MAX_SWEEPS {
            let (mut change, mut size): (f64, f64) = (0.0, 0.0);
            // Backwards: logs are not ordered in time, but one direction is as good as the other.
            for (&s, right) in left.iter().zip(&right).rev() {
                let (mut own, mut others) = (sample.visits()[s] + ridge, *right);
                for &(to, weight) in &brackets.next[s] {
                    if to == s {
                        own -= weight;
                    } else {
                        others += weight * values[to];
                    }
                }
                let value: f64 = others / own;
                change = change.max((value - values[s]).abs());
                size = size.max(value.abs());
                values[s] = value;
                if !value.is_finite() {
                    return None;
                }
            }
            if change <= 1e-14 * size {
                return Some(values.into_iter().map(|u| constant + u).collect());
            }
        }
        None
    }

    fn linear(
        &self,
        sample: &Sample<'_>,
        constant: f64,
        brackets: &Brackets<'_>,
    ) -> Result<Vec<f64>, FitError> {
        let x = sample.features();
        let d = x.num_cols();
        check_size(d)?;
        let ridge = self.ridge * sample.num_visits();
        let (mut system, mut right) = (Matrix::diag(&vec![ridge; d]), vec![0.0; d]);
        for s in (0..sample.num_states()).filter(|&s| sample.visits()[s] > 0.0) {
            let mut change: Vec<f64> = x.row(s).iter().map(|x| brackets.visits[s] * x).collect();
            for &(to, weight) in &brackets.next[s] {
                change.iter_mut().zip(x.row(to)).for_each(|(y, x)| *y -= weight * x);
            }
            let bracket = brackets.at(s, |_| constant);
            for (a, &own) in x.row(s).iter().enumerate().filter(|(_, own)| **own != 0.0) {
                right[a] += own * bracket;
                system.row_mut(a).iter_mut().zip(&change).for_each(|(entry, y)| *entry += own * y);
            }
        }
        Ok(linalg::solve(&system, &right)?)
    }

    fn kernel(
        &self,
        kernel: &Arc<dyn Kernel>,
        sample: &Sample<'_>,
        constant: f64,
        brackets: &Brackets<'_>,
    ) -> Result<KernelFit, FitError> {
        let x = sample.features();
        let left: Vec<usize> = (0..sample.num_states()).filter(|&s| sample.visits()[s] > 0.0).collect();
        check_size(left.len())?;
        let sources = Matrix::from_fn(left.len(), x.num_cols(), |i, a| x[(left[i], a)]);
        let k = gram(&**kernel, x, &sources)?;
        let ridge = self.ridge * sample.num_visits();
        // Row i: what bracket i loses per β, and the ridge.
        let mut system = Matrix::diag(&vec![ridge; left.len()]);
        for (i, &s) in left.iter().enumerate() {
            let row = system.row_mut(i);
            row.iter_mut().zip(k.row(s)).for_each(|(entry, k)| *entry += brackets.visits[s] * k);
            for &(to, weight) in &brackets.next[s] {
                row.iter_mut().zip(k.row(to)).for_each(|(entry, k)| *entry -= weight * k);
            }
        }
        let right: Vec<f64> = left.iter().map(|&s| brackets.at(s, |_| constant)).collect();
        let weights = linalg::solve(&system, &right)?;
        let values = k.mul_vec(&weights).into_iter().map(|u| constant + u).collect();
        Ok(KernelFit { kernel: kernel.clone(), sources, constant, weights, values })
    }
}

pub(super) fn check_size(found: usize) -> Result<(), FitError> {
    if found > Lstd::MAX_STATES {
        Err(FitError::TooManyStates { found, limit: Lstd::MAX_STATES })
    } else {
        Ok(())
    }
}

impl Method for Lstd {
    fn name(&self) -> &'static str {
        match (&self.basis, self.traces, self.ridge > 0.0) {
            (Basis::Table, false, false) => "LSTD",
            (Basis::Table, true, false) => "LSTD(λ)",
            (Basis::Table, false, true) => "ridge LSTD",
            (Basis::Table, true, true) => "ridge LSTD(λ)",
            (Basis::Linear, false, false) => "linear LSTD",
            (Basis::Linear, true, false) => "linear LSTD(λ)",
            (Basis::Linear, false, true) => "ridge linear LSTD",
            (Basis::Linear, true, true) => "ridge linear LSTD(λ)",
            (Basis::Kernel(_), false, false) => "kernel LSTD",
            (Basis::Kernel(_), true, false) => "kernel LSTD(λ)",
            (Basis::Kernel(_), false, true) => "ridge kernel LSTD",
            (Basis::Kernel(_), true, true) => "ridge kernel LSTD(λ)",
        }
    }

    fn fit(&self, sample: &Sample<'_>) -> Result<Box<dyn Fit>, FitError> {
        if !(self.ridge >= 0.0 && self.ridge.is_finite()) {
            return Err(FitError::Ridge(self.ridge));
        }
        let constant = centre(sample)?;
        let brackets = Brackets::new(sample, self.traces)?;
        Ok(match &self.basis {
            Basis::Table => {
                let many = sample.visits().iter().filter(|n| **n > 0.0).count() > MIN_SWEEP;
                let swept = if many { self.sweep(sample, constant, &brackets) } else { None };
                let values = swept.map_or_else(|| self.table(sample, constant, &brackets), Ok)?;
                Box::new(Table::new(sample, values, constant))
            }
            Basis::Linear => {
                Box::new(LinearFit::new(sample, constant, self.linear(sample, constant, &brackets)?))
            }
            Basis::Kernel(kernel) => Box::new(self.kernel(kernel, sample, constant, &brackets)?),
        })
    }
}

impl Fit for KernelFit {
    fn values(&self) -> &[f64] {
        &self.values
    }

    fn predict(&self, states: &Matrix) -> Result<Vec<f64>, FitError> {
        check_dim(self.sources.num_cols(), states)?;
        let k = gram(&*self.kernel, states, &self.sources)?;
        Ok(k.mul_vec(&self.weights).into_iter().map(|u| self.constant + u).collect())
    }
}
